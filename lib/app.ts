/**
 * The composition root: builds the parts of a server from its configuration, joins them, and starts and stops them.
 * Nothing is shared between two apps; several may live in one process.
 */
import { resolve } from 'node:path'
import { createPanel } from './panel/panel.ts'
import { createAppControl } from './app-control.ts'
import { chooseAppKey } from './config/app-key.ts'
import { buildApplication, type SetupApp } from './application/build.ts'
import { readCertificates } from './tls/certificates.ts'
import { withGroups } from './config/assemble.ts'
import { parseConfig, type LoadedConfig } from './config/load.ts'
import type { Config } from './config/table.ts'
import { embeddedWarnings, warningsTogether } from './config/together.ts'
import type { Control } from './control/commands.ts'
import type { Change } from './control/relay.ts'
import { createClientAddress } from './http/client-address.ts'
import { createContextClass } from './http/features.ts'
import { createRequestIds } from './http/request-id.ts'
import { sweepUploads } from './http/upload-folders.ts'
import type { Address } from './core/listener.ts'
import { logFeature } from './log/feature.ts'
import type { ModuleLogger } from './log/logger.ts'
import { openLogs, type Logs } from './log/logs.ts'
import { routingFeature } from './routing/feature.ts'
import { createEventLoopWatch } from './metrics/event-loop.ts'
import type { LineCounts } from './metrics/figures.ts'
import { Metrics } from './metrics/metrics.ts'
import { openNamedFiles } from './application/named-files.ts'
import type { NodesView } from './nodes/contract.ts'
import type { ProcessPart } from './process-part.ts'
import { createServerCommands } from './application/commands.ts'
import { createServing } from './application/serving.ts'
import type { SharedStoreOptions } from './session/group.ts'
import type { OpenShared } from './shared.ts'
import { createStop } from './core/stop.ts'
import { startLine } from './base/version.ts'
import { viewFeature } from './views/feature.ts'

/** What an app is made from. Without `loaded`, `config` counts. */
export interface AppOptions {
  /** The configuration by the keys of `svc.json`, nested or dotted; what is missing has its default. */
  readonly config?: Readonly<Record<string, unknown>>
  /** The application secret, in place of `app_key` of the configuration. */
  readonly appKey?: string
  /** Opens the shared engine; needed where `shared.url` is set. `loadAsked` gives it. */
  readonly openShared?: OpenShared
  /** The password of the shared engine, in place of that in `shared.url` of the configuration. */
  readonly sharedPassword?: string
  /** What relative paths are relative to; the working directory unless given. */
  readonly folder?: string
  /** The file that setup writes the admin's credentials to; that of `loaded` unless given. */
  readonly configFile?: string
  /** A configuration that was read from a file. */
  readonly loaded?: LoadedConfig
  /**
   * The file descriptor of a listening socket that this process was given, in place of `server.host` and `server.port`.
   */
  readonly listenFd?: number
  /** Where that is in the file system; looked up unless given, which works in the process that was given it. */
  readonly listenPath?: string
  /** Called when a stop begins, whoever asked for it. */
  readonly onStop?: () => void
  /** Given where this is one of several processes of a server. */
  readonly part?: ProcessPart
}

/** A server. */
export interface App extends SetupApp {
  /** Changes the running server. */
  readonly control: Control
  /**
   * Loads the application and listens; once. Rejects when something is wrong that no request could mend, or when a stop
   * came first; then call `stop`.
   */
  start(): Promise<Address>
  /** Takes up what another process of this server has carried out. Rejects when this one cannot. */
  follow(change: Change): Promise<void>
  /**
   * Stops gracefully: answers what runs, for `server.stop_timeout_s` at most. Resolves when all is closed.
   * @param drains whether it serves on for `server.drain_delay_s` first; true unless given
   */
  stop(drains?: boolean): Promise<void>
  /** Whether a stop has begun, whoever asked for it. */
  readonly stopping: boolean
  /** Resolves when a stop is done. */
  readonly stopped: Promise<void>
  /** What the operator should know, as `/svc-status` shows it. */
  warnings(): readonly string[]
  /** Writes out what the logs hold for the end of this turn of the event loop. */
  flushLogs(): void
  /**
   * Writes the logs out and closes them, at once: the last thing to do. `stop` leaves them open, for what follows it.
   */
  closeLogs(): void
}

