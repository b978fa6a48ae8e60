/**
 * The primary: the first process of a server with several. It serves no request. It starts the workers and replaces
 * those that end, writes the logs, forwards commands, and keeps the state, events, sessions and limits that the workers
 * share.
 */
import { resolve } from 'node:path'
import { makeSetupToken } from '../access/setup-token.ts'
import { isObject } from '../base/object.ts'
import { RateLimited } from '../base/rate-limited.ts'
import { reasonOf } from '../base/reason.ts'
import type { AppKey } from '../config/app-key.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Command } from '../control/commands.ts'
import { LocalStateStore } from '../control/state-store.ts'
import { UsedCodesFile } from '../control/used-codes-file.ts'
import { TraceSwitches } from '../control/trace-switches.ts'
import { KeptEvents } from '../events/kept-events.ts'
import { LocalBroker } from '../events/local-broker.ts'
import type { Address } from '../core/listener.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { Logs } from '../log/logs.ts'
import { createEventLoopWatch, type EventLoopWatch } from '../metrics/event-loop.ts'
import { Histogram } from '../metrics/histogram.ts'
import { Metrics } from '../metrics/metrics.ts'
import { createThisProcess, type PanelLogs, type ThisProcess } from '../metrics/processes.ts'
import type { MetricSources } from '../metrics/table.ts'
import type { Node } from '../nodes/node.ts'
import type { SharedEngine } from '../nodes/shared.ts'
import type { CodeDigest } from '../proof/code-digest.ts'
import { createDescriptorReader } from '../composition/file-descriptors.ts'
import { LocalData } from '../composition/local-data.ts'
import type { Rooms } from '../composition/rooms.ts'
import { hostLimits } from './limits.ts'
import { hostBroker } from './events.ts'
import { createReadingsHost } from './readings-host.ts'
import { hostNodes } from './nodes.ts'
import type { Joining } from './joining.ts'
import { hostJobs } from './jobs.ts'
import { hostSessions } from './sessions.ts'
import { createStateHost } from './state-channel.ts'
import { createSupervisor } from './supervisor.ts'
import { lastStateFile, readLastState } from '../process/last-state.ts'
import { createWatch } from './watch.ts'
import { startWorker, type WorkerProcess } from './worker-process.ts'

interface PrimaryOptions {
  readonly loaded: LoadedConfig
  /** The file in which setup saves the admin's credentials. */
  readonly configFile: string
  readonly appKey: AppKey
  readonly code: CodeDigest
  /** Replaces the password of `shared.url`. */
  readonly sharedPassword: string | undefined
  readonly rooms: Rooms
  readonly logs: Logs
  /** The number of workers, from 2. */
  readonly count: number
  readonly listenFd: number | undefined
  /** Called when all workers serve for the first time. */
  readonly onReady: (address: Address) => void
  /** Called when a stop begins, whatever its reason. */
  readonly onStop: () => void
}

/** The primary of one server. The constructor starts the workers: call `prepareWorkers` first. */
export class Primary {
  /** Resolves with the exit status when all workers have ended. */
  readonly done: Promise<number>
  readonly #options: PrimaryOptions
  readonly #log: ModuleLogger
  readonly #setupToken = makeSetupToken()
  readonly #shared: SharedEngine | undefined
  readonly #node: Node | undefined
  readonly #nodesHost: ReturnType<typeof hostNodes> | undefined
  readonly #usedCodesFile: UsedCodesFile
  readonly #store: Node | LocalStateStore
  readonly #trace: TraceSwitches
  readonly #states: ReturnType<typeof createStateHost>
  readonly #limits: ReturnType<typeof hostLimits>
  readonly #broker = new LocalBroker()
  readonly #keptEvents: KeptEvents | undefined
  readonly #events: ReturnType<typeof hostBroker>
  readonly #durableEvents: ReturnType<typeof hostBroker>
  readonly #data: LocalData
  readonly #sessions: ReturnType<typeof hostSessions>
  readonly #jobs: ReturnType<typeof hostJobs>
  readonly #eventLoop: EventLoopWatch
  readonly #thisProcess: ThisProcess
  readonly #readings: ReturnType<typeof createReadingsHost>
  readonly #watch: ReturnType<typeof createWatch>
  readonly #supervisor: ReturnType<typeof createSupervisor>
  readonly #damaged: RateLimited
  /** Resolves even when the engine cannot be opened: each worker fails in the same way and exits with its status. */
  readonly #opened: Promise<void> | undefined
  /** Resolves when the first worker serves. */
  readonly #served: Promise<Address>
  #resolveServed!: (address: Address) => void
  #joined: Promise<void> | undefined
  /** Whether all workers have served for the first time. */
  #isReady = false
  #isStopping = false

