/**
 * The primary: the first process of a server with several. It serves no request. It starts the workers and replaces
 * those that end, writes the logs, passes on commands, and keeps the state, events, sessions and limits that the
 * workers share.
 */
import { resolve } from 'node:path'
import { makeSetupToken } from '../access/setup-token.ts'
import { isObject } from '../base/object.ts'
import { RateLimited } from '../base/rate-limited.ts'
import { reasonOf } from '../base/reason.ts'
import type { AppKey } from '../config/app-key.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Command, MachineCommandType } from '../control/commands.ts'
import { LocalStateStore } from '../control/state-store.ts'
import { TraceSwitches } from '../control/trace-switches.ts'
import { KeptEvents } from '../events/kept-events.ts'
import { LocalBroker } from '../events/local-broker.ts'
import type { Address } from '../core/listener.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { Logs } from '../log/logs.ts'
import { createEventLoopWatch } from '../metrics/event-loop.ts'
import { Histogram } from '../metrics/histogram.ts'
import { Metrics } from '../metrics/metrics.ts'
import { createThisProcess, type PanelLogs, type ThisProcess } from '../metrics/processes.ts'
import type { MetricSources } from '../metrics/table.ts'
import type { OpenShared } from './shared.ts'
import { hostLimits } from './limits.ts'
import { hostBroker } from './events.ts'
import { createReadingsHost } from './readings-host.ts'
import { hostNodes } from './nodes.ts'
import type { Joining } from './process-part.ts'
import { hostSessions } from './sessions.ts'
import { createStateHost } from './state-channel.ts'
import { createSupervisor } from './supervisor.ts'
import { createWatch } from './watch.ts'
import { startWorker, type WorkerProcess } from './worker-process.ts'

interface PrimaryOptions {
  readonly loaded: LoadedConfig
  /** The file in which setup saves the admin's credentials. */
  readonly configFile: string
  readonly appKey: AppKey
  /** Replaces the password of `shared.url`. */
  readonly sharedPassword: string | undefined
  /** Opens the shared engine; given when the configuration names one. */
  readonly openShared?: OpenShared
  readonly logs: Logs
  /** How many workers, from 2. */
  readonly count: number
  readonly listenFd: number | undefined
  /** Called when all workers serve for the first time. */
  readonly onReady: (address: Address) => void
  /** Called when a stop begins, whatever its reason. */
  readonly onStop: () => void
}

