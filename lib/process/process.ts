/**
 * Signals, uncaught errors and exit statuses of a process of the server.
 *
 * The command line sets these handlers, not the app, so that a program that embeds the server keeps control of its
 * process.
 */
import { reasonOf } from '../base/reason.ts'
import { MissingRoomError } from '../config/load-room.ts'
import { MiddlewareError } from '../modules/middleware-config.ts'
import { ConfigError } from '../config/load.ts'
import type { Config } from '../config/table.ts'
import { ReloadError } from '../control/commands.ts'
import type { Change } from '../base/ports.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { monotonicMs } from './run-mark.ts'
import type { PassedToProcess } from '../systemd/service.ts'
import { stateOf, textOfState } from './last-state.ts'
import type { RunningRequests } from './running-requests.ts'

/** Exit statuses: stopped on request, failed at run time, wrong usage, wrong configuration (sysexits.h EX_CONFIG). */
export const exitStatus = { ok: 0, failed: 1, usage: 2, config: 78 } as const

/** The actions for signals, which differ between one process and several. */
interface SignalActions {
  /** Begins to stop gracefully. */
  readonly stop: () => unknown
  /** Kills what the exit of this process would leave running. */
  readonly kill?: () => void
  readonly reopenLogs: () => unknown
  /** Executes a command of SIGHUP. */
  readonly apply: (type: 'certificates.reload' | 'routes.reload') => unknown
  /** Records a change made by a signal. */
  readonly audit: (change: Change) => void
  /**
   * Called when everything of a SIGHUP has ended.
   * @param begunAtMs by `monotonicMs`
   * @param problems the messages of what failed
   */
  readonly reloaded: (begunAtMs: number, problems: readonly string[]) => void
  /** Logs the failure of an action. */
  readonly failed: (signal: NodeJS.Signals, error: unknown) => void
}

/** Starts to handle the signals. On SIGHUP every action runs, even if a previous one fails. */
export function handleSignals(log: ModuleLogger, notifier: PassedToProcess['notifier'], actions: SignalActions): void {
  const { stop, kill, reopenLogs, apply, audit, reloaded, failed } = actions
  let stopping = false
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping) {
        log.warn(`${signal} again: exiting at once`)
        kill?.()
        process.exit(exitStatus.failed)
      }
      stopping = true
      log.info(`${signal}: stopping`)
      audit({ by: signal, what: 'stop requested' })
      void doEach(signal, [stop])
    })
  }
  process.on('SIGHUP', async () => {
    const begunAtMs = monotonicMs()
    notifier?.reloading()
    const reloads = (['certificates.reload', 'routes.reload'] as const).map((type) => () => apply(type))
    const problems = await doEach('SIGHUP', [reopenLogs, ...reloads])
    const isDone = problems.length === 0
    audit({ by: 'SIGHUP', what: isDone ? 'routes and certificates reloaded' : 'reload refused' })
    notifier?.reloaded(isDone ? 'reloaded' : 'the last reload failed, so the old state is in use: see the log')
    await notifier?.sent() // The command that waits may end only when the service manager knows of the end.
    reloaded(begunAtMs, problems)
  })
  process.on('SIGUSR2', () => void doEach('SIGUSR2', [reopenLogs]))

  /** @returns the messages of what failed */
  async function doEach(signal: NodeJS.Signals, steps: readonly (() => unknown)[]): Promise<readonly string[]> {
    const problems: string[] = []
    for (const step of steps) {
      try {
        await step()
      } catch (error) {
        problems.push(reasonOf(error))
        failed(signal, error)
      }
    }
    return problems
  }
}

/** The log of a process, with or without an app. */
interface ProcessLog {
  readonly log: (module: string) => ModuleLogger
  readonly config: Config
  readonly closeLogs: () => void
}

/** What the handling of uncaught errors needs. */
interface UncaughtOptions {
  readonly running: RunningRequests
  /** Whether the process ends as the server wants: an exit before that was the application's, or an uncaught error. */
  readonly isEnding: () => boolean
  /** Whether to ignore an error; by default none is. */
  readonly isHarmless?: (error: unknown) => boolean
}

/**
 * Logs an uncaught error and exits: the state of the process is then unknown. Logs the state in which a process exits
 * unexpectedly.
 */
export function handleUncaught(log: ProcessLog, options: UncaughtOptions): void {
  const { running, isEnding, isHarmless = () => false } = options
  process.on('uncaughtException', (error: unknown, origin) => {
    if (isHarmless(error)) return
    logFatal(log, 'error', `${origin}: ${reasonOf(error)}`, error)
    process.exit(exitStatus.failed)
  })
  process.on('exit', (status) => {
    const state = (): string => textOfState(stateOf(running))
    if (!isEnding()) log.log('server').error(`the process exits with status ${status}; ${state()}`)
    log.closeLogs()
  })
}

/** Logs why the server ends; on standard error too if the log does not go to the console. */
export function logFatal(
  { log, config }: Pick<ProcessLog, 'log' | 'config'>,
  module: string,
  message: string,
  thrown: unknown,
): void {
  log(module).fatal(message, { thrown })
  if (!config['log.console']) process.stderr.write(`${message}\n`)
}

/** The errors of exit status 78: a configuration, route or middleware file is wrong, or a room is missing. */
const fileErrors = [ConfigError, MiddlewareError, ReloadError, MissingRoomError]

/** Returns whether an error ends the process with exit status 78. */
export function isFileError(error: unknown): error is Error {
  return fileErrors.some((kind) => error instanceof kind)
}

/**
 * Returns whether the message of a start error explains to the operator what to change, as for a port in use. A stack
 * trace would obscure it.
 */
export function isOfOperator(error: unknown): boolean {
  if (isFileError(error)) return true
  if (!(error instanceof Error)) return false
  if (error.name === 'DataError') return true // Its class is in a room that may be missing.
  const cause = error.cause as NodeJS.ErrnoException | undefined
  return ['listen', 'bind', 'getaddrinfo'].includes(cause?.syscall ?? '')
}

/** Returns the message of a file error, after a line for each unknown key of the configuration. */
export function textOfFileError(error: Error): string {
  const warnings = error instanceof ConfigError ? error.warnings : []
  return `${warnings.map((warning) => `warning: ${warning}\n`).join('')}${error.message}\n`
}
