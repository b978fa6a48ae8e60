/**
 * Renders errors for the client: JSON `{error, detail?}` for a program, a small page for a person. From status 500 the
 * reason is hidden from the client, except in `dev`.
 */
import { createHash } from 'node:crypto'
import { isError, textOf } from '../base/reason.ts'
import type { CoreContext } from './context.ts'
import { HttpError, isHttpError, Refusal } from './errors.ts'
import { escapeHtml } from './escape-html.ts'
import type { HeaderList } from './header-list.ts'
import { STATUS_CODES } from './node-http.ts'
import { BodyReply, emptyReply, htmlType, jsonReply } from './reply.ts'

/**
 * Whether the client expects JSON: by the route's `error_format`, else by Accept, X-Requested-With, or a JSON request
 * body.
 */
export function wantsJson(request: Pick<CoreContext, 'header'> & Partial<Pick<CoreContext, 'errorFormat'>>): boolean {
  const { errorFormat = 'auto' } = request
  if (errorFormat !== 'auto') return errorFormat === 'json'
  if (request.header('accept')?.split(',').some(takesJson)) return true
  if (request.header('x-requested-with')?.toLowerCase() === 'xmlhttprequest') return true
  return /^application\/(?:[\w.-]+\+)?json\b/i.test(request.header('content-type') ?? '')
}

/** Whether a media range of Accept names JSON, except with `q=0`, which rejects it (RFC 9110, section 12.4.2). */
function takesJson(range: string): boolean {
  return /[/+]json\s*(?:;|$)/i.test(range) && !/;\s*q=0(?:\.0*)?\s*(?:;|$)/i.test(range)
}

/** Returns the HttpError for a thrown value: itself, or a 500 with the value as its cause. A Refusal is unchanged. */
export function toHttpError(thrown: unknown): HttpError | Refusal {
  if (Refusal.is(thrown)) return thrown
  if (isError(thrown)) {
    return isHttpError(thrown) ? thrown : new HttpError(500, 'internal_error', messageOf(thrown), { cause: thrown })
  }
  const text = typeof thrown === 'string' ? thrown : textOf(thrown)
  return new HttpError(500, 'internal_error', `A value that is not an Error was thrown: ${text}`, { cause: thrown })
}

/** Returns the message of an error, which may be a getter that throws. */
function messageOf(error: Error): string {
  try {
    return String(error.message)
  } catch {
    return 'An error with an unreadable message was thrown'
  }
}

/** A page for an error. */
export interface ErrorPage {
  readonly html: string
  /** The page's Content-Security-Policy; default: the application's. */
  readonly policy?: string
}

/** Renders the page for an error, or returns undefined. Does not throw. `detail`: the text that the client may see. */
export type PageForError = (
  ctx: CoreContext,
  error: HttpError | Refusal,
  detail: string | undefined,
) => ErrorPage | undefined

/**
 * Makes the reply for an error and sets the context's status and header fields for it. Fields that describe the
 * replaced reply are dropped; a `Cache-Control` that begins with `no-store` or `private` stays. Cookies stay below 500,
 * where the application intended the error, such as a refused sign-in. From 500 they are dropped, since they belong to
 * work that failed, except the cookie of a session that has been saved.
 * @param showsDetails whether a 500 shows its stack to the client (`dev`)
 * @param pageFor tried first when the reply is a page
 */
