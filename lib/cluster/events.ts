/**
 * The events of a server with several processes. The primary keeps them in two brokers, one in memory and one for
 * durable events, which order them for all workers. Each listener in a worker is a subscription in the primary, under a
 * number that the worker chose.
 *
 * An event of a channel reaches a worker before the answer to the call that published it, in the same message. The
 * worker therefore calls listeners at the end of the turn: code that awaits the answer runs earlier, in a microtask.
 */
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import type {
  Broker,
  ChannelListener,
  ChannelRead,
  LeaseEnd,
  QueueEvent,
  SourceLimits,
  Unsubscribe,
} from '../events/broker.ts'
import { Calls } from '../events/calls.ts'
import { DisconnectedError, type Peer } from './peer.ts'
import { remote, serve, type Remote } from './remote.ts'

/** The brokers of the primary: `events` in memory, `durable` in the database. Their messages begin with these names. */
type BrokerName = 'events' | 'durable'

/** The functions that the primary serves. */
interface Served {
  publish(channel: string, text: string, limits: SourceLimits): MaybePromise<number>
  read(channel: string, since: number | null): MaybePromise<ChannelRead>
  subscribe(channel: string, listener: number): MaybePromise<void>
  push(queue: string, text: string, limits: SourceLimits): MaybePromise<void>
  take(queue: string, leaseMs: number | null): MaybePromise<QueueEvent | undefined>
  endLease(queue: string, lease: string, end: LeaseEnd): MaybePromise<boolean>
  putBack(queue: string, event: QueueEvent): MaybePromise<void>
  /** Only of the broker `durable`: the other one keeps no copy of a taken event. */
  handedOut(queue: string, event: QueueEvent): void
  listen(queue: string, listener: number): MaybePromise<void>
  /** Ends a subscription of either kind. */
  leave(listener: number): void
}

/** A broker of a worker; one of each name for each peer. */
export class ClusterBroker implements Broker {
  /** The primary counts what its queues drop. */
  readonly dropped = 0
  readonly #peer: Peer
  readonly #name: BrokerName
  readonly #primary: Remote<Served>
  readonly #calls = new Calls()
  readonly #channels = new Map<number, ChannelListener>()
  readonly #queues = new Map<number, () => void>()
  #listeners = 0
  #heard: Heard[] = []

  constructor(peer: Peer, name: BrokerName = 'events') {
    this.#peer = peer
    this.#name = name
    this.#primary = remote<Served>(peer, name)
    peer.on(`${name}.heard`, (heard) => {
      if (!isHeard(heard)) throw new TypeError('Ignored a damaged event from the primary')
      const count = this.#heard.push(heard)
      if (count === 1) setImmediate(() => this.#callListeners())
    })
    // An unknown number has no listener.
    peer.on(`${name}.available`, (listener) => this.#queues.get(listener as number)?.())
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

  take(queue: string, leaseMs?: number): Promise<QueueEvent | undefined> {
    return this.#calls.run(() => this.#primary.take(queue, leaseMs ?? null))
  }

  endLease(queue: string, lease: string, end: LeaseEnd): Promise<boolean> {
    return this.#calls.run(() => this.#primary.endLease(queue, lease, end))
  }

  putBack(queue: string, event: QueueEvent): Promise<void> {
    return this.#calls.run(() => this.#primary.putBack(queue, event))
  }

  handedOut(queue: string, event: QueueEvent): void {
    if (this.#name === 'events') return
    // If it does not arrive, the event is delivered again.
    void this.#calls.run(() => this.#primary.handedOut(queue, event)).catch(() => {})
  }

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
export function hostBroker(broker: Broker, name: BrokerName = 'events') {
  const timer = setInterval(() => void broker.sweep(), sweepEveryMs).unref()
  return {
    /** Serves a worker until its channel closes. Call it once, before the first message of the worker arrives. */
    attach: (peer: Peer): void => {
      const subscriptions = new Map<number, Unsubscribe>()
      /** Durable events that the worker has taken, by its text: they are put back when it ends. */
      const taken = new Map<string, readonly [queue: string, event: QueueEvent]>()
      const keyOf = (queue: string, event: QueueEvent): string => JSON.stringify([queue, event])
      const subscribed = (listener: number, unsubscribe: Unsubscribe): void => {
        subscriptions.set(listener, unsubscribe)
      }
      serve<Served>(peer, name, {
        publish: (channel, text, limits) => broker.publish(channel, text, limits),
        read: (channel, since) =>
          after(broker.read(channel, since ?? undefined), ({ events, lastId, gap }) => {
            return { events: events.map(({ id, text }) => ({ id, text })), lastId, gap }
          }),
        subscribe: (channel, listener) => {
          // A broker of the primary has no gaps.
          const hear: ChannelListener = (heard) => {
            if (!('gap' in heard)) peer.notify(`${name}.heard`, [listener, heard.id, heard.text])
          }
          return after(broker.subscribe(channel, hear), (unsubscribe) => subscribed(listener, unsubscribe))
        },
        push: (queue, text, limits) => broker.push(queue, text, limits),
        take: (queue, leaseMs) =>
          after(broker.take(queue, leaseMs ?? undefined), (event) => {
            if (event !== undefined && name === 'durable') taken.set(keyOf(queue, event), [queue, event])
            return event
          }),
        endLease: (queue, lease, end) => broker.endLease(queue, lease, end),
        putBack: (queue, event) => {
          taken.delete(keyOf(queue, event))
          return broker.putBack(queue, event)
        },
        handedOut: (queue, event) => {
          taken.delete(keyOf(queue, event))
          broker.handedOut(queue, event)
        },
        listen: (queue, listener) => {
          const hear = (): void => peer.notify(`${name}.available`, listener)
          return after(broker.onAvailable(queue, hear), (unsubscribe) => subscribed(listener, unsubscribe))
        },
        leave: (listener) => {
          subscriptions.get(listener)?.()
          subscriptions.delete(listener)
        },
      })
      void peer.closed.then(async () => {
        for (const unsubscribe of subscriptions.values()) unsubscribe()
        // The newest first: each is put before the others.
        for (const [queue, event] of [...taken.values()].reverse()) await broker.putBack(queue, event)
      })
    },
    /** Events that queues dropped. */
    get dropped(): number {
      return broker.dropped
    },
    sweep: (): MaybePromise<void> => broker.sweep(),
    /** Stops sweeping and closes the broker. */
    close: async (): Promise<void> => {
      clearInterval(timer)
      await broker.close()
    },
  }
}
