/**
 * The process of one worker: joins the primary, serves, and ends when it is told to or the primary is gone.
 *
 * Surprise: a signal to all processes at once, Ctrl+C in a terminal say, is for the primary, which tells the workers what
 * to do. SIGTERM to a worker alone stops that one gracefully, and another takes its place.
 */
import type { App, AppOptions } from '../app.ts'
import { joinPrimary } from '../cluster/worker.ts'
import { isFileError } from './failure.ts'
import { handleUncaught, logFatal } from './uncaught.ts'

/** Exit statuses, as those of the command line. */
export interface Statuses {
  readonly ok: number
  readonly failed: number
  readonly config: number
}

/**
 * Runs a worker. Ends the process.
 * @param number from 1
 * @param createApp given, so that it is the one that the command line has loaded
 */
export async function runWorker(number: number, createApp: (options: AppOptions) => App, statuses: Statuses): Promise<void> {
  let resolveApp: (app: App) => void = () => {}
  const made = new Promise<App>((resolve) => {
    resolveApp = resolve
  })
  const { options, peer } = await joinPrimary(number, {
    follow: async (change) => (await made).follow(change),
    apply: async (command) => void (await (await made).control.apply(command)),
    stop: () => void made.then((app) => app.stop()),
  })
  const app = createApp(options)
  resolveApp(app)
  handleUncaught(app, statuses.failed)
  for (const signal of ['SIGINT', 'SIGHUP', 'SIGUSR2'] as const) process.on(signal, () => {})
  process.on('SIGTERM', () => {
    peer.tell('process.ends')
    void app.stop()
  })
  void peer.closed.then(() => {
    if (!app.stopping) app.logger('server').fatal('the primary process is gone: stopping')
    void app.stop()
  })
  let status = statuses.ok
  try {
    await Promise.race([app.start().then((address) => peer.tell('process.serves', address)), app.stopped])
    await app.stopped
  } catch (error) {
    status = isFileError(error) ? statuses.config : statuses.failed
    const message = error instanceof Error ? error.message : String(error)
    logFatal(app, 'server', message, isFileError(error) ? undefined : error)
    await app.stop()
  }
  setImmediate(() => process.exit(status)) // What was told last goes at the end of this turn.
}
