/**
 * A channel: each event goes to everybody who listens, polls and streams of clients as well as functions of the server.
 *
 * Surprise: those who wait are served together, once a turn of the event loop, with all that was published in it. They
 * are woken by the broker's call and never read it, but for those who come late (`#admit`).
 */
import type { StreamReply } from '../http/reply.ts'
import { ParkedReply } from '../http/parked.ts'
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import type { ChannelEvent, ChannelRead, SourceLimits, Unsubscribe } from './broker.ts'
import { EventForms } from './event-forms.ts'
import { Listeners, type HeardEvent } from './listeners.ts'
import { retryMs, textOf, type SourceParts } from './source.ts'
import { WaitList } from './wait-list.ts'

/** What waits for events of a channel. */
export abstract class ChannelWaiter extends ParkedReply {
  /** The id of the last event that its client has. */
  abstract readonly cursor: number
  /** Gives it events, the oldest first; the first ones may be known to it, unless there is a gap before them. */
  abstract wake(read: ChannelRead): void
  /** The broker failed. */
  abstract broken(error: unknown): void
  /** The broker is cut off: its wait ends, as at the end of its time. */
  abstract cutOff(): void
}

/** A stream of a client. */
export interface ChannelStream extends ChannelWaiter {
  /** Sends a comment. */
  beat(): void
}

export class Channel {
  readonly name: string
  /** How what is sent is made; for polls and streams. */
  readonly forms = new EventForms()
  readonly parts: SourceParts
  readonly limits: SourceLimits
  readonly #polls = new WaitList<ChannelWaiter>()
  readonly #streams = new WaitList<ChannelStream>()
  readonly #listeners: Listeners
  #heard: ChannelEvent[] = []
  /** Whether the broker's subscription stands, or the promise of it. */
  #listening: boolean | Promise<void> = false
  #unsubscribe: Unsubscribe | undefined = undefined
  #tip = 0
  /** Polls that are about to wait. */
  #arriving = 0
  /** Set while listeners wait for another attempt to subscribe. */
  #retry: NodeJS.Timeout | undefined = undefined

  /** Made by `events.ts`. */
  constructor(name: string, limits: SourceLimits, parts: SourceParts) {
    this.name = name
    this.limits = limits
    this.parts = parts
    this.#listeners = new Listeners((error) => parts.report(`channel "${name}": a listener failed`, error))
  }

  /**
   * Publishes a JSON value to everybody.
   * @returns the event's id: a number with the local broker, a promise of it with one elsewhere. That it rejects is
   *   logged, so nobody has to wait for it
   * @throws TypeError for what JSON cannot hold
   */
  publish(value: unknown): MaybePromise<number> {
    const text = textOf(`channel "${this.name}"`, value)
    const published = after(this.parts.broker.publish(this.name, text, this.limits), (id) => {
      this.parts.counts.published += 1
      return id
    })
    return this.parts.noting(`channel "${this.name}": an event was not published`, published)
  }

  /**
   * Calls a function with each event from now on, in order, at the end of the turn in which it was published. What it
   * throws is logged. With a broker elsewhere it hears of events a moment after this call.
   * @returns what ends it
   * @throws TypeError when the listener is no function
   */
  subscribe(listener: (event: HeardEvent) => unknown): Unsubscribe {
    if (typeof listener !== 'function') {
      const what = `the listener must be a function: it is of type ${typeof listener}`
      throw new TypeError(`Cannot subscribe to channel "${this.name}": ${what}`)
    }
    const unsubscribe = this.#listeners.add(listener, this.#tip)
    this.#listenOn()
    return unsubscribe
  }

  /** The id of the newest event; before the first one, the id before it. */
  get last_id(): MaybePromise<number> {
    return after(this.read(undefined), ({ lastId }) => lastId)
  }

  // ---- for polls and streams ----

  /** The newest id that was heard of, once `listen` has resolved. */
  get tip(): number {
    return this.#tip
  }

  /** Throws why the broker is cut off, where it is. */
  checkReach(): void {
    if (this.parts.cutOff !== undefined) throw this.parts.cutOff
  }

  /** The events after an id. */
  read(since: number | undefined): MaybePromise<ChannelRead> {
    return this.parts.broker.read(this.name, since)
  }

  /** The answer to a poll with these events. */
  answerWith(read: ChannelRead): StreamReply {
    this.parts.counts.delivered += read.events.length
    return this.forms.poll(read)
  }

