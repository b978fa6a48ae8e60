/**
 * The session cookie. Its value is the id, which is a secret. A session may be saved more than once for a request; the
 * answer then has the last cookie alone (RFC 6265, section 4.1.1).
 */
import { randomBytes } from 'node:crypto'
import type { CoreContext } from '../http/context.ts'
import { readCookie, readCookies } from '../http/cookie.ts'

const idLength = 43
/** Searching for a wrong character is twice as fast as matching right ones. */
const outsideOfIds = /[^A-Za-z0-9_-]/

const privateOnly: readonly string[] = ['Cache-Control', 'private']

/** A fresh id: 256 random bits in base64url. */
export function newSessionId(): string {
  return randomBytes(32).toString('base64url')
}

/** The id in the request's cookie, the first that has the form of an id; undefined when there is none. */
export function readSessionCookie(ctx: CoreContext, name: string): string | undefined {
  const header = ctx.header('cookie')
  const value = header === undefined ? undefined : readCookie(header, name)
  return value === undefined || isSessionId(value) ? value : readSessionCookies(ctx, name)[0]
}

/** The ids in all cookies of the name, each once, in the order sent. */
export function readSessionCookies(ctx: CoreContext, name: string): string[] {
  return [...new Set(readCookies(ctx.header('cookie') ?? '', name).filter(isSessionId))]
}

function isSessionId(value: string): boolean {
  return value.length === idLength && !outsideOfIds.test(value)
}

/** Sends the id. Without `maxAgeS` the cookie ends with the browser. */
export function setSessionCookie(ctx: CoreContext, name: string, id: string, maxAgeS: number | undefined): void {
  ctx.lastingCookie = name
  ctx.setCookie(name, id, maxAgeS === undefined ? {} : { maxAge: maxAgeS })
  keepPrivate(ctx)
}

/** Makes the client drop the cookie. */
export function expireSessionCookie(ctx: CoreContext, name: string): void {
  ctx.lastingCookie = name
  ctx.setCookie(name, '', { maxAge: 0 })
  keepPrivate(ctx)
}

/** Keeps the answer out of shared caches (RFC 9111, section 5.2.2.7), unless `Cache-Control` is set. */
export function keepPrivate(ctx: CoreContext): void {
  ctx.outgoing.fill(privateOnly)
}
