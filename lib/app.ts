/**
 * The composition root: builds the parts of a server from its configuration, joins them, and starts and stops them.
 * Nothing is shared between two apps; several may live in one process.
 */
import { resolve } from 'node:path'
import { chooseAppKey } from './app-key.ts'
import { buildApplication, type SetupApp } from './application.ts'
import { ConfigError, parseConfig, type LoadedConfig } from './config/load.ts'
import type { Config } from './config/table.ts'
import { describe } from './control/commands.ts'
import type { Control } from './control/commands.ts'
import { createLocalControl } from './control/local.ts'
import { createClientAddress } from './http/client-address.ts'
import { createContextClass } from './http/features.ts'
import { createHostGuard } from './http/host-guard.ts'
import { createRequestIds } from './http/request-id.ts'
import { createStaticFiles, type StaticFiles } from './http/static.ts'
import { createListener } from './listener.ts'
import { createAccessLog } from './log/access-log.ts'
import { logFeature } from './log/feature.ts'
import { createLogger, type ModuleLogger } from './log/logger.ts'
import { routingFeature } from './routing/feature.ts'
import { createRequestServer } from './server.ts'
import { createStop } from './stop.ts'
import { serverName } from './version.ts'
import { viewFeature } from './views/feature.ts'

/** What an app is made from. Without `loaded`, `config` counts. */
export interface AppOptions {
  /** The configuration by the keys of `svc.json`, nested or dotted; what is missing has its default. */
  readonly config?: Readonly<Record<string, unknown>>
  /** The application secret, in place of `app_key` of the configuration. */
  readonly appKey?: string
  /** What relative paths are relative to; the working directory unless given. */
  readonly folder?: string
  /** A configuration that was read from a file. */
  readonly loaded?: LoadedConfig
}

/** Where an app listens. */
export interface Address {
  readonly host: string
  /** The real port, also where the configuration says 0. */
  readonly port: number
  /** `http://HOST:PORT` or `https://HOST:PORT` */
  readonly url: string
}

/** A server. */
export interface App extends SetupApp {
  /** Changes the running server. */
  readonly control: Control
  /** Loads the application and listens. Rejects when something is wrong that no request could mend; then call `stop`. */
  start(): Promise<Address>
  /** Stops gracefully: answers what runs, for `server.stop_timeout_s` at most. Resolves when all is closed. */
  stop(): Promise<void>
  /** Resolves when a stop, whoever asked for it, is done. */
  readonly stopped: Promise<void>
  /** What the operator should know, as `/svc-status` shows it. */
  warnings(): readonly string[]
  /** Writes out what the logs hold for the end of this turn of the event loop. */
  flushLogs(): void
  /** Writes the logs out and closes them, at once: the last thing to do. `stop` leaves them open, for what follows it. */
  closeLogs(): void
}

/**
 * Builds a server. Nothing listens and no module is loaded before `start()`; the log files are opened.
 * @throws ConfigError when the configuration cannot be used
 */
