import type {
  Broker,
  ChannelListener,
  ChannelRead,
  LeaseEnd,
  QueueEvent,
  SourceLimits,
  Unsubscribe,
} from '../../lib/events/broker.ts'
import type { SynchronousBroker } from '../../lib/events/local-broker.ts'

/** An answer that is held back. */
export interface Gate {
  /** Resolves when the work is done and its answer is held back. */
  readonly reached: Promise<void>
  /** Releases the answer. */
  open(): void
}

/**
 * A simulated remote broker: each answer and each event arrives a few turns later. Set `broken` to make every later
 * call fail.
 */
export class DelayedBroker implements Broker {
  readonly #inner: SynchronousBroker
  readonly #gates = new Map<keyof Broker, { reach: () => void; opened: Promise<void> }>()
  readonly #cutOffListeners = new Set<(reason: Error | undefined) => void>()
  broken = false

  constructor(inner: SynchronousBroker) {
    this.#inner = inner
  }

  /** Holds back the answer to the next call of a function. */
  hold(name: keyof Broker): Gate {
    let reach = (): void => {}
    let open = (): void => {}
    const reached = new Promise<void>((resolve) => (reach = resolve))
    const opened = new Promise<void>((resolve) => (open = resolve))
    this.#gates.set(name, { reach, opened })
    return { reached, open }
  }

  get dropped(): number {
    return this.#inner.dropped
  }

  publish(channel: string, text: string, limits: SourceLimits): Promise<number> {
    return this.#later('publish', () => this.#inner.publish(channel, text, limits))
  }

  read(channel: string, since: number | undefined): Promise<ChannelRead> {
    return this.#later('read', () => this.#inner.read(channel, since))
  }

  subscribe(channel: string, listener: ChannelListener): Promise<Unsubscribe> {
    let ended = false
    const heard: ChannelListener = (event) => void turns().then(() => ended || listener(event))
    return this.#later('subscribe', () => {
      const unsubscribe = this.#inner.subscribe(channel, heard)
      return () => {
        ended = true
        unsubscribe()
      }
    })
  }

  push(queue: string, text: string, limits: SourceLimits): Promise<void> {
    return this.#later('push', () => this.#inner.push(queue, text, limits))
  }

  take(queue: string, leaseMs?: number): Promise<QueueEvent | undefined> {
    return this.#later('take', () => this.#inner.take(queue, leaseMs))
  }

  endLease(queue: string, lease: string, end: LeaseEnd): Promise<boolean> {
    return this.#later('endLease', () => this.#inner.endLease(queue, lease, end))
  }

  putBack(queue: string, event: QueueEvent): Promise<void> {
    return this.#later('putBack', () => this.#inner.putBack(queue, event))
  }

  handedOut(queue: string, event: QueueEvent): void {
    this.#inner.handedOut(queue, event)
  }

  onAvailable(queue: string, listener: () => void): Promise<Unsubscribe> {
    let ended = false
    const heard = (): void => void turns().then(() => ended || listener())
    return this.#later('onAvailable', () => {
      const unsubscribe = this.#inner.onAvailable(queue, heard)
      return () => {
        ended = true
        unsubscribe()
      }
    })
  }

  onCutOff(listener: (reason: Error | undefined) => void): void {
    this.#cutOffListeners.add(listener)
  }

  /** Reports that it is cut off, or back. */
  cutOff(reason: Error | undefined): void {
    for (const listener of this.#cutOffListeners) listener(reason)
  }

  sweep(): void {
    this.#inner.sweep()
  }

  async close(): Promise<void> {
    await turns()
    this.#inner.close()
  }

  /** The delay before the work, the work, and the delay after it. */
  async #later<T>(name: keyof Broker, work: () => T): Promise<T> {
    await turns()
    if (this.broken) throw new Error('the broker is not there')
    const result = work()
    const gate = this.#gates.get(name)
    this.#gates.delete(name)
    gate?.reach()
    await gate?.opened
    await turns()
    return result
  }
}

/** Three turns of the event loop. */
export async function turns(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
}