/** Loads what only some configurations ask for: a server without a shared engine does not have its code in memory. */
export async function loadAsked(config: Config): Promise<Pick<AppOptions, 'openShared'>> {
  return config['shared.url'] === '' ? {} : { openShared: (await import('./shared.ts')).openShared }
}

/**
 * Builds a server. Nothing listens and no module is loaded before `start()`; the log files are opened.
 * @throws ConfigError when the configuration cannot be used
 * @throws TypeError without `openShared` where the configuration needs it
 */
export function createApp(options: AppOptions = {}): App {
  const given = options.loaded ?? parseConfig(options.config ?? {}, options.folder ?? process.cwd())
  const loaded = withAppKey(given, options.appKey)
  const { config } = loaded
  if (config['shared.url'] !== '' && options.openShared === undefined) throw new TypeError('openShared must be given')
  const inFolder = (path: string): string => resolve(loaded.folder, path)
  const { certificates, staticFiles } = openNamedFiles(loaded, (message, error) =>
    log('response').error(message, error),
  )
  const { part } = options
  const announces = part === undefined || part.number === 1
  const logs = part?.logs ?? openLogs(config, inFolder(config['paths.log']))
  const log = (module: string): ModuleLogger => logs.module(module)

  const appKey = part?.appKey ?? chooseAppKey(config)
  const ofValues = warningsTogether(loaded)
  const ofProcesses = part === undefined ? embeddedWarnings(config) : []
  const shared = options.openShared?.(loaded, appKey.key, options.sharedPassword, log('server'))
  const ofShared = shared === undefined ? {} : {
    openSharedStore: (parts: SharedStoreOptions) => shared.openSessionStore(parts),
    broker: shared.openBroker(log('error')),
  }
  const built = buildApplication(loaded, appKey.key, log, { ...part, seams: { ...part?.seams, ...ofShared } })
  const { registry, views, application, runTimeRoutes, sessions, events, webSockets, features } = built
  const metrics = new Metrics()
  const eventLoop = createEventLoopWatch({ warn: log('metrics').warn })
  const temporaryFolder = inFolder(config['paths.temp'])
  const clientAddress = createClientAddress(config['server.trusted_proxies'])
  const { ContextClass, viewScope } = createContextClass(
    [logFeature(logs.general), routingFeature(registry), viewFeature(views, () => viewScope), ...features],
    {
      bodyLimitBytes: config['server.body_limit_kb'] * 1024,
      temporaryFolder,
      clientAddress,
      makeRequestId: createRequestIds(),
    },
  )
  const { requests, listener, queueWaits, restQueueWaits } = createServing(config, {
    registry,
    ContextClass,
    staticFiles,
    accessLog: logs.access,
    metrics,
    log,
    certificates,
    addressLimit: part?.addressLimit,
    isTrusted: clientAddress.trusts,
  })

  const panel = createPanel({
    config,
    configFile: options.configFile ?? loaded.file,
    appKey: appKey.key,
    registry,
    sources: {
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
      connections: () => listener.connections(),
      views,
      ...lineCounts(logs, part),
      warnings,
    },
    processes: part?.joinProcesses,
    logger: logs.general,
    recentLines: logs.recent,
    control: () => control,
    readiness: () => {
      if (stop.begun) return 'stopping'
      return started && (shared?.isThere ?? true) && (ofNodes()?.isReady ?? true) ? 'ready' : 'not ready'
    },
    nodes: ofNodes,
    setupToken: part?.setupToken,
    loginThrottle: part?.loginThrottle,
  })
  const commands = createServerCommands({ application, runTimeRoutes, views, renewCertificates, log })
  let started = false

  async function start(): Promise<Address> {
    if (started) throw new Error('Cannot start: the server has been started before')
    if (stop.begun) throw new Error('Cannot start: the server has been stopped before')
    started = true
    try {
      return await loadAndListen()
    } catch (error) {
      if (stop.begun) await stop.done // Who waits for both hears of the stop that was asked for, not of this failure.
      throw error
    }
  }

  async function loadAndListen(): Promise<Address> {
    if (part === undefined) log('server').info(startLine(loaded))
    for (const warning of announces ? ownWarnings() : []) log('config').warn(warning)
    panel.open()
    await removeLeftUploads()
    await shared?.opened()
    await nodes?.open()
    await commands.load(announces)
    await control.catchUp()
    if (announces) panel.announceSetup() // Another process or node may have been set up.
    const address = await listen()
    nodes?.listens(address.port)
    if (stop.begun) {
      await Promise.all([listener.stopAccepting(), listener.closeAll()])
      throw new Error('Cannot start: the server is being stopped')
    }
    if (part === undefined) log('server').info(`listening on ${address.url}`)
    else log('server').info(`process ${part.number} of ${part.count} serves: ${process.pid}`)
    return address
  }

  function listen(): Promise<Address> {
    const { 'server.host': host, 'server.port': port } = config
    if (options.listenFd === undefined) return listener.listen(host, port)
    if (announces) {
      log('server').info(
        `the service manager passed a socket: server.host ${host} and server.port ${port} are not used`,
      )
    }
    return listener.listenOn(options.listenFd, options.listenPath)
  }

  function renewCertificates(): boolean {
    const renewed = readCertificates(loaded)
    if (renewed !== undefined) listener.setCertificates(renewed)
    return renewed !== undefined
  }

  const stop = createStop({
    log: log('server'),
    lastLine: part === undefined ? 'stopped' : `process ${part.number} has stopped`,
    drainDelayMs: config['server.drain_delay_s'] * 1000,
    timeoutMs: config['server.stop_timeout_s'] * 1000,
    requests,
    listener,
    onBegin: () => {
      nodes?.stops()
      options.onStop?.()
    },
    onDrain: () => webSockets.stop(),
    finish: async () => {
      await webSockets.gone()
      panel.close()
      eventLoop.close()
      await application.stop()
      await Promise.all([sessions.close(), events.close()])
      await nodes?.leave()
      await shared?.close()
    },
  })

  /** What an earlier process could not remove does no harm but to the disk. */
  async function removeLeftUploads(): Promise<void> {
    try {
      const removed = await sweepUploads(temporaryFolder)
      if (removed > 0) {
        log('server').info(`removed the uploads that ${removed} cut requests had left in ${temporaryFolder}`)
      }
    } catch (error) {
      log('server').warn(`Cannot remove the uploads that are left in ${temporaryFolder}: ${(error as Error).message}`)
    }
  }

  function warnings(): readonly string[] {
    const ofEngine = [...(shared?.warnings() ?? []), ...(ofNodes()?.warnings() ?? [])]
    return [...ownWarnings(), ...commands.warnings, ...ofEngine, ...logs.problems()]
  }

  /** Those that the configuration gives reason to. */
  function ownWarnings(): readonly string[] {
    const { warnings: ofKeys } = panel.keySaved ? chooseAppKey({ ...config, app_key: appKey.key }) : appKey
    return [...loaded.warnings, ...ofValues, ...ofKeys, ...ofProcesses]
  }

  /** The nodes, as this process knows them: where there are several processes, the primary is one. */
  function ofNodes(): NodesView | undefined {
    return part?.nodes ?? nodes
  }

  const nodes = part === undefined ? shared?.openNodes({
    config,
    takeUp: async (change) => {
      await control.follow(change)
      return []
    },
    summary: async () => panel.summary(),
  }) : undefined
  const control = createAppControl({
    handlers: {
      ...commands.handlers,
      ...panel.handlers,
      'logs.reopen': () => logs.reopen(),
      stop: () => void stop.begin(),
    },
    followers: { ...commands.followers, ...panel.followers },
    adminState: panel.adminState,
    takeAdminState: panel.takeAdminState,
    part,
    nodes,
  })

  return {
    config: withGroups(config),
    process: { number: part?.number ?? 1, count: part?.count ?? 1 },
    logger: log,
    channel: events.channel,
    queue: events.queue,
    control,
    follow: (change) => control.follow(change),
    start,
    stop: (drains) => stop.begin(drains),
    get stopping() {
      return stop.begun
    },
    stopped: stop.done,
    warnings,
    flushLogs: () => logs.flush(),
    closeLogs: () => logs.close(),
  }
}

function withAppKey(loaded: LoadedConfig, appKey: string | undefined): LoadedConfig {
  return appKey === undefined ? loaded : { ...loaded, config: { ...loaded.config, app_key: appKey } }
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
