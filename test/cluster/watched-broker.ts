import type { Unsubscribe } from '../../lib/events/broker.ts'
import type { SynchronousBroker } from '../../lib/events/local-broker.ts'

/** A broker, and the names of its subscriptions in order. */
export interface WatchedBroker {
  readonly broker: SynchronousBroker
  readonly listening: readonly string[]
}

/** Records the subscriptions of a broker. */
export function watched(inner: SynchronousBroker): WatchedBroker {
  const listening: string[] = []
  const listen = (name: string, unsubscribe: Unsubscribe): Unsubscribe => {
    listening.push(name)
    return () => {
      listening.splice(listening.indexOf(name), 1)
      unsubscribe()
    }
  }
  const broker: SynchronousBroker = {
    publish: (channel, text, limits) => inner.publish(channel, text, limits),
    read: (channel, since) => inner.read(channel, since),
    subscribe: (channel, listener) => listen(channel, inner.subscribe(channel, listener)),
    push: (queue, text, limits) => inner.push(queue, text, limits),
    take: (...wanted) => inner.take(...wanted),
    endLease: (...lease) => inner.endLease(...lease),
    putBack: (queue, event) => inner.putBack(queue, event),
    handedOut: (queue, event) => inner.handedOut(queue, event),
    onAvailable: (queue, listener) => listen(queue, inner.onAvailable(queue, listener)),
    get dropped() {
      return inner.dropped
    },
    onCutOff: (listener) => inner.onCutOff(listener),
    sweep: () => inner.sweep(),
    close: () => inner.close(),
  }
  return { broker, listening }
}