export function errorReply(
  ctx: CoreContext,
  error: HttpError | Refusal,
  showsDetails: boolean,
  pageFor?: PageForError,
): BodyReply {
  if (ctx.outgoingIfAny !== undefined) dropFields(ctx.outgoingIfAny, error.status, ctx.lastingCookie)
  for (const [name, value] of Object.entries(error.headers)) ctx.outgoing.set(name, value)
  const { invalid } = error
  if (invalid?.location !== undefined) {
    ctx.outgoing.set('Location', invalid.location)
    ctx.status = 303
    return emptyReply
  }
  ctx.status = error.status
  const origin = isError(error.cause) ? error.cause : error
  const detail = error.status < 500 ? error.message : showsDetails ? textOf(origin) : undefined
  if (wantsJson(ctx) && invalid !== undefined) return jsonReply({ error: error.code, errors: invalid.errors })
  if (wantsJson(ctx)) return jsonReply(detail === undefined ? { error: error.code } : { error: error.code, detail })
  const page = pageFor?.(ctx, error, detail) ?? builtInPage(ctx, error, detail)
  ctx.outgoing.set('X-Content-Type-Options', 'nosniff')
  if (page.policy !== undefined) ctx.outgoing.set('Content-Security-Policy', page.policy)
  return new BodyReply(htmlType, page.html)
}

/** Renders the default page for an error; parameters as in {@link PageForError}. */
export function builtInPage(ctx: CoreContext, { status, code }: HttpError | Refusal, detail?: string): ErrorPage {
  const failure = status < 500 ? undefined : { id: ctx.id, code }
  return { html: errorPage(status, detail, failure), policy: contentSecurityPolicy }
}

const style = `body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 15vh auto; padding: 0 1rem }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: inherit }
.stack { font: 0.9rem/1.5 ui-monospace, monospace }`
const contentSecurityPolicy = policyOf(style)

const droppedFields = [
  'Content-Disposition',
  'Content-Encoding',
  'Content-Language',
  'Content-Location',
  'Content-Range',
  'Content-Type',
  'ETag',
  'Expires',
  'Last-Modified',
  'Location',
  'Trailer',
]

function dropFields(outgoing: HeaderList, status: number, lastingCookie: string | undefined): void {
  for (const name of droppedFields) outgoing.delete(name)
  if (!/^(?:no-store|private)/.test(outgoing.get('Cache-Control') ?? '')) outgoing.delete('Cache-Control')
  if (status < 500) return
  const { flat } = outgoing
  const lasting = flat.filter((text, at) => at % 2 === 1 && isCookieOf(flat[at - 1], text, lastingCookie))
  outgoing.set('Set-Cookie', lasting)
}

function isCookieOf(field: string | undefined, text: string, name: string | undefined): boolean {
  return name !== undefined && field?.toLowerCase() === 'set-cookie' && text.startsWith(`${name}=`)
}

/** Renders a self-contained page with the status and, if given, the detail and the request id. Escapes everything. */
export function errorPage(
  status: number,
  detail: string | undefined,
  failure?: { readonly id: string; readonly code: string },
): string {
  const title = `${status} ${STATUS_CODES[status] ?? 'Error'}`
  const text =
    detail === undefined
      ? adviceFor(status, failure?.code)
      : `<pre${status < 500 ? '' : ' class="stack"'}>${escapeHtml(detail)}</pre>`
  const request = failure === undefined ? '' : `\n<p>Request <code>${escapeHtml(failure.id)}</code></p>`
  return htmlPage(title, style, text + request)
}

/** Renders a self-contained page with its title as the heading. Escapes nothing. */
export function htmlPage(title: string, css: string, content: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<style>${css}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${content}
</main>
</body>
</html>
`
}

/** Returns the Content-Security-Policy of such a page: the application's policy could forbid its style. */
export function policyOf(css: string): string {
  return `default-src 'none'; style-src 'sha256-${createHash('sha256').update(css).digest('base64')}'`
}

function adviceFor(status: number, code = ''): string {
  if (code === 'shared_away') {
    return '<p>A service that this page needs cannot be reached at the moment. Please try again soon.</p>'
  }
  if (code === 'maintenance') return '<p>This site is in maintenance. Please come back later.</p>'
  if (status === 503) return '<p>The server is busy or is being stopped. Please try again in a moment.</p>'
  return status >= 500 ? '<p>Something went wrong on the server. Its log has the details.</p>' : ''
}
