/**
 * The shared engine of `shared.url`, a Redis or Valkey server: what processes on several machines have in common lies
 * there.
 *
 * Surprise: a server that starts while the engine is away starts all the same. It is not ready (`/svc-ready`), requests
 * that need a session or events get 503, and everything else is served.
 */
import { hostname } from 'node:os'
import { errorOfValues, type LoadedConfig } from '../config/load.ts'
import { deriveKey } from '../tokens/signature.ts'
import type { Broker } from '../events/broker.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { RateLimited } from '../base/rate-limited.ts'
import { Node } from './node.ts'
import { createRedisBroker } from '../redis/broker.ts'
import { createRedis, type Redis } from '../redis/client.ts'
import { RedisForeignError } from '../redis/errors.ts'
import { createRedisSessionStore } from '../redis/session-store.ts'
import { parseRedisUrl } from '../redis/url.ts'
import type { SharedStoreOptions } from '../session/group.ts'
import type { SessionStore } from '../session/store.ts'

/** The engine of one server. */
export interface SharedEngine {
  /** Whether it can be used now. */
  readonly isThere: boolean
  /** What the operator should know; nothing while it is there. */
  warnings(): readonly string[]
  /** Opens a store of sessions. */
  openSessionStore(options: SharedStoreOptions): SessionStore
  /** Opens the broker of channels and queues. @param log of the module `error` */
  openBroker(log: ModuleLogger): Broker
  /**
   * Makes this server a node among those that share the engine.
   * @param routesFolder `paths.routes`, absolute
   */
  openNode(routesFolder: string): Node
  /**
   * Resolves when it is there, or when that has taken so long that the server starts without.
   * @throws ConfigError when it holds the data of servers with another `app_key`
   */
  opened(): Promise<void>
  /** Lets what is under way end. Nothing is called afterwards. */
  close(): Promise<void>
}

/** `openShared`, as those have it who load this file when it is asked for. */
export type OpenShared = typeof openShared

/**
 * Opens the engine that the configuration names, and begins to connect.
 * @param appKey the one in use
 * @param password in place of that of the address
 * @param log of the module `server`
 * @returns undefined when the configuration names none
 */
export function openShared(
  loaded: LoadedConfig,
  appKey: string,
  password: string | undefined,
  log: ModuleLogger,
): SharedEngine | undefined {
  const { 'shared.url': url, 'shared.name': name, app_key_previous: previous } = loaded.config
  if (url === '') return undefined
  const target = parseRedisUrl(url, password)
  const claim = { key: `${name}:app-key`, marks: [appKey, ...previous].map(markOf), refusal: otherKey(name) }
  const redis = createRedis({ target, name: `svc-${process.pid}`, claim })
  const away = (): string => `the shared engine ${target.label} is away: ${redis.problem?.message ?? 'it does not answer'}`
  redis.onState((state) => {
    if (state === 'ready') log.info(`connected to the shared engine ${target.label}`)
    else if (state === 'away') log.warn(`${away()}; sessions and events are 503 until it is back`)
  })
  return new Shared({ loaded, appKey, redis, prefix: `${name}:`, place: `${name}:${target.database}:`, away, log })
}

/** What tells one `app_key` from another, and nothing else of it. */
function markOf(appKey: string): string {
  return deriveKey(appKey, 'shared.name').export().toString('hex')
}

function otherKey(name: string): string {
  return `servers with another app_key have data there under the name "${name}": give this one their app_key, or a shared.name `
    + `of its own; when no server has that key any more, remove it with DEL ${name}:app-key`
}

interface SharedParts {
  readonly loaded: LoadedConfig
  readonly appKey: string
  readonly redis: Redis
  /** What every key begins with. */
  readonly prefix: string
  /** What the name of every channel of PUBLISH begins with, which knows no databases. */
  readonly place: string
  readonly away: () => string
  readonly log: ModuleLogger
}

class Shared implements SharedEngine {
  readonly #parts: SharedParts

  constructor(parts: SharedParts) {
    this.#parts = parts
  }

  get isThere(): boolean {
    return this.#parts.redis.state === 'ready'
  }

  warnings(): readonly string[] {
    return this.isThere ? [] : [this.#parts.away()]
  }

  openSessionStore(options: SharedStoreOptions): SessionStore {
    const { redis, prefix } = this.#parts
    return createRedisSessionStore({ ...options, redis, prefix })
  }

  openBroker(log: ModuleLogger): Broker {
    const problems = new RateLimited(log.warn, 1000)
    const onProblem = (message: string): void => problems.say(message)
    const { redis, prefix, place } = this.#parts
    return createRedisBroker({ redis, prefix, place, onProblem })
  }

  openNode(routesFolder: string): Node {
    const { redis, prefix, place, log, loaded, appKey } = this.#parts
    const { 'admin.user': user, 'admin.password': password, 'admin.secret': secret } = loaded.config
    return new Node({
      redis,
      prefix,
      place,
      log,
      sharedName: loaded.config['shared.name'],
      appKeys: [appKey, ...loaded.config.app_key_previous],
      hostName: hostname(),
      port: loaded.config['server.port'],
      ownCredentials: { user, password, secret },
      routesFolder,
    })
  }

  async opened(): Promise<void> {
    const { loaded, redis } = this.#parts
    try {
      await redis.ready
    } catch (error) {
      const { cause } = error as Error // It rejects with RedisAwayError alone; that is logged with the change of the state.
      if (!(cause instanceof RedisForeignError)) return
      await redis.close() // Or it would take the name once the others' data are gone.
      throw errorOfValues(loaded, [{ key: 'shared.name', text: cause.message }], cause)
    }
  }

  close(): Promise<void> {
    return this.#parts.redis.close()
  }
}
