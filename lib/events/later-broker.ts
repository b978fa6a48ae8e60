/** A broker that is opened when it is first used. */
import type { MaybePromise } from '../base/maybe-promise.ts'
import type { Broker, ChannelListener, ChannelRead, LeaseEnd, QueueEvent, SourceLimits, Unsubscribe } from './broker.ts'

/** The broker. A failed opening rejects, and is tried again at the next use. */
export class LaterBroker implements Broker {
  readonly #open: () => Promise<Broker>
  #opening: Promise<Broker> | undefined
  #opened: Broker | undefined
  readonly #cutOffListeners: ((reason: Error | undefined) => void)[] = []

  /** @param open opens the broker */
  constructor(open: () => Promise<Broker>) {
    this.#open = open
  }

  get dropped(): number {
    return this.#opened?.dropped ?? 0
  }

  async publish(channel: string, text: string, limits: SourceLimits): Promise<number> {
    return (await this.#use()).publish(channel, text, limits)
  }

  async read(channel: string, since: number | undefined): Promise<ChannelRead> {
    return (await this.#use()).read(channel, since)
  }

  async subscribe(channel: string, listener: ChannelListener): Promise<Unsubscribe> {
    return (await this.#use()).subscribe(channel, listener)
  }

  async push(queue: string, text: string, limits: SourceLimits): Promise<void> {
    return (await this.#use()).push(queue, text, limits)
  }

  async take(queue: string, leaseMs?: number): Promise<QueueEvent | undefined> {
    return (await this.#use()).take(queue, leaseMs)
  }

  async putBack(queue: string, event: QueueEvent): Promise<void> {
    return (await this.#use()).putBack(queue, event)
  }

  handedOut(queue: string, event: QueueEvent): void {
    this.#opened?.handedOut(queue, event) // It is open: the event was taken.
  }

  async endLease(queue: string, lease: string, end: LeaseEnd): Promise<boolean> {
    return (await this.#use()).endLease(queue, lease, end)
  }

  async onAvailable(queue: string, listener: () => void): Promise<Unsubscribe> {
    return (await this.#use()).onAvailable(queue, listener)
  }

  onCutOff(listener: (reason: Error | undefined) => void): void {
    this.#cutOffListeners.push(listener)
    this.#opened?.onCutOff(listener)
  }

  sweep(): MaybePromise<void> {
    return this.#opened?.sweep()
  }

  async close(): Promise<void> {
    await this.#opening?.catch(() => {}) // Then there is nothing to close.
    await this.#opened?.close()
  }

  async #use(): Promise<Broker> {
    this.#opening ??= this.#open().then((broker) => {
      for (const listener of this.#cutOffListeners) broker.onCutOff(listener)
      return (this.#opened = broker)
    })
    try {
      return await this.#opening
    } catch (error) {
      this.#opening = undefined
      throw error
    }
  }
}
