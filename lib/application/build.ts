/**
 * Builds an application from the configuration: registry, views, modules, middleware. Apart from `app.ts`, the command
 * line's `check` and `routes` use it, which start no server and open no log.
 */
import { resolve } from 'node:path'
import type { LoadedConfig } from '../config/load.ts'
import { publicFolder } from '../config/together.ts'
import { withGroups, type GroupedConfig } from '../config/assemble.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { RateLimited } from '../base/rate-limited.ts'
import type { BuiltInGroup } from '../chain/settings.ts'
import type { Chain } from '../chain/compose.ts'
import { readMiddlewareConfig } from './middleware-config.ts'
import { MiddlewareHost } from './middleware-host.ts'
import { Application } from './application.ts'
import { createModules } from './modules.ts'
import { Registry } from '../routing/registry.ts'
import { createRouteBuilder } from './route-builder.ts'
import { version } from '../base/version.ts'
import { createCsrfGroup } from '../csrf/group.ts'
import { flashFeature } from '../flash/feature.ts'
import type { Broker } from '../events/broker.ts'
import { createEvents, type Events } from '../events/events.ts'
import { eventsFeature } from '../events/feature.ts'
import type { CoreContext } from '../http/context.ts'
import type { Feature } from '../http/features.ts'
import { label, withRequestId } from '../http/label.ts'
import { createJwtGroup } from '../jwt/group.ts'
import { validateFeature } from '../kit/validate-feature.ts'
import { createMessageGroup } from '../kit/validate-messages.ts'
import { resourceIdFeature } from '../tokens/feature.ts'
import { openLocalStore } from '../stores/local-store.ts'
import { createResourceTokens } from '../tokens/resource-id.ts'
import { isAtOrIn } from '../storage/paths.ts'
import { createSessionGroup, type SessionGroup, type SessionGroupOptions } from '../session/group.ts'
import { createAuthGroup } from '../session/is-auth.ts'
import { createViews, type Views } from '../views/cache.ts'
import type { WebSocketHandlers } from '../websocket/connection.ts'
import { WebSocketHost } from './web-socket-host.ts'

/** One of several processes of a server. */
export interface ProcessPlace {
  /** From 1. A process that takes the place of one that ended has its number. */
  readonly number: number
  readonly count: number
}

/** The argument of `setup(app)` in a middleware module. */
export interface SetupApp {
  /** By dotted keys, `config['server.port']`, and by groups, `config.server.port`. */
  readonly config: GroupedConfig
  /**
   * Which of the processes of this server it is, from 1, and how many there are: what is to be done once is for the
   * first.
   */
  readonly process: ProcessPlace
  /** The log of a module; a name of the application's own always passes the trace filter. */
  logger(module: string): ModuleLogger
  /** The channel with a name, as `ctx.channel` gives it. */
  readonly channel: Events['channel']
  /** The queue with a name, as `ctx.queue` gives it. */
  readonly queue: Events['queue']
}

/** Parts that may be outside of this process when several processes are one server; in this process unless given. */
export interface Seams extends Partial<Pick<SessionGroupOptions, 'openStoreHere' | 'openSharedStore'>> {
  /** Holds the events of channels and queues. */
  readonly broker?: Broker
}

/** The parts of an application that is not loaded yet. */
export interface ApplicationParts {
  readonly registry: Registry<Chain>
  readonly views: Views
  readonly application: Application<SetupApp>
  readonly sessions: SessionGroup
  readonly webSockets: WebSocketHost
  readonly events: Events
  /** The members of the context that sessions, flash, tokens, events and validation add. */
  readonly features: readonly Feature[]
}

/**
 * Builds the parts. Nothing is read before `application.start()` or `inspect()`.
 * @param appKey the secret that signs tokens
 */
export function buildApplication(
  loaded: LoadedConfig,
  appKey: string,
  log: (module: string) => ModuleLogger,
  { number = 1, count = 1, seams = {} }: Partial<ProcessPlace> & { readonly seams?: Seams } = {},
): ApplicationParts {
  const { config } = loaded
  const inFolder = (path: string): string => resolve(loaded.folder, path)
  const root = inFolder(config['paths.root'])
  const middlewareFolder = inFolder(config['paths.middleware'])
  const registry = new Registry<Chain>()
  const modules = createModules({ root })
  const views = createViews({
    root,
    cacheFolder: inFolder(config['paths.cache']),
    ram: config.cache_ram,
    disk: config.cache_disk,
    readable: config['app.env'] === 'dev',
    version,
    onProblem: (message) => log('response').warn(message),
  })
  const routesFolder = inFolder(config['paths.routes'])
  const misuses = new RateLimited((message) => log('error').warn(message), 1000)
  const webSockets = new WebSocketHost({
    workers: config['pool_ws.workers'],
    maxMessageBytes: config['pool_ws.max_message_kb'] * 1024,
    trustedOrigins: config['server.trusted_origins'],
    log,
  })
  const events = createEvents({ log, broker: seams.broker })
  const builder = createRouteBuilder({
    root,
    modules,
    reports: {
      late: (ctx, error) =>
        log('error').error(
          withRequestId(`${label(ctx)}: a middleware did not wait for next(), which failed`, ctx),
          error,
        ),
      misuse: (ctx, message) => misuses.say(withRequestId(`${label(ctx)}: ${message}`, ctx)),
    },
    webSockets: {
      load: () => webSockets.load(),
      // Functions may be exported that take something else: whether they take these shows when they run.
      accept: (ctx, handlers) => webSockets.accept(ctx, handlers as WebSocketHandlers<CoreContext>),
    },
  })
  const keys = [appKey, ...config.app_key_previous]
  const now = Date.now
  const { folder } = loaded
  const open = publicFolder(loaded)
  const isPublic = (path: string): boolean => open !== undefined && isAtOrIn(open, path)
  const sessions = createSessionGroup({ openStoreHere: openLocalStore, ...seams, folder, isPublic, log })
  const csrf = createCsrfGroup({ keys, trustedOrigins: config['server.trusted_origins'], log, now })
  const messages = createMessageGroup()
  const builtIn: readonly BuiltInGroup[] = [
    sessions,
    csrf,
    createAuthGroup({ log }),
    createJwtGroup({ folder, publicFolder: open, log, now }),
    messages,
  ]
  const resourceTokens = createResourceTokens({ keys, now })
  const features = [
    sessions.feature,
    flashFeature(log),
    csrf.feature,
    resourceIdFeature(resourceTokens),
    eventsFeature(events),
    validateFeature({ registry, textOf: messages.textOf }),
  ]
  const middleware = new MiddlewareHost<SetupApp>({
    folder: middlewareFolder,
    modules,
    builtIn,
    app: {
      config: withGroups(config),
      process: { number, count },
      logger: log,
      channel: events.channel,
      queue: events.queue,
    },
    teardownTimeoutMs: (config['server.stop_timeout_s'] * 1000) / 4,
    onProblem: (message, error) => log('error').error(message, error),
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
  return { registry, views, application, sessions, webSockets, events, features }
}
