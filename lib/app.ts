/**
 * The composition root: builds the parts of a server from its configuration, joins them, and starts and stops them.
 * Nothing is shared between two apps; several may live in one process.
 */
import { resolve } from 'node:path'
import { CredentialStore } from './access/credential-store.ts'
import { buildApplication, type SetupApp } from './composition/build.ts'
import { Changes, carryOut } from './control/changes.ts'
import {
  describeAll,
  type Command,
  type Control,
  type MachineCommandType,
  type MachineHandlers,
} from './control/commands.ts'
import { initialState, type DesiredState } from './control/desired-state.ts'
import { Life } from './composition/life.ts'
import { createErrorPages } from './application/error-pages.ts'
import { Reconciler } from './control/reconciler.ts'
import { createServing, type ServingParts } from './composition/serving.ts'
import { LocalStateStore } from './control/state-store.ts'
import { openStaticFiles } from './application/static-files.ts'
import { TraceSwitches } from './control/trace-switches.ts'
import type { Change } from './base/ports.ts'
import { startLine } from './base/version.ts'
import type { Node } from './cluster/node.ts'
import { chooseAppKey } from './config/app-key.ts'
import { withSections } from './config/assemble.ts'
import { createCredentialWriter } from './config/credential-writer.ts'
import { parseConfig, type LoadedConfig } from './config/load.ts'
import type { Config } from './config/table.ts'
import { refuseTogether, warningsTogether } from './config/together.ts'
import type { Address } from './core/listener.ts'
import { createStop } from './core/stop.ts'
import { createClientAddress } from './http/client-address.ts'
import { createContextClass } from './http/features.ts'
import { isLoopbackHost } from './http/host.ts'
import { configurationFolder, FolderWatch, foldersOf, sessionFolder } from './composition/written-folders.ts'
import { sweepUploads } from './composition/left-uploads.ts'
import type { Dev } from './dev/dev.ts'
import { explainJson } from './json/json-map.ts'
import { liveScriptRoute } from './live/script.ts'
import { authorLogger, logFeature } from './log/feature.ts'
import type { ModuleLogger } from './log/logger.ts'
import { openLogs, type Logs } from './log/logs.ts'
import { createEventLoopWatch } from './metrics/event-loop.ts'
import { Metrics } from './metrics/metrics.ts'
import { createThisProcess, createSingleProcess } from './metrics/processes.ts'
import type { LineCounts, MetricSources } from './metrics/table.ts'
import { createPanel } from './panel/table.ts'
import type { ProcessPart } from './cluster/process-part.ts'
import { routingFeature } from './routing/feature.ts'
import type { OpenShared, SharedEngine } from './cluster/shared.ts'
import { CertificateInUse } from './tls/certificates.ts'
import { viewFeature } from './views/feature.ts'

/** The options of an app. Without `loaded`, `config` is used. */
export interface AppOptions {
  /** The configuration by the keys of `svc.json`, nested or dotted; what is missing has its default. */
  readonly config?: Readonly<Record<string, unknown>>
  /** The application secret, in place of `app_key` of the configuration. */
  readonly appKey?: string
  /** Opens the shared engine; needed where `shared.url` is set. `loadAsked` gives it. */
  readonly openShared?: OpenShared
  /** Makes the parts of `dev`. `loadAsked` gives it. */
  readonly Dev?: typeof Dev | undefined
  /** Whether to take up what is saved, in `dev` with `dev.watch`; the command line asks for it. */
  readonly watch?: boolean
  /** The password of the shared engine, in place of that in `shared.url` of the configuration. */
  readonly sharedPassword?: string
  /** The base of relative paths; the working directory unless given. */
  readonly folder?: string
  /** The file that setup writes the admin's credentials to; that of `loaded` unless given. */
  readonly configFile?: string
  /** A configuration that was read from a file. */
  readonly loaded?: LoadedConfig
  /**
   * The file descriptor of a listening socket that this process was given, in place of `server.host` and `server.port`.
   */
  readonly listenFd?: number
  /** Called when a stop begins, whoever asked for it. */
  readonly onStop?: () => void
  /** Given where this is one of several processes of a server. */
  readonly part?: ProcessPart
}

