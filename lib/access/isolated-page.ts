/**
 * Renders the panel's own pages, each with the header fields that isolate it in the browser.
 *
 * Surprise: `Referrer-Policy` is `same-origin`, not `no-referrer`. With the latter, browsers send `Origin: null` with
 * the forms of the page, which the guard treats as another site.
 */
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import type { CoreContext } from '../http/context.ts'
import type { Reply } from '../http/reply.ts'
import type { AccessPort } from './access-port.ts'

/** The data that the layout needs, plus the page's own. `page` adds those that every page has. */
interface PageData extends Readonly<Record<string, unknown>> {
  readonly title: string
  /** Whether the page is behind the admin check, and so shows the navigation and the machine's name. */
  readonly signedIn: boolean
  /** The number of error groups, for the navigation; default: 0. */
  readonly errorCount?: number
  /** Whether the navigation has the background jobs; default: false. */
  readonly hasJobs?: boolean
  /** The result of a button, shown at the top of the page. */
  readonly result?: { readonly ok: boolean; readonly text: string } | undefined
}

/** The part of the server that a page uses. */
interface PagePort extends Pick<AccessPort, 'application' | 'pages'> {
  readonly config: Pick<AccessPort['config'], 'app.env'>
}

/**
 * Replies with a page.
 * @param file relative to `lib/panel/pages`
 * @param status default: 200
 * @throws ViewError if the page is missing or invalid; no header field is set then
 */
export function page(ctx: CoreContext, port: PagePort, file: string, data: PageData, status = 200): Reply {
  const nonce = randomBytes(16).toString('base64')
  const { application } = port
  const dev = port.config['app.env'] === 'dev'
  const common = { nonce, path: ctx.path, prefix: ctx.prefix, dev, application, host: hostname() }
  const text = port.pages.render(file, { errorCount: 0, hasJobs: false, result: undefined, ...data, ...common }, {})
  ctx.setHeader('Content-Security-Policy', policyOf(nonce))
  ctx.setHeader('X-Frame-Options', 'DENY')
  ctx.setHeader('X-Content-Type-Options', 'nosniff')
  ctx.setHeader('Cache-Control', 'no-store')
  ctx.setHeader('Referrer-Policy', 'same-origin')
  return ctx.html(text, status)
}

/**
 * Redirects to a page of the panel, or to a path of this server.
 * @param path without the prefix; begins with one slash
 * @param status default: 302
 */
export function redirectTo(ctx: CoreContext, path: string, status = 302): Reply {
  return ctx.redirect(ctx.prefix + path, status)
}

function policyOf(nonce: string): string {
  return [
    "default-src 'none'",
    `style-src 'nonce-${nonce}'`,
    `script-src 'nonce-${nonce}'`,
    "connect-src 'self'",
    'img-src data:',
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}
