/**
 * The panel's own forms. A urlencoded body with `page=1` comes from one of them: its other fields are the members of
 * the JSON that a program would send, and the response is a redirect to the page that shows the result.
 *
 * The result travels in a one-minute cookie for that page only. So it is available whichever process answers, and no
 * link can forge it.
 */
import { isUtf8 } from 'node:buffer'
import { isObject } from '../base/object.ts'
import type { Action } from '../chain/compose.ts'
import type { CoreContext } from '../http/context.ts'
import { redirectTo } from '../access/isolated-page.ts'
import { isPrefetch } from '../http/origin.ts'
import { BodyReply } from '../http/reply.ts'

/** The result of a change. */
export interface Result {
  readonly ok: boolean
  /** Whether the change was made, but with a warning. */
  readonly warned: boolean
  readonly text: string
  /** The typed fields, if the change was refused: the form shows them again. */
  readonly fields: Readonly<Record<string, string>>
}

/** The page that shows the result of a change, and the text for a successful change. */
interface ResultPage {
  readonly page: string
  /** The query for the page after a successful change; none by default. */
  query?(answer: Readonly<Record<string, unknown>>): string
  text(answer: Readonly<Record<string, unknown>>): string
}

const cookie = 'svc_result'
/** A browser drops a cookie of more than 4,096 bytes, name and value together. */
const maxValueLength = 3500
const maxTextLength = 500
const keptSeconds = 60
/** Members that are not strings. */
const flags = new Set(['persist', 'enabled'])
const numbers = new Set(['ttl', 'body_limit_kb', 'request_timeout_s', 'seconds'])

const deletedText = ({ name }: Readonly<Record<string, unknown>>): string =>
  `Route ${String(name)} deleted. If a route file has it, the next reload brings it back.`

const changedText = ({ id, name, count }: Readonly<Record<string, unknown>>, what: string): string =>
  id === undefined ? `Dead jobs ${String(name)} ${what}: ${String(count)}.` : `Job ${String(id)} ${what}.`

/** The pages by the names of the routes. */
const resultPages: Readonly<Record<string, ResultPage>> = {
  'svc.trace.set': { page: '/svc-monitor', text: () => 'The trace is switched.' },
  'svc.cache.clear': { page: '/svc-monitor', text: ({ deleted }) => `View cache: ${String(deleted)} files deleted.` },
  'svc.stop': { page: '/svc-monitor', text: () => 'The server is stopping.' },
  'svc.bench.start': { page: '/svc-monitor', text: () => 'A bench window has begun: the counters are 0.' },
  'svc.bench.stop': { page: '/svc-monitor', text: () => 'The counters below are those of the bench window.' },
  'svc.routes.add': {
    page: '/svc-routes/list',
    query: ({ name }) => `?${new URLSearchParams({ record: String(name) }).toString()}`,
    text: ({ name, warning }) =>
      warning === undefined ? `Route ${String(name)} added.` : `Route ${String(name)} added, but: ${String(warning)}`,
  },
  'svc.routes.delete': { page: '/svc-routes/list', text: deletedText },
  'svc.routes.reload': {
    page: '/svc-routes/list',
    text: ({ total_loaded: loaded, warnings = [] }) =>
      [`${String(loaded)} routes loaded.`, ...(warnings as readonly string[])].join(' '),
  },
  'svc.jobs.retry': { page: '/svc-jobs', text: (answer) => changedText(answer, 'retried') },
  'svc.jobs.discard': { page: '/svc-jobs', text: (answer) => changedText(answer, 'removed') },
  'svc.jobs.run': { page: '/svc-jobs', text: ({ id }) => `Job ${String(id)} runs now.` },
  'svc.errors.clear': { page: '/svc-errors', text: () => 'All errors cleared.' },
}

/**
 * Makes a handler that answers with JSON answer forms of the panel too.
 * @param name of the route; a handler without a result page is returned unchanged
 */
export function answersForms(name: string, action: Action): Action {
  const shown = resultPages[name]
  if (shown === undefined) return action
  return async (ctx) => {
    const fields = await formOf(ctx)
    const reply = await action(ctx)
    if (fields === undefined || !(reply instanceof BodyReply)) return reply
    const answer = JSON.parse(reply.body.toString()) as Record<string, unknown>
    const ok = ctx.status < 400
    const warned = answer['warning'] !== undefined || answer['warnings'] !== undefined
    leaveResult(ctx, shown.page, { ok, warned, text: ok ? shown.text(answer) : String(answer['error']), fields })
    return redirectTo(ctx, shown.page + (ok ? (shown.query?.(answer) ?? '') : ''), 303)
  }
}

/** The fields of a form of the panel, without `page`; undefined for any other request. Throws as `readBytes` does. */
export async function formOf(ctx: CoreContext): Promise<Readonly<Record<string, string>> | undefined> {
  if (ctx.method !== 'POST' || !/^application\/x-www-form-urlencoded\b/i.test(ctx.header('content-type') ?? '')) {
    return undefined
  }
  const bytes = await ctx.readBytes()
  const form = new URLSearchParams(bytes.toString())
  if (form.get('page') !== '1' || !isUtf8(bytes)) return undefined
  form.delete('page')
  return Object.fromEntries(form)
}

/** Converts the fields of a form to JSON members. Empty fields are left out. */
export function membersOf(fields: Readonly<Record<string, string>>): Record<string, unknown> {
  const typed = Object.entries(fields).filter(([, text]) => text !== '')
  return Object.fromEntries(typed.map(([name, text]) => [name, valueOf(name, text)]))
}

/** Takes the result that the previous request left for this page; undefined if there is none. It is shown once. */
export function takeResult(ctx: CoreContext): Result | undefined {
  const value = ctx.cookies[cookie]
  if (value === undefined || value === '' || ctx.method !== 'GET' || isPrefetch(ctx)) return undefined
  ctx.setCookie(cookie, '', { path: ctx.prefix + ctx.path, maxAge: 0 })
  try {
    const left = JSON.parse(Buffer.from(value, 'base64url').toString()) as Record<string, unknown>
    const { ok, warned, text, fields } = left
    if (typeof text !== 'string') return undefined
    const kept = isObject(fields) ? Object.entries(fields).filter(([, typed]) => typeof typed === 'string') : []
    return { ok: ok === true, warned: warned === true, text, fields: Object.fromEntries(kept) as Result['fields'] }
  } catch {
    return undefined // The cookie is not one of ours.
  }
}

/** Leaves a result for a page. The typed fields are left out if they are not needed, or too long. */
function leaveResult(ctx: CoreContext, path: string, { ok, warned, text, fields }: Result): void {
  const short = text.length > maxTextLength ? `${text.slice(0, maxTextLength)}…` : text
  const whole = encode({ ok, warned, text: short, fields: ok ? {} : fields })
  const value = whole.length > maxValueLength ? encode({ ok, warned, text: short, fields: {} }) : whole
  ctx.setCookie(cookie, value, { path: ctx.prefix + path, maxAge: keptSeconds, sameSite: 'Strict' })
}

function encode(result: Result): string {
  return Buffer.from(JSON.stringify(result)).toString('base64url')
}

function valueOf(name: string, text: string): unknown {
  if (flags.has(name)) return text === 'true' || (text === 'false' ? false : text)
  return numbers.has(name) && /^\d{1,15}$/.test(text) ? Number(text) : text
}