/** A server. */
export interface App extends SetupApp {
  /** Changes the running server. */
  readonly control: Control
  /** The log of a module, for lines of the server itself. */
  readonly log: (module: string) => ModuleLogger
  /** Records a change that somebody has made by other means than the panel. */
  readonly audit: (change: Change) => void
  /**
   * Loads the application and listens; call it once. Rejects for a problem that would fail every request, or when a
   * stop came first; then call `stop`.
   */
  start(): Promise<Address>
  /**
   * Sends a request without a port, for tests; the first one loads the application, unless it has been started. A
   * redirect is not followed.
   * @param path with its query
   * @param init as `fetch` takes it
   */
  request(input: string | URL | Request, init?: RequestInit): Promise<Response>
  /** Applies a state that another process of this server has made. Rejects when this one cannot. */
  follow(state: DesiredState): Promise<void>
  /** Carries out a command about the machine that another process of this server has carried out. */
  carryOut(command: Command<MachineCommandType>): Promise<void>
  /**
   * Stops gracefully: answers what runs, for `server.stop_timeout_s` at most. Resolves when all is closed.
   * @param drains whether it serves on for `server.drain_delay_s` first; true unless given
   */
  stop(drains?: boolean): Promise<void>
  /** Whether a stop has begun, whoever asked for it. */
  readonly stopping: boolean
  /** Resolves when a stop is done. */
  readonly stopped: Promise<void>
  /** The present warnings, as `/svc-status` shows them. */
  warnings(): readonly string[]
  /** The parts of the application that this process could not load, as in `Application.faults`. */
  faults(): readonly string[]
  /** Writes the log lines that wait for the end of this turn of the event loop. */
  flushLogs(): void
  /** Writes and closes the logs at once. Call it last: `stop` leaves them open for later lines. */
  closeLogs(): void
}

/** Loads the parts that only some configurations need, so that other servers do not have their code in memory. */
export async function loadAsked(config: Config): Promise<Pick<AppOptions, 'openShared' | 'Dev'>> {
  return {
    ...(config['shared.url'] !== '' && { openShared: (await import('./cluster/shared.ts')).openShared }),
    ...(config['app.env'] === 'dev' && { Dev: (await import('./dev/dev.ts')).Dev }),
  }
}

/**
 * Builds a server. Nothing listens and no module is loaded before `start()`; the log files are opened.
 * @throws ConfigError when the configuration cannot be used
 * @throws TypeError without `openShared` where the configuration needs it
 */
