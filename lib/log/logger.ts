/**
 * The general log: five levels, one logger per module, trace switches, lines as text or as JSON.
 *
 * A module logger is a function (`log('text')` writes an INFO line) with the other levels as members. None of them ever
 * throws, whatever the arguments.
 */
import { resolve } from 'node:path'
import type { LogDetails, LogPort } from '../base/ports.ts'
import type { Config } from '../config/table.ts'
import { Appender } from './appender.ts'
import { ConsoleLines, createProcessConsole } from './console.ts'
import { escapeControls } from './line.ts'
import { RotatingFile } from './log-file.ts'
import type { LogParts, LogReports } from './log-file.ts'
import {
  createJsonForm,
  createTextForm,
  levels,
  type Level,
  type LogOrigin,
  type LogRecord,
  type RenderRecord,
} from './record.ts'
import { stackLines } from './stack.ts'
import { Trace, traceModules } from './trace.ts'

/** The logger of one module. Calling it writes an INFO line. */
export interface ModuleLogger extends LogPort {
  (message: string, details?: LogDetails): void
  fatal(message: string, details?: LogDetails): void
}

/** The dependencies of the general log. */
export interface LoggerParts extends LogParts {
  /** Called with each line before it is written. It must not throw. */
  readonly onRecord?: (record: LogRecord) => void
  /** The process and node that the lines come from, if there are several. */
  readonly origin?: LogOrigin
}

const megabyte = 2 ** 20
/** Between two lines: a stack stays with its line. */
const endOfLine = /(?<=\n)(?=[^ ])/
const noOp = (): void => {}

/** A module logger that writes noOp, for the commands that inspect an application without running it. */
export const silentLogger: ModuleLogger = Object.assign((): void => {}, {
  debug: noOp,
  info: noOp,
  warn: noOp,
  error: noOp,
  fatal: noOp,
  debugEnabled: false,
})

type Write = (message: string, details?: LogDetails) => void

/** The general log. Everything is synchronous. */
export class Logger extends Appender {
  readonly trace: Trace
  readonly #modules = new Map<string, ModuleLogger>()
  readonly #console: ConsoleLines | undefined
  readonly #threshold: number
  readonly #formOf: (level: Level, module: string) => RenderRecord
  readonly #onRecord: LoggerParts['onRecord']
  readonly #now: () => number

  /**
   * Opens the log. A folder or file that cannot be written is not an error: see `problem`.
   * @param folder `paths.log`, absolute
   */
  constructor(config: Config, folder: string, parts: LoggerParts = {}) {
    const { target, onRecord, origin = {}, now = Date.now, consolePort = createProcessConsole(), fileSystem } = parts
    const reports: LogReports = {
      report: (level, message) => this.module('logger')[level](message),
      alert: (message) => consolePort.error(`${escapeControls(message)}\n`),
      now,
    }
    const path = resolve(folder, config['log.file'])
    const maxBytes = Math.ceil(config['log.max_size_mb'] * megabyte)
    super(target ?? new RotatingFile(path, maxBytes, config['log.max_files'], reports, fileSystem), reports)
    this.trace = new Trace(Object.fromEntries(traceModules.map((module) => [module, config[`trace.${module}`]])))
    this.#threshold = levels.indexOf(config['log.level'])
    this.#now = now
    this.#onRecord = onRecord
    this.#formOf = config['log.format'] === 'json' ? createJsonForm(origin) : createTextForm()
    const prints = config['log.console'] && target === undefined
    this.#console = prints ? new ConsoleLines(consolePort) : undefined
  }

  /** Why the console is missing lines now; undefined when it has all of them, or is not used. */
  get consoleProblem(): string | undefined {
    return this.#console?.problem
  }

  /** The number of lines missing from the console since the start. */
  get consoleLost(): number {
    return this.#console?.lost ?? 0
  }

  /** Returns the logger of a module: the same object for the same name. */
  module(name: string): ModuleLogger {
    const known = this.#modules.get(name)
    if (known !== undefined) return known
    const made = this.#createModule(name)
    this.#modules.set(name, made)
    return made
  }

  /** Returns a logger for lines that must be seen: ignores trace switches, and logs warnings at any level. */
  untraced(name: string): ModuleLogger {
    return this.#createModule(name, { on: true }, Math.min(this.#threshold, levels.indexOf('warn')))
  }

  /** Appends lines one by one, so that the file can be rotated between any two of them. */
  override take(lines: string): void {
    this.#console?.append(lines)
    for (const line of lines.split(endOfLine)) this.append(line)
  }

  override flush(): void {
    super.flush()
    this.#console?.flush()
  }

  override close(): void {
    super.close()
    this.#console?.flush()
  }

  /** @param threshold the index of the lowest level that is written */
  #createModule(
    name: string,
    traced: { readonly on: boolean } = this.trace.switchOf(name),
    threshold = this.#threshold,
  ): ModuleLogger {
    const writers = levels.map((level, at) => (at < threshold ? noOp : this.#createWriter(level, name)))
    const [writeDebug, writeInfo, warn, error, fatal] = writers as [Write, Write, Write, Write, Write] // one per level
    const debugs = threshold <= levels.indexOf('debug')
    const infos = threshold <= levels.indexOf('info')
    const debug: Write = (message, details) => {
      if (debugs && traced.on) writeDebug(message, details)
    }
    const info: Write = (message, details) => {
      if (infos && traced.on) writeInfo(message, details)
    }
    const call: Write = (message, details) => info(message, details)
    const log = Object.assign(call, { debug, info, warn, error, fatal })
    Object.defineProperty(log, 'debugEnabled', { get: () => debugs && traced.on, enumerable: true })
    return log as typeof log & { readonly debugEnabled: boolean } // defined in the line above
  }

  #createWriter(level: Level, module: string): Write {
    const render = this.#formOf(level, module)
    return (message, details) => {
      const thrown = details?.thrown
      const stack = thrown === undefined ? '' : stackLines(thrown).join('\n')
      const record = { ...details, timeMs: this.#now(), level, module, message, stack }
      const line = render(record)
      this.#onRecord?.(record)
      this.#console?.append(line)
      this.append(line)
    }
  }
}