export function createApp(options: AppOptions = {}): App {
  const overrides = options.appKey === undefined ? {} : { app_key: options.appKey }
  const loaded = options.loaded ?? parseConfig(options.config ?? {}, options.folder ?? process.cwd(), overrides)
  const { config } = loaded
  const inFolder = (path: string): string => resolve(loaded.folder, path)
  const logger = createLogger({
    folder: inFolder(config['paths.log']),
    file: config['log.file'],
    level: config['log.level'],
    console: config['log.console'],
    maxSizeMb: config['log.max_size_mb'],
    maxFiles: config['log.max_files'],
    format: config['log.format'],
    trace: config.trace,
  })
  const log = (module: string): ModuleLogger => logger.module(module)
  const accessLog = config['access_log.enabled']
    ? createAccessLog({
        folder: inFolder(config['paths.log']),
        file: config['access_log.file'],
        format: config['access_log.format'],
        report: (level, message) => log('logger')[level](message),
      })
    : undefined

  const { registry, views, application } = buildApplication(loaded, log)
  const clientAddress = createClientAddress(config['server.trusted_proxies'])
  const { ContextClass, viewScope } = createContextClass(
    [logFeature(logger), routingFeature(registry), viewFeature(views, () => viewScope)],
    { bodyLimitBytes: config['server.body_limit_kb'] * 1024, clientAddress, makeRequestId: createRequestIds() },
  )
  const requests = createRequestServer({
    registry,
    ContextClass,
    pool: {
      workers: config['pool_http.workers'],
      queueSize: config['pool_http.queue_size'],
      alertPercent: config['pool_http.alert_pct'],
      onAlert: (on) => log('pool_detector')[on ? 'warn' : 'info'](`pool_http: alert ${on ? 'on' : 'off'}`),
    },
    checkHost: createHostGuard(config['server.allowed_hosts']),
    staticFiles: publicFiles(config['paths.public'], inFolder, log('response')),
    accessLog,
    log,
    reveal: config['app.env'] === 'dev',
  })

  const tls = certificateFiles(config, inFolder)
  const listener = createListener(requests, {
    headerTimeoutMs: config['server.header_timeout_s'] * 1000,
    requestTimeoutMs: config['server.request_timeout_s'] * 1000,
    keepAliveTimeoutMs: config['server.keep_alive_timeout_s'] * 1000,
    tls,
    connections: {
      maxPerIp: config['server.max_connections_per_ip'],
      isTrusted: clientAddress.trusts,
      log: log('socket'),
    },
  })

  const appKey = chooseAppKey(config)
  let applicationWarnings: readonly string[] = []

  async function start(): Promise<Address> {
    log('server').info(`${serverName} on Node ${process.versions.node}, ${config['app.env']}, process ${process.pid}`)
    for (const warning of loaded.warnings) log('config').warn(warning)
    if (appKey.warning !== undefined) log('config').warn(appKey.warning)
    const found = await application.start()
    for (const problem of [...found.problems, ...found.broken]) log('config').error(describe(problem))
    for (const problem of found.warnings) log('config').warn(describe(problem))
    applicationWarnings = [...found.problems, ...found.broken, ...found.warnings].map(describe)
    const { address, port, family } = await listener.listen(config['server.host'], config['server.port'])
    const host = family === 'IPv6' ? `[${address}]` : address
    const url = `${tls === undefined ? 'http' : 'https'}://${host}:${port}`
    log('server').info(`listening on ${url}`)
    return { host: address, port, url }
  }

  const stop = createStop({
    log: log('server'),
    drainDelayMs: config['server.drain_delay_s'] * 1000,
    timeoutMs: config['server.stop_timeout_s'] * 1000,
    requests,
    listener,
    finish: () => application.stop(),
  })

  function closeLogs(): void {
    accessLog?.close()
    logger.close()
  }

  const control = createLocalControl({
    'routes.reload': async () => {
      const result = await application.reload()
      applicationWarnings = result.warnings
      log('server').info(`routes reloaded: ${result.totalDeleted} removed, ${result.totalLoaded} loaded`)
      for (const warning of result.warnings) log('config').warn(warning)
      return result
    },
    'logs.reopen': () => {
      logger.reopen()
      accessLog?.reopen()
    },
    'certificates.reload': () => {
      listener.reloadCertificates()
    },
    stop: () => {
      void stop.begin()
    },
  })

  return {
    config,
    logger: log,
    control,
    start,
    stop: () => stop.begin(),
    stopped: stop.done,
    warnings: () => [
      ...loaded.warnings,
      ...(appKey.warning === undefined ? [] : [appKey.warning]),
      ...applicationWarnings,
      ...[logger.problem, accessLog?.problem].filter((problem) => problem !== undefined),
    ],
    flushLogs: () => {
      logger.flush()
      accessLog?.flush()
    },
    closeLogs,
  }
}

function publicFiles(path: string, inFolder: (path: string) => string, log: ModuleLogger): StaticFiles | undefined {
  if (path === '') return undefined
  try {
    return createStaticFiles({
      folder: inFolder(path),
      onFailure: (file, error) => log.error(`${file} could not be sent to its end`, error),
    })
  } catch (error) {
    throw new ConfigError('the configuration', [`paths.public: ${(error as Error).message}`], { cause: error })
  }
}

function certificateFiles(config: Config, inFolder: (path: string) => string): { cert: string; key: string } | undefined {
  const { 'server.tls.cert': cert, 'server.tls.key': key } = config
  if (cert === '' && key === '') return undefined
  if (cert === '' || key === '') {
    throw new ConfigError('the configuration', ['server.tls.cert and server.tls.key must both be set, or none of them'])
  }
  return { cert: inFolder(cert), key: inFolder(key) }
}
