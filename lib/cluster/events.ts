/**
 * The events of a server with several processes. The primary keeps them in an in-memory broker, which orders them for
 * all workers. Each listener in a worker is a subscription in the primary, under a number that the worker chose.
 *
 * An event of a channel reaches a worker before the answer to the call that published it, in the same message. The
 * worker therefore calls listeners at the end of the turn: code that awaits the answer runs earlier, in a microtask.
 */
import type { Broker, ChannelListener, ChannelRead, QueueEvent, SourceLimits, Unsubscribe } from '../events/broker.ts'
import type { SynchronousBroker } from '../events/local-broker.ts'
import { Calls } from '../events/calls.ts'
import { DisconnectedError, type Peer } from './peer.ts'
import { remote, serve, type Remote } from './remote.ts'

/** The functions that the primary serves. */
interface Served {
  publish(channel: string, text: string, limits: SourceLimits): number
  read(channel: string, since: number | null): ChannelRead
  subscribe(channel: string, listener: number): void
  push(queue: string, text: string, limits: SourceLimits): void
  take(queue: string): QueueEvent | undefined
  putBack(queue: string, event: QueueEvent): void
  listen(queue: string, listener: number): void
  /** Ends a subscription of either kind. */
  leave(listener: number): void
}

/** The broker of a worker; one for each peer. */
export class ClusterBroker implements Broker {
  /** The primary counts what its queues drop. */
  readonly dropped = 0
  readonly #peer: Peer
  readonly #primary: Remote<Served>
  readonly #calls = new Calls()
  readonly #channels = new Map<number, ChannelListener>()
  readonly #queues = new Map<number, () => void>()
  #listeners = 0
  #heard: Heard[] = []

  constructor(peer: Peer) {
    this.#peer = peer
    this.#primary = remote<Served>(peer, 'events')
    peer.on('events.heard', (heard) => {
      if (!isHeard(heard)) throw new TypeError('Ignored a damaged event from the primary')
      const count = this.#heard.push(heard)
      if (count === 1) setImmediate(() => this.#callListeners())
    })
    // An unknown number has no listener.
    peer.on('events.available', (listener) => this.#queues.get(listener as number)?.())
  }

  publish(channel: string, text: string, limits: SourceLimits): Promise<number> {
    return this.#calls.run(() => this.#primary.publish(channel, text, inJson(limits)))
  }

  read(channel: string, since: number | undefined): Promise<ChannelRead> {
    // JSON has no Infinity. Every id is below 2^53.
    const from = since === undefined ? null : Math.min(since, Number.MAX_SAFE_INTEGER)
    return this.#calls.run(() => this.#primary.read(channel, from))
  }

  subscribe(channel: string, hear: ChannelListener): Promise<Unsubscribe> {
    return this.#add(this.#channels, hear, (listener) => this.#primary.subscribe(channel, listener))
  }

  push(queue: string, text: string, limits: SourceLimits): Promise<void> {
    return this.#calls.run(() => this.#primary.push(queue, text, inJson(limits)))
  }

  take(queue: string): Promise<QueueEvent | undefined> {
    return this.#calls.run(() => this.#primary.take(queue))
  }

  putBack(queue: string, event: QueueEvent): Promise<void> {
    return this.#calls.run(() => this.#primary.putBack(queue, event))
  }

  /** No-op: the primary keeps no copy of a taken event. */
  handedOut(): void {}

  onAvailable(queue: string, hear: () => void): Promise<Unsubscribe> {
    return this.#add(this.#queues, hear, (listener) => this.#primary.listen(queue, listener))
  }

  /** Called at most once: a worker without its primary stops. */
  onCutOff(listener: (reason: Error | undefined) => void): void {
    void this.#peer.closed.then(() => listener(new DisconnectedError('The channel to the primary has closed')))
  }

  /** No-op: the primary sweeps. */
  sweep(): void {}

  /** Resolves when all calls are answered and undelivered events are back in their queues. */
  close(): Promise<void> {
    return this.#calls.settled()
  }

  async #add<L>(listeners: Map<number, L>, hear: L, begin: (listener: number) => Promise<void>): Promise<Unsubscribe> {
    const listener = (this.#listeners += 1)
    listeners.set(listener, hear)
    await this.#calls.run(() => begin(listener)).catch((error: unknown) => {
      listeners.delete(listener)
      throw error
    })
    return () => {
      if (listeners.delete(listener)) void this.#primary.leave(listener).catch(() => {})
    }
  }

  #callListeners(): void {
    const heard = this.#heard
    this.#heard = []
    for (const [listener, id, text] of heard) this.#channels.get(listener)?.({ id, text })
  }
}

/** An event for a listener. */
type Heard = readonly [listener: number, id: number, text: string]

function isHeard(value: unknown): value is Heard {
  if (!Array.isArray(value)) return false
  const [listener, id, text] = value as readonly unknown[]
  return typeof listener === 'number' && Number.isSafeInteger(id) && typeof text === 'string'
}

/** An age may be Infinity, which JSON does not have. */
function inJson({ maxEvents, maxAgeMs }: SourceLimits): SourceLimits {
  return { maxEvents, maxAgeMs: Math.min(maxAgeMs, Number.MAX_VALUE) }
}

const sweepEveryMs = 60_000

/** Makes the primary's side, the events of all workers, on top of a broker that has no other user. */
export function hostBroker(broker: SynchronousBroker) {
  const timer = setInterval(() => broker.sweep(), sweepEveryMs).unref()
  return {
    /** Serves a worker until its channel closes. Call it once, before the first message of the worker arrives. */
    attach: (peer: Peer): void => {
      const subscriptions = new Map<number, Unsubscribe>()
      serve<Served>(peer, 'events', {
        publish: (channel, text, limits) => broker.publish(channel, text, limits),
        read: (channel, since) => {
          const { events, lastId, gap } = broker.read(channel, since ?? undefined)
          return { events: events.map(({ id, text }) => ({ id, text })), lastId, gap }
        },
        subscribe: (channel, listener) => {
          // The broker in memory has no gaps.
          const hear: ChannelListener = (heard) => {
            if (!('gap' in heard)) peer.notify('events.heard', [listener, heard.id, heard.text])
          }
          subscriptions.set(listener, broker.subscribe(channel, hear))
        },
        push: (queue, text, limits) => broker.push(queue, text, limits),
        take: (queue) => broker.take(queue),
        putBack: (queue, event) => broker.putBack(queue, event),
        listen: (queue, listener) => {
          subscriptions.set(listener, broker.onAvailable(queue, () => peer.notify('events.available', listener)))
        },
        leave: (listener) => {
          subscriptions.get(listener)?.()
          subscriptions.delete(listener)
        },
      })
      void peer.closed.then(() => {
        for (const unsubscribe of subscriptions.values()) unsubscribe()
      })
    },
    /** Events that queues dropped. */
    get dropped(): number {
      return broker.dropped
    },
    sweep: (): void => void broker.sweep(),
    /** Stops sweeping and closes the broker. */
    close: (): void => {
      clearInterval(timer)
      broker.close()
    },
  }
}
