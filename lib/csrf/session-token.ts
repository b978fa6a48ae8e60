/**
 * The CSRF token that lies in a session: 32 random bytes in base64url (RFC 4648 section 5), one for the life of the
 * session.
 */
import { randomBytes } from 'node:crypto'
import { isEqual } from '../tokens/signature.ts'
import type { Session } from '../session/session.ts'

/** The key of the session under which it lies. */
export const sessionTokenKey = '_csrf_token'

const tokenShape = /^[A-Za-z0-9_-]{43}$/

/** The token of a session, made when there is none yet. */
export function sessionToken(session: Session): string {
  const known = knownToken(session)
  if (known !== undefined) return known
  const made = randomBytes(32).toString('base64url')
  session.set(sessionTokenKey, made)
  return made
}

/** Compares a token that was sent. A session without a token takes none. */
export function checkSessionToken(session: Session, token: string): 'ok' | 'mismatch' {
  const known = knownToken(session)
  return known !== undefined && isEqual(known, token) ? 'ok' : 'mismatch'
}

/** The token, unless an application has put something else in its place. */
function knownToken(session: Session): string | undefined {
  const value = session.get(sessionTokenKey)
  return typeof value === 'string' && tokenShape.test(value) ? value : undefined
}
