/**
 * The session cookie. Its value is the id, which is a secret. A session may be saved more than once per request; the
 * response has only the last cookie (RFC 6265, section 4.1.1).
 */
import { randomBytes } from 'node:crypto'
import type { CoreContext } from '../http/context.ts'
import { readCookie, readCookies } from '../http/cookie.ts'
import { cookiePath } from '../http/prefix.ts'

const idLength = 43
/** Searching for an invalid character is twice as fast as matching valid ones. */
const outsideOfIds = /[^A-Za-z0-9_-]/

const privateOnly: readonly string[] = ['Cache-Control', 'private']

/** Returns a new id: 256 random bits in base64url. */
export function newSessionId(): string {
  return randomBytes(32).toString('base64url')
}

/** Returns the first well-formed id in the request's cookies; undefined if there is none. */
export function readSessionCookie(ctx: CoreContext, name: string): string | undefined {
  const header = ctx.header('cookie')
  const value = header === undefined ? undefined : readCookie(header, name)
  return value === undefined || isSessionId(value) ? value : readSessionCookies(ctx, name)[0]
}

/** Returns the ids in all cookies of the name, each once, in the order sent. */
export function readSessionCookies(ctx: CoreContext, name: string): string[] {
  return [...new Set(readCookies(ctx.header('cookie') ?? '', name).filter(isSessionId))]
}

function isSessionId(value: string): boolean {
  return value.length === idLength && !outsideOfIds.test(value)
}

/** Sends the id. Without `maxAgeS` the cookie ends with the browser session. */
export function setSessionCookie(ctx: CoreContext, name: string, id: string, maxAgeS: number | undefined): void {
  ctx.lastingCookie = name
  const path = cookiePath(ctx.prefix, name)
  ctx.setCookie(name, id, maxAgeS === undefined ? { path } : { path, maxAge: maxAgeS })
  keepPrivate(ctx)
}

/** Makes the client delete the cookie. */
export function expireSessionCookie(ctx: CoreContext, name: string): void {
  ctx.lastingCookie = name
  ctx.setCookie(name, '', { path: cookiePath(ctx.prefix, name), maxAge: 0 })
  keepPrivate(ctx)
}

/** Keeps the response out of shared caches (RFC 9111, section 5.2.2.7), unless `Cache-Control` is set. */
export function keepPrivate(ctx: CoreContext): void {
  ctx.outgoing.fill(privateOnly)
}
