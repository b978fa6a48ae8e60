/**
 * The events of a server with several processes. They lie in the primary, in a broker in memory, whose order is the
 * order for all workers.
 *
 * An event reaches a worker before the answer of the call that caused it, in the same message. The worker therefore
 * calls listeners at the end of the turn: the code that awaits the answer runs before that, in a microtask.
 */
import type { Broker, ChannelEvent, ChannelRead, QueueEvent, SourceLimits, Unsubscribe } from '../events/broker.ts'
import type { SynchronousBroker } from '../events/local-broker.ts'
import { DisconnectedError, type Peer } from './peer.ts'
import { remote, serve, type Remote } from './remote.ts'

/** The functions that the primary serves. Counts of dropped events are `undefined` for 0, which costs no bytes. */
interface Served {
  publish(channel: string, text: string, limits: SourceLimits): number
  read(channel: string, since: number | null): ChannelRead
  /** Returns the newest id. */
  subscribe(channel: string): number
  unsubscribe(channel: string): void
  push(queue: string, text: string, limits: SourceLimits): number | undefined
  take(queue: string): { readonly event?: QueueEvent | undefined; readonly dropped?: number | undefined }
  putBack(queue: string, event: QueueEvent): number | undefined
  listen(queue: string): void
  unlisten(queue: string): void
}

interface ChannelListener {
  readonly hear: (event: ChannelEvent) => void
  /** The listener gets the events with a greater id. */
  readonly since: number
}

interface QueueListener {
  readonly hear: () => void
}

/** Makes the broker of a worker; one for each peer. */
export function createClusterBroker(peer: Peer): Broker {
  return new ClusterBroker(peer)
}

class ClusterBroker implements Broker {
  readonly #peer: Peer
  readonly #primary: Remote<Served>
  readonly #channels: Subscriptions<ChannelListener>
  readonly #queues: Subscriptions<QueueListener>
  readonly #calls = new Set<Promise<unknown>>()
  #heard: [channel: string, id: number, text: string][] = []
  #available = new Set<string>()
  #isScheduled = false
  #dropped = 0

  constructor(peer: Peer) {
    const primary = remote<Served>(peer, 'events')
    this.#peer = peer
    this.#primary = primary
    this.#channels = new Subscriptions((name) => void primary.unsubscribe(name).catch(() => {}))
    this.#queues = new Subscriptions((name) => void primary.unlisten(name).catch(() => {}))
    peer.on('events.heard', (taken) => {
      this.#heard.push(taken as [string, number, string]) // Sent by the primary.
      this.#schedule()
    })
    peer.on('events.available', (taken) => {
      this.#available.add(taken as string) // As above.
      this.#schedule()
    })
  }

  /** Events dropped by calls of this process; the primary counts those that it sweeps. */
  get dropped(): number {
    return this.#dropped
  }

  publish(channel: string, text: string, limits: SourceLimits): Promise<number> {
    return this.#track(this.#primary.publish(channel, text, inJson(limits)))
  }

  read(channel: string, since: number | undefined): Promise<ChannelRead> {
    // JSON has no Infinity. Every id is below 2^53.
    const from = since === undefined ? null : Math.min(since, Number.MAX_SAFE_INTEGER)
    return this.#track(this.#primary.read(channel, from))
  }

  subscribe(channel: string, hear: (event: ChannelEvent) => void): Promise<Unsubscribe> {
    return this.#channels.add(channel, async () => {
      const since = await this.#track(this.#primary.subscribe(channel))
      return { hear, since }
    })
  }

  async push(queue: string, text: string, limits: SourceLimits): Promise<void> {
    this.#count(await this.#track(this.#primary.push(queue, text, inJson(limits))))
  }

  async take(queue: string): Promise<QueueEvent | undefined> {
    const { event, dropped } = await this.#track(this.#primary.take(queue))
    this.#count(dropped)
    return event
  }

  async putBack(queue: string, event: QueueEvent): Promise<void> {
    this.#count(await this.#track(this.#primary.putBack(queue, event)))
  }

  /** The primary keeps no copy of an event that was taken. */
  handedOut(): void {}

  onAvailable(queue: string, hear: () => void): Promise<Unsubscribe> {
    return this.#queues.add(queue, async () => {
      await this.#track(this.#primary.listen(queue))
      return { hear }
    })
  }

  /** Called at most once: a worker without its primary stops. */
  onCutOff(listener: (reason: Error | undefined) => void): void {
    void this.#peer.closed.then(() => listener(new DisconnectedError('The channel to the primary has closed')))
  }

  /** The primary sweeps. */
  sweep(): void {}

  /** Ends the subscriptions. Resolves when all calls are answered and undelivered events have been put back. */
  async close(): Promise<void> {
    this.#channels.endAll()
    this.#queues.endAll()
    while (this.#calls.size > 0) {
      await Promise.allSettled(this.#calls)
      await new Promise((resolve) => setImmediate(resolve)) // The callers continue before this, and may call again.
    }
  }

  #track<T>(call: Promise<T>): Promise<T> {
    const settled = (): void => void this.#calls.delete(call)
    this.#calls.add(call)
    call.then(settled, settled)
    return call
  }

  #count(dropped: number | undefined): void {
    this.#dropped += dropped ?? 0
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#callListeners())
  }

  #callListeners(): void {
    const heard = this.#heard
    const available = this.#available
    this.#heard = []
    this.#available = new Set()
    this.#isScheduled = false
    for (const [channel, id, text] of heard) {
      for (const { hear, since } of this.#channels.of(channel)) if (id > since) hear({ id, text })
    }
    for (const queue of available) for (const { hear } of this.#queues.of(queue)) hear()
  }
}

