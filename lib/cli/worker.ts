/**
 * The process of one worker: joins the primary, serves, and ends when it is told to or the primary is gone.
 *
 * Surprise: a signal to all processes at once, Ctrl+C in a terminal say, is for the primary, which tells the workers
 * what to do. SIGTERM to a worker alone stops that one gracefully, and another takes its place.
 */
import { createApp, loadAsked, type App } from '../app.ts'
import { reasonOf } from '../base/reason.ts'
import { DisconnectedError, type Peer } from '../group/peer.ts'
import { joinPrimary } from '../group/worker.ts'
import { withGroups } from '../config/groups.ts'
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
 */
export async function runWorker(number: number, statuses: Statuses): Promise<void> {
  for (const signal of ['SIGINT', 'SIGHUP', 'SIGUSR2'] as const) process.on(signal, () => {})
  let resolveApp: (app: App) => void = () => {}
  const made = new Promise<App>((resolve) => {
    resolveApp = resolve
  })
  const joining = joinPrimary(number, {
    follow: async (state) => (await made).follow(state),
    carryOut: async (command) => (await made).carryOut(command),
    apply: async (command) => void (await (await made).control.apply(command)),
    stop: (drains) => void made.then((app) => app.stop(drains)),
  })
  // There is nothing to lose yet, and nobody to say it to.
  const { options, peer, logs } = await joining.catch(() => process.exit(statuses.failed))
  let app: App | undefined
  let status = statuses.ok
  try {
    app = createApp({ ...options, ...(await loadAsked(options.loaded.config)) })
    resolveApp(app)
    handleEnds(app, peer, statuses)
    await Promise.race([app.start().then((address) => peer.tell('process.serves', address)), app.stopped])
    await app.stopped
  } catch (error) {
    status = isFileError(error) ? statuses.config : statuses.failed
    const message = reasonOf(error)
    const speaker = app ?? { logger: logs.module, config: withGroups(options.loaded.config) }
    logFatal(speaker, 'server', message, isFileError(error) ? undefined : error)
    if (app === undefined) logs.close()
    else await app.stop()
  }
  setImmediate(() => process.exit(status)) // What was told last goes at the end of this turn.
}

/**
 * Neither a SIGTERM for this process alone nor the end of the primary is a reason to serve on: others do, or none can.
 */
function handleEnds(app: App, peer: Peer, statuses: Statuses): void {
  // Who has published without waiting for it has nobody to tell that the primary is gone. It must not cut what still
  // runs.
  handleUncaught(app, statuses.failed, (error) => app.stopping && error instanceof DisconnectedError)
  process.on('SIGTERM', () => {
    peer.tell('process.ends')
    void app.stop(false)
  })
  void peer.closed.then(() => {
    // Nobody writes the log any more.
    if (!app.stopping) process.stderr.write('the primary process is gone: stopping\n')
    void app.stop(false)
  })
}
