/**
 * The parts of an application: registry, views, modules, events, middleware. Used by `app.ts` and by the commands
 * `check` and `routes`, which start no server and open no log.
 */
import { resolve } from 'node:path'
import type { SetupApp } from 'svc'
import { AppMetrics } from '../application/app-metrics.ts'
import { Application } from '../application/application.ts'
import { ReadyChecks } from '../application/ready-checks.ts'
import { createRouteBuilder, type RouteBuilder } from '../application/route-builder.ts'
import { WebSocketHost } from '../application/web-socket-host.ts'
import { RateLimited } from '../base/rate-limited.ts'
import { version } from '../base/version.ts'
import type { Chain, ChainReports } from '../chain/compose.ts'
import { withSections } from '../config/assemble.ts'
import type { LoadedConfig } from '../config/load.ts'
import { loadRoom, MissingRoomError } from '../config/load-room.ts'
import type { Description } from '../describe/openapi.ts'
import type { Profiler } from '../diagnose/profile.ts'
import { createEvents, type Events } from '../events/events.ts'
import { eventsFeature } from '../events/feature.ts'
import { KeptEvents } from '../events/kept-events.ts'
import { LocalBroker } from '../events/local-broker.ts'
import type { CoreContext } from '../http/context.ts'
import type { Feature } from '../http/features.ts'
import type { createLive, Live } from '../live/feature.ts'
import { authorLogger } from '../log/feature.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { MiddlewareHost } from '../modules/middleware-host.ts'
import { Modules } from '../modules/modules.ts'
import type { Scope } from '../modules/registrations.ts'
import { createUrlBuilder } from '../routing/feature.ts'
import { Registry } from '../routing/registry.ts'
import type { UrlBuilder } from '../routing/route.ts'
import { isSessionHash, OpenReplies } from '../session/open-replies.ts'
import { Views } from '../views/cache.ts'
import type { WebSocketHandlers } from '../websocket/connection.ts'
import { createSettingsReader, middlewareConfigOf } from './application-settings.ts'
import type { Backends } from './backends.ts'
import { BackgroundJobs } from './background-jobs.ts'
import { createBuiltIn, type BuiltIn } from './built-in.ts'
import { LocalData } from './local-data.ts'

/** One of several processes of a server. */
export interface ProcessIndex {
  /** From 1. A process that replaces another gets its number. */
  readonly number: number
  readonly count: number
}

/** The options of `ApplicationParts`. */
interface PartsOptions extends Partial<ProcessIndex> {
  readonly backends?: Backends
  /** Creates live pages, where the installation has them. */
  readonly createLive?: typeof createLive | undefined
  /** The clock of the jobs, in milliseconds since 1970; `Date.now` by default. */
  readonly now?: (() => number) | undefined
}

/** The parts of an application. Reads nothing before `application.start()` or `inspect()`. */
export class ApplicationParts {
  readonly registry = new Registry<Chain>()
  /** Builds the paths of named routes, below `server.prefix`. */
  readonly url: UrlBuilder
  readonly modules: Modules
  readonly views: Views
  readonly webSockets: WebSocketHost
  readonly events: Events
  /** The database of this process. With several processes, that of the primary is used. */
  readonly data: LocalData
  readonly jobs: BackgroundJobs
  /** Keeps the events across a planned restart; undefined when they are not in this process. */
  readonly keptEvents: KeptEvents | undefined
  /** Undefined where the installation has no live pages. */
  readonly live: Live | undefined
  readonly builtIn: BuiltIn
  readonly appMetrics: AppMetrics
  readonly readyChecks: ReadyChecks
  /** The members that events, live pages, settings and the built-in middleware add to the context. */
  readonly features: readonly Feature[]
  readonly application: Application<SetupApp>
  readonly reports: ChainReports
  readonly #loaded: LoadedConfig
  readonly #log: (module: string) => ModuleLogger
  readonly #backends: Backends
  readonly #openReplies = new OpenReplies()
  #describer: (() => Description) | undefined
  #profiler: Profiler | undefined