/**
 * The listeners of a worker by channel or queue. The primary has one subscription for all listeners of a name, yet it
 * is asked for each of them: its answer separates the events published before from those that follow.
 */
class Subscriptions<L> {
  /** `arriving`: listeners that wait for the primary's answer. */
  readonly #names = new Map<string, { readonly all: Set<L>; arriving: number }>()
  readonly #end: (name: string) => void

  /** @param end called when a name has no more listeners */
  constructor(end: (name: string) => void) {
    this.#end = end
  }

  of(name: string): Iterable<L> {
    return this.#names.get(name)?.all ?? []
  }

  /** @param begin asks the primary and makes the listener from its answer */
  async add(name: string, begin: () => Promise<L>): Promise<Unsubscribe> {
    const listeners = this.#names.get(name) ?? { all: new Set<L>(), arriving: 0 }
    this.#names.set(name, listeners)
    listeners.arriving += 1
    try {
      const listener = await begin()
      listeners.all.add(listener)
      return () => {
        if (listeners.all.delete(listener)) this.#release(name)
      }
    } finally {
      listeners.arriving -= 1
      this.#release(name)
    }
  }

  endAll(): void {
    for (const [name, { all }] of this.#names) {
      all.clear()
      this.#release(name)
    }
  }

  #release(name: string): void {
    const listeners = this.#names.get(name)
    if (listeners === undefined || listeners.all.size > 0 || listeners.arriving > 0) return
    this.#names.delete(name)
    this.#end(name)
  }
}

/** An age may be Infinity, which JSON does not have. */
function inJson({ maxEvents, maxAgeMs }: SourceLimits): SourceLimits {
  return { maxEvents, maxAgeMs: Math.min(maxAgeMs, Number.MAX_VALUE) }
}

/** The primary's side: the events of all workers. */
export interface BrokerHost {
  /** Serves a worker until its channel closes. Call it once, before the first message of the worker arrives. */
  attach(peer: Peer): void
  /** Events that queues dropped apart from calls of workers, which count their own. */
  readonly dropped: number
  /** Drops events that are too old; called once a minute. */
  sweep(): void
  /** Frees everything. */
  close(): void
}

const sweepEveryMs = 60_000

/** Makes the primary's side, over a broker that nobody else uses. */
export function hostBroker(broker: SynchronousBroker): BrokerHost {
  /** Dropped events that workers have counted. */
  let counted = 0
  const timer = setInterval(() => broker.sweep(), sweepEveryMs).unref()

  /** Runs a call and counts the events that it dropped. */
  function counting<T>(work: () => T): { readonly value: T; readonly dropped: number | undefined } {
    const before = broker.dropped
    const value = work()
    const dropped = broker.dropped - before
    counted += dropped
    return { value, dropped: dropped === 0 ? undefined : dropped }
  }

  return {
    attach: (peer) => {
      const channels = new Map<string, Unsubscribe>()
      const queues = new Map<string, Unsubscribe>()
      serve<Served>(peer, 'events', {
        publish: (channel, text, limits) => broker.publish(channel, text, limits),
        read: (channel, since) => {
          const { events, lastId, gap } = broker.read(channel, since ?? undefined)
          return { events: events.map(({ id, text }) => ({ id, text })), lastId, gap }
        },
        subscribe: (channel) => {
          const hear = ({ id, text }: ChannelEvent): void => peer.tell('events.heard', [channel, id, text])
          begin(channels, channel, () => broker.subscribe(channel, hear))
          return broker.read(channel, undefined).lastId
        },
        unsubscribe: (channel) => end(channels, channel),
        push: (queue, text, limits) => counting(() => broker.push(queue, text, limits)).dropped,
        take: (queue) => {
          const { value, dropped } = counting(() => broker.take(queue))
          return { event: value, dropped }
        },
        putBack: (queue, event) => counting(() => broker.putBack(queue, event)).dropped,
        listen: (queue) => {
          const hear = oncePerMessage(() => peer.tell('events.available', queue))
          begin(queues, queue, () => broker.onAvailable(queue, hear))
        },
        unlisten: (queue) => end(queues, queue),
      })
      void peer.closed.then(() => {
        for (const unsubscribe of [...channels.values(), ...queues.values()]) unsubscribe()
      })
    },
    get dropped() {
      return broker.dropped - counted
    },
    sweep: () => broker.sweep(),
    close: () => {
      clearInterval(timer)
      broker.close()
    },
  }
}

function begin(subscriptions: Map<string, Unsubscribe>, name: string, subscribe: () => Unsubscribe): void {
  if (!subscriptions.has(name)) subscriptions.set(name, subscribe())
}

function end(subscriptions: Map<string, Unsubscribe>, name: string): void {
  subscriptions.get(name)?.()
  subscriptions.delete(name)
}

/**
 * Returns a function that calls `call` at most once while one message is handled. The worker is notified after the
 * whole message, so the events that it takes then include all that the message has pushed.
 */
function oncePerMessage(call: () => void): () => void {
  let called = false
  return () => {
    if (called) return
    called = true
    queueMicrotask(() => (called = false))
    call()
  }
}