export function createApp(options: AppOptions = {}): App {
  const { part } = options
  const announces = part === undefined || part.number === 1
  const loaded = loadedOf(options)
  const { config } = loaded
  const inFolder = (path: string): string => resolve(loaded.folder, path)
  const life = new Life()
  refuseTogether(loaded)
  const certificate = new CertificateInUse(loaded)
  const staticFiles = openStaticFiles(loaded, (message, thrown) => log('response').error(message, { thrown }))
  const logs = part?.logs ?? openLogs(config, inFolder(config['paths.log']))
  const log = (module: string): ModuleLogger => logs.module(module)
  const appKey = part?.appKey ?? chooseAppKey(config)

  const { shared, node } = openEngine()
  const nodes = part?.nodes ?? node
  const backends = { ...part?.backends, ...shared?.openBackends(log('error')) }
  const built = buildApplication(loaded, appKey.key, log, { ...part, backends })
  const { registry, views, application, sessions, events, webSockets } = built
  life.atEnd(() => Promise.all([sessions.close(), built.endEvents()]))
  life.atEnd(() => application.stop())

  const dev = buildDev()
  life.atStop(() => dev?.stop())
  const metrics = new Metrics()
  const { requests, listener, queueWaits, restQueueWaits } = buildHttp()
  const stop = buildStop()
  const own = createThisProcess(metricSources(), logs)
  const processes = (part?.joinProcesses ?? createSingleProcess)(own)
  life.atEnd(() => processes.close())
  life.atEnd(() => webSockets.gone())
  const state = buildState()
  const { credentials, reconciler } = state
  const handlers = machineHandlers()
  const control = new Changes({ ...state, application, handlers, machine: part?.machine, log })
  const panel = createPanel({
    loaded,
    credentials,
    registry,
    processes,
    logs,
    control,
    readiness: () => life.readiness(),
    preview: () => application.preview(),
    nodes,
    part,
    scrypt: built.scrypt,
  })

  const ofValues = warningsTogether(loaded)
  life.warns(configurationWarnings)
  const folders = watchFolders()
  life.warns(() => [...certificate.warnings(), ...folders.warnings()])
  life.atEnd(() => folders.close())
  life.atEnd(() => certificate.close())
  life.warns(() => [...application.warnings, ...built.limits.warnings(), ...listener.warnings()])
  life.warns(() => [...(shared?.warnings() ?? []), ...(nodes?.warnings() ?? []), ...logs.problems()])
  if (nodes !== undefined) life.needs(() => nodes.isReady)

  let started = false
  let loading: Promise<void> | undefined
  async function start(): Promise<Address> {
    if (stop.begun) throw new Error('Cannot start: the server has been stopped before')
    if (started) throw new Error('Cannot start: the server has been started before')
    started = true
    try {
      return await loadAndListen()
    } catch (error) {
      // Whoever waits for both learns of the stop first: it was asked for, and the start failed by it.
      if (stop.begun) await stop.done
      throw error
    }
  }

  async function loadAndListen(): Promise<Address> {
    await (loading ??= loadAll())
    const address = await listen()
    built.keptEvents?.served()
    node?.listens(address.port)
    if (stop.begun) {
      await Promise.all([listener.stopAccepting(), listener.closeAll()])
      throw new Error('Cannot start: the server is being stopped')
    }
    if (part === undefined) log('server').info(`listening on ${address.url}`)
    else log('server').info(`process ${part.number} of ${part.count} serves: ${process.pid}`)
    return address
  }

  async function request(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    if (stop.begun) throw new Error('Cannot send a request: the server has been stopped')
    const { inject } = await import('./composition/inject.ts')
    await (loading ??= loadAll())
    return inject((stream, isSecure) => listener.accept(stream, isSecure), input, init)
  }

  async function loadAll(): Promise<void> {
    if (part === undefined) log('server').info(startLine(loaded))
    for (const warning of announces ? configurationWarnings() : []) log('config').warn(warning)
    if (announces) certificate.report(log('server').warn)
    built.keptEvents?.takeUp()
    panel.open()
    registry.add(liveScriptRoute())
    await removeLeftUploads(inFolder(config['paths.temp']), log('server'))
    await shared?.opened()
    built.shareEnds()
    await node?.open({
      apply: (state) => reconciler.follow(state),
      summary: async () => own.summary(),
      errors: async () => own.errors(),
      clearErrors: async (beforeMs) => own.clearErrors(beforeMs),
    })
    await load(part?.state ?? node?.state ?? initialState)
    await folders.start()
    await node?.join()
    if (part === undefined) await dev?.watch(control)
    await part?.beforeListening(application.faults())
    life.loaded()
    if (announces) panel.announceSetup() // Another process or node may have been set up.
  }

  /** Loads the application, and brings it to the state with which this process begins. */
  async function load(state: DesiredState): Promise<void> {
    const { problems, broken, incomplete, notes } = await reconciler.start(state)
    if (announces) {
      for (const problem of describeAll([...problems, ...broken])) log('config').error(problem)
      for (const problem of describeAll([...incomplete, ...notes])) log('config').warn(problem)
    }
    await reconciler.follow(state)
  }

  function listen(): Promise<Address> {
    const { 'server.host': host, 'server.port': port } = config
    if (options.listenFd === undefined) return listener.listen(host, port)
    if (announces) {
      log('server').info(
        `the service manager passed a socket: server.host ${host} and server.port ${port} are not used`,
      )
    }
    return listener.listenOn(options.listenFd)
  }

  /** The logs warn for themselves. Of several processes the first one logs; all have the warnings. */
  function watchFolders(): FolderWatch {
    const { configFile = loaded.file } = options
    const silent = { warn: () => {}, info: () => {} }
    return new FolderWatch({
      log: announces ? log('server') : silent,
      folders: () => [
        ...foldersOf(loaded).filter(({ what }) => what !== 'paths.log'),
        ...(sessions.storeFolder === undefined ? [] : [sessionFolder(sessions.storeFolder)]),
        ...configurationFolder(loaded, configFile, credentials.current),
      ],
    })
  }

  function machineHandlers(): MachineHandlers {
    return {
      'cache.clear': () => views.clear(),
      'certificates.reload': renewCertificates,
      'bench.start': () => processes.beginWindow(),
      'errors.clear': ({ beforeMs }) => processes.clearErrors(beforeMs),
      'logs.reopen': () => logs.reopen(),
      'files.changed': async ({ files }) => dev?.changed(files, control),
      'pages.tell': (news) => dev?.tell(news),
      stop: () => void stop.begin(),
    }
  }

  function renewCertificates(): boolean {
    const renewed = certificate.renew()
    if (renewed !== undefined) listener.setCertificates(renewed)
    return renewed !== undefined
  }

  /** The shared engine where the configuration names one, and this server as a node where it is a single process. */
  function openEngine(): { readonly shared?: SharedEngine; readonly node?: Node | undefined } {
    const { openShared, sharedPassword } = options
    if (config['shared.url'] !== '' && openShared === undefined) throw new TypeError('openShared must be given')
    const shared = openShared?.(loaded, appKey.key, sharedPassword, log('server'))
    if (shared === undefined) return {}
    life.needs(shared.isThere)
    life.atEnd(() => shared.close())
    const node = part === undefined ? shared.openNode(inFolder(config['paths.routes'])) : undefined
    life.atStop(() => node?.stops())
    life.atEnd(() => node?.leave())
    return { shared, node }
  }

  /** Makes the parts of `dev`; undefined in `prod`. */
  function buildDev(): Dev | undefined {
    const { Dev, configFile = loaded.file, watch = false } = options
    if (Dev === undefined || config['app.env'] !== 'dev') return undefined
    return new Dev({ loaded, configFile, built, log: log('server'), watches: watch && config['dev.watch'] })
  }

  /** Builds the parts that answer requests. Nothing listens yet. */
  function buildHttp() {
    const clientAddress = createClientAddress(config['server.trusted_proxies'])
    const { features, protection } = built
    const { ContextClass, viewScope } = createContextClass(
      [logFeature(logs.general), routingFeature(registry), viewFeature(views, () => viewScope), ...features],
      {
        bodyLimitBytes: config['server.body_limit_kb'] * 1024,
        temporaryFolder: inFolder(config['paths.temp']),
        clientAddress,
        explainJson,
      },
    )
    const { 'app.env': environment, 'server.allowed_hosts': allowedHosts } = config
    const { 'paths.errors': errors, 'paths.root': root } = config
    const parts: ServingParts = {
      // Where no other site can have sent the request (DNS rebinding). Before, a Host that is not allowed was refused.
      showsDetails: ({ host }) => environment === 'dev' && (allowedHosts.length > 0 || isLoopbackHost(host)),
      pageForError: createErrorPages(inFolder(errors), inFolder(root), views, log('error')),
      staticFiles,
      certificates: certificate.current,
      registry,
      ContextClass,
      headersWithoutRoute: protection.headersWithoutRoute,
      preflight: protection.preflight,
      accessLog: logs.access,
      metrics,
      log,
      addressLimit: part?.addressLimit,
      isTrusted: clientAddress.trusts,
      warnsOfNode: announces,
    }
    return createServing(config, dev?.wrap(parts) ?? parts)
  }

  function buildStop() {
    return createStop({
      drainDelayMs: config['server.drain_delay_s'] * 1000,
      timeoutMs: config['server.stop_timeout_s'] * 1000,
      log: log('server'),
      lastLine: part === undefined ? 'stopped' : `process ${part.number} has stopped`,
      requests,
      listener,
      onBegin: () => {
        life.stop()
        options.onStop?.()
      },
      onDrain: () => webSockets.stop(),
      finish: () => life.end(),
    })
  }

  function metricSources(): MetricSources {
    const { limits } = built
    const eventLoop = createEventLoopWatch({ warn: log('metrics').warn })
    life.atEnd(() => eventLoop.close())
    return {
      config,
      metrics,
      eventLoop,
      activeRequests: () => requests.active,
      httpPool: requests.pool,
      queueWaits,
      restPool: requests.restPool,
      restQueueWaits,
      webSockets,
      events: () => events.status(),
      sessions: () => sessions.counts,
      limits: limits.refused,
      connections: () => listener.connections(),
      views,
      ...lineCounts(logs, part),
      isReloadRefused: () => application.isReloadRefused || certificate.isReloadRefused,
      warnings: () => life.warnings(),
    }
  }

  /** Builds the parts that hold the desired state and apply it. */
  function buildState() {
    const { trace } = logs.general
    const store = part?.store ?? node ?? new LocalStateStore(inFolder(config['paths.routes']))
    const switches = new TraceSwitches({
      trace,
      nowMs: () => store.nowMs(),
      // Of several processes the primary says it.
      onReturn: (module, on) => {
        if (part === undefined) log('server').info(`trace of ${module} went back to ${on ? 'on' : 'off'} by itself`)
      },
    })
    life.atEnd(() => switches.close())
    const { configFile: file = loaded.file } = options
    const said = (keys: readonly string[], written: string): void =>
      log('config').info(`wrote ${keys.join(', ')} into ${written}`)
    const writer = file === undefined ? undefined : createCredentialWriter(file, config, said)
    const credentials = new CredentialStore({ config, appKey: appKey.key, writer })
    credentials.share(part?.state.credentials)
    return { store, trace, credentials, reconciler: new Reconciler({ application, trace: switches, credentials }) }
  }

  function configurationWarnings(): readonly string[] {
    const { warnings: ofKeys } = credentials.keySaved ? chooseAppKey({ ...config, app_key: appKey.key }) : appKey
    return [...loaded.warnings, ...ofValues, ...ofKeys]
  }

  return {
    config: withSections(config),
    process: { number: part?.number ?? 1, count: part?.count ?? 1 },
    logger: (module) => authorLogger(log(module)),
    log,
    audit: (change) => logs.audit.record(change),
    channel: events.channel,
    queue: events.queue,
    control,
    follow: async (state) => void (await reconciler.follow(state)),
    carryOut: async (command) => void (await carryOut(handlers, command)),
    start,
    request,
    stop: (drains) => stop.begin(drains),
    get stopping() {
      return stop.begun
    },
    stopped: stop.done,
    warnings: () => life.warnings(),
    faults: () => application.faults(),
    flushLogs: () => logs.flush(),
    closeLogs: () => logs.close(),
  }
}

