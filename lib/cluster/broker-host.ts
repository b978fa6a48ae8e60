/**
 * The events of all workers, in the primary: a broker in memory, and a handler for each call that `broker.ts` of a
 * worker makes.
 *
 * Surprise: an event is sent to a worker before the answer of the call that caused it. Both are in one message, and the
 * worker holds the event back until the answer has been dealt with.
 */
import type { QueueEvent, SourceLimits, Unsubscribe } from '../events/broker.ts'
import type { SynchronousBroker } from '../events/local-broker.ts'
import type { Peer } from './peer.ts'

/** The events of all workers. */
export interface BrokerHost {
  /** Serves a worker, until its channel closes; to be called once, before anything has come from it. */
  attach(peer: Peer): void
  /** Events that fell out of queues otherwise than at a call of a worker, which counts those. */
  readonly dropped: number
  /** Lets go of what is too old; done once a minute. */
  sweep(): void
  /** Lets go of everything. */
  close(): void
}

const sweepEveryMs = 60_000

/** Makes the host of a broker, which is used by nobody else. */
export function hostBroker(broker: SynchronousBroker): BrokerHost {
  const host = new Host(broker)
  const timer = setInterval(() => broker.sweep(), sweepEveryMs).unref()
  return {
    attach: (peer) => host.attach(peer),
    get dropped() {
      return broker.dropped - host.counted
    },
    sweep: () => broker.sweep(),
    close: () => {
      clearInterval(timer)
      broker.close()
    },
  }
}

class Host {
  /** How many dropped events workers were told of. */
  counted = 0
  readonly #broker: SynchronousBroker

  constructor(broker: SynchronousBroker) {
    this.#broker = broker
  }

  /** What is taken is what `broker.ts` sends: its types are not looked at again. */
  attach(peer: Peer): void {
    const broker = this.#broker
    const channels = new Map<string, Unsubscribe>()
    const queues = new Map<string, Unsubscribe>()

    peer.on('events.publish', (taken) => {
      const [channel, text, limits] = taken as [string, string, SourceLimits]
      return broker.publish(channel, text, limits)
    })
    peer.on('events.read', (taken) => {
      const [channel, since] = taken as [string, number?]
      const { events, lastId, gap } = broker.read(channel, since)
      return { events: events.map(({ id, text }) => ({ id, text })), lastId, gap }
    })
    peer.on('events.subscribe', (taken) => {
      const channel = taken as string
      begin(channels, channel, () =>
        broker.subscribe(channel, ({ id, text }) => peer.tell('events.heard', [channel, id, text])),
      )
      return broker.read(channel, undefined).lastId
    })
    peer.on('events.unsubscribe', (taken) => end(channels, taken as string))

    peer.on('events.push', (taken) => {
      const [queue, text, limits] = taken as [string, string, SourceLimits]
      return this.#counting(() => broker.push(queue, text, limits)).dropped
    })
    peer.on('events.take', (taken) => {
      const { value, dropped } = this.#counting(() => broker.take(taken as string))
      return { event: value, dropped }
    })
    peer.on('events.putBack', (taken) => {
      const [queue, event] = taken as [string, QueueEvent]
      return this.#counting(() => broker.putBack(queue, event)).dropped
    })
    peer.on('events.listen', (taken) => {
      const queue = taken as string
      begin(queues, queue, () => broker.onAvailable(queue, oncePerMessage(() => peer.tell('events.available', queue))))
    })
    peer.on('events.unlisten', (taken) => end(queues, taken as string))

    void peer.closed.then(() => {
      for (const unsubscribe of [...channels.values(), ...queues.values()]) unsubscribe()
    })
  }

  /** How many events a call dropped; undefined in place of 0, which is not sent. */
  #counting<T>(work: () => T): { value: T; dropped: number | undefined } {
    const before = this.#broker.dropped
    const value = work()
    const dropped = this.#broker.dropped - before
    this.counted += dropped
    return { value, dropped: dropped === 0 ? undefined : dropped }
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
 * Calls a function at the first of several calls in one go. A burst comes in one message, which is handled in one go;
 * what the worker takes then finds all of it, since the worker hears of it when the go is over.
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
