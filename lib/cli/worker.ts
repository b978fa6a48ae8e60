/**
 * The process of one worker: it joins the primary, serves, and ends when the primary says so or is gone.
 *
 * A signal to all processes at once, such as Ctrl+C in a terminal, is for the primary, which tells the workers what to
 * do. SIGTERM to one worker stops it gracefully, and another takes its place.
 */
import { createApp, loadAsked, type App } from '../app.ts'
import { reasonOf } from '../base/reason.ts'
import { DisconnectedError, type Peer } from '../cluster/peer.ts'
import { joinPrimary } from '../cluster/worker.ts'
import { exitStatus, handleUncaught, isFileError, isOfOperator, logFatal } from './process.ts'

/**
 * Runs a worker. Ends the process.
 * @param number from 1
 */
export async function runWorker(number: number): Promise<void> {
  for (const signal of ['SIGINT', 'SIGHUP', 'SIGUSR2'] as const) process.on(signal, () => {})
  let resolveApp: (app: App) => void = () => {}
  const made = new Promise<App>((resolve) => {
    resolveApp = resolve
  })
  // There is no log yet, and nothing to lose.
  const { options, peer, logs } = await joinPrimary(number, made).catch(() => process.exit(exitStatus.failed))
  let app: App | undefined
  let status: number = exitStatus.ok
  try {
    app = createApp({ ...options, ...(await loadAsked(options.loaded.config)), watch: true })
    resolveApp(app)
    handleEnds(app, peer)
    await Promise.race([app.start().then((address) => peer.tell('process.serves', address)), app.stopped])
    await app.stopped
  } catch (error) {
    status = isFileError(error) ? exitStatus.config : exitStatus.failed
    const log = app ?? { log: logs.module, config: options.loaded.config }
    logFatal(log, 'server', reasonOf(error), isOfOperator(error) ? undefined : error)
    peer.tell('process.fails', reasonOf(error))
    if (app === undefined) logs.close()
    else await app.stop()
  }
  setImmediate(() => process.exit(status)) // The last messages to the primary go at the end of this turn.
}

/** Stops the worker at a SIGTERM of its own and when the primary is gone. */
function handleEnds(app: App, peer: Peer): void {
  // A publish that nobody waits for rejects when the primary is gone. It must not cut the requests that still run.
  handleUncaught(app, (error) => app.stopping && error instanceof DisconnectedError)
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