  /** Lets a poll wait. */
  join(poll: ChannelWaiter): void {
    if (this.parts.cutOff !== undefined) poll.cutOff()
    else if (this.#listening === true && this.#tip <= poll.cursor) this.#polls.add(poll)
    else void this.#admit(poll)
  }

  /** A poll waits no longer. */
  leave(poll: ChannelWaiter): void {
    this.#polls.remove(poll)
  }

  /** Wakes a stream from now on. It reads what is older itself. */
  joinStream(stream: ChannelStream): void {
    if (this.#streams.isEmpty) this.parts.heartbeat.add(this)
    this.#streams.add(stream)
  }

  /** A stream has ended. */
  leaveStream(stream: ChannelStream): void {
    this.#streams.remove(stream)
    if (this.#streams.isEmpty) this.parts.heartbeat.remove(this)
  }

  /** Sends each stream a comment. */
  beat(): void {
    for (const stream of this.#streams.all()) stream.beat()
  }

  /** Resolves when the broker's events are heard; rejects when it cannot be. */
  async listen(): Promise<void> {
    if (this.#listening === true) return
    this.#listening ||= this.#subscribe()
    await this.#listening
  }

  /** The broker is cut off: all waits end. Functions of the server go on listening. */
  cutOff(): void {
    for (const waiter of [...this.#polls.all(), ...this.#streams.all()]) waiter.cutOff()
  }

  /** Whether nobody waits or listens. */
  get isIdle(): boolean {
    return this.#polls.isEmpty && this.#streams.isEmpty && this.#listeners.isEmpty && this.#arriving === 0
  }

  /** Ends the broker's subscription; the next who waits begins it anew. */
  rest(): void {
    clearTimeout(this.#retry)
    this.#retry = undefined
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    this.#listening = false
    this.#tip = 0
    this.forms.clear()
  }

  /** Lets go of everything. */
  close(): void {
    this.#listeners.clear()
    this.rest()
  }

  /** Sees to it that the listeners hear, now or when the broker can be reached. */
  #listenOn(): void {
    this.listen().catch((error: unknown) => {
      this.parts.report(`channel "${this.name}" could not be subscribed to`, error)
      this.#retry ??= setTimeout(() => {
        this.#retry = undefined
        if (!this.#listeners.isEmpty) this.#listenOn()
      }, retryMs).unref()
    })
  }

  async #subscribe(): Promise<void> {
    try {
      const subscribed = this.parts.broker.subscribe(this.name, (event) => this.#hear(event))
      this.#unsubscribe = subscribed instanceof Promise ? await subscribed : subscribed
      const { lastId } = await this.read(undefined)
      this.#tip = Math.max(this.#tip, lastId)
      this.#listening = true
    } catch (error) {
      this.rest()
      throw error
    }
  }

  /** Lets a poll wait that came while the subscription was made, or before an event that it did not read. */
  async #admit(poll: ChannelWaiter): Promise<void> {
    this.#arriving += 1
    try {
      await this.listen()
      while (!poll.isOver && this.#tip > poll.cursor) {
        const read = await this.read(poll.cursor)
        if (poll.isOver) return
        if (read.gap || read.events.length > 0) return poll.wake(read)
      }
      if (!poll.isOver) this.join(poll)
    } catch (error) {
      poll.broken(error)
    } finally {
      this.#arriving -= 1
    }
  }

  #hear(event: ChannelEvent): void {
    this.#tip = event.id
    if (this.isIdle) return
    this.#heard.push(event)
    if (this.#heard.length === 1) setImmediate(() => this.#wakeAll())
  }

  #wakeAll(): void {
    const heard = this.#heard
    this.#heard = []
    const gapAt = heard.findLastIndex((event) => event.gap)
    const events = heard.slice(Math.max(0, gapAt)) // Who has a gap needs nothing from before it.
    const firstId = (events[0] as ChannelEvent).id // There is one.
    const lastId = (events[events.length - 1] as ChannelEvent).id // As above.
    const plain = { events, lastId, gap: false }
    const holed = { events, lastId, gap: true }
    for (const waiter of [...this.#polls.all(), ...this.#streams.all()]) {
      try {
        // Who has read beyond the gap has been told of it, or had no need to be.
        waiter.wake(gapAt >= 0 && waiter.cursor < firstId ? holed : plain)
      } catch (error) {
        this.parts.report(`channel "${this.name}": an event could not be handed to one that waited`, error)
      }
    }
    this.#listeners.tell(heard)
  }
}
