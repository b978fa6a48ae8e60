/**
 * The broker of one process: channels and queues in its memory, every answer at once.
 *
 * Surprise: nothing survives a restart, but ids go on growing. A channel's first id is the time of its making in
 * microseconds since 1970, so that it is beyond whatever was published before, and a client that comes with an older
 * cursor is told of the gap.
 */
import { performance } from 'node:perf_hooks'
import type { Broker, ChannelEvent, ChannelRead, QueueEvent, SourceLimits, Unsubscribe } from './broker.ts'
import { EventList } from './event-list.ts'

export interface LocalBrokerOptions {
  /** A clock in milliseconds that does not jump; `performance.now` unless given. */
  readonly now?: () => number
  /** The calendar's, in milliseconds since 1970; `Date.now` unless given. */
  readonly wallNow?: () => number
}

/** A broker that answers at once. */
export interface SynchronousBroker extends Broker {
  publish(channel: string, text: string, limits: SourceLimits): number
  read(channel: string, since: number | undefined): ChannelRead
  subscribe(channel: string, listener: (event: ChannelEvent) => void): Unsubscribe
  push(queue: string, text: string, limits: SourceLimits): void
  take(queue: string): QueueEvent | undefined
  putBack(queue: string, event: QueueEvent): void
  onAvailable(queue: string, listener: () => void): Unsubscribe
  sweep(): void
  close(): void
}

interface KeptChannelEvent extends ChannelEvent {
  readonly at: number
}

interface KeptQueueEvent extends QueueEvent {
  readonly at: number
  left: number
}

/** What channels and queues have in common. */
class Source<E extends { readonly at: number }, L> {
  readonly events = new EventList<E>()
  readonly listeners = new Set<L>()
  limits: SourceLimits = noLimits
  /** When it was last asked for, by the clock that does not jump. */
  usedAt = 0
}

class ChannelSource extends Source<KeptChannelEvent, (event: ChannelEvent) => void> {
  lastId: number

  /** @param lastId the one before the first */
  constructor(lastId: number) {
    super()
    this.lastId = lastId
  }
}

class QueueSource extends Source<KeptQueueEvent, () => void> {}

/** Of a source in which nothing was published yet. */
const noLimits: SourceLimits = { maxEvents: 1, maxAgeMs: 0 }
/** How long a source without events and listeners is kept when it was made by reading alone, in milliseconds. */
const leastIdleMs = 3_600_000

/** Makes an empty broker. */
export function createLocalBroker(options: LocalBrokerOptions = {}): SynchronousBroker {
  return new LocalBroker(options)
}

class LocalBroker implements SynchronousBroker {
  readonly #now: () => number
  readonly #wallNow: () => number
  readonly #channels = new Map<string, ChannelSource>()
  readonly #queues = new Map<string, QueueSource>()
  /** The newest id of the channels that were let go of. */
  #highestForgotten = 0
  #dropped = 0

  constructor({ now = () => performance.now(), wallNow = Date.now }: LocalBrokerOptions) {
    this.#now = now
    this.#wallNow = wallNow
  }

  get dropped(): number {
    return this.#dropped
  }

  publish(name: string, text: string, limits: SourceLimits): number {
    const channel = this.#channel(name)
    const id = channel.lastId + 1
    const event = { id, text, at: channel.usedAt }
    channel.lastId = id
    channel.limits = limits
    channel.events.push(event)
    channel.events.trim(limits, event.at)
    for (const listener of channel.listeners) listener(event)
    return id
  }

  read(name: string, since: number | undefined): ChannelRead {
    const channel = this.#channel(name)
    const { events, lastId } = channel
    if (since === undefined || since === lastId) return { events: [], lastId, gap: false }
    events.trim(channel.limits, channel.usedAt)
    const newer = lastId - since
    const gap = newer < 0 || newer > events.length
    return { events: events.from(gap ? 0 : events.length - newer), lastId, gap }
  }

  subscribe(name: string, listener: (event: ChannelEvent) => void): Unsubscribe {
    return subscription(this.#channel(name).listeners, listener)
  }

  push(name: string, text: string, limits: SourceLimits): void {
    const queue = this.#queue(name)
    queue.limits = limits
    queue.events.push({ text, at: queue.usedAt, left: 0 })
    this.#trim(queue)
    for (const listener of queue.listeners) listener()
  }

  take(name: string): QueueEvent | undefined {
    const queue = this.#queue(name)
    this.#trim(queue)
    const event = queue.events.shift()
    if (event !== undefined) event.left = queue.events.length
    return event
  }

  putBack(name: string, event: QueueEvent): void {
    const queue = this.#queue(name)
    queue.events.unshift(event as KeptQueueEvent) // What was taken here was made here.
    this.#trim(queue)
    for (const listener of queue.listeners) listener()
  }

  /** Nothing is kept of what was taken. */
  handedOut(): void {}

  onAvailable(name: string, listener: () => void): Unsubscribe {
    return subscription(this.#queue(name).listeners, listener)
  }

  /** Nothing comes between it and its process. */
  onCutOff(): void {}

  sweep(): void {
    const now = this.#now()
    for (const [name, channel] of this.#channels) {
      channel.events.trim(channel.limits, now)
      if (!isIdle(channel, now)) continue
      this.#channels.delete(name)
      this.#highestForgotten = Math.max(this.#highestForgotten, channel.lastId)
    }
    for (const [name, queue] of this.#queues) {
      this.#dropped += queue.events.trim(queue.limits, now)
      if (isIdle(queue, now)) this.#queues.delete(name)
    }
  }

  close(): void {
    this.#channels.clear()
    this.#queues.clear()
  }

  #trim(queue: QueueSource): void {
    this.#dropped += queue.events.trim(queue.limits, queue.usedAt)
  }

  #channel(name: string): ChannelSource {
    let channel = this.#channels.get(name)
    if (channel === undefined) {
      channel = new ChannelSource(Math.max(this.#wallNow() * 1000 - 1, this.#highestForgotten))
      this.#channels.set(name, channel)
    }
    channel.usedAt = this.#now()
    return channel
  }

  #queue(name: string): QueueSource {
    let queue = this.#queues.get(name)
    if (queue === undefined) {
      queue = new QueueSource()
      this.#queues.set(name, queue)
    }
    queue.usedAt = this.#now()
    return queue
  }
}

/** Each call is a subscription of its own, also of a listener that is there already. */
function subscription<A extends unknown[]>(
  listeners: Set<(...given: A) => void>,
  listener: (...given: A) => void,
): Unsubscribe {
  const own = (...given: A): void => listener(...given)
  listeners.add(own)
  return () => void listeners.delete(own)
}

/** A client that was away for less than the events are kept finds the channel, and its cursor is good. */
function isIdle(source: Source<{ readonly at: number }, unknown>, now: number): boolean {
  const { events, listeners, limits, usedAt } = source
  return events.length === 0 && listeners.size === 0 && now - usedAt >= Math.max(limits.maxAgeMs, leastIdleMs)
}
