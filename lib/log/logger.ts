/**
 * The general log: five levels, one logger per module, trace switches, lines as text or as JSON.
 *
 * A module logger is a function (`log('text')` writes an INFO line) with the other levels as members. None of them ever
 * throws, whatever it is given.
 */
import { resolve } from 'node:path'
import type { LogPort } from '../base/ports.ts'
import { isError, textOf } from '../base/reason.ts'
import type { Config } from '../config/table.ts'
import { Appender } from './appender.ts'
import { ConsoleLines, createProcessConsole } from './console.ts'
import { createJsonClock, createTextClock, escapeControls, jsonString } from './line.ts'
import { RotatingFile } from './log-file.ts'
import type { LogParts, LogReports } from './log-file.ts'
import { stackLines } from './stack.ts'
import { Trace, traceModules } from './trace.ts'

/** The levels, the lowest first. */
export const levels = ['debug', 'info', 'warn', 'error', 'fatal'] as const

/** The name of a level. */
export type Level = (typeof levels)[number]

/** The logger of one module. Calling it writes an INFO line. */
export interface ModuleLogger extends LogPort {
  (message: string): void
  /** @param thrown its stack follows the line, with those of its causes */
  fatal(message: string, thrown?: unknown): void
}

/** What the general log is given besides its settings. */
export interface LoggerParts extends LogParts {
  /** Called with each line before it is written, as it was logged, and with its stack or ''. It must not throw. */
  readonly onLine?: (timeMs: number, level: Level, module: string, message: string, stack: string) => void
}

const megabyte = 2 ** 20
/** Between two lines: a stack stays with its line. */
const endOfLine = /(?<=\n)(?=[^ ])/
const nothing = (): void => {}

/** A module logger that writes nothing, for the commands that inspect an application without running it. */
export const silentLogger: ModuleLogger = Object.assign((): void => {}, {
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
  fatal: nothing,
  debugEnabled: false,
})

type Write = (message: unknown, thrown?: unknown) => void

/** The general log. Everything is synchronous. */
export class Logger extends Appender {
  readonly trace: Trace
  readonly #modules = new Map<string, ModuleLogger>()
  readonly #console: ConsoleLines | undefined
  readonly #threshold: number
  readonly #renderLine: RenderLine
  readonly #onLine: LoggerParts['onLine']
  readonly #now: () => number

  /**
   * Opens the log. A folder or file that cannot be written is no error: see `problem`.
   * @param folder `paths.log`, absolute
   */
  constructor(config: Config, folder: string, parts: LoggerParts = {}) {
    const { target, onLine, now = Date.now, consolePort = createProcessConsole(), fileSystem } = parts
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
    this.#onLine = onLine
    this.#renderLine = config['log.format'] === 'json' ? createJsonLine() : createTextLine()
    const prints = config['log.console'] && target === undefined
    this.#console = prints ? new ConsoleLines(consolePort) : undefined
  }

  /** Why the console lacks lines now; undefined when it has all of them, or none are printed. */
  get consoleProblem(): string | undefined {
    return this.#console?.problem
  }

  /** The lines that the console lacks since the start. */
  get consoleLost(): number {
    return this.#console?.lost ?? 0
  }

  /** The logger of a module: the same object for the same name. */
  module(name: string): ModuleLogger {
    const known = this.#modules.get(name)
    if (known !== undefined) return known
    const made = this.#createModule(name)
    this.#modules.set(name, made)
    return made
  }

  /** A logger of a module for what has to be read: no trace switch holds its lines back, and no level its warnings. */
  untraced(name: string): ModuleLogger {
    return this.#createModule(name, { on: true }, Math.min(this.#threshold, levels.indexOf('warn')))
  }

  /** Takes lines one by one, so that the file is rotated between any two of them. */
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
    const writers = levels.map((level, at) => (at < threshold ? nothing : this.#createWriter(level, name)))
    const [writeDebug, writeInfo, warn, error, fatal] = writers as [Write, Write, Write, Write, Write] // one per level
    const debugs = threshold <= levels.indexOf('debug')
    const infos = threshold <= levels.indexOf('info')
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
    const renderLine = this.#renderLine(level, module)
    const onLine = this.#onLine
    return (message, thrown) => {
      const text = titleOf(message)
      const nowMs = this.#now()
      const cause = thrown ?? (isError(message) ? message : undefined)
      const stack = cause === undefined ? '' : stackLines(cause).join('\n')
      const line = renderLine(nowMs, text, stack)
      onLine?.(nowMs, level, module, text, stack)
      this.#console?.append(line)
      this.append(line)
    }
  }
}

/** Prepares the constant parts of the lines of a level and module, and returns the function that renders a line. */
type RenderLine = (level: Level, module: string) => (nowMs: number, message: string, stack: string) => string

function createTextLine(): RenderLine {
  const clock = createTextClock()
  return (level, module) => {
    const head = `] [${level.toUpperCase().padEnd(5)}] [${escapeControls(module)}] `
    return (nowMs, message, stack) => {
      const line = `[${clock(nowMs)}${head}${escapeControls(message)}\n`
      return stack === '' ? line : `${line}${stack}\n`
    }
  }
}

function createJsonLine(): RenderLine {
  const clock = createJsonClock()
  return (level, module) => {
    const head = `","level":"${level}","module":${jsonString(module)},"message":`
    return (nowMs, message, stack) => {
      const member = stack === '' ? '' : `,"stack":${jsonString(stack)}`
      return `{"time":"${clock(nowMs)}${head}${jsonString(message)}${member}}\n`
    }
  }
}

/** A message as text; JavaScript can pass one that is no string. An error's stack follows the line. */
export function titleOf(message: unknown): string {
  return typeof message === 'string' ? message : textOf(message).split('\n', 1).join()
}
