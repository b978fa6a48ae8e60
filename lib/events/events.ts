/**
 * The channels and queues of one server, by name.
 *
 * A channel or queue is dropped when it was not used for as long as it keeps events, and at least an hour, so that
 * names made of user ids do not exhaust the memory. Code that still holds the object can keep using it.
 */
import { performance } from 'node:perf_hooks'
import type { SourceOptions } from 'svc'
import { reasonOf } from '../base/reason.ts'
import { Heartbeat } from '../base/heartbeat.ts'
import { hasToken } from '../base/token.ts'
import type { CoreContext } from '../http/context.ts'
import { isHttpError } from '../http/errors.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { RateLimited } from '../base/rate-limited.ts'
import type { Broker, SourceLimits } from './broker.ts'
import { Channel } from './channel.ts'
import { LocalBroker } from './local-broker.ts'
import { Queue } from './queue.ts'
import { defaultLimits, limitsOf, type EventCounts, type SourceServices } from './source.ts'

/** The options of `createEvents`. */
export interface EventsOptions {
  /** Returns the log of a module. */
  readonly log: (module: string) => ModuleLogger
  /** Holds the events; a broker in this process by default. */
  readonly broker?: Broker | undefined
  /** Holds the events of durable channels and queues; by default that broker. */
  readonly durableBroker?: Broker | undefined
  /** Milliseconds between the comments sent to a stream, from 1; 15,000 by default. */
  readonly heartbeatMs?: number
  /** A stream with more unread bytes than this is cut; 2^20 by default. */
  readonly maxUnreadBytes?: number
  /** A monotonic clock in milliseconds; `performance.now` by default. */
  readonly now?: () => number
}

/** The counters of the status. Each number only grows. */
export interface EventStatus extends Readonly<EventCounts> {
  /** Events that queues dropped before a client took them. */
  readonly dropped: number
}

/** The channels and queues of one server. */
export interface Events {
  /**
   * Returns the channel with a name; the first use creates it. Each of its events goes to all subscribers.
   * @throws TypeError for a name that is not a string or is empty, and for wrong options
   * @throws Error when it exists with other options
   */
  readonly channel: (name: string, options?: SourceOptions) => Channel
  /** Returns the queue with a name; each of its events goes to one client. Works and throws as `channel` does. */
  readonly queue: (name: string, options?: SourceOptions) => Queue
  /** Warns that a response will not have the `Cache-Control` that its action set, unless that has `no-store`. */
  checkCacheControl(ctx: CoreContext): void
  status(): EventStatus
  /** Drops old events and unused channels and queues. Called once a minute. */
  sweep(): void
  /** Frees everything. Call it when no request is waiting. */
  close(): Promise<void>
}

const sweepIntervalMs = 60_000
const minIdleMs = 3_600_000
const defaultHeartbeatMs = 15_000
const defaultMaxUnreadBytes = 1_048_576

