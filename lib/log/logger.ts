/**
 * The general log: five levels, one logger per module, trace switches, lines as text or as JSON.
 *
 * Surprise: a module logger is a function (`log('text')` is INFO) that carries the other levels as members, and none
 * of them ever throws, whatever it is given.
 */
import { resolve } from 'node:path'
import { isError, textOf } from '../base/reason.ts'
import { Appender } from './appender.ts'
import { ConsoleLines, createProcessConsole } from './console.ts'
import type { ConsolePort } from './console.ts'
import { nodeFileSystem } from './file-system.ts'
import type { FileSystem } from './file-system.ts'
import type { LogTarget } from './log-file.ts'
import { createJsonClock, createTextClock, escapeControls, jsonString } from './line.ts'
import { RotatingFile } from './rotating-file.ts'
import { stackLines } from './stack.ts'
import { Trace } from './trace.ts'
import type { WrittenLog } from './written-log.ts'

/** The levels; a level's number is its place, 1 to 5. */
export const levels = ['debug', 'info', 'warn', 'error', 'fatal'] as const

/** The name of a level. */
export type Level = (typeof levels)[number]

/** The logger of one module. Calling it writes an INFO line. */
export interface ModuleLogger {
  (message: string): void
  debug(message: string): void
  info(message: string): void
  warn(message: string): void
  /** @param thrown its stack follows the line, with those of its causes */
  error(message: string, thrown?: unknown): void
  /** @param thrown its stack follows the line, with those of its causes */
  fatal(message: string, thrown?: unknown): void
  /** Whether a DEBUG line would be written now, so that the caller can save building it. */
  readonly debugEnabled: boolean
}

/** What the general log is made of; the names are those of `svc.json`. */
export interface LoggerOptions {
  readonly folder: string
  /** The file's name in the folder. */
  readonly file: string
  /** Lines below it are not written. */
  readonly level: Level
  /** Whether lines are printed on the console as well. */
  readonly console: boolean
  /** The size that triggers rotation, in units of 2^20 bytes, above 0. */
  readonly maxSizeMb: number
  /** How many rotated files stay; 0 keeps all. */
  readonly maxFiles: number
  readonly format: 'text' | 'json'
  /** The trace switches at the start; what is not named is on. */
  readonly trace: Readonly<Record<string, boolean>>
  /** Is given each line, as it was logged and without its stack, before it is written. It must not throw. */
  readonly onLine?: (timeMs: number, level: Level, module: string, message: string) => void
  /** The time in milliseconds; `Date.now` unless given. */
  readonly now?: () => number
  /** Where lines and outages are printed; the process's own console unless given. */
  readonly consolePort?: ConsolePort
  /** The file system to write to; `node:fs` unless given. */
  readonly fileSystem?: FileSystem
  /** Where lines go instead of the rotating file. */
  readonly target?: LogTarget
}

/** The general log. Everything is synchronous. */
export interface Logger extends WrittenLog {
  /** The logger of a module: the same object for the same name. */
  module(name: string): ModuleLogger
  readonly trace: Trace
  /** Why the console lacks lines now; undefined when it has all, or there is none. */
  readonly consoleProblem: string | undefined
}

const megabyte = 2 ** 20
/** Between two lines: a stack stays with its line. */
const endOfLine = /(?<=\n)(?=[^ ])/

/**
 * Opens the general log. A folder or file that cannot be written is no error: see `problem`.
 * @throws RangeError when an option is out of its range or `trace` names an unknown module
 */
export function createLogger(options: LoggerOptions): Logger {
  check(options)
  return new GeneralLog(options)
}

type Write = (message: unknown, thrown?: unknown) => void

class GeneralLog implements Logger {
  readonly trace: Trace
  readonly #modules = new Map<string, ModuleLogger>()
  readonly #appender: Appender
  readonly #console: ConsoleLines | undefined
  readonly #threshold: number
  readonly #renderLine: RenderLine
  readonly #onLine: LoggerOptions['onLine']
  readonly #now: () => number

