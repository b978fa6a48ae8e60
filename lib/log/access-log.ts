/**
 * The access log: one line per request served, in the Common Log Format or one of its forms.
 *
 * Quotes, backslashes and everything outside printable ASCII that a client sent are written as `\xNN`, so that no
 * request can forge a line or a field. Only the forms that show request headers read them.
 */
import { resolve } from 'node:path'
import type { EndedRequest } from '../base/ports.ts'
import type { Config } from '../config/table.ts'
import { Appender } from './appender.ts'
import { createProcessConsole } from './console.ts'
import { createAccessClock, createJsonClock, escapeCharacter, escapeControls, jsonString } from './line.ts'
import { LogFile } from './log-file.ts'
import type { LogParts, LogReports } from './log-file.ts'

/** The dependencies of the access log. */
export interface AccessLogParts extends LogParts {
  /** Reports events of this log, such as an outage, to the general log. */
  readonly report: LogReports['report']
}

const unsafe = /[^\x21\x23-\x5b\x5d-\x7e]/
const eachUnsafe = new RegExp(unsafe, 'g')
const eachUnsafeButSpace = /[^\x20\x21\x23-\x5b\x5d-\x7e]/g

/** The access log. Everything is synchronous, and nothing throws. */
export class AccessLog extends Appender {
  readonly #renderLine: RenderLine
  readonly #skipped: readonly string[]

  /**
   * Opens the log. A folder or file that cannot be written is not an error: see `problem`.
   * @param folder `paths.log`, absolute
   */
  constructor(config: Config, folder: string, parts: AccessLogParts) {
    const { report, now = Date.now, consolePort = createProcessConsole(), fileSystem } = parts
    const format = config['access_log.format']
    const target = parts.target ?? new LogFile(resolve(folder, config['access_log.file']), fileSystem)
    const alert = (message: string): void => consolePort.error(`${escapeControls(message)}\n`)
    // The text formats escape everything but printable ASCII; JSON keeps other characters.
    super(target, { report, alert, now }, format === 'json' ? 'utf8' : 'latin1')
    this.#renderLine = createRenderLine(format)
    this.#skipped = config['access_log.skip']
  }

  /**
   * Logs a request whose response has ended or whose client has disconnected, unless `access_log.skip` leaves it out.
   * @param endedAtMs when that was, in milliseconds since 1970
   */
  write(entry: EndedRequest, endedAtMs: number): void {
    if (this.#skipped.length > 0 && this.#skipped.some((start) => entry.path.startsWith(start))) return
    this.append(this.#renderLine(entry, endedAtMs))
  }
}

type RenderLine = (entry: EndedRequest, nowMs: number) => string

function createRenderLine(format: Config['access_log.format']): RenderLine {
  if (format === 'json') return createJsonLine()
  if (format === 'spec') return createSpecLine('\n')
  const start = createSpecLine('')
  if (format === 'common') return (entry, nowMs) => `${start(entry, nowMs)} ${bytesOf(entry)}\n`
  return (entry, nowMs) => {
    const referer = quoted(entry.header('referer'))
    return `${start(entry, nowMs)} ${bytesOf(entry)} ${referer} ${quoted(entry.header('user-agent'))}\n`
  }
}

/** Renders the path for each line; the text before and after it is reused while it is the same as for the last line. */
function createSpecLine(end: string): RenderLine {
  const clock = createAccessClock()
  const before = rememberingLast(
    (ip: string, time: string, method: string) => `${field(ip)} - - [${time}] "${field(method)} `,
  )
  const after = rememberingLast((version: string, status: number) => ` HTTP/${version}" ${status}${end}`)
  return (entry, nowMs) =>
    before(entry.ip, clock(nowMs), entry.method) + field(pathOf(entry)) + after(entry.httpVersion, entry.sentStatus, '')
}

function createJsonLine(): RenderLine {
  const clock = createJsonClock()
  return (entry, nowMs) =>
    `{"time":"${clock(nowMs)}","ip":${jsonString(entry.ip)},"method":${jsonString(entry.method)}` +
    `,"path":${jsonString(pathOf(entry))},"version":"${entry.httpVersion}","status":${entry.sentStatus}` +
    `,"bytes":${entry.sentBytes},"duration_ms":${Math.round(entry.durationMs * 1000) / 1000}` +
    `,"route":${jsonString(entry.routeName)}${member('id', entry.givenId)}` +
    `${member('referer', entry.header('referer'))}${member('user_agent', entry.header('user-agent'))}}\n`
}

/** The path as sent. */
function pathOf(entry: EndedRequest): string {
  return entry.sentPath ?? entry.path
}

/** A field that ends at the next space; an empty one is a `-`. */
function field(text: string): string {
  if (text === '') return '-'
  return unsafe.test(text) ? text.replace(eachUnsafe, escapeCharacter) : text
}

/** Remembers the last result: with the same three arguments a call costs three comparisons. */
function rememberingLast<A, B, C>(render: (a: A, b: B, c: C) => string): (a: A, b: B, c: C) => string {
  let last: readonly [A, B, C] | undefined
  let rendered = ''
  return (a, b, c) => {
    if (last === undefined || a !== last[0] || b !== last[1] || c !== last[2]) {
      last = [a, b, c]
      rendered = render(a, b, c)
    }
    return rendered
  }
}

function quoted(text: string | undefined): string {
  return text === undefined || text === '' ? '"-"' : `"${text.replace(eachUnsafeButSpace, escapeCharacter)}"`
}

function bytesOf(entry: EndedRequest): string {
  return entry.sentBytes === 0 ? '-' : String(entry.sentBytes)
}

function member(name: string, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":${jsonString(value)}`
}
