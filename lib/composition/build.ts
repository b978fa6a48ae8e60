/**
 * Builds an application from the configuration: registry, views, modules, middleware. Apart from `app.ts`, the command
 * line's `check` and `routes` use it, which start no server and open no log.
 */
import { resolve } from 'node:path'
import type { Logger as AuthorLogger } from 'svc'
import { createScrypt } from '../access/password.ts'
import type { LoadedConfig } from '../config/load.ts'
import { publicFolder } from '../config/together.ts'
import { withSections, type SectionedConfig } from '../config/assemble.ts'
import { authorLogger } from '../log/feature.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { RateLimited } from '../base/rate-limited.ts'
import type { BuiltInGroup } from '../chain/settings.ts'
import type { Chain } from '../chain/compose.ts'
import { readMiddlewareConfig } from '../modules/middleware-config.ts'
import { MiddlewareHost } from '../modules/middleware-host.ts'
import { Application } from '../application/application.ts'
import { Modules } from '../modules/modules.ts'
import { Registry } from '../routing/registry.ts'
import { createRouteBuilder } from '../application/route-builder.ts'
import { version } from '../base/version.ts'
import { createCsrfGroup } from '../csrf/group.ts'
import { flashFeature } from '../flash/feature.ts'
import type { Broker } from '../events/broker.ts'
import { createEvents, type Events } from '../events/events.ts'
import { eventsFeature } from '../events/feature.ts'
import { KeptEvents } from '../events/kept-events.ts'
import { LocalBroker } from '../events/local-broker.ts'
import { createClientAddress } from '../http/client-address.ts'
import type { CoreContext } from '../http/context.ts'
import { createJwtGroup } from '../jwt/group.ts'
import { createProtection } from '../protection/protection.ts'
import { createLimitGroup } from '../protection/limit.ts'
import type { LimitGroupOptions } from '../protection/limit-rule.ts'
import { validateFeature } from '../validation/feature.ts'
import { createMessageGroup } from '../validation/messages.ts'
import { liveFeature } from '../live/feature.ts'
import { Presence } from '../live/presence.ts'
import { resourceIdFeature } from '../tokens/feature.ts'
import { openLocalStore } from '../session-stores/local-store.ts'
import { createResourceTokens } from '../tokens/resource-id.ts'
import { isAtOrIn } from '../files/paths.ts'
import { isSessionHash, OpenReplies } from '../session/open-replies.ts'
import { createSessionGroup, type SessionGroupOptions } from '../session/group.ts'
import { createAuthGroup } from '../session/is-auth.ts'
import { Views } from '../views/cache.ts'
import type { WebSocketHandlers } from '../websocket/connection.ts'
import { WebSocketHost } from '../application/web-socket-host.ts'

/** One of several processes of a server. */
export interface ProcessPlace {
  /** From 1. A process that takes the place of one that ended has its number. */
  readonly number: number
  readonly count: number
}

/** The argument of `setup(app)` in a middleware module. */
export interface SetupApp {
  /** By dotted keys, `config['server.port']`, and by sections, `config.server.port`. */
  readonly config: SectionedConfig
  /**
   * The number of this process of the server, from 1, and how many there are. Work that must be done once is done by
   * the first.
   */
  readonly process: ProcessPlace
  /** The log of a module; a name of the application's own always passes the trace filter. */
  logger(module: string): AuthorLogger
  /** The channel with a name, as `ctx.channel` gives it. */
  readonly channel: Events['channel']
  /** The queue with a name, as `ctx.queue` gives it. */
  readonly queue: Events['queue']
}

/** Where sessions, events and limits are when several processes are one server; in this process unless given. */
export interface Backends
  extends Partial<Pick<SessionGroupOptions, 'openStoreHere' | 'openSharedStore'>>,
    Pick<LimitGroupOptions, 'openBuckets'> {
  /** Holds the events of channels and queues. */
  readonly broker?: Broker
}

/** The parts of an application that is not loaded yet. */
export type ApplicationParts = ReturnType<typeof buildApplication>

/**
 * Builds the parts. Nothing is read before `application.start()` or `inspect()`.
 * @param appKey the secret that signs tokens
 */