  constructor(options: LoggerOptions) {
    const { now = Date.now, fileSystem = nodeFileSystem, consolePort = createProcessConsole() } = options
    this.trace = new Trace(options.trace)
    this.#threshold = numberOf(options.level)
    this.#now = now
    this.#onLine = options.onLine
    this.#renderLine = options.format === 'json' ? createJsonLine() : createTextLine()
    const onStill = (): void => this.module('logger').warn('nobody reads the console: lines are in the log file alone')
    this.#console = options.console ? new ConsoleLines(consolePort, onStill) : undefined
    const path = resolve(options.folder, options.file)
    const alert = (message: string): void => consolePort.error(`${escapeControls(message)}\n`)
    const report = (level: 'info' | 'warn', message: string): void => this.module('logger')[level](message)
    const maxBytes = Math.ceil(options.maxSizeMb * megabyte)
    const file = { path, maxBytes, maxFiles: options.maxFiles, fileSystem, report, alert, now }
    const target = options.target ?? new RotatingFile(file)
    this.#appender = new Appender({ target, report, alert, now })
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

  get consoleProblem(): string | undefined {
    return this.#console?.problem
  }

  module(name: string): ModuleLogger {
    const known = this.#modules.get(name)
    if (known !== undefined) return known
    const made = this.#createModule(name)
    this.#modules.set(name, made)
    return made
  }

  take(lines: string): void {
    this.#console?.append(lines)
    for (const line of lines.split(endOfLine)) this.#appender.append(line)
  }

  reopen(): void {
    this.#appender.reopen()
  }

  flush(): void {
    this.#appender.flush()
    this.#console?.flush()
  }

  close(): void {
    this.#appender.close()
    this.#console?.flush()
  }

  #createModule(name: string): ModuleLogger {
    const traced = this.trace.switchOf(name)
    const writers = levels.map((level) => this.#createWriter(level, name))
    const [writeDebug, writeInfo, warn, error, fatal] = writers as [Write, Write, Write, Write, Write] // one per level
    const debugs = this.#threshold <= numberOf('debug')
    const infos = this.#threshold <= numberOf('info')
    const debug = (message: string): void => {
      if (debugs && traced.on) writeDebug(message)
    }
    const info = (message: string): void => {
      if (infos && traced.on) writeInfo(message)
    }
    const log = Object.assign((message: string): void => info(message), { debug, info, warn, error, fatal })
    Object.defineProperty(log, 'debugEnabled', { get: () => debugs && traced.on, enumerable: true })
    return log as typeof log & { readonly debugEnabled: boolean } // defined in the line above
  }

  #createWriter(level: Level, module: string): Write {
    if (numberOf(level) < this.#threshold) return () => {}
    const renderLine = this.#renderLine(level, module)
    const onLine = this.#onLine
    return (message, thrown) => {
      const text = typeof message === 'string' ? message : titleOf(message)
      const nowMs = this.#now()
      const line = renderLine(nowMs, text, thrown ?? (isError(message) ? message : undefined))
      onLine?.(nowMs, level, module, text)
      this.#console?.append(line)
      this.#appender.append(line)
    }
  }
}

/** Prepares the constant parts of a level's and module's lines and returns what puts a line together. */
type RenderLine = (level: Level, module: string) => (nowMs: number, message: string, thrown: unknown) => string

function createTextLine(): RenderLine {
  const clock = createTextClock()
  return (level, module) => {
    const head = `] [${level.toUpperCase().padEnd(5)}] [${escapeControls(module)}] `
    return (nowMs, message, thrown) => {
      const line = `[${clock(nowMs)}${head}${escapeControls(message)}\n`
      return thrown === undefined ? line : `${line}${stackLines(thrown).join('\n')}\n`
    }
  }
}

function createJsonLine(): RenderLine {
  const clock = createJsonClock()
  return (level, module) => {
    const head = `","level":"${level}","module":${jsonString(module)},"message":`
    return (nowMs, message, thrown) => {
      const stack = thrown === undefined ? '' : `,"stack":${jsonString(stackLines(thrown).join('\n'))}`
      return `{"time":"${clock(nowMs)}${head}${jsonString(message)}${stack}}\n`
    }
  }
}

/** The text for a message that is no string, which JavaScript can pass: an error's stack follows the line. */
function titleOf(message: unknown): string {
  return textOf(message).split('\n', 1).join()
}

function numberOf(level: Level): number {
  return levels.indexOf(level) + 1
}

function check(options: LoggerOptions): void {
  const { file, level, maxSizeMb, maxFiles } = options
  if (file === '') throw new RangeError('Cannot open the log: log.file must not be empty')
  if (!levels.includes(level)) {
    throw new RangeError(`Cannot open the log: log.level must be one of ${levels.join(', ')}: it is ${String(level)}`)
  }
  if (!(maxSizeMb * megabyte >= 1024 && maxSizeMb <= 100_000)) {
    throw new RangeError(`Cannot open the log: log.max_size_mb must be 0.001 to 100000: it is ${maxSizeMb}`)
  }
  if (!Number.isSafeInteger(maxFiles) || maxFiles < 0) {
    throw new RangeError(`Cannot open the log: log.max_files must be an integer from 0: it is ${maxFiles}`)
  }
}