  constructor(options: PrimaryOptions) {
    const { loaded, logs, count, rooms } = options
    const { config } = loaded
    this.#options = options
    const log = logs.module('server')
    this.#log = log
    this.#damaged = new RateLimited(logs.module('error').error, 1000)
    const routesFolder = resolve(loaded.folder, config['paths.routes'])
    this.#usedCodesFile = new UsedCodesFile(resolve(loaded.folder, config['paths.cache']), log.warn)
    this.#shared = rooms.nodes?.openShared(loaded, options.appKey.key, options.sharedPassword, log)
    this.#node = this.#shared?.openNode(routesFolder, this.#usedCodesFile)
    this.#nodesHost = this.#node && hostNodes(this.#node)
    this.#store = this.#node ?? new LocalStateStore(routesFolder, this.#usedCodesFile)
    this.#trace = new TraceSwitches({
      trace: logs.general.trace,
      nowMs: () => this.#store.nowMs(),
      onReturn: (module, on) => log.info(`trace of ${module} reverted to ${on ? 'on' : 'off'}`),
    })
    this.#states = this.#hostStates()
    this.#limits = hostLimits(config['server.max_connections_per_ip'])
    this.#keptEvents = this.#shared === undefined ? this.#openKeptEvents() : undefined
    this.#events = hostBroker(this.#broker)
    this.#data = new LocalData(loaded, log)
    this.#durableEvents = hostBroker(this.#data.openBroker(), 'durable')
    this.#sessions = hostSessions({
      onProblem: logs.module('error').warn,
      open: this.#data.openSessions,
    })
    this.#jobs = hostJobs(() => this.#data.jobs(Date.now))
    this.#eventLoop = createEventLoopWatch({ warn: logs.module('metrics').warn })
    this.#thisProcess = this.#createThisProcess()
    const report = (message: string, thrown: unknown): void => log.error(message, { thrown })
    this.#readings = createReadingsHost({ thisProcess: this.#thisProcess, count, report })
    this.#watch = createWatch({
      log,
      patience: config['server.hang_timeout_s'],
      onHang: (number) => this.#supervisor.hangs(number),
    })
    this.#opened = this.#shared?.opened().then(() => this.#openNode(), () => {})
    this.#served = new Promise((resolve) => (this.#resolveServed = resolve))
    void this.#served.then(({ port }) => this.#node?.listens(port))
    this.#supervisor = this.#createSupervisor()
    this.done = this.#supervisor.done.then((status) => this.#close(status))
  }

  /** Stops all workers gracefully; a second call joins the first. */
  stop(): void {
    if (this.#isStopping) return
    this.#isStopping = true
    this.#node?.stops()
    this.#options.onStop()
    void this.#supervisor.stop()
  }

  /** Ends all workers at once. */
  kill(): void {
    this.#supervisor.kill()
  }

  /** Runs the command of a signal in a worker, as soon as one serves. Rejects with its error. */
  async apply(command: Command<'routes.reload' | 'certificates.reload' | 'files.changed'>): Promise<void> {
    await this.#served
    const first = this.#findServing()
    if (first === undefined) throw new Error(`Cannot carry out ${command.type}: no process serves`)
    await first.peer.call('process.apply', command)
  }

  async #close(status: number): Promise<number> {
    await this.#keptEvents?.save()
    const closing = [this.#trace, this.#sessions, this.#readings, this.#watch, this.#eventLoop]
    for (const each of closing) each.close()
    for (const each of [this.#events, this.#durableEvents, this.#jobs]) await each.close()
    await this.#data.close()
    await this.#node?.leave()
    await this.#shared?.close()
    return status
  }

  // ---- a worker ----

  #start(number: number): WorkerProcess {
    const onDamaged = (error: unknown): void => this.#damaged.say(`process ${number}: ${reasonOf(error)}`)
    const worker = startWorker(number, this.#options.logs, onDamaged)
    const { peer } = worker
    for (const host of [this.#events, this.#durableEvents, this.#sessions, this.#limits, this.#jobs]) {
      host.attach(peer)
    }
    this.#readings.attach(worker)
    this.#watch.attach(worker)
    peer.on('process.join', async () => {
      await this.#opened
      this.#nodesHost?.attach(peer)
      return this.#joining(worker)
    })
    peer.on('process.begins', async (faults) => {
      await this.#data.ready()
      await this.#refuseBehind(worker, faults as readonly string[]) // Sent by the worker's `beforeListening`.
      worker.serving = true
      this.#joined ??= this.#node?.join()
      return this.#joined
    })
    peer.on('process.serves', (at) => {
      if (isAddress(at)) this.#resolveServed(at)
      else this.#log.error(`ignored a damaged address from process ${number}`)
      this.#supervisor.serves(number)
    })
    peer.on('process.ends', () => this.#supervisor.ends(number))
    peer.on('process.fails', (why) => this.#supervisor.fails(number, String(why)))
    return worker
  }

  #joining(worker: WorkerProcess): Joining {
    this.#states.join(worker)
    const { loaded, configFile, appKey, code, sharedPassword, count, listenFd } = this.#options
    const { config, settings, file, folder, warnings, sources } = loaded
    const store = this.#store
    return {
      loaded: { config, settings, file, folder, warnings, sources },
      configFile,
      appKey,
      code,
      ...(sharedPassword !== undefined && { sharedPassword }),
      count,
      ...(listenFd !== undefined && { listenFd }),
      setupToken: this.#setupToken,
      state: { state: store instanceof LocalStateStore ? store.read() : store.state, nowMs: store.nowMs() },
      isShared: store.isShared,
      ...(this.#nodesHost !== undefined && { nodes: this.#nodesHost.health() }),
    }
  }

  /**
   * Keeps a replacement worker from serving when it cannot load what another worker serves: files have changed, and no
   * reload has checked them. At the start of the server all workers see the same files.
   * @throws Error that names the first fault
   */
  async #refuseBehind({ number }: WorkerProcess, faults: readonly string[]): Promise<void> {
    const other = this.#isReady && faults.length > 0 ? this.#findServing() : undefined
    // When no other worker answers, some routes are better than none.
    const known = await other?.peer.call('process.faults').catch(() => undefined)
    if (known === undefined) return
    const [first, ...more] = faults.filter((fault) => !(known as readonly string[]).includes(fault))
    if (first === undefined) return
    const why = `it cannot load what the others serve: ${first}${more.length === 0 ? '' : `, and ${more.length} more`}`
    this.#supervisor.fails(number, why)
    throw new Error(`This process does not serve: ${why}. Retrying: correct the file, or restore the old one`)
  }

  /** A worker that serves and has answered recently. */
  #findServing(): WorkerProcess | undefined {
    const isServing = ({ number, serving, ending }: { number: number; serving: boolean; ending: boolean }): boolean =>
      serving && !ending && this.#watch.answers(number)
    return this.#supervisor.slots.find(isServing)?.worker
  }

  // ---- what the workers share ----

  #hostStates(): ReturnType<typeof createStateHost> {
    return createStateHost({
      store: this.#store,
      log: this.#log,
      trace: this.#trace,
      onCommand: async (command) => {
        if (command.type === 'bench.start') await this.#readings.beginWindow()
        if (command.type === 'errors.clear') this.#clearErrors(command as Command<'errors.clear'>)
      },
      applyToServer: ({ type }) => (type === 'stop' ? this.stop() : this.#options.logs.reopen()),
      onDiverged: (member) => this.#supervisor.replace(member.number),
    })
  }

  #clearErrors({ beforeMs }: Command<'errors.clear'>): void {
    this.#thisProcess.clearErrors(beforeMs)
  }

  /** Restores the events of the last run. */
  #openKeptEvents(): KeptEvents {
    const { config, folder } = this.#options.loaded
    const kept = new KeptEvents(this.#broker, resolve(folder, config['paths.cache']), this.#log)
    kept.restore()
    return kept
  }

  #createThisProcess(): ThisProcess {
    const { logs } = this.#options
    const { general, access = { written: 0, lost: 0 }, problems } = logs
    const sources = {
      eventLoop: this.#eventLoop,
      events: () => {
        const dropped = this.#events.dropped + this.#durableEvents.dropped
        return { published: 0, delivered: 0, slow: 0, dropped }
      },
      sessions: () => ({ ...this.#sessions.counts, stored: this.#sessions.stored }),
      descriptors: createDescriptorReader(),
      replaced: () => this.#supervisor.replaced,
      log: general,
      accessLog: access,
      warnings: () => [...problems(), ...this.#usedCodesFile.warnings(), ...this.#supervisor.warnings()],
    }
    return createPrimaryProcess(sources, logs)
  }

  #openNode(): Promise<void> | undefined {
    return this.#node?.open({
      apply: (state) => this.#states.apply(state),
      summary: () => this.#readings.summary(),
      errors: () => this.#readings.errors(),
      clearErrors: (beforeMs) => this.#states.everywhere({ type: 'errors.clear', beforeMs }),
      onHealth: () => this.#nodesHost?.healthChanged(),
    })
  }

  #createSupervisor(): ReturnType<typeof createSupervisor> {
    const { count, loaded, listenFd, onReady, onStop } = this.#options
    const cacheFolder = resolve(loaded.folder, loaded.config['paths.cache'])
    return createSupervisor({
      count,
      start: (number) => this.#start(number),
      log: this.#log,
      lastStateOf: ({ number, pid }) => readLastState(lastStateFile(cacheFolder, number), pid),
      endsWithLast: listenFd !== undefined,
      stopTimeoutMs: loaded.config['server.stop_timeout_s'] * 1000,
      onReady: () => {
        this.#isReady = true
        this.#keptEvents?.served()
        void this.#served.then(onReady)
      },
      onGivenUp: () => {
        this.#isStopping = true
        onStop()
      },
    })
  }
}

