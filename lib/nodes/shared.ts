/**
 * The shared engine of `shared.url`: the Redis or Valkey server that stores the sessions, the events, the jobs and the
 * desired state of servers on several machines.
 *
 * A server starts even while the engine is away. It is not ready (`/svc-ready`), requests that need a session or events
 * get 503, and everything else is served.
 */
import { randomUUID } from 'node:crypto'
import type { Backends } from '../composition/backends.ts'
import type { UsedCodesFile } from '../control/used-codes-file.ts'
import { loadRoom } from '../config/load-room.ts'
import { errorOfValues, type LoadedConfig } from '../config/load.ts'
import { deriveKey } from '../tokens/signature.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { RateLimited } from '../base/rate-limited.ts'
import { Node, type SharedContext } from './node.ts'
import { createRedisBroker } from '../redis/broker.ts'
import { createRedisBuckets } from '../redis/buckets.ts'
import { Redis } from '../redis/client.ts'
import { describe, RedisForeignError } from '../redis/errors.ts'
import { RedisSessionStore } from '../redis/session-store.ts'
import { parseRedisUrl } from '../config/redis-url.ts'
import { problemOfFields } from '../session/fields.ts'

/** The type of `openShared`, for callers that load this file on demand. */
export type OpenShared = typeof openShared

/** The engine from the view of one server. */
export type SharedEngine = NonNullable<ReturnType<OpenShared>>

/**
 * Opens the configured engine and starts connecting.
 * @param appKey the current `app_key`
 * @param password replaces the password in the address
 * @param log of module `server`
 * @returns undefined when no engine is configured
 */
export function openShared(loaded: LoadedConfig, appKey: string, password: string | undefined, log: ModuleLogger) {
  const { 'shared.url': url, 'shared.name': name, app_key_previous: previous } = loaded.config
  if (url === '') return undefined
  const target = parseRedisUrl(url, password)
  const claim = { key: `${name}:app-key`, marks: [appKey, ...previous].map(markOf), refusal: otherKey(name) }
  const probe = `${name}:${target.database}:probe:${randomUUID()}`
  const engine = `the shared engine ${target.label}`
  const onMessageProblem = (problem: Error | undefined): void => {
    if (problem !== undefined) log.warn(messagesMissing(engine, problem))
    else if (redis.state === 'ready') log.info(`messages of ${engine} arrive again`)
  }
  const redis = new Redis({ target, name: `svc-${process.pid}`, claim, probe, onMessageProblem })
  const away = (): string => `${engine} is away: ${describe(redis.problem)}`
  redis.onState((state) => {
    if (state === 'ready') log.info(`connected to ${engine}`)
    else if (state === 'away') log.warn(`${away()}; sessions and events are 503 until it is back`)
  })
  const prefix = `${name}:`
  const channelPrefix = `${name}:${target.database}:`
  const context: SharedContext = { loaded, appKey, redis, prefix, channelPrefix, log }

  return {
    /** Whether the engine can be used now. */
    isReady: (): boolean => redis.state === 'ready',
    /** Returns the warnings for the operator; none while the engine can be used. */
    warnings: (): readonly string[] => {
      if (redis.state !== 'ready') return [away()]
      const { messageProblem } = redis
      return messageProblem === undefined ? [] : [messagesMissing(engine, messageProblem)]
    },
    /** Opens the services of an application that are stored in the engine. @param errors the log of module `error` */
    openBackends(errors: ModuleLogger): Backends {
      const problems = new RateLimited(errors.warn, 1000)
      return {
        openSharedStore: (onProblem) =>
          new RedisSessionStore({ redis, prefix, problemOf: problemOfFields, onProblem }),
        broker: createRedisBroker({ redis, prefix, channelPrefix, onProblem: (message) => problems.say(message) }),
        openBuckets: (rule, size) => createRedisBuckets(redis, prefix, rule, size),
        openJobStore: async (now) => {
          const { RedisJobs } = await loadRoom('paths.jobs', () => import('../redis/jobs.ts'))
          const onProblem = (message: string): void => problems.say(message)
          return new RedisJobs({ redis, prefix, channelPrefix, log, onProblem, now })
        },
      }
    },
    /** Makes this server a node among those that share the engine. @param routesFolder `paths.routes`, absolute */
    openNode: (routesFolder: string, usedCodesFile: UsedCodesFile): Node =>
      new Node(context, routesFolder, usedCodesFile),
    /**
     * Resolves when the engine can be used, or when the server starts without waiting longer for it.
     * @throws ConfigError when the engine holds data of servers with another `app_key`
     */
    async opened(): Promise<void> {
      try {
        await redis.ready
      } catch (error) {
        const { cause } = error as Error // A RedisAwayError, which onState has logged.
        if (!(cause instanceof RedisForeignError)) return
        await redis.close() // Otherwise the client would claim the name as soon as the others' data are removed.
        throw errorOfValues(loaded, [{ key: 'shared.name', text: cause.message }], cause)
      }
    },
    /** Waits for running calls. No callback is called afterwards. */
    close: (): Promise<void> => redis.close(),
  }
}

/**
 * Returns the warning about an engine that accepts commands, but not the connection for messages.
 * @param engine its name
 */
export function messagesMissing(engine: string, problem: Error): string {
  return `messages of ${engine} do not arrive, so waiting clients get no events: ${describe(problem)}`
}

/** Derives a mark that is different for each `app_key` and does not reveal it. */
function markOf(appKey: string): string {
  return deriveKey(appKey, 'shared.name').export().toString('hex')
}

function otherKey(name: string): string {
  return `servers with another app_key have data there under the name "${name}": give this server their app_key, or`
    + ` another shared.name; when no server uses that key any more, remove it with DEL ${name}:app-key`
}
