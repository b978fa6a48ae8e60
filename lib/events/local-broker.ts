/**
 * The broker of one process: holds channels and queues in memory and returns every result synchronously.
 *
 * After a planned restart it resumes where it stopped (`kept-events.ts`). A crash loses all events, but ids keep
 * growing: the first id of a channel is the time of its creation in microseconds since 1970, which is higher than every
 * id before the crash. So a client with an older cursor gets a gap.
 */
import { performance } from 'node:perf_hooks'
import { EventList } from './event-list.ts'
import type { Broker, ChannelEvent, ChannelListener, ChannelRead, LeaseEnd, QueueEvent } from './broker.ts'
import type { SourceLimits, Unsubscribe } from './broker.ts'
import { Leases, newLease } from './leases.ts'

type Synchronous<M> = M extends (...given: infer A) => infer R ? (...given: A) => Exclude<R, Promise<unknown>> : M

/** A broker that returns every result directly, never a promise. */
export type SynchronousBroker = { readonly [Member in keyof Broker]: Synchronous<Broker[Member]> }

interface StoredChannelEvent extends ChannelEvent {
  readonly at: number
}

interface StoredQueueEvent extends QueueEvent {
  readonly at: number
  left: number
  lease: string | undefined
}

/** A channel or queue as persisted across a restart. */
export interface KeptSource {
  readonly kind: 'channel' | 'queue'
  readonly name: string
  readonly limits: SourceLimits
  /** For a channel: the id of its newest event. */
  readonly lastId: number
  /** Oldest first, each with its time in milliseconds since 1970. */
  readonly events: { readonly text: string; readonly at: number }[]
}

/** The stored events and the listeners of a channel or queue. */
class Store<E extends { readonly at: number }, Given extends unknown[]> {
  /** Oldest first; `at` is by the monotonic clock. */
  readonly events = new EventList<E>()
  readonly listeners = new Set<(...given: Given) => void>()
  limits: SourceLimits = initialLimits
  /** For a channel: the newest id; before the first event, the id before it. */
  lastId = 0
  /** The time of the last use, by the monotonic clock. */
  usedAt = 0

  /** Adds a subscription, even if the listener is subscribed already. */
  addListener(listener: (...given: Given) => void): Unsubscribe {
    const added = (...given: Given): void => listener(...given)
    this.listeners.add(added)
    return () => void this.listeners.delete(added)
  }

  /** Removes the oldest events past the limits. Returns their number. */
  trim(now: number): number {
    const { events, limits } = this
    let count = Math.max(0, events.length - limits.maxEvents)
    while (count < events.length && now - events.at(count).at >= limits.maxAgeMs) count += 1
    if (count > 0) events.dropFirst(count)
    return count
  }

  isIdle(now: number): boolean {
    if (this.events.length > 0 || this.listeners.size > 0) return false
    return now - this.usedAt >= Math.max(this.limits.maxAgeMs, minIdleMs)
  }
}

type ChannelStore = Store<StoredChannelEvent, [event: ChannelEvent]>
type QueueStore = Store<StoredQueueEvent, []>

/** The limits until the first event is published. */
const initialLimits: SourceLimits = { maxEvents: 1, maxAgeMs: 0 }
/** A store without events and listeners is kept at least this long, so that cursors stay valid. */
const minIdleMs = 3_600_000

/** A broker in memory; empty at first. */
export class LocalBroker implements SynchronousBroker {
  readonly #now: () => number
  readonly #wallNow: () => number
  readonly #channels = new Map<string, ChannelStore>()
  readonly #queues = new Map<string, QueueStore>()
  readonly #leases = new Leases<StoredQueueEvent>((queue, event) => this.putBack(queue, event))
  /** The highest id of the dropped channels. */
  #highestForgotten = 0
  dropped = 0

  /**
   * @param clocks `now`, a monotonic clock in milliseconds (`performance.now` by default), and `wallNow`, milliseconds
   *   since 1970 (`Date.now` by default)
   */
  constructor(clocks: { readonly now?: () => number; readonly wallNow?: () => number } = {}) {
    this.#now = clocks.now ?? (() => performance.now())
    this.#wallNow = clocks.wallNow ?? Date.now
  }

  publish(name: string, text: string, limits: SourceLimits): number {
    const channel = this.#use(this.#channels, name)
    const id = channel.lastId + 1
    const event = { id, text, at: channel.usedAt }
    channel.lastId = id
    channel.limits = limits
    channel.events.push(event)
    channel.trim(event.at)
    for (const listener of channel.listeners) listener(event)
    return id
  }

