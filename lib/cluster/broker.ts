/**
 * The broker of a worker. The events lie in the primary (`broker-host.ts`), whose order is everybody's order.
 *
 * Surprise: what is heard is held back until the end of the turn. It may have come in one message with the answer of
 * the call that caused it, and who waits for that answer goes on in a microtask: it is before the listeners.
 */
import type { Broker, ChannelEvent, ChannelRead, QueueEvent, SourceLimits, Unsubscribe } from '../events/broker.ts'
import { DisconnectedError, type Peer } from './peer.ts'

interface ChannelListener {
  readonly hear: (event: ChannelEvent) => void
  /** The newest id when it came: what it hears is newer. */
  readonly since: number
}

interface QueueListener {
  readonly hear: () => void
}

/** What listens here to one name; the primary has one subscription for all of it. */
interface Listeners<L> {
  readonly all: Set<L>
  /** How many are about to be added. */
  arriving: number
}

/** Makes the broker of a worker; one a peer, whose other side is attached to a host. */
export function createClusterBroker(peer: Peer): Broker {
  return new ClusterBroker(peer)
}

class ClusterBroker implements Broker {
  readonly #peer: Peer
  readonly #channels: Subscriptions<ChannelListener>
  readonly #queues: Subscriptions<QueueListener>
  readonly #calls = new Set<Promise<unknown>>()
  #heard: [channel: string, id: number, text: string][] = []
  #available = new Set<string>()
  #scheduled = false
  #dropped = 0

  constructor(peer: Peer) {
    this.#peer = peer
    const call = (name: string, taken: unknown): Promise<unknown> => this.#call(name, taken)
    this.#channels = new Subscriptions(call, (name) => peer.tell('events.unsubscribe', name), 'events.subscribe')
    this.#queues = new Subscriptions(call, (name) => peer.tell('events.unlisten', name), 'events.listen')
    peer.on('events.heard', (taken) => {
      this.#heard.push(taken as [string, number, string]) // The host wrote it.
      this.#schedule()
    })
    peer.on('events.available', (taken) => {
      this.#available.add(taken as string) // As above.
      this.#schedule()
    })
  }

  /** Of the calls of this process alone: the host counts what it swept. */
  get dropped(): number {
    return this.#dropped
  }

  publish(channel: string, text: string, limits: SourceLimits): Promise<number> {
    return this.#call('events.publish', [channel, text, inJson(limits)]) as Promise<number>
  }

  read(channel: string, since: number | undefined): Promise<ChannelRead> {
    // JSON has no Infinity. Every id is below 2^53.
    const taken = since === undefined ? [channel] : [channel, Math.min(since, Number.MAX_SAFE_INTEGER)]
    return this.#call('events.read', taken) as Promise<ChannelRead>
  }

  subscribe(channel: string, listener: (event: ChannelEvent) => void): Promise<Unsubscribe> {
    return this.#channels.add(channel, (lastId) => ({ hear: listener, since: lastId as number }))
  }

  async push(queue: string, text: string, limits: SourceLimits): Promise<void> {
    this.#count(await this.#call('events.push', [queue, text, inJson(limits)]))
  }

  async take(queue: string): Promise<QueueEvent | undefined> {
    const { event, dropped } = (await this.#call('events.take', queue)) as { event?: QueueEvent; dropped?: number }
    this.#count(dropped)
    return event
  }

  async putBack(queue: string, event: QueueEvent): Promise<void> {
    this.#count(await this.#call('events.putBack', [queue, event]))
  }

  /** The primary keeps nothing of what was taken. */
  handedOut(): void {}

  onAvailable(queue: string, listener: () => void): Promise<Unsubscribe> {
    return this.#queues.add(queue, () => ({ hear: listener }))
  }

  /** For good: a worker without its primary stops. */
  onCutOff(listener: (reason: Error | undefined) => void): void {
    void this.#peer.closed.then(() => listener(new DisconnectedError('The channel to the primary has closed')))
  }

  /** The host does it for all. */
  sweep(): void {}

  /** Ends the subscriptions, and resolves when all has been answered: an event that was on its way is put back then. */
  async close(): Promise<void> {
    this.#channels.endAll()
    this.#queues.endAll()
    while (this.#calls.size > 0) {
      await Promise.allSettled(this.#calls)
      await new Promise((resolve) => setImmediate(resolve)) // Who waited for an answer goes on before.
    }
  }

  #call(name: string, taken: unknown): Promise<unknown> {
    const call = this.#peer.call(name, taken)
    const settled = (): void => void this.#calls.delete(call)
    this.#calls.add(call)
    call.then(settled, settled)
    return call
  }

  #count(dropped: unknown): void {
    if (dropped !== undefined) this.#dropped += dropped as number // The host wrote it.
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#tellListeners())
  }

  #tellListeners(): void {
    const heard = this.#heard
    const available = this.#available
    this.#heard = []
    this.#available = new Set()
    this.#scheduled = false
    for (const [channel, id, text] of heard) {
      for (const { hear, since } of this.#channels.of(channel)) if (id > since) hear({ id, text })
    }
    for (const queue of available) for (const { hear } of this.#queues.of(queue)) hear()
  }
}

/**
 * What listens here, by channel or queue. The primary is asked for each listener, though it has one subscription for
 * all: its answer says what was published before, and is in one order with what is heard.
 */
class Subscriptions<L> {
  readonly #names = new Map<string, Listeners<L>>()
  readonly #call: (name: string, taken: unknown) => Promise<unknown>
  readonly #end: (name: string) => void
  readonly #begin: string

  /**
   * @param end tells the primary that nobody listens to a name any more
   * @param begin the call for one more who listens
   */
  constructor(call: (name: string, taken: unknown) => Promise<unknown>, end: (name: string) => void, begin: string) {
    this.#call = call
    this.#end = end
    this.#begin = begin
  }

  of(name: string): Iterable<L> {
    return this.#names.get(name)?.all ?? []
  }

  /** @param make makes the listener from the primary's answer */
  async add(name: string, make: (answer: unknown) => L): Promise<Unsubscribe> {
    const listeners = this.#names.get(name) ?? { all: new Set(), arriving: 0 }
    this.#names.set(name, listeners)
    listeners.arriving += 1
    try {
      const listener = make(await this.#call(this.#begin, name))
      listeners.all.add(listener)
      return () => {
        if (listeners.all.delete(listener)) this.#release(name, listeners)
      }
    } finally {
      listeners.arriving -= 1
      this.#release(name, listeners)
    }
  }

  endAll(): void {
    for (const [name, listeners] of this.#names) {
      listeners.all.clear()
      this.#release(name, listeners)
    }
  }

  #release(name: string, listeners: Listeners<L>): void {
    if (listeners.all.size > 0 || listeners.arriving > 0) return
    this.#names.delete(name)
    this.#end(name)
  }
}

/** JSON has no Infinity, and an age may be that. */
function inJson({ maxEvents, maxAgeMs }: SourceLimits): SourceLimits {
  return { maxEvents, maxAgeMs: Math.min(maxAgeMs, Number.MAX_VALUE) }
}