/** Creates the channels and queues of a server; there are none at first. */
export function createEvents(options: EventsOptions): Events {
  const { log, now = () => performance.now(), maxUnreadBytes = defaultMaxUnreadBytes } = options
  const broker = options.broker ?? new LocalBroker({ now })
  const counts: EventCounts = { published: 0, delivered: 0, slow: 0 }
  const slowStreams = new RateLimited(log('worker_otros').info, 1000)
  const failures = new RateLimited(log('error').error, 1000)
  const shared: Omit<SourceServices, 'broker' | 'isDurable' | 'cutOff'> = {
    counts,
    heartbeat: new Heartbeat(options.heartbeatMs ?? defaultHeartbeatMs),
    logError: (message, error) => {
      if (!isAway(error)) log('error').error(message, { thrown: error })
    },
    logRejection: (message, outcome) => {
      if (outcome instanceof Promise) {
        outcome.catch((error: unknown) => failures.say(`${message}: ${reasonOf(error)}`))
      }
      return outcome
    },
    logDamaged: (message) => failures.say(message),
    logSlow: (message) => slowStreams.say(message),
    maxUnreadBytes,
  }
  const replaced = new RateLimited(log('error').warn, 1000)
  const channels = new Map<string, Channel>()
  const queues = new Map<string, Queue>()
  const all = (): (Channel | Queue)[] => [...channels.values(), ...queues.values()]
  const timer = setInterval(sweep, sweepIntervalMs).unref()
  const { durableBroker = broker } = options
  const services = servicesOf(broker, false)
  const durableServices = servicesOf(durableBroker, true)
  const brokers = new Set([broker, durableBroker])

  /** Makes the services of the sources of a broker. */
  function servicesOf(of: Broker, isDurable: boolean): SourceServices {
    let cutOff: Error | undefined
    const made: SourceServices = {
      ...shared,
      broker: of,
      isDurable,
      get cutOff() {
        return cutOff
      },
    }
    of.onCutOff((reason) => {
      cutOff = reason
      if (reason === undefined) return
      for (const source of all()) if (source.services === made) source.cutOff()
    })
    return made
  }

  function open<S extends Channel | Queue>(
    sources: Map<string, S>,
    SourceClass: new (name: string, limits: SourceLimits, services: SourceServices) => S,
    kind: string,
    name: string,
    sourceOptions: SourceOptions | undefined,
  ): S {
    const found = sources.get(name)
    if (found !== undefined && sourceOptions === undefined) {
      found.usedAt = now()
      return found
    }
    const what = `${kind} ${typeof name === 'string' ? `"${name}"` : String(name)}`
    if (typeof name !== 'string' || name === '') {
      throw new TypeError(`Cannot open ${what}: its name must be a string that is not empty`)
    }
    const limits = limitsOf(what, sourceOptions)
    const isDurable = sourceOptions?.durable === true
    const source = found ?? new SourceClass(name, limits ?? defaultLimits, isDurable ? durableServices : services)
    source.usedAt = now()
    sources.set(name, source)
    const { limits: { maxEvents, maxAgeMs }, services: { isDurable: wasDurable } } = source
    const isSame = limits?.maxEvents === maxEvents && limits.maxAgeMs === maxAgeMs && isDurable === wasDurable
    if (limits === undefined || isSame) return source
    const durability = isDurable === wasDurable ? '' : ` and is ${wasDurable ? '' : 'not '}durable`
    const has = `it has events ${maxEvents} and age_s ${maxAgeMs / 1000}${durability}`
    throw new Error(`Cannot open ${what} with other options: ${has} from its first use: set them there`)
  }

  function sweep(): void {
    forgetUnused(channels, now())
    forgetUnused(queues, now())
    for (const each of brokers) void each.sweep()
  }

  return {
    channel: (name, sourceOptions) => open(channels, Channel, 'channel', name, sourceOptions),
    queue: (name, sourceOptions) => open(queues, Queue, 'queue', name, sourceOptions),
    checkCacheControl: (ctx) => {
      const set = ctx.outgoingIfAny?.get('Cache-Control')
      if (set === undefined || hasToken(set, 'no-store')) return
      const message = `Cache-Control "${set}" is replaced: responses that wait for events are no-store`
      replaced.say(message, ctx.routeName, { request: ctx, isLabelled: true })
    },
    status: () => ({ ...counts, dropped: [...brokers].reduce((sum, { dropped }) => sum + dropped, 0) }),
    sweep,
    close: async () => {
      clearInterval(timer)
      for (const source of all()) source.close()
      for (const each of brokers) await each.close()
    },
  }
}

/** Whether the error means that the broker is away, which its connection has logged already. */
function isAway(error: unknown): boolean {
  return isHttpError(error) && error.code === 'shared_away'
}

function forgetUnused(sources: Map<string, Channel | Queue>, now: number): void {
  for (const [name, source] of sources) {
    if (!source.isIdle || now - source.usedAt < Math.max(source.limits.maxAgeMs, minIdleMs)) continue
    source.rest()
    sources.delete(name)
  }
}
