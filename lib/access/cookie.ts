/**
 * The cookie `svc_admin`: `<unix seconds>:<sign>`, where the sign is the MD5, in hex, of `<secret>|<unix seconds>`;
 * hardened, the HMAC-SHA256 of `<unix seconds>` under the secret.
 *
 * Surprise: the server keeps no list of sign-ins. A cookie is valid until it expires or the secret changes; a logout
 * only makes the browser delete it.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { CoreContext } from '../http/context.ts'
import { readCookies } from '../http/cookie.ts'
import { cookiePath } from '../http/prefix.ts'
import type { AccessPort } from './access-port.ts'

/** How cookies are signed and how long they are valid. */
export interface CookieRules {
  /** `admin.secret`; if it is empty, no cookie is valid. */
  readonly secret: string
  /** `admin.hardened`. */
  readonly hardened: boolean
  /** `session.lifetime` in minutes; 0: unlimited. */
  readonly lifetimeMinutes: number
  /** Milliseconds since 1970. */
  readonly nowMs: number
}

/** The name of the cookie. */
export const adminCookieName = 'svc_admin'

/** How many seconds the clock that made a cookie may be ahead of this one. */
const maxAheadSeconds = 300

/** Returns the value of a new cookie. */
export function makeAdminCookie(rules: CookieRules): string {
  const timestamp = String(Math.floor(rules.nowMs / 1000))
  return `${timestamp}:${sign(timestamp, rules).toString('hex')}`
}

/** Whether a cookie value is signed with the secret, not too old, and not from the future. Never throws. */
export function isAdminCookie(value: string | undefined, rules: CookieRules): boolean {
  if (value === undefined || rules.secret === '') return false
  const [, timestamp, signature] = /^(\d{1,12}):([0-9a-f]{32}|[0-9a-f]{64})$/.exec(value) ?? []
  if (timestamp === undefined || signature === undefined) return false
  const expected = sign(timestamp, rules)
  const actual = Buffer.from(signature, 'hex')
  if (actual.length !== expected.length || !timingSafeEqual(actual, expected)) return false
  const ageSeconds = Math.floor(rules.nowMs / 1000) - Number(timestamp)
  return ageSeconds >= -maxAheadSeconds && (rules.lifetimeMinutes === 0 || ageSeconds <= rules.lifetimeMinutes * 60)
}

/** Returns the cookie rules of a configuration and a secret. */
export function cookieRulesOf(config: AccessPort['config'], secret: string, nowMs: number): CookieRules {
  return { secret, hardened: config['admin.hardened'], lifetimeMinutes: config['session.lifetime'], nowMs }
}

/** Whether a request has a valid cookie. Checks all of that name: another server on this host may have left some. */
export function hasAdminCookie(
  ctx: CoreContext,
  port: Pick<AccessPort, 'config' | 'credentials'>,
  nowMs: number,
): boolean {
  const header = ctx.header('cookie')
  if (header === undefined) return false
  const rules = cookieRulesOf(port.config, port.credentials().secret, nowMs)
  return readCookies(header, adminCookieName).some((value) => isAdminCookie(value, rules))
}

/** Sends the client a new cookie: HttpOnly, SameSite=Lax, with the prefix or `/` as its path, on TLS Secure. */
export function setAdminCookie(ctx: CoreContext, rules: CookieRules): void {
  const maxAge = rules.lifetimeMinutes * 60
  const path = cookiePath(ctx.prefix, adminCookieName)
  ctx.setCookie(adminCookieName, makeAdminCookie(rules), maxAge === 0 ? { path } : { path, maxAge })
}

/** Makes the client delete its cookie. */
export function dropAdminCookie(ctx: CoreContext): void {
  ctx.setCookie(adminCookieName, '', { path: cookiePath(ctx.prefix, adminCookieName), maxAge: 0 })
}

function sign(timestamp: string, { secret, hardened }: CookieRules): Buffer {
  return hardened
    ? createHmac('sha256', secret).update(timestamp).digest()
    : createHash('md5').update(`${secret}|${timestamp}`).digest()
}
