/**
 * The page of a 500 in `dev`: the message, the source lines around the error, the application's stack frames, and the
 * request. The frames of the server and of Node are collapsed, and values that look like secrets are masked.
 */
import { statSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isError, textOf } from '../base/reason.ts'
import { mayBeSecret } from '../base/secret-name.ts'
import type { CoreContext } from '../http/context.ts'
import { htmlPage, policyOf, type PageForError } from '../http/error-reply.ts'
import { escapeHtml } from '../http/escape-html.ts'
import { STATUS_CODES } from '../http/node-http.ts'
import { readFileWithin } from '../files/opened-file.ts'
import { isWithin } from '../files/paths.ts'

/** A place in a file of the application. */
interface Place {
  /** Absolute. */
  readonly path: string
  /** From 1. */
  readonly line: number
}

/** The members of an error that the page shows. */
interface Described {
  readonly name?: string
  readonly message: string
  readonly cause?: unknown
}

/** The maximum of errors shown, each the cause of the previous one. */
const maxCauses = 10
/** Source lines shown before and after the error. */
const contextLines = 6
/** A larger file is not read. */
const maxBytes = 2 ** 20
const style = `body { font: 1rem/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.2rem; color: #b3261e }
h2 { font-size: 1rem; margin: 2rem 0 .5rem }
pre, code, td { font: .85rem/1.6 ui-monospace, monospace }
.message { font-size: 1.05rem; white-space: pre-wrap; overflow-wrap: anywhere }
.source, .frames { overflow-x: auto; padding: .75rem 0; border: 1px solid #8884; border-radius: .4rem }
.source code, .frames code { display: inline-block; min-width: 100% }
.source span, .frames span { display: block; padding: 0 1rem; white-space: pre }
details { margin-top: .5rem }
.source b { display: inline-block; width: 4ch; margin-right: 1.5ch; text-align: right; font-weight: normal }
.source b { opacity: .6 }
.here { background: #b3261e2b }
table { border-collapse: collapse; width: 100% }
td { padding: .15rem 1rem .15rem 0; vertical-align: top; overflow-wrap: anywhere }
td:first-child { white-space: nowrap; opacity: .7 }
@media (max-width: 40rem) { td { display: block } }
@media (prefers-color-scheme: dark) { h1 { color: #f2b8b5 } }`
const policy = policyOf(style)

/**
 * Creates the function that shows errors of status 500 and above.
 * @param root `paths.root`, absolute: files outside do not belong to the application
 */
export function createDevErrorPage(root: string): PageForError {
  const page: PageForError = (ctx, error) => {
    const cause = isError(error) && isError(error.cause) ? error.cause : error
    const stack = isError(cause) ? String(cause.stack ?? '') : ''
    const frames = stack.split('\n').filter((line) => /^\s+at /.test(line))
    const appFrames = frames.filter((line) => placeInFrame(line, root) !== undefined)
    const place = placeInMessage(cause.message, root) ?? placeInFrame(appFrames[0] ?? '', root)
    const title = `${error.status} ${STATUS_CODES[error.status] ?? 'Error'}`
    const content = `<p class="message">${escapeHtml(messageOf(cause))}</p>
${place === undefined ? '' : sourceOf(place, root)}${framesOf(appFrames, frames, root)}
<h2>${escapeHtml(`${ctx.method} ${pathOf(ctx)}`)}</h2>
<table>
${rowsOf(ctx)}
</table>`
    return { html: htmlPage(title, style, content), policy }
  }
  return (ctx, error, detail) => {
    try {
      return error.status < 500 ? undefined : page(ctx, error, detail)
    } catch {
      return undefined // A member of the error is a getter that throws.
    }
  }
}

/** Returns the message and those of its causes, which may form a cycle. */
function messageOf(error: Described, depth = 1): string {
  const { name = 'Error', message, cause } = error
  const text = `${name}: ${message}`
  if (cause === undefined || depth === maxCauses) return text
  return `${text}\nCaused by: ${isError(cause) ? messageOf(cause, depth + 1) : textOf(cause)}`
}

