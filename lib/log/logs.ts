/**
 * The logs of one server: the general log, the access log where there is one, and the last lines for the monitor.
 *
 * The access log always goes first: what happens to it, such as a full disk, is written to the general log, which must
 * still be open then.
 */
import type { Config } from '../config/table.ts'
import { AccessLog } from './access-log.ts'
import type { LogTarget } from './log-file.ts'
import { Logger, type ModuleLogger } from './logger.ts'
import { RecentLines } from './recent-lines.ts'
import { traceModules } from './trace.ts'

/** The open logs. */
export interface Logs {
  readonly general: Logger
  /** Undefined when `access_log.enabled` is false. */
  readonly access: AccessLog | undefined
  /** The last lines of the general log. */
  readonly recent: RecentLines
  /** The general log of a module. */
  module(name: string): ModuleLogger
  /** Why the logs cannot be written now; empty when they can. */
  problems(): readonly string[]
  flush(): void
  reopen(): void
  close(): void
}

/**
 * Opens the logs.
 * @param folder `paths.log`, absolute
 * @param targets where the lines of a worker go, instead of to files and console
 */
export function openLogs(
  config: Config,
  folder: string,
  targets?: { readonly general: LogTarget; readonly access: LogTarget },
): Logs {
  const recent = new RecentLines()
  const general = new Logger({
    folder,
    file: config['log.file'],
    level: config['log.level'],
    console: config['log.console'] && targets === undefined,
    maxSizeMb: config['log.max_size_mb'],
    maxFiles: config['log.max_files'],
    format: config['log.format'],
    trace: Object.fromEntries(traceModules.map((module) => [module, config[`trace.${module}`]])),
    onLine: (...line) => recent.add(...line),
    target: targets?.general,
  })
  const access = config['access_log.enabled']
    ? new AccessLog({
        folder,
        file: config['access_log.file'],
        format: config['access_log.format'],
        report: (level, message) => general.module('logger')[level](message),
        target: targets?.access,
      })
    : undefined
  const both = [access, general]
  return {
    general,
    access,
    recent,
    module: (name) => general.module(name),
    problems: () =>
      [access?.problem, general.problem, general.consoleProblem].filter((problem) => problem !== undefined),
    flush: () => both.forEach((log) => log?.flush()),
    reopen: () => both.forEach((log) => log?.reopen()),
    close: () => both.forEach((log) => log?.close()),
  }
}
