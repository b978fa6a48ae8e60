/**
 * What signals do, whether the server is one process or several.
 */
import type { ModuleLogger } from '../log/logger.ts'
import type { Notifier } from '../systemd/notify.ts'

export interface SignalDuties {
  readonly log: ModuleLogger
  readonly notifier: Notifier
  /** Begins to stop gracefully. */
  readonly stop: () => unknown
  /** Ends the process at once. */
  readonly exit: () => void
  /**
   * What a SIGHUP asks for, in order. Each is done, whatever becomes of the others; what rejects is logged by `failed`.
   */
  readonly reload: readonly (() => unknown)[]
  readonly reopenLogs: () => unknown
  /** Logs what went wrong at a signal. */
  readonly failed: (signal: NodeJS.Signals, error: unknown) => void
}

/** Listens to the signals from now on. */
export function handleSignals({ log, notifier, stop, exit, reload, reopenLogs, failed }: SignalDuties): void {
  let stopping = false
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping) {
        log.warn(`${signal} again: exiting at once`)
        exit()
      }
      stopping = true
      log.info(`${signal}: stopping`)
      void doEach(signal, [stop])
    })
  }
  process.on('SIGHUP', async () => {
    notifier.reloading()
    const failures = await doEach('SIGHUP', reload)
    notifier.reloaded(failures === 0 ? 'reloaded' : 'the last reload failed, so the old state is in use: see the log')
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
