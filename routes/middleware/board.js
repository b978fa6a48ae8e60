import { dropBefore } from '../board/notices.js'

const dayMs = 24 * 3600 * 1000

/** Middleware `pageHeaders`: what a browser may do with the pages of the board. */
export function pageHeaders(ctx, next) {
  ctx.setHeader('Content-Security-Policy', "default-src 'self'; frame-ancestors 'none'; form-action 'self'; base-uri 'none'")
  ctx.setHeader('X-Content-Type-Options', 'nosniff')
  ctx.setHeader('Cache-Control', 'no-store')
  return next()
}

/** Runs at the start: takes down notices after a day. What it returns runs at the stop. */
export function setup(app) {
  const log = app.logger('app')
  const timer = setInterval(() => {
    const count = dropBefore(new Date(Date.now() - dayMs))
    if (count > 0) log(`${count} notices were older than a day`)
  }, 60_000)
  return () => clearInterval(timer)
}
