/**
 * The CSRF token in a session: 43 characters of base64url (RFC 4648, section 5), one for the life of the session.
 *
 * In a new session it is random. In a session that is already stored, it is the HMAC-SHA256 of the id, with a key
 * derived from `app_key` for this use only: when several pages are opened at the same time, each finds no token and
 * makes one. With random tokens only the last saved would be valid, and the forms of the other pages would be refused.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { csrfTokenKey } from '../session/fields.ts'
import { Session } from '../session/session.ts'
import { deriveKey, isEqual } from '../tokens/signature.ts'

/** Makes and checks session tokens. */
export type SessionTokens = ReturnType<typeof createSessionTokens>

const tokenShape = /^[A-Za-z0-9_-]{43}$/

/**
 * Makes the tokens of a server.
 * @param appKey `app_key`; a token is stored in its session, so it stays valid when the key changes
 */
export function createSessionTokens(appKey: string) {
  const key = deriveKey(appKey, 'svc csrf token of a session')

  function makeFor(session: Session): string {
    const id = Session.lastingId(session)
    if (id === undefined) return randomBytes(32).toString('base64url')
    return createHmac('sha256', key).update(id).digest('base64url')
  }

  return {
    /** Returns the token of a session; creates it if necessary. */
    of(session: Session): string {
      const known = knownToken(session)
      if (known !== undefined) return known
      const made = makeFor(session)
      session.set(csrfTokenKey, made)
      return made
    },
    /** Checks a received token. A session without a token accepts none. */
    check(session: Session, token: string): 'ok' | 'mismatch' {
      const known = knownToken(session)
      return known !== undefined && isEqual(known, token) ? 'ok' : 'mismatch'
    },
  }
}

/** Returns the session's token; undefined if an application has set that key to something else. */
function knownToken(session: Session): string | undefined {
  const value = session.get(csrfTokenKey)
  return typeof value === 'string' && tokenShape.test(value) ? value : undefined
}
