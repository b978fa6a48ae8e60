/**
 * The composition root: builds the parts of a server from its configuration, joins them, and starts and stops them.
 * Nothing is shared between two apps; several may live in one process.
 */
import { resolve } from 'node:path'
import type { SetupApp } from 'svc'
import { hasAdminCookie } from './access/cookie.ts'
import type { AdminCredentials } from './access/credentials.ts'
import { Maintenance } from './application/maintenance.ts'
import { openStaticFiles } from './application/static-files.ts'
import type { Change } from './base/ports.ts'
import { startLine } from './base/version.ts'
import type { Worker } from './cluster/joining.ts'
import { ApplicationParts } from './composition/application-parts.ts'
import { removeLeftUploads } from './composition/left-uploads.ts'
import { Life } from './composition/life.ts'
import { createMetricSources } from './composition/metric-sources.ts'
import { checkRooms, type Rooms } from './composition/rooms.ts'
import { createServing, type Serving } from './composition/serving.ts'
import { createServingParts } from './composition/serving-parts.ts'
import { createStateParts, type StateParts } from './composition/state-parts.ts'
import {
  configurationFolder,
  dataFolder,
  FolderWatch,
  foldersOf,
  sessionFolder,
} from './composition/written-folders.ts'
import { auditKeysOf, chooseAppKey, type AppKey } from './config/app-key.ts'
import { withSections, type SectionedConfig } from './config/assemble.ts'
import { parseConfig, type LoadedConfig } from './config/load.ts'
import { refuseInconsistent, inconsistencyWarnings } from './config/together.ts'
import { Changes, carryOut } from './control/changes.ts'
import {
  describeAll,
  type Command,
  type Control,
  type MachineCommandType,
  type MachineHandlers,
} from './control/commands.ts'
import { initialState, type DesiredState } from './control/desired-state.ts'
import { UsedCodesFile } from './control/used-codes-file.ts'
import type { Address } from './core/listener.ts'
import { createStop } from './core/stop.ts'
import type { Dev } from './dev/dev.ts'
import { authorLogger } from './log/feature.ts'
import type { ModuleLogger } from './log/logger.ts'
import type { LogRecord } from './log/record.ts'
import { openLogs, type Logs } from './log/logs.ts'
import { Metrics } from './metrics/metrics.ts'
import { createSingleProcess, createThisProcess, type Processes, type ThisProcess } from './metrics/processes.ts'
import type { Node } from './nodes/node.ts'
import type { SharedEngine } from './nodes/shared.ts'
import { createPanel } from './panel/table.ts'
import { RunningRequests } from './process/running-requests.ts'
import { nodeWarnings } from './process/safe-node.ts'
import { codeDigest, type CodeDigest } from './proof/code-digest.ts'
import type { CertificateInUse } from './tls/certificates.ts'

/** The options of an app. Without `loaded`, `config` is used. */
export interface AppOptions {
  /** The configuration by the keys of `svc.json`, nested or dotted; absent keys have their defaults. */
  readonly config?: Readonly<Record<string, unknown>>
  /** The application secret, instead of `app_key` in the configuration. */
  readonly appKey?: string
  /** The rooms that the configuration needs, from `loadRooms` or `requireRooms`. */
  readonly rooms?: Rooms
  /** Whether to apply saved files, in `dev` with `dev.watch`; the command line sets it. */
  readonly watch?: boolean
  /** The password of the shared engine, instead of the one in `shared.url` of the configuration. */
  readonly sharedPassword?: string
  /** The base of relative paths. Default: the working directory. */
  readonly folder?: string
  /** The file in which setup saves the admin's credentials. Default: the file of `loaded`. */
  readonly configFile?: string | undefined
  /** A configuration loaded from a file. */
  readonly loaded?: LoadedConfig
  /**
   * The file descriptor of a listening socket passed to this process, instead of `server.host` and `server.port`.
   */
  readonly listenFd?: number
  /** Whether to warn of a Node that is not safe. Default: true. Tests turn it off, to pass on every Node alike. */
  readonly warnsOfNode?: boolean
  /** The clock of the jobs, in milliseconds since 1970; `Date.now` by default. */
  readonly now?: () => number
  /** Adds routes before those of the application are loaded; used by `testApp`. */
  readonly addRoutes?: (parts: ApplicationParts) => void
  /** Called when a stop begins, whatever its reason. */
  readonly onStop?: () => void
  /** Takes note of the running requests, for a process that hangs or ends. */
  readonly running?: RunningRequests
  /** What this app shares with the other processes, in one of several. */
  readonly worker?: Worker
}

