/**
 * The access log: one line per request served, in the Common Log Format or one of its forms.
 *
 * Surprise: what a client sent is written with quotes, backslashes and everything outside printable ASCII as `\xNN`,
 * so that no request can forge a line or a field. The headers are only read by the forms that show them.
 */
import { resolve } from 'node:path'
import { Appender } from './appender.ts'
import type { LogReport } from './appender.ts'
import { createProcessConsole } from './console.ts'
import type { ConsolePort } from './console.ts'
import { nodeFileSystem } from './file-system.ts'
import type { FileSystem } from './file-system.ts'
import { createAccessClock, createJsonClock, escapeCharacter, escapeControls, jsonString } from './line.ts'
import { LogFile, type LogTarget } from './log-file.ts'
import type { WrittenLog } from './written-log.ts'

/** What the access log asks of a request. The request's context implements it, so that nothing is made for a line. */
export interface AccessEntry {
  readonly ip: string
  readonly method: string
  /** As sent, without the query. */
  readonly path: string
  /** `1.1` */
  readonly httpVersion: string
  readonly sentStatus: number
  /** The bytes of the body. */
  readonly sentBytes: number
  readonly durationMs: number
  /** Empty when no route answered. */
  readonly routeName: string
  /** The request id that the client gave, or undefined. */
  readonly givenId: string | undefined
  /** A header of the request, by its lower-case name. */
  header(name: string): string | undefined
}

/** The forms of an access line. */
export const accessFormats = ['spec', 'common', 'combined', 'json'] as const

/** The name of a form: the spec's line, with the bytes, with referer and user agent too, or a JSON object. */
export type AccessFormat = (typeof accessFormats)[number]

/** What the access log is made of; the names are those of `svc.json`. */
export interface AccessLogOptions {
  readonly folder: string
  /** The file's name in the folder. */
  readonly file: string
  readonly format: AccessFormat
  /** Takes what happened to this log for the general log, module `logger`. */
  readonly report?: LogReport
  /** The time in milliseconds; `Date.now` unless given. */
  readonly now?: () => number
  /** Where outages are printed; the process's own console unless given. */
  readonly consolePort?: ConsolePort
  /** The file system to write to; `node:fs` unless given. */
  readonly fileSystem?: FileSystem
  /** Where lines go instead of the file. */
  readonly target?: LogTarget
}

/** The access log. Everything is synchronous, and nothing throws. */
export interface AccessLog extends WrittenLog {
  /**
   * Takes the line of a request whose response has ended or whose client left.
   * @param nowMs when that was, in milliseconds since 1970; whoever has just looked at the clock need not have it
   *   looked at again
   */
  write(entry: AccessEntry, nowMs?: number): void
}

const unsafe = /[^\x21\x23-\x5b\x5d-\x7e]/
const eachUnsafe = new RegExp(unsafe, 'g')
const eachUnsafeButSpace = /[^\x20\x21\x23-\x5b\x5d-\x7e]/g

/**
 * Opens the access log. A folder or file that cannot be written is no error: see `problem`.
 * @throws RangeError when the format is unknown or the file has no name
 */
export function createAccessLog(options: AccessLogOptions): AccessLog {
  const { file, format } = options
  if (file === '') throw new RangeError('Cannot open the access log: access_log.file must not be empty')
  if (!accessFormats.includes(format)) {
    const rule = `access_log.format must be one of ${accessFormats.join(', ')}`
    throw new RangeError(`Cannot open the access log: ${rule}: it is ${String(format)}`)
  }
  return new RequestLog(options)
}

class RequestLog implements AccessLog {
  readonly #appender: Appender
  readonly #renderLine: RenderLine
  readonly #now: () => number

  constructor(options: AccessLogOptions) {
    const { now = Date.now, fileSystem = nodeFileSystem, consolePort = createProcessConsole() } = options
    const { report = () => {} } = options
    const target = options.target ?? new LogFile(resolve(options.folder, options.file), fileSystem)
    const alert = (message: string): void => consolePort.error(`${escapeControls(message)}\n`)
    this.#now = now
    this.#renderLine = createRenderLine(options.format)
    // The text forms escape all but printable ASCII; JSON leaves other letters as they are.
    const encoding = options.format === 'json' ? 'utf8' : 'latin1'
    this.#appender = new Appender({ target, report, alert, now, encoding })
  }

  get written(): number {
    return this.#appender.written
  }

  get lost(): number {
    return this.#appender.lost
  }

  get problem(): string | undefined {
    return this.#appender.problem
  }

  write(entry: AccessEntry, nowMs = this.#now()): void {
    this.#appender.append(this.#renderLine(entry, nowMs))
  }

  take(lines: string): void {
    this.#appender.append(lines, countOf(lines))
  }

  reopen(): void {
    this.#appender.reopen()
  }

  flush(): void {
    this.#appender.flush()
  }

  close(): void {
    this.#appender.close()
  }
}

function countOf(lines: string): number {
  let count = 0
  for (let at = lines.indexOf('\n'); at >= 0; at = lines.indexOf('\n', at + 1)) count += 1
  return count
}

type RenderLine = (entry: AccessEntry, nowMs: number) => string

function createRenderLine(format: AccessFormat): RenderLine {
  if (format === 'json') return createJsonLine()
  if (format === 'spec') return createSpecLine('\n')
  const start = createSpecLine('')
  if (format === 'common') return (entry, nowMs) => `${start(entry, nowMs)} ${bytesOf(entry)}\n`
  return (entry, nowMs) => {
    const referer = quoted(entry.header('referer'))
    return `${start(entry, nowMs)} ${bytesOf(entry)} ${referer} ${quoted(entry.header('user-agent'))}\n`
  }
}

/**
 * Only the path is put together anew for each line; what stands before and behind it mostly is what it was last time.
 */
function createSpecLine(end: string): RenderLine {
  const clock = createAccessClock()
  const before = rememberingLast(
    (ip: string, time: string, method: string) => `${field(ip)} - - [${time}] "${field(method)} `,
  )
  const behind = rememberingLast((version: string, status: number) => ` HTTP/${version}" ${status}${end}`)
  return (entry, nowMs) =>
    before(entry.ip, clock(nowMs), entry.method) + field(entry.path) + behind(entry.httpVersion, entry.sentStatus, '')
}

function createJsonLine(): RenderLine {
  const clock = createJsonClock()
  return (entry, nowMs) =>
    `{"time":"${clock(nowMs)}","ip":${jsonString(entry.ip)},"method":${jsonString(entry.method)}` +
    `,"path":${jsonString(entry.path)},"version":"${entry.httpVersion}","status":${entry.sentStatus}` +
    `,"bytes":${entry.sentBytes},"duration_ms":${Math.round(entry.durationMs * 1000) / 1000}` +
    `,"route":${jsonString(entry.routeName)}${member('id', entry.givenId)}` +
    `${member('referer', entry.header('referer'))}${member('user_agent', entry.header('user-agent'))}}\n`
}

/** A field that ends at the next space; one that is empty is a `-`. */
function field(text: string): string {
  if (text === '') return '-'
  return unsafe.test(text) ? text.replace(eachUnsafe, escapeCharacter) : text
}

/** The same, at the cost of three comparisons where all three are what they were last time. */
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

function bytesOf(entry: AccessEntry): string {
  return entry.sentBytes === 0 ? '-' : String(entry.sentBytes)
}

function member(name: string, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":${jsonString(value)}`
}