/** Returns the place in a stack frame: `at run (file:///app/a.mjs?v=2:10:5)`. */
function placeInFrame(frame: string, root: string): Place | undefined {
  const location = frame.slice(Math.max(frame.lastIndexOf('('), frame.lastIndexOf(' ')) + 1)
  const parts = location.split(':')
  const [name = ''] = parts.slice(0, -2).join(':').split('?')
  if (!name.startsWith('file:///') && !name.startsWith('/')) return undefined
  return placeOf(name.startsWith('/') ? name : fileURLToPath(name), parts.at(-2) ?? '', root)
}

/** Returns the place in a message, as of a view or of a module that did not load: `views/a.html:3: ...`. */
function placeInMessage(message: string, root: string): Place | undefined {
  const [, name = '', line = ''] = /(?:^|\s)([^\s:]+\.(?:html|[cm]?[jt]s)):(\d+)/.exec(message) ?? []
  return name === '' ? undefined : placeOf(resolve(root, name), line, root)
}

function placeOf(path: string, line: string, root: string): Place | undefined {
  const isInApp = !path.startsWith(serverFolder) && !path.includes('/node_modules/')
  try {
    return isInApp && statSync(path).size <= maxBytes && isWithin(root, path) ? { path, line: Number(line) } : undefined
  } catch {
    return undefined // The file does not exist.
  }
}

/** `lib/` or `dist/`; the demo's root may contain it. */
const serverFolder = fileURLToPath(new URL('../', import.meta.url))

function sourceOf({ path, line }: Place, root: string): string {
  const lines = textOfFile(path, root).replace(/\n$/, '').split('\n')
  const first = Math.max(1, line - contextLines)
  const shown = lines.slice(first - 1, line + contextLines).map((text, at) => {
    const number = first + at
    return `<span${number === line ? ' class="here"' : ''}><b>${number}</b>${escapeHtml(text)}</span>`
  })
  const title = escapeHtml(`${relative(root, path)}:${line}`)
  return `<h2>${title}</h2>\n<div class="source"><code>${shown.join('')}</code></div>\n`
}

/** Returns the text of a file of the application; empty if it can no longer be read or now leads elsewhere. */
function textOfFile(path: string, root: string): string {
  try {
    return readFileWithin(root, path, maxBytes).text
  } catch {
    return ''
  }
}

function framesOf(appFrames: readonly string[], all: readonly string[], root: string): string {
  if (all.length === 0) return ''
  const list = (frames: readonly string[]): string => {
    const spans = frames.map((frame) => `<span>${escapeHtml(frame.trim().replaceAll(`file://${root}/`, ''))}</span>`)
    return `<div class="frames"><code>${spans.join('')}</code></div>`
  }
  const wholeStack = `<details><summary>The whole stack, with the server and Node</summary>${list(all)}</details>`
  return `<h2>Stack</h2>\n${appFrames.length === 0 ? '' : list(appFrames)}\n${wholeStack}`
}

function rowsOf(ctx: CoreContext): string {
  const rows: [string, string][] = [['request id', ctx.id]]
  if (ctx.route !== undefined) rows.push(['route', `${ctx.route.name}: ${ctx.route.action}`])
  for (const [name, value] of Object.entries(ctx.params)) rows.push([`:${name}`, masked(name, value)])
  for (const [name, value] of ctx.query) rows.push([`?${name}`, masked(name, value)])
  for (const [name, value] of Object.entries(ctx.headers)) {
    rows.push([name, name === 'referer' ? value.replace(/\?.*/s, '?...') : masked(name, value)]) // It may hold secrets.
  }
  return rows.map(([name, value]) => `<tr><td>${escapeHtml(name)}</td><td>${escapeHtml(value)}</td></tr>`).join('\n')
}

/** Returns the path, or the pattern of its route if the path may contain a secret. */
function pathOf({ route, params, path }: CoreContext): string {
  return route !== undefined && Object.keys(params).some(mayBeSecret) ? route.url : path
}

function masked(name: string, value: string): string {
  const isSecret = /^(?:cookie|authorization|proxy-authorization)$/i.test(name) || mayBeSecret(name)
  return isSecret ? '••••••••' : value
}
