/**
 * A channel: each event goes to all listeners, to polls and streams of clients as well as to functions of the server.
 *
 * All waiting clients are served together, once per turn of the event loop, with the events published in that turn,
 * as received by the broker's listener.
 */
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import { reasonOf } from '../base/reason.ts'
import type { ChannelEvent, ChannelGap, ChannelRead, Unsubscribe } from './broker.ts'
import { EventEncoder, eventsAfter } from './event-encoder.ts'
import { Source, textOf } from './source.ts'

/** Waits for events of a channel on behalf of a client (see `Follower`). */
export interface Waiter {
  /** The id of the last event that the client has. */
  readonly cursor: number
  /** Delivers events, oldest first. Without a gap, the first of them may be at or before the cursor. */
  wake(read: ChannelRead): void
  /** Called when the broker is cut off. */
  cutOff(): void
}

/** An event as listeners of the server receive it. */
interface ReceivedEvent {
  readonly id: number
  /** The published value, parsed from JSON. All listeners share it: do not change it. */
  readonly data: unknown
}

interface Listener {
  readonly receive: (event: ReceivedEvent) => unknown
  /** Only events with a higher id are received. */
  readonly sinceId: number
}

/** A channel. Opened with `ctx.channel(name)`. */
export class Channel extends Source {
  /** Encodes events for polls and streams. */
  readonly encoder = new EventEncoder()
  readonly #waiting = new Set<Waiter>()
  readonly #listeners = new Set<Listener>()
  /** Events received in this turn of the event loop. */
  #received: ChannelEvent[] = []
  #gap: ChannelGap | undefined
  #isDelivering = false
  #newestId = 0

  /**
   * Publishes a JSON value to all subscribers.
   * @returns the id of the event: a number with the local broker, a promise of it with others. A rejection is logged,
   *   so the caller need not wait for it
   * @throws TypeError for values that JSON cannot hold
   */
  publish(value: unknown): MaybePromise<number> {
    const { broker, counts, logRejection } = this.services
    const text = textOf(`channel "${this.name}"`, value)
    const published = after(broker.publish(this.name, text, this.limits), (id) => {
      counts.published += 1
      return id
    })
    return logRejection(`channel "${this.name}": an event was not published`, published)
  }

  /**
   * Calls a function with each event from now on, in order, at the end of the turn in which it was published. Errors of
   * the function are logged. With a remote broker, the subscription starts shortly after this call.
   * @returns a function that ends the subscription
   * @throws TypeError when the listener is not a function
   */
  subscribe(listener: (event: ReceivedEvent) => unknown): Unsubscribe {
    if (typeof listener !== 'function') {
      const what = `the listener must be a function: it is of type ${typeof listener}`
      throw new TypeError(`Cannot subscribe to channel "${this.name}": ${what}`)
    }
    const added = { receive: listener, sinceId: this.#newestId }
    this.#listeners.add(added)
    this.listenInBackground()
    return () => void this.#listeners.delete(added)
  }

  /** The id of the newest event; before the first one, the id before it. */
  get last_id(): MaybePromise<number> {
    return after(this.read(undefined), ({ lastId }) => lastId)
  }

  // ---- for polls and streams ----

  /** The newest id that the broker has announced; valid once `listen` has resolved. */
  get newestId(): number {
    return this.#newestId
  }

  /** Returns the events after an id. */
  read(since: number | undefined): MaybePromise<ChannelRead> {
    return this.services.broker.read(this.name, since)
  }

  /** Adds a waiter; `wake` is called with all events from now on. The waiter reads older events itself. */
  join(waiter: Waiter): void {
    this.#waiting.add(waiter)
  }

  /** Removes a waiter. */
  leave(waiter: Waiter): void {
    this.#waiting.delete(waiter)
  }

  /** Ends the waits of clients; listeners of the server stay subscribed. */
  cutOff(): void {
    for (const waiter of [...this.#waiting]) waiter.cutOff()
  }

  get isIdle(): boolean {
    return this.#waiting.size === 0 && this.#listeners.size === 0
  }

  override rest(): void {
    super.rest()
    this.#newestId = 0
    this.encoder.clear()
  }

  override close(): void {
    this.#listeners.clear()
    this.rest()
  }

  protected subscribeToBroker(): MaybePromise<Unsubscribe> {
    return this.services.broker.subscribe(this.name, (heard) => this.#receive(heard))
  }

  protected async onSubscribed(): Promise<void> {
    const { lastId } = await this.read(undefined)
    this.#newestId = Math.max(this.#newestId, lastId)
  }

  protected get failureMessage(): string {
    return `channel "${this.name}" could not be subscribed to`
  }

  #receive(heard: ChannelEvent | ChannelGap): void {
    this.#newestId = heard.id
    if (this.isIdle) return
    if ('gap' in heard) this.#gap = heard
    else this.#received.push(heard)
    if (this.#isDelivering) return
    this.#isDelivering = true
    setImmediate(() => this.#deliver())
  }

  #deliver(): void {
    const received = this.#received
    const gap = this.#gap
    this.#received = []
    this.#gap = undefined
    this.#isDelivering = false
    // A waiter with a gap does not need events before it.
    const events = gap === undefined ? received : eventsAfter(received, gap.id)
    const lastId = events.at(-1)?.id ?? gap?.id ?? this.#newestId
    const withoutGap = { events, lastId, gap: false }
    const withGap = { events, lastId, gap: true }
    for (const waiter of [...this.#waiting]) {
      try {
        // A waiter whose cursor is beyond the gap has read these events itself.
        waiter.wake(gap !== undefined && waiter.cursor < gap.id ? withGap : withoutGap)
      } catch (error) {
        this.services.logError(`channel "${this.name}": an event could not be delivered to a client`, error)
      }
    }
    this.#callListeners(received)
  }

  /** Calls the listeners with each event, which is parsed once. An error of one does not affect the others. */
  #callListeners(events: readonly ChannelEvent[]): void {
    if (this.#listeners.size === 0) return
    for (const { id, text } of events) {
      let data: unknown
      try {
        data = JSON.parse(text)
      } catch (error) {
        this.services.logDamaged(`channel "${this.name}": ignored event ${id}: ${reasonOf(error)}`)
        continue
      }
      const event = { id, data }
      for (const { receive, sinceId } of this.#listeners) if (id > sinceId) this.#callListener(receive, event)
    }
  }

  #callListener(receive: Listener['receive'], event: ReceivedEvent): void {
    const onError = (error: unknown): void =>
      this.services.logError(`channel "${this.name}": a listener failed`, error)
    try {
      const outcome = receive(event)
      if (outcome instanceof Promise) outcome.catch(onError)
    } catch (error) {
      onError(error)
    }
  }
}
