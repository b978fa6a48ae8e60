/**
 * The CSRF token in a session: 43 characters of base64url (RFC 4648, section 5), one for the life of the session.
 *
 * In a new session it is random. In a session that the store already has, it is the HMAC-SHA256 of the id, under a key
 * that is derived from `app_key` for this use alone: when several pages are opened at the same time, each finds no
 * token and makes one. With random tokens only the one that is saved last would be valid, and the forms of the other
 * pages would be refused.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { csrfTokenKey } from '../session/fields.ts'
import { Session } from '../session/session.ts'
import { deriveKey, isEqual } from '../tokens/signature.ts'

/** Makes and checks the tokens of sessions. */
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
    /** The token of a session, made when there is none yet. */
    of(session: Session): string {
      const known = knownToken(session)
      if (known !== undefined) return known
      const made = makeFor(session)
      session.set(csrfTokenKey, made)
      return made
    },
    /** Compares a token that was sent. A session without a token accepts none. */
    check(session: Session, token: string): 'ok' | 'mismatch' {
      const known = knownToken(session)
      return known !== undefined && isEqual(known, token) ? 'ok' : 'mismatch'
    },
  }
}

/** The session's token; undefined when an application has set that key to something else. */
function knownToken(session: Session): string | undefined {
  const value = session.get(csrfTokenKey)
  return typeof value === 'string' && tokenShape.test(value) ? value : undefined
}
