/**
 * The process of one worker: it joins the primary, serves, and ends when the primary requests it or has ended.
 *
 * A signal to all processes at once, such as Ctrl+C in a terminal, is handled by the primary, which then commands the
 * workers. SIGTERM to one worker stops it gracefully, and the supervisor starts another.
 */
import { createApp, type App } from '../app.ts'
import { reasonOf } from '../base/reason.ts'
import { loadRooms } from '../composition/rooms.ts'
import { DisconnectedError, type Peer } from './peer.ts'
import { joinPrimary } from './worker.ts'
import { logFds } from './log-pipe.ts'
import { dropPermissions } from '../process/permission.ts'
import { RunningRequests } from '../process/running-requests.ts'
import { loadWatch } from '../composition/watch-process.ts'
import { exitStatus, handleUncaught, isFileError, isOfOperator, logFatal } from '../process/process.ts'

/**
 * Runs a worker. Ends the process.
 * @param number from 1
 */
export async function runWorker(number: number): Promise<void> {
  for (const signal of ['SIGINT', 'SIGHUP', 'SIGUSR2'] as const) process.on(signal, () => {})
  let resolveApp: (app: App) => void = () => {}
  const appMade = new Promise<App>((resolve) => {
    resolveApp = resolve
  })
  // There is no log yet, and no work to lose.
  const { options, peer, logs } = await joinPrimary(number, appMade).catch(() => process.exit(exitStatus.failed))
  let app: App | undefined
  let endWatch: (() => Promise<void>) | undefined
  let status: number = exitStatus.ok
  try {
    const { loaded } = options
    const watch = await loadWatch(loaded.config)
    const running = new RunningRequests()
    app = createApp({ ...options, rooms: await loadRooms(loaded.config), watch: true, running })
    resolveApp(app)
    handleEnds(app, peer, running)
    const started = app.start().then((address) => {
      dropPermissions(options.loaded, options.configFile)
      peer.notify('process.serves', address)
    })
    endWatch = watch?.({
      loaded,
      log: app.log('server'),
      running,
      onRecord: app.noteRecord,
      name: `process ${number}`,
      worker: { number, logFd: logFds.general },
    })
    await Promise.race([started, app.stopped])
    await app.stopped
  } catch (error) {
    status = isFileError(error) ? exitStatus.config : exitStatus.failed
    const log = app ?? { log: logs.module, config: options.loaded.config }
    logFatal(log, 'server', reasonOf(error), isOfOperator(error) ? undefined : error)
    peer.notify('process.fails', reasonOf(error))
    if (app === undefined) logs.close()
    else await app.stop()
  }
  await endWatch?.()
  setImmediate(() => process.exit(status)) // The last messages to the primary are sent at the end of this turn.
}

/** Stops the worker when it receives SIGTERM and when the primary has ended. */
function handleEnds(app: App, peer: Peer, running: RunningRequests): void {
  handleUncaught(app, {
    running,
    isEnding: () => app.stopping,
    // A publish without an awaiting caller rejects when the primary has ended. It must not cut running requests.
    isHarmless: (error) => app.stopping && error instanceof DisconnectedError,
  })
  process.on('SIGTERM', () => {
    peer.notify('process.ends')
    void app.stop(false)
  })
  void peer.closed.then(() => {
    // No process writes the log any more.
    if (!app.stopping) process.stderr.write('the primary process has ended: stopping\n')
    void app.stop(false)
  })
}