/** Starts the workers. Call `prepareWorkers` before. */
export function startPrimary(options: PrimaryOptions) {
  const { loaded, logs, count, listenFd } = options
  const { config } = loaded
  const log = logs.module('server')
  const setupToken = makeSetupToken()
  const damaged = new RateLimited(logs.module('error').error, 1000)
  const routesFolder = resolve(loaded.folder, config['paths.routes'])
  const shared = options.openShared?.(loaded, options.appKey.key, options.sharedPassword, log)
  const node = shared?.openNode(routesFolder)
  const nodesHost = node && hostNodes(node)
  const store = node ?? new LocalStateStore(routesFolder)
  const trace = new TraceSwitches({
    trace: logs.general.trace,
    nowMs: () => store.nowMs(),
    onReturn: (module, on) => log.info(`trace of ${module} went back to ${on ? 'on' : 'off'} by itself`),
  })
  const states = createStateHost({
    store,
    log,
    trace,
    onCommand: async (command) => {
      if (command.type === 'bench.start') await readings.beginWindow()
      if (command.type === 'errors.clear') own.clearErrors((command as Command<'errors.clear'>).beforeMs)
    },
    asWhole,
    onDiverged: (member) => supervisor.replace(member.number),
  })
  const limits = hostLimits(config['server.max_connections_per_ip'])
  const broker = new LocalBroker()
  const keptEvents = shared === undefined ? keepEvents(broker, loaded, log) : undefined
  const events = hostBroker(broker)
  const sessions = hostSessions({ onProblem: logs.module('error').warn })
  const eventLoop = createEventLoopWatch({ warn: logs.module('metrics').warn })
  const ofEvents = () => ({ published: 0, delivered: 0, slow: 0, dropped: events.dropped })
  const { general, access = { written: 0, lost: 0 }, problems } = logs
  const counts = { events: ofEvents, sessions: () => sessions.counts, log: general, accessLog: access }
  const warnings = (): readonly string[] => [...problems(), ...supervisor.warnings()]
  const own = createPrimaryProcess({ ...counts, eventLoop, warnings }, logs)
  const readings = createReadingsHost({ own, count, report: (message, thrown) => log.error(message, { thrown }) })
  const watch = createWatch({ log, patience: config['server.hang_timeout_s'] })
  // An error that prevents the start is found by each worker too, which exits with its status.
  const opened = shared?.opened().then(openNode, () => {})
  let joined: Promise<void> | undefined
  /** Whether all workers have served for the first time. */
  let isReady = false
  let resolveServed: (address: Address) => void
  /** Resolves when the first worker serves. */
  const served = new Promise<Address>((resolve) => (resolveServed = resolve))
  void served.then(({ port }) => node?.listens(port))

  function openNode(): Promise<void> | undefined {
    return node?.open({
      apply: (state) => states.apply(state),
      summary: () => readings.summary(),
      errors: () => readings.errors(),
      clearErrors: (beforeMs) => states.everywhere({ type: 'errors.clear', beforeMs }),
      onHealth: () => nodesHost?.look(),
    })
  }

  function start(number: number): WorkerProcess {
    const worker = startWorker(number, logs, (error) => damaged.say(`process ${number}: ${reasonOf(error)}`))
    const { peer } = worker
    for (const host of [events, sessions, limits]) host.attach(peer)
    readings.attach(worker)
    watch.attach(worker)
    peer.on('process.join', async () => {
      await opened
      nodesHost?.attach(peer)
      return joining(worker)
    })
    peer.on('process.begins', async (faults) => {
      await refuseBehind(worker, faults as readonly string[]) // Sent by the worker's `beforeListening`.
      worker.serving = true
      joined ??= node?.join()
      return joined
    })
    peer.on('process.serves', (at) => {
      if (isAddress(at)) resolveServed(at)
      else log.error(`process ${number} sent a damaged address: it was ignored`)
      supervisor.serves(number)
    })
    peer.on('process.ends', () => supervisor.ends(number))
    peer.on('process.fails', (why) => supervisor.fails(number, String(why)))
    return worker
  }

  function joining(worker: WorkerProcess): Joining {
    states.join(worker)
    const { file, folder, warnings, sources } = loaded
    return {
      loaded: { config, file, folder, warnings, sources },
      configFile: options.configFile,
      appKey: options.appKey,
      ...(options.sharedPassword !== undefined && { sharedPassword: options.sharedPassword }),
      count,
      ...(listenFd !== undefined && { listenFd }),
      setupToken,
      state: { state: node?.state ?? (store as LocalStateStore).read(), nowMs: store.nowMs() },
      isShared: store.isShared,
      ...(nodesHost !== undefined && { nodes: nodesHost.health() }),
    }
  }

  /**
   * Keeps a worker from serving that takes the place of one that ended, where it cannot load what another serves: files
   * have changed since, and no reload has judged them. At the start of the server all workers find the same.
   * @throws Error that names it
   */
  async function refuseBehind({ number }: WorkerProcess, faults: readonly string[]): Promise<void> {
    const other = isReady && faults.length > 0 ? findServing() : undefined
    // Without another that answers, some routes are better than none.
    const known = await other?.peer.call('process.faults').catch(() => undefined)
    if (known === undefined) return
    const [first, ...more] = faults.filter((fault) => !(known as readonly string[]).includes(fault))
    if (first === undefined) return
    const why = `it cannot load what the others serve: ${first}${more.length === 0 ? '' : `, and ${more.length} more`}`
    supervisor.fails(number, why)
    throw new Error(`This process does not serve: ${why}. It is tried again: correct the file, or put the old one back`)
  }

  /** A worker that serves and has answered recently. */
  function findServing(): WorkerProcess | undefined {
    return supervisor.places.find(({ number, serving, ending }) => serving && !ending && watch.answers(number))?.worker
  }

  function asWhole({ type }: Command<MachineCommandType>): void {
    if (type === 'stop') stop()
    else logs.reopen()
  }

  let stopping = false
  /** Stops all workers gracefully; a second call joins the first. */
  function stop(): void {
    if (stopping) return
    stopping = true
    node?.stops()
    options.onStop()
    void supervisor.stop()
  }

  const supervisor = createSupervisor({
    count,
    start,
    log,
    endsWithLast: listenFd !== undefined,
    stopTimeoutMs: config['server.stop_timeout_s'] * 1000,
    onReady: () => {
      isReady = true
      keptEvents?.served()
      void served.then(options.onReady)
    },
    onGivenUp: () => {
      stopping = true
      options.onStop()
    },
  })

  return {
    stop,
    /** Ends all workers at once. */
    kill: (): void => supervisor.kill(),
    /** Lets a worker carry out the command of a signal, as soon as one serves. Rejects with its error. */
    apply: async (command: Command<'routes.reload' | 'certificates.reload' | 'files.changed'>): Promise<void> => {
      await served
      const first = findServing()
      if (first === undefined) throw new Error(`Cannot carry out ${command.type}: no process serves`)
      await first.peer.call('process.apply', command)
    },
    reopenLogs: (): void => logs.reopen(),
    /** Resolves with the exit status when all workers have ended. */
    done: supervisor.done.then(async (status) => {
      await keptEvents?.save()
      for (const part of [trace, events, sessions, readings, watch, eventLoop]) part.close()
      await node?.leave()
      await shared?.close()
      return status
    }),
  }
}

function isAddress(value: unknown): value is Address {
  return isObject(value) && typeof value['url'] === 'string' && typeof value['port'] === 'number'
}

/** The sources that a primary has. The totals add them to those of the workers, so nothing may be counted in both. */
type PrimaryParts = Pick<MetricSources, 'eventLoop' | 'events' | 'sessions' | 'log' | 'accessLog' | 'warnings'>

/** Takes up the events of the last run. */
function keepEvents(broker: LocalBroker, { config, folder }: LoadedConfig, log: ModuleLogger): KeptEvents {
  const kept = new KeptEvents(broker, resolve(folder, config['paths.cache']), log)
  kept.takeUp()
  return kept
}

const noPool = { workers: 0, queueSize: 0, busy: 0, waiting: 0, refused: 0 }

/** Makes the readings of the primary, with the lines and errors of its logs. */
export function createPrimaryProcess(parts: PrimaryParts, logs: PanelLogs): ThisProcess {
  const sources: MetricSources = {
    ...parts,
    config: { 'pool_rest.queue_size': 0 },
    metrics: new Metrics(),
    activeRequests: () => 0,
    limits: () => ({}),
    httpPool: { ...noPool, alert: false },
    queueWaits: new Histogram(),
    restPool: { longpoll: noPool, sse: noPool },
    restQueueWaits: new Histogram(),
    webSockets: { pool: noPool, slow: 0 },
    connections: () => ({ open: 0, refused: 0, stalled: 0, failed: 0 }),
    views: { hits: 0, misses: 0 },
    isReloadRefused: () => false,
  }
  return createThisProcess(sources, logs)
}
