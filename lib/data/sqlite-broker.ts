/**
 * The broker of durable events, in the SQLite file of a server. What `publish` or `push` has resolved outlives the end
 * of the process; an event of a queue that was on its way to a client when the process ended is delivered again.
 *
 * One process uses it at a time. Times are those of the wall clock. When it is set back, ids keep growing and no event
 * is dropped early; when it is set ahead, events expire early by as much.
 */
import type { MaybePromise } from '../base/maybe-promise.ts'
import type {
  Broker,
  ChannelListener,
  ChannelRead,
  LeaseEnd,
  QueueEvent,
  SourceLimits,
  Unsubscribe,
} from '../events/broker.ts'
import type { Database } from './database.ts'
import { SqliteChannels } from './sqlite-channels.ts'
import { SqliteQueues } from './sqlite-queues.ts'

/** The options of the broker. */
export interface SqliteBrokerOptions {
  /** Stays open when the broker is closed. */
  readonly database: Database
  /** Milliseconds since 1970; by default `Date.now`. */
  readonly now?: () => number
}

/**
 * The broker; see `Broker` for each function. Call `open` first. Functions reject or throw DataError if the file cannot
 * be used.
 */
export class SqliteBroker implements Broker {
  readonly #database: Database
  readonly #channels: SqliteChannels
  readonly #queues: SqliteQueues
  #sweeping: Promise<void> | undefined

  constructor({ database, now = Date.now }: SqliteBrokerOptions) {
    const nowMs = (): number => Math.floor(now()) // Columns of times hold integers.
    this.#database = database
    this.#channels = new SqliteChannels(database, nowMs)
    this.#queues = new SqliteQueues(database, nowMs)
  }

  /** Makes the events that an earlier run had taken available again. Rejects with DataError if it cannot. */
  open(): Promise<void> {
    return this.#queues.open()
  }

  publish(channel: string, text: string, limits: SourceLimits): Promise<number> {
    return this.#channels.publish(channel, text, limits)
  }

  read(channel: string, since: number | undefined): MaybePromise<ChannelRead> {
    return this.#channels.read(channel, since)
  }

  subscribe(channel: string, listener: ChannelListener): Unsubscribe {
    return this.#channels.subscribe(channel, listener)
  }

  push(queue: string, text: string, limits: SourceLimits): Promise<void> {
    return this.#queues.push(queue, text, limits)
  }

  take(queue: string, leaseMs?: number): Promise<QueueEvent | undefined> {
    return this.#queues.take(queue, leaseMs)
  }

  /** Puts an event back. If this rejects, a later sweep repeats it. */
  putBack(queue: string, event: QueueEvent): Promise<void> {
    return this.#queues.putBack(queue, event)
  }

  handedOut(queue: string, event: QueueEvent): void {
    this.#queues.handedOut(queue, event)
  }

  endLease(queue: string, lease: string, end: LeaseEnd): Promise<boolean> {
    return this.#queues.endLease(queue, lease, end)
  }

  onAvailable(queue: string, listener: () => void): Unsubscribe {
    return this.#queues.onAvailable(queue, listener)
  }

  /** No-op: the file is in the same machine. */
  onCutOff(): void {}

  get dropped(): number {
    return this.#queues.dropped
  }

  /** Works in small transactions, one after the other. A second call during a sweep waits for that one. */
  sweep(): Promise<void> {
    // The database has logged a failure; the next sweep may work.
    this.#sweeping ??= this.#sweep().catch(() => {}).finally(() => (this.#sweeping = undefined))
    return this.#sweeping
  }

  /** Ends all subscriptions. Resolves when the calls so far are written or have failed. */
  async close(): Promise<void> {
    this.#channels.close()
    this.#queues.close()
    await this.#database.write(() => {}).catch(() => {}) // The callers of the writes learn of a failure.
  }

  async #sweep(): Promise<void> {
    await this.#queues.repeatEnds()
    for (let name: string | undefined = ''; name !== undefined;) {
      const previous: string = name
      name = await this.#database.write(() => this.#channels.sweepPart(previous))
    }
    for (let name: string | undefined = ''; name !== undefined;) {
      const previous: string = name
      const { reached, dropped } = await this.#database.write(() => this.#queues.sweepPart(previous))
      this.#queues.dropped += dropped
      name = reached
    }
  }
}
