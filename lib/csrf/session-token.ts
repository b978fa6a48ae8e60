/**
 * The CSRF token that lies in a session: 43 characters of base64url (RFC 4648 section 5), one for the life of the
 * session. It is random, or, in a session that the store has had before, the HMAC-SHA256 of the id under a key that is
 * derived from `app_key` for this use alone.
 *
 * Surprise: the latter is for pages that are opened at the same time. Each finds no token, and all make the same one:
 * of random ones the last to be saved would count, and the other pages' forms would be dead.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { csrfTokenKey } from '../session/fields.ts'
import { Session } from '../session/session.ts'
import { isEqual } from '../tokens/signature.ts'
import { deriveKey } from './derive-key.ts'

/** Makes and checks the tokens of sessions. */
export interface SessionTokens {
  /** The token of a session, made when there is none yet. */
  of(session: Session): string
  /** Compares a token that was sent. A session without a token takes none. */
  check(session: Session, token: string): 'ok' | 'mismatch'
}

const tokenShape = /^[A-Za-z0-9_-]{43}$/

/**
 * Makes the tokens of a server.
 * @param appKey `app_key`; a token lies in its session, so it outlives a change of the key
 */
export function createSessionTokens(appKey: string): SessionTokens {
  const key = deriveKey(appKey, 'svc csrf token of a session')

  function makeFor(session: Session): string {
    const id = Session.lastingId(session)
    if (id === undefined) return randomBytes(32).toString('base64url')
    return createHmac('sha256', key).update(id).digest('base64url')
  }

  return {
    of(session) {
      const known = knownToken(session)
      if (known !== undefined) return known
      const made = makeFor(session)
      session.set(csrfTokenKey, made)
      return made
    },
    check(session, token) {
      const known = knownToken(session)
      return known !== undefined && isEqual(known, token) ? 'ok' : 'mismatch'
    },
  }
}

/** The token, unless an application has put something else in its place. */
function knownToken(session: Session): string | undefined {
  const value = session.get(csrfTokenKey)
  return typeof value === 'string' && tokenShape.test(value) ? value : undefined
}
