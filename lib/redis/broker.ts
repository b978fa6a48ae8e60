/**
 * The broker of a server with a shared engine: channels and queues in Redis or Valkey, used directly by any number of
 * processes on one machine or on many.
 *
 * It counts as cut off at once when commands cannot be sent, and after a second when only the connection for
 * subscriptions is missing. A shorter interruption of that connection costs nothing: the missed events are read.
 */
import type {
  Broker,
  ChannelEvent,
  ChannelRead,
  QueueEvent,
  SourceLimits,
  Unsubscribe,
} from '../events/broker.ts'
import type { RedisBrokerOptions } from './broker-parts.ts'
import { Calls } from './calls.ts'
import { RedisChannels } from './channels.ts'
import type { Redis } from './client.ts'
import { answerFor, RedisAwayError } from './errors.ts'
import { RedisQueues } from './queues.ts'

/** Milliseconds without a connection for subscriptions until the broker counts as cut off. */
const deafMs = 1000

/** Makes a broker. When the server is away, its functions reject with HttpError 503 `shared_away`. */
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

  /** Resolves when the calls under way are answered and the events that nobody got are put back. */
  async close(): Promise<void> {
    for (const stop of this.#stopWatching) stop()
    clearTimeout(this.#deafTimer)
    await this.#calls.settled()
    await this.#queues.close()
  }

  /** Called when the state of either connection changes. */
  #look(): void {
    const { state, hearing } = this.#redis
    clearTimeout(this.#deafTimer)
    if (state === 'away') this.#setCutOff('no command can be sent')
    else if (hearing !== 'away') this.#setCutOff(undefined)
    else if (!this.#isCutOff) {
      this.#deafTimer = setTimeout(() => this.#setCutOff('no message can be received'), deafMs).unref()
    }
  }

  /** @param why undefined: the broker is connected */
  #setCutOff(why: string | undefined): void {
    if (this.#isCutOff === (why !== undefined)) return
    this.#isCutOff = why !== undefined
    const reason = why === undefined ? undefined : this.#errorOf(why)
    for (const listener of this.#listeners) listener(reason)
  }

  #errorOf(why: string): Error {
    const { problem } = this.#redis
    const error = new RedisAwayError(`The shared engine is away: ${problem?.message ?? why}`, problem)
    return answerFor(error) as Error // It turns a RedisAwayError into an HttpError.
  }
}