function isAddress(value: unknown): value is Address {
  return isObject(value) && typeof value['url'] === 'string' && typeof value['port'] === 'number'
}

/** The sources of a primary. The totals add them to those of the workers, so nothing may be counted in both. */
type PrimarySources = Pick<
  MetricSources,
  'eventLoop' | 'events' | 'sessions' | 'log' | 'accessLog' | 'descriptors' | 'replaced' | 'warnings'
>

const noPool = { workers: 0, queueSize: 0, busy: 0, waiting: 0, refused: 0 }

/** Makes the readings of the primary, with the lines and errors of its logs. */
export function createPrimaryProcess(primarySources: PrimarySources, logs: PanelLogs): ThisProcess {
  const sources: MetricSources = {
    ...primarySources,
    config: { 'pool_rest.queue_size': 0 },
    metrics: new Metrics(),
    activeRequests: () => 0,
    limits: () => ({}),
    jobs: () => ({ done: 0, failed: 0, dead: 0, running: 0 }),
    httpPool: { ...noPool, alert: false },
    queueWaits: new Histogram(),
    restPool: { longpoll: noPool, sse: noPool },
    restQueueWaits: new Histogram(),
    webSockets: { pool: noPool, slow: 0 },
    connections: () => ({ open: 0, refused: 0, stalled: 0, failed: 0 }),
    views: { hits: 0, misses: 0 },
    isReloadRefused: () => false,
    isReady: () => true,
    appMetrics: () => [],
  }
  return createThisProcess(sources, logs)
}