  read(name: string, since: number | undefined): ChannelRead {
    const channel = this.#use(this.#channels, name)
    const { events, lastId } = channel
    if (since === undefined || since === lastId) return { events: [], lastId, gap: false }
    channel.trim(channel.usedAt)
    const newer = lastId - since
    if (newer < 0) return { events: [], lastId, gap: true }
    return { events: events.slice(Math.max(0, events.length - newer)), lastId, gap: newer > events.length }
  }

  subscribe(name: string, listener: ChannelListener): Unsubscribe {
    return this.#use(this.#channels, name).addListener(listener)
  }

  push(name: string, text: string, limits: SourceLimits): void {
    const queue = this.#use(this.#queues, name)
    queue.limits = limits
    queue.events.push({ text, at: queue.usedAt, left: 0, lease: undefined })
    this.#trim(queue)
    for (const listener of queue.listeners) listener()
  }

  take(name: string, leaseMs?: number): QueueEvent | undefined {
    const queue = this.#use(this.#queues, name)
    this.#trim(queue)
    const event = queue.events.shift()
    if (event === undefined) return undefined
    event.left = queue.events.length
    if (leaseMs !== undefined) {
      event.lease = newLease()
      this.#leases.begin(event.lease, name, event, leaseMs)
    }
    return event
  }

  putBack(name: string, event: QueueEvent): void {
    const queue = this.#use(this.#queues, name)
    const stored = event as StoredQueueEvent // `take` returned it.
    if (stored.lease !== undefined) this.#leases.end(stored.lease)
    stored.lease = undefined
    queue.events.unshift(stored)
    this.#trim(queue)
    for (const listener of queue.listeners) listener()
  }

  /** No-op: taken events are not stored, but for those with a lease. */
  handedOut(): void {}

  endLease(name: string, lease: string, end: LeaseEnd): boolean {
    const event = this.#leases.find(lease, name)
    if (event === undefined) return false
    if (end === 'back') this.putBack(name, event)
    else this.#leases.end(lease)
    return true
  }

  onAvailable(name: string, listener: () => void): Unsubscribe {
    return this.#use(this.#queues, name).addListener(listener)
  }

  /** No-op: a broker in the same process cannot be cut off. */
  onCutOff(): void {}

  sweep(): void {
    const now = this.#now()
    for (const [name, channel] of this.#channels) {
      channel.trim(now)
      if (!channel.isIdle(now)) continue
      this.#channels.delete(name)
      this.#highestForgotten = Math.max(this.#highestForgotten, channel.lastId)
    }
    for (const [name, queue] of this.#queues) {
      this.dropped += queue.trim(now)
      if (queue.isIdle(now)) this.#queues.delete(name)
    }
  }

  /** Returns everything stored, to persist it across a restart. It ends all leases, and their events are available. */
  contents(): KeptSource[] {
    // The last taken first, so that the first one is first again.
    for (const [name, event] of this.#leases.all().reverse()) this.putBack(name, event)
    this.sweep()
    const wallMs = this.#wallNow() - this.#now()
    const kept = (kind: KeptSource['kind'], stores: ReadonlyMap<string, ChannelStore | QueueStore>): KeptSource[] =>
      [...stores].map(([name, { limits, lastId, events }]) => {
        return { kind, name, limits, lastId, events: events.slice().map(({ text, at }) => ({ text, at: wallMs + at })) }
      })
    return [...kept('channel', this.#channels), ...kept('queue', this.#queues)]
  }

  /** Restores persisted events. Call it before anything is published. */
  restore(sources: readonly KeptSource[]): void {
    const now = this.#now()
    const wallMs = this.#wallNow() - now
    for (const { kind, name, limits, lastId, events } of sources) {
      const store = kind === 'channel' ? this.#use(this.#channels, name) : this.#use(this.#queues, name)
      store.limits = limits
      store.lastId = lastId
      const firstId = lastId - events.length + 1
      // If the clock was set back, an event from the future counts as published now.
      events.forEach(({ text, at }, index) => {
        store.events.push({ id: firstId + index, text, at: Math.min(now, at - wallMs), left: 0, lease: undefined })
      })
    }
  }

  close(): void {
    this.#leases.close()
    this.#channels.clear()
    this.#queues.clear()
  }

  #trim(queue: QueueStore): void {
    this.dropped += queue.trim(queue.usedAt)
  }

  /** The store of a name, created on first use. */
  #use<E extends { readonly at: number }, G extends unknown[]>(stores: Map<string, Store<E, G>>, name: string) {
    let store = stores.get(name)
    if (store === undefined) {
      store = new Store()
      store.lastId = Math.max(this.#wallNow() * 1000 - 1, this.#highestForgotten)
      stores.set(name, store)
    }
    store.usedAt = this.#now()
    return store
  }
}