/** The part of `server.stop_timeout_s` after which jobs abort, as requests do: the rest is for what follows. */
const shareOfJobs = 0.9

/** A server. */
export interface App extends SetupApp {
  /** By dotted keys, `config['server.port']`, and by sections, `config.server.port`. */
  readonly config: SectionedConfig
  /** Changes the running server. */
  readonly control: Control
  /** The log of a module, for lines of the server itself. */
  readonly log: (module: string) => ModuleLogger
  /** Shows a record that another thread has written to the log in the panel. */
  readonly noteRecord: (record: LogRecord) => void
  /** Records a change made other than through the panel. */
  readonly audit: (change: Change) => void
  /**
   * Loads the application and listens; call it once. Rejects for a problem that would fail every request, or after a
   * stop; then call `stop`.
   */
  start(): Promise<Address>
  /**
   * Sends a request without a port, for tests; the first one loads the application unless it has been started. Does not
   * follow redirects.
   * @param input a path with its query, or as for `fetch`
   * @param init as for `fetch`
   */
  request(input: string | URL | Request, init?: RequestInit): Promise<Response>
  /** Applies a state created by another process of this server. Rejects when this one cannot. */
  follow(state: DesiredState): Promise<void>
  /** Executes a command for the machine that another process of this server has executed. */
  carryOut(command: Command<MachineCommandType>): Promise<void>
  /**
   * Stops gracefully: answers the running requests, for at most `server.stop_timeout_s`. Resolves when all is closed.
   * @param drains whether it first keeps serving for `server.drain_delay_s`; default true
   */
  stop(drains?: boolean): Promise<void>
  /** Whether a stop has begun, whatever its reason. */
  readonly stopping: boolean
  /** Resolves when a stop is done. */
  readonly stopped: Promise<void>
  /** Returns the current warnings, as `/svc-status` shows them. */
  warnings(): readonly string[]
  /** Returns the parts of the application that this process could not load, as `Application.faults` does. */
  faults(): readonly string[]
  /** Writes the log lines that wait for the end of this turn of the event loop. */
  flushLogs(): void
  /** Writes and closes the logs at once. Call it last: `stop` leaves them open for later lines. */
  closeLogs(): void
}

/**
 * Builds a server. Nothing listens and no module is loaded before `start()`; the log files are opened.
 * @throws ConfigError when the configuration cannot be used
 * @throws MissingRoomError when a room is missing that the configuration needs
 */
export function createApp(options: AppOptions = {}): App {
  return new Server(options)
}

/** Returns the configuration of the options, with their application secret. */
export function loadedOf({ loaded, config, folder, appKey }: AppOptions): LoadedConfig {
  const base = loaded ?? parseConfig(config ?? {}, folder ?? process.cwd())
  if (appKey === undefined) return base
  const sources = { ...base.sources, app_key: 'createApp' }
  return { ...base, sources, config: { ...base.config, app_key: appKey } }
}

class Server implements App {
  readonly config: App['config']
  readonly process: App['process']
  readonly control: Control
  readonly #options: AppOptions
  readonly #loaded: LoadedConfig
  readonly #worker: Worker | undefined
  /** Whether this process logs on behalf of all processes. */
  readonly #announces: boolean
  readonly #life = new Life()
  readonly #code: CodeDigest
  readonly #certificate: CertificateInUse | undefined
  readonly #logs: Logs
  readonly #appKey: AppKey
  readonly #shared: SharedEngine | undefined
  /** This server among those that share the engine, if it is a single process. */
  readonly #node: Node | undefined
  readonly #usedCodesFile: UsedCodesFile
  readonly #built: ApplicationParts
  readonly metrics: App['metrics']
  readonly ready: App['ready']
  readonly #dev: Dev | undefined
  readonly #maintenance: Maintenance
  readonly #serving: Serving
  readonly #stop: ReturnType<typeof createStop>
  readonly #own: ThisProcess
  readonly #processes: Processes
  readonly #state: StateParts
  readonly #handlers: MachineHandlers
  readonly #panel: ReturnType<typeof createPanel>
  readonly #folders: FolderWatch
  readonly #warningsOfValues: readonly string[]
  #isStarted = false
  #loading: Promise<void> | undefined