export function buildApplication(
  loaded: LoadedConfig,
  appKey: string,
  log: (module: string) => ModuleLogger,
  { number = 1, count = 1, backends = {} }: Partial<ProcessPlace> & { readonly backends?: Backends } = {},
) {
  const { config, folder } = loaded
  const inFolder = (path: string): string => resolve(folder, path)
  const root = inFolder(config['paths.root'])
  const middlewareFolder = inFolder(config['paths.middleware'])
  const registry = new Registry<Chain>()
  const modules = new Modules(root)
  const views = new Views({
    root,
    cacheFolder: inFolder(config['paths.cache']),
    ram: config.cache_ram,
    disk: config.cache_disk,
    readable: config['app.env'] === 'dev',
    version,
    onProblem: (message) => log('response').warn(message),
  })
  const routesFolder = inFolder(config['paths.routes'])
  const misuses = new RateLimited(log('error').warn, 1000)
  const webSockets = new WebSocketHost({
    workers: config['pool_ws.workers'],
    maxMessageBytes: config['pool_ws.max_message_kb'] * 1024,
    trustedOrigins: config['server.trusted_origins'],
    log,
  })
  const local = backends.broker === undefined ? new LocalBroker() : undefined
  /** Carries the events over a planned restart; undefined when they are not in this process. */
  const keptEvents = local && new KeptEvents(local, inFolder(config['paths.cache']), log('server'))
  const events = createEvents({ log, broker: backends.broker ?? local })
  const others = backends.broker && (() => events.channel('svc.presence', { events: 100, age_s: 60 }))
  const presence = new Presence(others)
  const builder = createRouteBuilder({
    root,
    modules,
    reports: {
      late: (request, thrown) =>
        log('error').error('a middleware did not wait for next(), which failed', { thrown, request, isLabelled: true }),
      misuse: (request, message) =>
        misuses.say(message, `${request.routeName} ${message}`, { request, isLabelled: true }),
    },
    webSockets: {
      load: () => webSockets.load(),
      // Functions may be exported that take something else: whether they take these shows when they run.
      accept: (ctx, handlers) => webSockets.accept(ctx, handlers as WebSocketHandlers<CoreContext>),
    },
  })
  const keys = [appKey, ...config.app_key_previous]
  const { builtIn, sessions, limits, features, protection, scrypt, shareEnds } = buildMiddleware()
  const middleware = new MiddlewareHost<SetupApp>({
    folder: middlewareFolder,
    modules,
    builtIn,
    app: {
      config: withSections(config),
      process: { number, count },
      logger: (module) => authorLogger(log(module)),
      channel: events.channel,
      queue: events.queue,
    },
    teardownTimeoutMs: (config['server.stop_timeout_s'] * 1000) / 4,
    onProblem: (message, thrown) => log('error').error(message, { thrown }),
  })
  const application = new Application<SetupApp>({
    root,
    routesFolder,
    registry,
    modules,
    builder,
    middleware,
    readMiddlewareConfig: () => readMiddlewareConfig(middlewareFolder, builtIn.map((group) => group.name)),
  })
  return {
    registry, views, application, modules, sessions, limits, webSockets, events, keptEvents, endEvents, protection,
    scrypt, features, shareEnds,
  }

  /** Writes the events to their file, if they are in this process, and frees everything. Call when no request waits. */
  async function endEvents(): Promise<void> {
    presence.close()
    await keptEvents?.save()
    await events.close()
  }

  /** Builds the server's own middleware, and the members that its groups and the events add to the context. */
  function buildMiddleware() {
    const { 'server.trusted_origins': trustedOrigins } = config
    const now = Date.now
    const open = publicFolder(loaded)
    const isPublic = (path: string): boolean => open !== undefined && isAtOrIn(open, path)
    const openReplies = new OpenReplies()
    const stores = { openStoreHere: openLocalStore, ...backends }
    const sessions = createSessionGroup({ ...stores, folder, isPublic, log, openReplies })
    const csrf = createCsrfGroup({ keys, trustedOrigins, log, now })
    const auth = createAuthGroup({ log })
    const jwt = createJwtGroup({ folder, publicFolder: open, log, now })
    const scrypt = createScrypt()
    const protection = createProtection({ registry, trustedOrigins, scrypt, userKey: auth.userKey })
    const { trusts: isTrusted } = createClientAddress(config['server.trusted_proxies'])
    const limits = createLimitGroup({ log, isTrusted, userOf: auth.userOf, openBuckets: backends.openBuckets })
    const messages = createMessageGroup()
    const builtIn: readonly BuiltInGroup[] = [sessions, csrf, auth, jwt, limits, messages, ...protection.groups]
    const features = [
      sessions.feature,
      flashFeature(log),
      csrf.feature,
      resourceIdFeature(createResourceTokens({ keys, now })),
      eventsFeature(events),
      liveFeature(presence),
      protection.feature,
      validateFeature({ registry, textOf: messages.textOf, csrfField: csrf.field }),
    ]

    /** Tells other processes by a channel when a session ends, so that they end what it has open there. */
    function shareEnds(): void {
      if (backends.broker === undefined) return
      const channel = events.channel('svc.sessions')
      openReplies.tellOthers = (session) => void channel.publish(session)
      channel.subscribe(({ data }) => {
        if (isSessionHash(data)) openReplies.endHere(data)
      })
    }

    return { builtIn, sessions, limits, features, protection, scrypt, shareEnds }
  }
}
