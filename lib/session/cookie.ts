/**
 * The session cookie: its value is the id, which is a secret.
 *
 * Surprise: an answer has one session cookie, the last that was set; a session may be saved more than once (RFC 6265,
 * section 4.1.1).
 */
import { randomBytes } from 'node:crypto'
import type { Context } from '../http/context.ts'
import { readCookie } from '../http/cookie.ts'

const idLength = 43
/** A look for what is wrong takes half as long as a pattern of what is right. */
const noneOfId = /[^A-Za-z0-9_-]/

/** A fresh id: 256 random bits in base64url. */
export function newSessionId(): string {
  return randomBytes(32).toString('base64url')
}

/** The id that the request's cookie holds; undefined when there is none of the shape that ids have. */
export function readSessionCookie(ctx: Context, name: string): string | undefined {
  const header = ctx.header('cookie')
  const value = header === undefined ? undefined : readCookie(header, name)
  return value !== undefined && value.length === idLength && !noneOfId.test(value) ? value : undefined
}

/** Sends the id. Without `maxAgeS` the cookie ends with the browser. */
export function setSessionCookie(ctx: Context, name: string, id: string, maxAgeS: number | undefined): void {
  ctx.lastingCookie = name
  ctx.setCookie(name, id, maxAgeS === undefined ? {} : { maxAge: maxAgeS })
  keepPrivate(ctx)
}

/** Takes the cookie away from the client. */
export function expireSessionCookie(ctx: Context, name: string): void {
  ctx.lastingCookie = name
  ctx.setCookie(name, '', { maxAge: 0 })
  keepPrivate(ctx)
}

/** Keeps the answer out of shared caches, unless the application has said what caches may do. */
export function keepPrivate(ctx: Context): void {
  if (ctx.outgoing.get('Cache-Control') === undefined) ctx.outgoing.set('Cache-Control', 'private')
}