  constructor(options: AppOptions) {
    const { worker, rooms = {} } = options
    const loaded = loadedOf(options)
    const { config } = loaded
    const life = this.#life
    this.#options = { ...options, configFile: options.configFile ?? loaded.file }
    this.#loaded = loaded
    this.#worker = worker
    this.#announces = worker === undefined || worker.number === 1
    this.config = withSections(config)
    this.process = { number: worker?.number ?? 1, count: worker?.count ?? 1 }
    refuseInconsistent(loaded)
    checkRooms(config, rooms)
    this.#code = worker?.code ?? codeDigest()
    this.#certificate = rooms.tls && new rooms.tls.CertificateInUse(loaded)
    const onUnsent = (message: string, thrown: unknown): void => this.log('response').error(message, { thrown })
    const staticFiles = openStaticFiles(loaded, onUnsent)
    this.#appKey = worker?.appKey ?? chooseAppKey(config)
    this.#logs = worker?.logs ?? openLogs(config, this.#path('paths.log'), auditKeysOf(config, this.#appKey))

    this.#usedCodesFile = new UsedCodesFile(this.#path('paths.cache'), this.log('server').warn)
    this.#shared = this.#openEngine(rooms)
    this.#node = worker === undefined ? this.#openNode() : undefined
    const backends = { ...worker?.backends, ...this.#shared?.openBackends(this.log('error')) }
    const more = { ...worker, backends, createLive: rooms.live?.createLive, now: options.now }
    const built = new ApplicationParts(loaded, this.#appKey.key, this.log, more)
    this.#built = built
    const { metrics: ofApp, ready } = built.registrarsOf({ state: 'in use' })
    this.metrics = ofApp
    this.ready = ready
    life.atEnd(() => built.data.close())
    life.atEnd(() => Promise.all([built.builtIn.sessions.close(), built.endEvents()]))
    life.atEnd(() => built.jobs.current?.close())
    life.atEnd(() => built.application.stop())
    this.#stopJobs()
    this.#dev = this.#createDev(rooms)
    life.atStop(() => this.#dev?.stop())
    const metrics = new Metrics()
    this.#maintenance = this.#createMaintenance()
    const certificates = this.#certificate?.current
    const shared = { loaded, logs: this.#logs, life, built, worker, metrics }
    const { running = new RunningRequests() } = options
    const ofServing = { staticFiles, certificates, maintenance: this.#maintenance, warnsOfNode: this.#announces }
    const parts = createServingParts({ ...shared, ...ofServing, running })
    this.#serving = createServing(config, this.#dev?.wrap(parts) ?? parts)
    this.#stop = this.#createStop()
    const { application } = built
    const sources = createMetricSources({
      ...shared,
      serving: this.#serving,
      isReloadRefused: () => application.isReloadRefused || this.#certificate?.isReloadRefused === true,
    })
    this.#own = createThisProcess(sources, this.#logs)
    this.#processes = (worker?.joinProcesses ?? createSingleProcess)(this.#own)
    life.atEnd(() => this.#processes.close())
    life.atEnd(() => built.webSockets.gone())

    this.#state = this.#createState({ ...shared, application })
    this.#handlers = this.#createHandlers()
    const { log } = this
    this.control = new Changes({ ...this.#state, application, handlers: this.#handlers, machine: worker?.machine, log })
    this.#panel = this.#createPanel()
    this.#warningsOfValues = inconsistencyWarnings(loaded)
    this.#folders = this.#watchFolders()
    this.#collectWarnings()
    life.atEnd(() => this.#folders.close())
    life.atEnd(() => this.#maintenance.close())
    life.atEnd(() => this.#certificate?.close())
  }

  // ---- the interface ----

  get settings(): App['settings'] {
    return this.#built.application.settings.settings
  }

  get url(): App['url'] {
    return this.#built.url
  }

  get channel(): App['channel'] {
    return this.#built.events.channel
  }

  get queue(): App['queue'] {
    return this.#built.events.queue
  }

  get enqueue(): App['enqueue'] {
    return this.#built.jobs.enqueue
  }

  get stopping(): boolean {
    return this.#stop.begun
  }

  get stopped(): Promise<void> {
    return this.#stop.done
  }

  // Functions instead of methods, so that `const { request } = createApp(...)` works.

  readonly log = (module: string): ModuleLogger => this.#logs.module(module)

  readonly logger = (module: string): ReturnType<App['logger']> => authorLogger(this.log(module))

  readonly noteRecord = (record: LogRecord): void => this.#logs.note(record)

  readonly audit = (change: Change): void => this.#logs.audit.record(change)

  readonly start = async (): Promise<Address> => {
    if (this.stopping) throw new Error('Cannot start: the server has been stopped before')
    if (this.#isStarted) throw new Error('Cannot start: the server has been started before')
    this.#isStarted = true
    try {
      return await this.#loadAndListen()
    } catch (error) {
      // Let the stop finish before rejecting: it is why the start failed.
      if (this.stopping) await this.stopped
      throw error
    }
  }

  readonly request = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    if (this.stopping) throw new Error('Cannot send a request: the server has been stopped')
    const { inject } = await import('./composition/inject.ts')
    await (this.#loading ??= this.#load())
    return inject((stream, isSecure) => this.#serving.listener.accept(stream, isSecure), input, init)
  }

  readonly follow = async (state: DesiredState): Promise<void> => void (await this.#state.reconciler.follow(state))

  readonly carryOut = async (command: Command<MachineCommandType>): Promise<void> =>
    void (await carryOut(this.#handlers, command))

  readonly stop = (drains?: boolean): Promise<void> => this.#stop.begin(drains)

  readonly warnings = (): readonly string[] => this.#life.warnings()

  readonly faults = (): readonly string[] => this.#built.application.faults()

  readonly flushLogs = (): void => this.#logs.flush()

  readonly closeLogs = (): void => this.#logs.close()

  // ---- the start ----

  async #loadAndListen(): Promise<Address> {
    await (this.#loading ??= this.#load())
    const address = await this.#listen()
    this.#built.keptEvents?.served()
    this.#node?.listens(address.port)
    if (this.stopping) {
      const { listener } = this.#serving
      await Promise.all([listener.stopAccepting(), listener.closeAll()])
      throw new Error('Cannot start: the server is being stopped')
    }
    const { info } = this.log('server')
    if (this.#worker === undefined) {
      info(`listening on ${address.url}`)
      this.#logs.recordServer('start')
    } else info(`process ${this.process.number} of ${this.process.count} serves: ${process.pid}`)
    return address
  }

  async #load(): Promise<void> {
    const { registry, keptEvents, live } = this.#built
    const log = this.log('server')
    if (this.#worker === undefined) log.info(startLine(this.#loaded, this.#code.digest))
    for (const warning of this.#announces ? this.#configurationWarnings() : []) this.log('config').warn(warning)
    if (this.#announces) this.#certificate?.report(log.warn)
    keptEvents?.restore()
    this.#panel.open()
    if (live !== undefined) registry.add(live.route())
    this.#options.addRoutes?.(this.#built)
    await removeLeftUploads(this.#path('paths.temp'), log)
    await this.#shared?.opened()
    this.#built.shareEnds()
    await this.#node?.open({
      apply: (state) => this.#state.reconciler.follow(state),
      summary: async () => this.#own.summary(),
      errors: async () => this.#own.errors(),
      clearErrors: async (beforeMs) => this.#own.clearErrors(beforeMs),
    })
    await this.#loadApplication(this.#worker?.state ?? this.#node?.state ?? initialState)
    await this.#built.data.ready()
    await this.#folders.start()
    await this.#maintenance.start()
    await this.#node?.join()
    if (this.#worker === undefined) await this.#dev?.watch(this.control)
    await this.#worker?.beforeListening(this.faults())
    this.#life.loaded()
    if (!this.stopping) this.#built.jobs.begin()
    if (this.#announces) this.#panel.announceSetup() // Another process or node may have been set up.
  }

  /** Loads the application and applies the initial state of this process. */
  async #loadApplication(state: DesiredState): Promise<void> {
    const { problems, broken, incomplete, notes } = await this.#state.reconciler.start(state)
    if (this.#announces) {
      const log = this.log('config')
      for (const problem of describeAll([...problems, ...broken])) log.error(problem)
      for (const problem of describeAll([...incomplete, ...notes])) log.warn(problem)
    }
    await this.#state.reconciler.follow(state)
  }

  #listen(): Promise<Address> {
    const { 'server.host': host, 'server.port': port } = this.#loaded.config
    const { listenFd } = this.#options
    if (listenFd === undefined) return this.#serving.listener.listen(host, port)
    if (this.#announces) {
      const ignored = `server.host ${host} and server.port ${port} are not used`
      this.log('server').info(`the service manager passed a socket: ${ignored}`)
    }
    return this.#serving.listener.listenOn(listenFd)
  }

  // ---- the parts, in order of creation ----

  #path(key: keyof LoadedConfig['config'] & `paths.${string}`): string {
    return resolve(this.#loaded.folder, this.#loaded.config[key])
  }

  #openEngine({ nodes }: Rooms): SharedEngine | undefined {
    const shared = nodes?.openShared(this.#loaded, this.#appKey.key, this.#options.sharedPassword, this.log('server'))
    if (shared === undefined) return undefined
    this.#life.needs(shared.isReady)
    this.#life.atEnd(() => shared.close())
    return shared
  }

  #createState(
    shared: Pick<Parameters<typeof createStateParts>[0], 'loaded' | 'logs' | 'life' | 'worker' | 'application'>,
  ): StateParts {
    return createStateParts({
      ...shared,
      configFile: this.#options.configFile,
      appKey: this.#appKey.key,
      node: this.#node,
      usedCodesFile: this.#usedCodesFile,
    })
  }

  #openNode(): Node | undefined {
    const node = this.#shared?.openNode(this.#path('paths.routes'), this.#usedCodesFile)
    this.#life.atStop(() => node?.stops())
    this.#life.atEnd(() => node?.leave())
    return node
  }

  /** Jobs end beside the requests, and have as much time. */
  #stopJobs(): void {
    const { jobs } = this.#built
    let stopped: Promise<void> | undefined
    const timeoutMs = this.#loaded.config['server.stop_timeout_s'] * 1000 * shareOfJobs
    this.#life.atStop(() => (stopped = jobs.current?.stop(timeoutMs)))
    this.#life.atEnd(() => stopped)
  }

  #createDev({ dev }: Rooms): Dev | undefined {
    const { config } = this.#loaded
    if (dev === undefined || config['app.env'] !== 'dev') return undefined
    const { configFile, watch = false } = this.#options
    const watches = watch && config['dev.watch']
    return new dev.Dev({ loaded: this.#loaded, configFile, built: this.#built, log: this.log('server'), watches })
  }

  #createMaintenance(): Maintenance {
    const { config } = this.#loaded
    const credentials = (): AdminCredentials => this.#state.credentials.current
    return new Maintenance({
      file: this.#path('paths.maintenance'),
      isAdmin: (ctx) => hasAdminCookie(ctx, { config, credentials }, Date.now()),
      onChange: (isOn) => {
        if (this.#announces) this.log('server').info(isOn ? 'maintenance begins' : 'maintenance ends')
        if (isOn) this.#serving.requests.restPool.endPolls()
      },
    })
  }

  #createStop(): ReturnType<typeof createStop> {
    const { config } = this.#loaded
    const { requests, listener } = this.#serving
    return createStop({
      drainDelayMs: config['server.drain_delay_s'] * 1000,
      timeoutMs: config['server.stop_timeout_s'] * 1000,
      log: this.log('server'),
      lastLine: this.#worker === undefined ? 'stopped' : `process ${this.process.number} has stopped`,
      requests,
      listener,
      onBegin: () => {
        this.#life.stop()
        this.#options.onStop?.()
      },
      onDrain: () => this.#built.webSockets.stop(),
      finish: () => this.#life.end(),
      onEnd: () => this.#logs.recordServer('stop'),
    })
  }

  #createHandlers(): MachineHandlers {
    return {
      'cache.clear': () => this.#built.views.clear(),
      'certificates.reload': () => this.#renewCertificates(),
      'bench.start': () => this.#processes.beginWindow(),
      'errors.clear': ({ beforeMs }) => this.#processes.clearErrors(beforeMs),
      'logs.reopen': () => this.#logs.reopen(),
      'files.changed': async ({ files }) => this.#dev?.changed(files, this.control),
      'pages.refresh': (news) => this.#dev?.refresh(news),
      stop: () => void this.#stop.begin(),
    }
  }

  #renewCertificates(): boolean {
    const renewed = this.#certificate?.renew()
    if (renewed !== undefined) this.#serving.listener.setCertificates(renewed)
    return renewed !== undefined
  }

  #createPanel(): ReturnType<typeof createPanel> {
    const { registry, application, builtIn, describe, jobs, profiler, readyChecks } = this.#built
    const stopping = new AbortController()
    this.#life.atStop(() => stopping.abort())
    return createPanel({
      loaded: this.#loaded,
      credentials: this.#state.credentials,
      registry,
      processes: this.#processes,
      logs: this.#logs,
      control: this.control,
      readiness: () => this.#life.readiness(),
      failedChecks: () => readyChecks.run(),
      preview: () => application.preview(),
      settings: () => application.settings,
      describe,
      profiler,
      process: this.process,
      stopping: stopping.signal,
      jobs: () => jobs.current,
      nodes: this.#worker?.nodes ?? this.#node,
      worker: this.#worker,
      code: this.#code,
      certificateEndsMs: () => this.#certificate?.endsMs,
      keyDerivation: builtIn.keyDerivation,
    })
  }

  /** `paths.log` is excluded: the logs report it. With several processes, the first one logs; all have the warnings. */
  #watchFolders(): FolderWatch {
    const { builtIn: { sessions }, data, jobs } = this.#built
    return new FolderWatch({
      log: this.#announces ? this.log('server') : { warn: () => {}, info: () => {} },
      folders: () => [
        ...foldersOf(this.#loaded).filter(({ what }) => what !== 'paths.log'),
        ...(sessions.storeFolder === undefined ? [] : [sessionFolder(sessions.storeFolder)]),
        ...(data.isUsed || jobs.current !== undefined ? [dataFolder(this.#loaded)] : []),
        ...configurationFolder(this.#loaded, this.#options.configFile, this.#state.credentials.current),
      ],
    })
  }

  #collectWarnings(): void {
    const life = this.#life
    const { application, readyChecks, builtIn: { limits } } = this.#built
    const nodes = this.#worker?.nodes ?? this.#node
    life.warns(() => this.#configurationWarnings())
    life.warns(() => [...(this.#certificate?.warnings() ?? []), ...this.#folders.warnings()])
    life.warns(() => [...this.#usedCodesFile.warnings(), ...this.#maintenance.warnings()])
    life.warns(() => [...application.warnings, ...limits.warnings(), ...this.#serving.listener.warnings()])
    life.warns(() => [...(this.#shared?.warnings() ?? []), ...(nodes?.warnings() ?? []), ...this.#logs.problems()])
    life.warns(() => readyChecks.warnings())
    if (nodes !== undefined) life.needs(() => nodes.isReady)
  }

  #configurationWarnings(): readonly string[] {
    const { config, warnings } = this.#loaded
    const { key, warnings: ofKey } = this.#appKey
    const ofKeys = this.#state.credentials.keySaved ? chooseAppKey({ ...config, app_key: key }).warnings : ofKey
    const ofNode = this.#options.warnsOfNode === false ? [] : nodeWarnings()
    return [...warnings, ...this.#warningsOfValues, ...ofKeys, ...ofNode, ...this.#code.warnings]
  }
}
