/**
 * The cookie `svc_admin`: `<unix seconds>:<sign>`, where the sign is the MD5, in hex, of `<secret>|<unix seconds>`;
 * hardened, the HMAC-SHA256 of `<unix seconds>` under the secret.
 *
 * Surprise: the server keeps no list of sign-ins. A cookie is valid until it is too old or the secret changes; a logout
 * only makes the browser drop it.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { CoreContext } from '../http/context.ts'
import { readCookies } from '../http/cookie.ts'
import type { AccessPort } from './port.ts'

/** How cookies are signed and how long they are valid. */
export interface CookieRules {
  /** `admin.secret`; with an empty one no cookie is valid. */
  readonly secret: string
  /** `admin.hardened`. */
  readonly hardened: boolean
  /** `session.lifetime` in minutes; 0: no end. */
  readonly lifetimeMinutes: number
  /** Milliseconds since 1970. */
  readonly nowMs: number
}

/** The name of the cookie. */
export const adminCookieName = 'svc_admin'

/** How many seconds a clock may be ahead of this one. */
const maxAheadSeconds = 300

/** The value of a cookie issued now. */
export function makeAdminCookie(rules: CookieRules): string {
  const timestamp = String(Math.floor(rules.nowMs / 1000))
  return `${timestamp}:${sign(timestamp, rules).toString('hex')}`
}

/** Whether the value of a cookie is signed with the secret, not too old, and not from the future. Never throws. */
export function isAdminCookie(value: string | undefined, rules: CookieRules): boolean {
  if (value === undefined || rules.secret === '') return false
  const [, timestamp, signature] = /^(\d{1,12}):([0-9a-f]{32}|[0-9a-f]{64})$/.exec(value) ?? []
  if (timestamp === undefined || signature === undefined) return false
  const expected = sign(timestamp, rules)
  const given = Buffer.from(signature, 'hex')
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return false
  const ageSeconds = Math.floor(rules.nowMs / 1000) - Number(timestamp)
  return ageSeconds >= -maxAheadSeconds && (rules.lifetimeMinutes === 0 || ageSeconds <= rules.lifetimeMinutes * 60)
}

/** The rules of a server with this secret. */
export function cookieRulesOf(config: AccessPort['config'], secret: string, nowMs: number): CookieRules {
  return { secret, hardened: config['admin.hardened'], lifetimeMinutes: config['session.lifetime'], nowMs }
}

/** Whether a request has a valid cookie. An earlier server on this host may have left others of the name before it. */
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

/** Gives the client a cookie issued now: HttpOnly, SameSite=Lax, Path=/, on TLS Secure. */
export function setAdminCookie(ctx: CoreContext, rules: CookieRules): void {
  const maxAge = rules.lifetimeMinutes * 60
  ctx.setCookie(adminCookieName, makeAdminCookie(rules), maxAge === 0 ? {} : { maxAge })
}

/** Makes the client drop its cookie at once. */
export function dropAdminCookie(ctx: CoreContext): void {
  ctx.setCookie(adminCookieName, '', { maxAge: 0 })
}

function sign(timestamp: string, { secret, hardened }: CookieRules): Buffer {
  return hardened
    ? createHmac('sha256', secret).update(timestamp).digest()
    : createHash('md5').update(`${secret}|${timestamp}`).digest()
}
