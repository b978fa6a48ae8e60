/**
 * Signals, uncaught errors and exit statuses of a process of the server.
 *
 * These handlers are set by the command line and not by the app, so that a program that embeds the server keeps control
 * of its own process.
 */
import { reasonOf } from '../base/reason.ts'
import { MiddlewareError } from '../modules/middleware-config.ts'
import { ConfigError } from '../config/load.ts'
import type { Config } from '../config/table.ts'
import { ReloadError } from '../control/commands.ts'
import type { Change } from '../base/ports.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { Given } from '../systemd/service.ts'

/** Exit statuses: stopped as asked, failed at run time, used wrongly, configured wrongly (EX_CONFIG of sysexits.h). */
export const exitStatus = { ok: 0, failed: 1, usage: 2, config: 78 } as const

/** The actions at signals, which differ between one process and several. */
interface SignalActions {
  /** Begins to stop gracefully. */
  readonly stop: () => unknown
  /** Ends what the exit of this process would leave behind. */
  readonly kill?: () => void
  readonly reopenLogs: () => unknown
  /** Carries out a command of SIGHUP. */
  readonly apply: (type: 'certificates.reload' | 'routes.reload') => unknown
  /** Records what a signal has changed. */
  readonly audit: (change: Change) => void
  /** Logs the failure of an action. */
  readonly failed: (signal: NodeJS.Signals, error: unknown) => void
}

/** Listens to the signals from now on. At SIGHUP each action is tried, even when one before it fails. */
export function handleSignals(log: ModuleLogger, notifier: Given['notifier'], actions: SignalActions): void {
  const { stop, kill, reopenLogs, apply, audit, failed } = actions
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
    notifier?.reloading()
    const reloads = (['certificates.reload', 'routes.reload'] as const).map((type) => () => apply(type))
    const failures = await doEach('SIGHUP', [reopenLogs, ...reloads])
    audit({ by: 'SIGHUP', what: failures === 0 ? 'routes and certificates reloaded' : 'reload refused' })
    notifier?.reloaded(failures === 0 ? 'reloaded' : 'the last reload failed, so the old state is in use: see the log')
  })
  process.on('SIGUSR2', () => void doEach('SIGUSR2', [reopenLogs]))

  /** @returns how many failed */
  async function doEach(signal: NodeJS.Signals, steps: readonly (() => unknown)[]): Promise<number> {
    let failures = 0
    for (const step of steps) {
      try {
        await step()
      } catch (error) {
        failures += 1
        failed(signal, error)
      }
    }
    return failures
  }
}

/** The log of a process: that of an app, or of one that has none. */
interface ProcessLog {
  readonly log: (module: string) => ModuleLogger
  readonly config: Config
  readonly closeLogs: () => void
}

/**
 * Ends the process at an error that nobody caught, with a line in the log: its state is unknown then.
 * @param isHarmless whether to ignore an error
 */
export function handleUncaught(log: ProcessLog, isHarmless: (error: unknown) => boolean = () => false): void {
  process.on('uncaughtException', (error: unknown, origin) => {
    if (isHarmless(error)) return
    logFatal(log, 'error', `${origin}: ${reasonOf(error)}`, error)
    process.exit(exitStatus.failed)
  })
  process.on('exit', () => log.closeLogs())
}

/** Logs why the server ends; on standard error too when the log does not go to the console. */
export function logFatal(
  { log, config }: Pick<ProcessLog, 'log' | 'config'>,
  module: string,
  message: string,
  thrown: unknown,
): void {
  log(module).fatal(message, { thrown })
  if (!config['log.console']) process.stderr.write(`${message}\n`)
}

/** Whether an error says that a configuration, route or middleware file is wrong: exit status 78. */
export function isFileError(error: unknown): error is ConfigError | MiddlewareError | ReloadError {
  return error instanceof ConfigError || error instanceof MiddlewareError || error instanceof ReloadError
}

/**
 * Whether an error of the start says in its message what the operator has to change, as for a port that is taken. A
 * stack would hide it.
 */
export function isOfOperator(error: unknown): boolean {
  if (isFileError(error)) return true
  const cause = error instanceof Error ? (error.cause as NodeJS.ErrnoException | undefined) : undefined
  return ['listen', 'bind', 'getaddrinfo'].includes(cause?.syscall ?? '')
}

/** The message of an error of a file, after a line for each unknown key of the configuration. */
export function textOfFileError(error: Error): string {
  const warnings = error instanceof ConfigError ? error.warnings : []
  return `${warnings.map((warning) => `warning: ${warning}\n`).join('')}${error.message}\n`
}