/** Removes the uploads of earlier processes. A failure is only a warning: they take space and do no other harm. */
async function removeLeftUploads(folder: string, log: ModuleLogger): Promise<void> {
  try {
    const removed = await sweepUploads(folder)
    if (removed > 0) log.info(`removed the uploads that ${removed} cut requests had left in ${folder}`)
  } catch (error) {
    log.warn(`Cannot remove the uploads that are left in ${folder}: ${(error as Error).message}`)
  }
}

/** The configuration that the options give, with the application secret of theirs. */
function loadedOf({ loaded, config, folder, appKey }: AppOptions): LoadedConfig {
  const given = loaded ?? parseConfig(config ?? {}, folder ?? process.cwd())
  if (appKey === undefined) return given
  const sources = { ...given.sources, app_key: 'createApp' }
  return { ...given, sources, config: { ...given.config, app_key: appKey } }
}

/**
 * The lines of both logs. Those of one of several processes are counted where they are written, or here where they are
 * lost.
 */
function lineCounts({ general, access }: Logs, part: ProcessPart | undefined): Record<'log' | 'accessLog', LineCounts> {
  const none = { written: 0, lost: 0 }
  if (part === undefined) return { log: general, accessLog: access ?? none }
  const lostOf = (log: LineCounts): LineCounts => ({
    written: 0,
    get lost() {
      return log.lost
    },
  })
  return { log: lostOf(general), accessLog: lostOf(access ?? none) }
}