  /** @param appKey the secret that signs tokens */
  constructor(
    loaded: LoadedConfig,
    appKey: string,
    log: (module: string) => ModuleLogger,
    { number = 1, count = 1, backends = {}, createLive, now = Date.now }: PartsOptions = {},
  ) {
    this.#loaded = loaded
    this.#log = log
    this.#backends = backends
    const { config } = loaded
    this.url = createUrlBuilder(this.registry, config['server.prefix'])
    this.modules = new Modules(this.#path('paths.root'))
    this.views = this.#openViews()
    this.webSockets = new WebSocketHost({
      workers: config['pool_ws.workers'],
      maxMessageBytes: config['pool_ws.max_message_kb'] * 1024,
      trustedOrigins: config['server.trusted_origins'],
      log,
    })
    const local = backends.broker === undefined ? new LocalBroker() : undefined
    this.keptEvents = local && new KeptEvents(local, this.#path('paths.cache'), log('server'))
    this.data = new LocalData(loaded, log('server'))
    const isShared = config['shared.url'] !== ''
    const durableBroker = isShared ? backends.broker : (backends.durableBroker ?? this.data.openBroker())
    this.events = createEvents({ log, broker: backends.broker ?? local, durableBroker })
    const others = backends.broker && (() => this.events.channel('svc.presence', { events: 100, age_s: 60 }))
    this.live = createLive?.(others)
    this.jobs = this.#createJobs(now)
    const { registry, data } = this
    const keys = [appKey, ...config.app_key_previous]
    this.builtIn = createBuiltIn({ loaded, keys, log, registry, data, backends, openReplies: this.#openReplies })
    this.reports = reportsTo(log('error'))
    this.appMetrics = new AppMetrics(log('metrics'))
    this.readyChecks = new ReadyChecks(log('server'))
    this.application = this.#createApplication({ number, count })
    const { application } = this
    const settings: Feature = {
      name: 'settings',
      members: [{ name: 'settings', make: () => application.settings.settings }],
    }
    const jobs: Feature = { name: 'jobs', members: [{ name: 'enqueue', make: () => this.jobs.enqueue }] }
    const live = this.live?.feature ?? presenceIsMissing
    this.features = [...this.builtIn.features, eventsFeature(this.events), live, settings, jobs]
  }

  /** Describes the routes in use, as OpenAPI 3.1. Rejects with MissingRoomError. */
  readonly describe = async (): Promise<Description> => {
    const { createDescriber } = await loadRoom('svc:openapi', () => import('../describe/openapi.ts'))
    const { folder } = this.#loaded
    this.#describer ??= createDescriber(() => {
      return { routes: this.registry.list(), folder, setup: this.application.settings.setup }
    })
    return this.#describer()
  }

  /** Takes profiles of this process. Rejects with MissingRoomError. */
  readonly profiler = async (): Promise<Profiler> => {
    const { createProfiler } = await loadRoom('/svc-profile', () => import('../diagnose/profile.ts'))
    return (this.#profiler ??= createProfiler(this.#loaded.folder))
  }

  /** Returns what a module registers metrics and readiness checks with. */
  registrarsOf(scope: Scope): Pick<SetupApp, 'metrics' | 'ready'> {
    return {
      metrics: this.appMetrics.of(scope),
      ready: (name, check) => this.readyChecks.add(scope, name, check),
    }
  }

  /** Saves the events, if they are in this process, and frees everything. Call when no request is waiting. */
  async endEvents(): Promise<void> {
    this.live?.close()
    await this.keptEvents?.save()
    await this.events.close()
  }

  /** Notifies other processes through a channel when a session ends, so that they end its open replies. */
  shareEnds(): void {
    if (this.#backends.broker === undefined) return
    const channel = this.events.channel('svc.sessions')
    this.#openReplies.tellOthers = (session) => void channel.publish(session)
    channel.subscribe(({ data }) => {
      if (isSessionHash(data)) this.#openReplies.endHere(data)
    })
  }

  #path(key: 'paths.root' | 'paths.routes' | 'paths.middleware' | 'paths.cache'): string {
    return resolve(this.#loaded.folder, this.#loaded.config[key])
  }

  #createJobs(now: () => number): BackgroundJobs {
    const { modules, events, url } = this
    return new BackgroundJobs({
      loaded: this.#loaded,
      modules,
      log: this.#log,
      openStore: () => (this.#backends.openJobStore ?? this.data.jobs)(now),
      shared: () => {
        const { channel, queue } = events
        return { settings: this.application.settings.settings, channel, queue, url }
      },
      now,
    })
  }

  #openViews(): Views {
    const { config } = this.#loaded
    return new Views({
      root: this.#path('paths.root'),
      cacheFolder: this.#path('paths.cache'),
      ram: config.cache_ram,
      disk: config.cache_disk,
      readable: config['app.env'] === 'dev',
      version,
      onProblem: (message) => this.#log('response').warn(message),
    })
  }

  #createApplication(process: ProcessIndex): Application<SetupApp> {
    const { modules, registry, events } = this
    const { config } = this.#loaded
    const errors = this.#log('error')
    const folder = this.#path('paths.middleware')
    const { groups } = this.builtIn
    const app = {
      config: withSections(config),
      process,
      logger: (module: string) => authorLogger(this.#log(module)),
      url: this.url,
      channel: events.channel,
      queue: events.queue,
      enqueue: this.jobs.enqueue,
    }
    const middleware = new MiddlewareHost<SetupApp>({
      folder,
      modules,
      builtIn: groups,
      app: (settings, scope) => ({ ...app, settings, ...this.registrarsOf(scope) }),
      readSettings: createSettingsReader(this.#loaded),
      teardownTimeoutMs: (config['server.stop_timeout_s'] * 1000) / 4,
      onProblem: (message, thrown) => errors.error(message, { thrown }),
    })
    return new Application<SetupApp>({
      root: this.#path('paths.root'),
      routesFolder: this.#path('paths.routes'),
      registry,
      modules,
      builder: this.#createRouteBuilder(),
      prepareJobs: this.jobs.prepare,
      middleware,
      readMiddlewareConfig: () => middlewareConfigOf(this.#loaded, groups.map(({ name }) => name)),
    })
  }

  #createRouteBuilder(): RouteBuilder {
    const { modules, webSockets, reports, describe } = this
    return createRouteBuilder({
      root: this.#path('paths.root'),
      modules,
      reports,
      describe,
      webSockets: {
        load: () => webSockets.load(),
        // Any functions may be exported; only a call shows whether they accept these arguments.
        accept: (ctx, handlers) => webSockets.accept(ctx, handlers as WebSocketHandlers<CoreContext>),
      },
    })
  }
}

function reportsTo(errors: ModuleLogger): ChainReports {
  const misuses = new RateLimited(errors.warn, 1000)
  return {
    late: (request, thrown) =>
      errors.error('a middleware did not wait for next(), which failed', { thrown, request, isLabelled: true }),
    misuse: (request, message) =>
      misuses.say(message, `${request.routeName} ${message}`, { request, isLabelled: true }),
  }
}

/** Replaces the feature of live pages where they are missing. */
const presenceIsMissing: Feature = {
  name: 'live',
  members: [{ name: 'presence', make: () => () => { throw new MissingRoomError('ctx.presence', 'live') } }],
}
