/**
 * The shared engine of `shared.url`, a Redis or Valkey server: what processes on several machines have in common lies
 * there.
 *
 * Surprise: a server that starts while the engine is away starts all the same. It is not ready (`/svc-ready`), requests
 * that need a session or events get 503, and everything else is served.
 */
import { hostname } from 'node:os'
import type { Config } from './config/table.ts'
import type { Broker } from './events/broker.ts'
import type { ModuleLogger } from './log/logger.ts'
import { RateLimited } from './log/rate-limited.ts'
import type { Nodes } from './nodes/contract.ts'
import { createNodes, type NodesOptions } from './nodes/nodes.ts'
import { createRedisBroker } from './redis/broker.ts'
import { createRedis, type Redis } from './redis/client.ts'
import { createRedisSessionStore } from './redis/session-store.ts'
import { parseRedisUrl } from './redis/url.ts'
import type { SharedStoreOptions } from './session/group.ts'
import type { SessionStore } from './session/store.ts'

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
  /** Makes this server a node among those that share the engine. */
  openNodes(options: OpenNodesOptions): Nodes
  /** Resolves when it is there, or when that has taken so long that the server starts without. */
  opened(): Promise<void>
  /** Lets what is under way end. Nothing is called afterwards. */
  close(): Promise<void>
}

/** What the nodes must know of this server. */
export interface OpenNodesOptions extends Pick<NodesOptions, 'takeUp' | 'onHealth'> {
  readonly config: Config
  /** What it tells of itself. */
  readonly summary: NodesOptions['summary']
}

/** What every key begins with. */
const prefix = 'svc:'

/** What the name of every channel of PUBLISH begins with, which knows no databases. */
function placeOf(database: number): string {
  return `${prefix}${database}:`
}

/**
 * Opens the engine that the configuration names, and begins to connect.
 * @param password in place of that of the address
 * @param log of the module `server`
 * @returns undefined when the configuration names none
 */
export function openShared(config: Config, password: string | undefined, log: ModuleLogger): SharedEngine | undefined {
  const { 'shared.url': url } = config
  if (url === '') return undefined
  const target = parseRedisUrl(url, password)
  const redis = createRedis({ target, name: `svc-${process.pid}` })
  const away = (): string => `the shared engine ${target.label} is away: ${redis.problem?.message ?? 'it does not answer'}`
  redis.onState((state) => {
    if (state === 'ready') log.info(`connected to the shared engine ${target.label}`)
    else if (state === 'away') log.warn(`${away()}; sessions and events are 503 until it is back`)
  })
  return new Shared(redis, placeOf(target.database), away, log)
}

class Shared implements SharedEngine {
  readonly #redis: Redis
  /** What every key, and the name of every channel of PUBLISH, begins with. */
  readonly #names: { readonly prefix: string; readonly place: string }
  readonly #away: () => string
  readonly #log: ModuleLogger

  constructor(redis: Redis, place: string, away: () => string, log: ModuleLogger) {
    this.#redis = redis
    this.#names = { prefix, place }
    this.#away = away
    this.#log = log
  }

  get isThere(): boolean {
    return this.#redis.state === 'ready'
  }

  warnings(): readonly string[] {
    return this.isThere ? [] : [this.#away()]
  }

  openSessionStore(options: SharedStoreOptions): SessionStore {
    return createRedisSessionStore({ ...options, redis: this.#redis, prefix })
  }

  openBroker(log: ModuleLogger): Broker {
    const problems = new RateLimited(log.warn, 1000)
    const onProblem = (message: string): void => problems.say(message)
    return createRedisBroker({ redis: this.#redis, ...this.#names, onProblem })
  }

  openNodes({ config, ...options }: OpenNodesOptions): Nodes {
    const { 'admin.user': user, 'admin.password': password, 'admin.secret': secret, trace } = config
    const engine = { redis: this.#redis, ...this.#names, log: this.#log }
    const server = { hostName: hostname(), port: config['server.port'] }
    return createNodes({ ...engine, ...server, trace, ownAdmin: { user, password, secret }, ...options })
  }

  opened(): Promise<void> {
    const goOn = (): void => {} // That it is away is logged with the change of the state.
    return this.#redis.ready.catch(goOn)
  }

  close(): Promise<void> {
    return this.#redis.close()
  }
}
