/**
 * The broker of a server with a shared engine: channels and queues in Redis or Valkey, for processes on one machine or on
 * many. Any number of them use it directly.
 *
 * Surprise: it is cut off when commands cannot be sent, at once; and when nothing has been heard for a second though they
 * can. A connection that is back sooner has cost nothing: what it missed is read.
 */
import type {
  Broker,
  ChannelEvent,
  ChannelRead,
  QueueEvent,
  SourceLimits,
  Unsubscribe,
} from '../events/broker.ts'
import { answerFor } from './away.ts'
import type { RedisBrokerOptions } from './broker-parts.ts'
import { Calls } from './calls.ts'
import { RedisChannels } from './channels.ts'
import type { Redis } from './client.ts'
import { RedisAwayError } from './errors.ts'
import { RedisQueues } from './queues.ts'

/** Milliseconds without the connection that hears, until the broker counts as cut off. */
const deafMs = 1000

/** Makes a broker. What fails because the server is away rejects with HttpError 503 `shared_away`. */
export function createRedisBroker(options: RedisBrokerOptions): Broker {
  return new RedisBroker(options)
}

class RedisBroker implements Broker {
  readonly #redis: Redis
  readonly #calls = new Calls()
  readonly #channels: RedisChannels
  readonly #queues: RedisQueues
  readonly #listeners = new Set<(reason: Error | undefined) => void>()
  readonly #stopWatching: readonly (() => void)[]
  #isCutOff = false
  #deafTimer: NodeJS.Timeout | undefined = undefined

  constructor(options: RedisBrokerOptions) {
    const { redis } = options
    const parts = { ...options, calls: this.#calls }
    this.#redis = redis
    this.#channels = new RedisChannels(parts)
    this.#queues = new RedisQueues(parts)
    this.#stopWatching = [redis.onState(() => this.#look()), redis.onHearing(() => this.#look())]
  }

  get dropped(): number {
    return this.#queues.dropped
  }

  publish(channel: string, text: string, limits: SourceLimits): Promise<number> {
    return this.#channels.publish(channel, text, limits)
  }

  read(channel: string, since: number | undefined): Promise<ChannelRead> {
    return this.#channels.read(channel, since)
  }

  subscribe(channel: string, listener: (event: ChannelEvent) => void): Promise<Unsubscribe> {
    return this.#channels.subscribe(channel, listener)
  }

  push(queue: string, text: string, limits: SourceLimits): Promise<void> {
    return this.#queues.push(queue, text, limits)
  }

  take(queue: string): Promise<QueueEvent | undefined> {
    return this.#queues.take(queue)
  }

  putBack(queue: string, event: QueueEvent): Promise<void> {
    return this.#queues.putBack(queue, event)
  }

  handedOut(queue: string, event: QueueEvent): void {
    this.#queues.handedOut(queue, event)
  }

  onAvailable(queue: string, listener: () => void): Promise<Unsubscribe> {
    return this.#queues.onAvailable(queue, listener)
  }

  onCutOff(listener: (reason: Error | undefined) => void): void {
    this.#listeners.add(listener)
  }

  sweep(): Promise<void> {
    return this.#queues.sweep()
  }

  /** Resolves when what is under way has been answered, and what was on its way has been put back. */
  async close(): Promise<void> {
    for (const stop of this.#stopWatching) stop()
    clearTimeout(this.#deafTimer)
    this.#channels.close()
    this.#queues.endSubscriptions()
    await this.#calls.settled()
    await this.#queues.close()
  }

  /** At a change of either connection. */
  #look(): void {
    const { state, hearing } = this.#redis
    clearTimeout(this.#deafTimer)
    if (state === 'away') this.#tell('it cannot be asked')
    else if (hearing !== 'away') this.#tell(undefined)
    else if (!this.#isCutOff) this.#deafTimer = setTimeout(() => this.#tell('nothing can be heard of it'), deafMs).unref()
  }

  #tell(what: string | undefined): void {
    if (this.#isCutOff === (what !== undefined)) return
    this.#isCutOff = what !== undefined
    const reason = what === undefined ? undefined : this.#reason(what)
    for (const listener of this.#listeners) listener(reason)
  }

  #reason(what: string): Error {
    const { problem } = this.#redis
    const error = new RedisAwayError(`The shared engine is away: ${problem?.message ?? what}`, problem)
    return answerFor(error) as Error // It makes another of that.
  }
}
