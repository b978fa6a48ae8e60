/**
 * The channels and queues of one server, by name.
 *
 * Surprise: a channel or queue that nobody has used for as long as it keeps events, and at least an hour, is let go of,
 * so that names made of user ids do not fill the memory. Who still holds it can go on using it.
 */
import { performance } from 'node:perf_hooks'
import { reasonOf } from '../base/reason.ts'
import { Heartbeat } from '../base/heartbeat.ts'
import { HttpError } from '../http/errors.ts'
import type { MaybePromise } from '../base/maybe-promise.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { RateLimited } from '../base/rate-limited.ts'
import type { Broker, SourceLimits } from './broker.ts'
import { Channel } from './channel.ts'
import { createLocalBroker } from './local-broker.ts'
import { Queue } from './queue.ts'
import { defaultLimits, limitsOf, type EventCounts, type SourceOptions, type SourceParts } from './source.ts'

export interface EventsOptions {
  /** The log of a module. */
  readonly log: (module: string) => ModuleLogger
  /** Where the events lie; in this process unless given. */
  readonly broker?: Broker | undefined
  /** How often streams get a comment, in milliseconds from 1; 15,000 unless given. */
  readonly heartbeatMs?: number
  /** How many bytes may lie unread for one stream before it is cut; 2^20 unless given. */
  readonly maxUnreadBytes?: number
  /** A clock in milliseconds that does not jump; `performance.now` unless given. */
  readonly now?: () => number
}

/** What the status shows. Each number only grows. */
export interface EventStatus {
  readonly published: number
  readonly delivered: number
  /** Events that fell out of queues before anybody took them. */
  readonly dropped: number
  /** Streams that were cut since their clients did not read. */
  readonly slow: number
}

/** The channels and queues of one server. */
export interface Events {
  /**
   * The channel with a name, made at its first use.
   * @throws TypeError for a name that is no string or empty, and for wrong options
   * @throws Error when it is there with other options
   */
  readonly channel: (name: string, options?: SourceOptions) => Channel
  /** The queue with a name; a channel may have the same. Throws as `channel` does. */
  readonly queue: (name: string, options?: SourceOptions) => Queue
  status(): EventStatus
  /** Lets go of what is too old or has long not been used. Called once a minute. */
  sweep(): void
  /** Lets go of everything; to be called when nobody waits any more. */
  close(): Promise<void>
}

/** What a name stands for. */
interface Entry<S> {
  readonly source: S
  usedAt: number
}

const sweepEveryMs = 60_000
const leastIdleMs = 3_600_000
const defaultHeartbeatMs = 15_000
const defaultMaxUnreadBytes = 1_048_576

/** Makes the channels and queues of a server: none as yet. */
export function createEvents(options: EventsOptions): Events {
  const { log, now = () => performance.now(), maxUnreadBytes = defaultMaxUnreadBytes } = options
  const broker = options.broker ?? createLocalBroker({ now })
  const counts: EventCounts = { published: 0, delivered: 0, slow: 0 }
  const slowStreams = new RateLimited(log('worker_otros').info, 1000)
  const failures = new RateLimited((message) => log('error').error(message), 1000)
  let cutOff: Error | undefined
  const parts: SourceParts = {
    broker,
    counts,
    heartbeat: new Heartbeat(options.heartbeatMs ?? defaultHeartbeatMs),
    get cutOff() {
      return cutOff
    },
    report: (message, error) => {
      if (!isAway(error)) log('error').error(message, error)
    },
    noting,
    onSlow: (message) => slowStreams.say(message),
    maxUnreadBytes,
  }
  const channels = new Map<string, Entry<Channel>>()
  const queues = new Map<string, Entry<Queue>>()
  const timer = setInterval(sweep, sweepEveryMs).unref()
  broker.onCutOff((reason) => {
    cutOff = reason
    if (reason === undefined) return
    for (const { source } of [...channels.values(), ...queues.values()]) source.cutOff()
  })

  function noting<T>(message: string, outcome: MaybePromise<T>): MaybePromise<T> {
    if (outcome instanceof Promise) {
      outcome.catch((error: unknown) =>
        failures.say(`${message}: ${reasonOf(error)}`),
      )
    }
    return outcome
  }

  function open<S extends Channel | Queue>(
    entries: Map<string, Entry<S>>,
    Source: new (name: string, limits: SourceLimits, parts: SourceParts) => S,
    kind: string,
    name: string,
    sourceOptions: SourceOptions | undefined,
  ): S {
    const found = entries.get(name)
    if (found !== undefined && sourceOptions === undefined) {
      found.usedAt = now()
      return found.source
    }
    const what = `${kind} ${typeof name === 'string' ? `"${name}"` : String(name)}`
    if (typeof name !== 'string' || name === '') {
      throw new TypeError(`Cannot open ${what}: its name must be a string that is not empty`)
    }
    const limits = limitsOf(what, sourceOptions)
    if (found === undefined) {
      const source = new Source(name, limits ?? defaultLimits, parts)
      entries.set(name, { source, usedAt: now() })
      return source
    }
    found.usedAt = now()
    const { maxEvents, maxAgeMs } = found.source.limits
    if (limits === undefined || (limits.maxEvents === maxEvents && limits.maxAgeMs === maxAgeMs)) return found.source
    const has = `it has events ${maxEvents} and age_s ${maxAgeMs / 1000}`
    throw new Error(`Cannot open ${what} with other options: ${has}, from its first use: give them there`)
  }

  function sweep(): void {
    forgetUnused(channels, now())
    forgetUnused(queues, now())
    void broker.sweep()
  }

  return {
    channel: (name, sourceOptions) => open(channels, Channel, 'channel', name, sourceOptions),
    queue: (name, sourceOptions) => open(queues, Queue, 'queue', name, sourceOptions),
    status: () => ({ ...counts, dropped: broker.dropped }),
    sweep,
    close: async () => {
      clearInterval(timer)
      for (const { source } of [...channels.values(), ...queues.values()]) source.close()
      await broker.close()
    },
  }
}

/** What the broker's link to the others has logged. */
function isAway(error: unknown): boolean {
  return error instanceof HttpError && error.code === 'shared_away'
}

function forgetUnused(entries: Map<string, Entry<Channel | Queue>>, now: number): void {
  for (const [name, { source, usedAt }] of entries) {
    if (!source.isIdle || now - usedAt < Math.max(source.limits.maxAgeMs, leastIdleMs)) continue
    source.rest()
    entries.delete(name)
  }
}
