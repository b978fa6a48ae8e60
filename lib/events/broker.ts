/**
 * The contract of an event broker, which holds the events of channels and queues between publishers and clients. A
 * channel delivers each event to all subscribers, a queue delivers each event to one client.
 *
 * The content of an event is JSON on one line, written by `channel.ts` and `queue.ts`. A broker that gets events from
 * outside this process skips damaged ones: a channel then has a gap, a queue counts them as dropped. Every function may
 * return its result directly or as a promise. A channel or queue exists from its first use. The namespaces are
 * separate: a channel and a queue may have the same name.
 *
 * Every broker guarantees the following, however many processes use it at the same time:
 *
 * 1. The ids of a channel are integers from 1 to below 2^53 and grow from event to event, whichever process publishes.
 *    No id is used twice, even after a restart of a process or of the broker, unless the clock is set back.
 * 2. When `publish` or `push` has returned, the event is stored: every process can read or take it. When a process
 *    dies, the events that its broker can persist stay; the broker in memory keeps none.
 * 3. `read` returns all events after `since`, oldest first, or sets `gap`. `gap` is true when an event after `since`
 *    may have been dropped, and when `since` is ahead of the newest id; then there are no events, since the client may
 *    have them.
 * 4. A listener of a channel gets each event that is published after `subscribe` returned, once, in the order of ids.
 *    A broker that was cut off from the other processes first reads the events it missed; if some of them no longer
 *    exist, the listener gets a gap first. A broker that lost confirmed events reports a gap for every cursor.
 * 5. `take` returns an event to one caller only, in the order of `push`. The caller then calls `putBack`, which makes
 *    it the next event to be taken, or `handedOut`. Events that a process had taken when it died are lost: they may
 *    have been sent.
 * 6. An event that was taken with a lease is not lost when it was handed out: it is the next event to be taken when
 *    its lease ends by time, or by `endLease` with `back`. A process that dies takes no lease with it; the broker in
 *    memory loses them all.
 * 7. A listener of a queue is called after every `push` and `putBack` of any process, and after each lease that ends
 *    without `done`, some time later. One call may cover several events, and the queue may be empty again: another
 *    process may have taken the event.
 * 8. A source keeps at most `maxEvents` events, and none longer than `maxAgeMs`; the oldest are dropped first. Events
 *    that a queue drops are counted, since no client got them.
 * 9. Listeners of a channel are called within the function that causes it or after it has returned; those of a queue at
 *    any time. Listeners do not throw. They are not called after `unsubscribe`.
 * 10. A function that fails rejects or throws, and changes nothing. Nothing is retried: a `publish` or `push` whose
 *    outcome is unknown fails, and may have taken effect. A `take` that failed has eventually taken nothing.
 * 11. A broker that loses its connection to the other processes calls `onCutOff`, and again when it is back. In between
 *    its functions fail and listeners are not called; subscriptions stay.
 */
import type { MaybePromise } from '../base/maybe-promise.ts'

/** An event of a channel. */
export interface ChannelEvent {
  readonly id: number
  /** The content, on one line. */
  readonly text: string
}

/** Notifies a listener that events may be missing up to an id. The events after it have higher ids. */
export interface ChannelGap {
  readonly id: number
  readonly gap: true
}

/** Called with each event of a channel, and with each gap. */
export type ChannelListener = (heard: ChannelEvent | ChannelGap) => void

/** An event of a queue. `putBack` needs the same object that `take` returned. */
export interface QueueEvent {
  readonly text: string
  /** The number of events left in the queue when this one was taken. */
  readonly left: number
  /** The lease under which it was taken, if any: a text that cannot be guessed. */
  readonly lease?: string | undefined
}

/** How a client ends a lease: its work is done, or the event goes back to the queue. */
export type LeaseEnd = 'done' | 'back'

/** The longest lease, in milliseconds: a day. */
export const maxLeaseMs = 86_400_000

/** The events of a channel after an id. */
export interface ChannelRead {
  /** The events, oldest first. With a gap: all that the channel keeps, none when `since` was ahead. */
  readonly events: readonly ChannelEvent[]
  /** The id of the newest event; before the first event, the id before it. */
  readonly lastId: number
  /** Whether events may be missing before these. */
  readonly gap: boolean
}

/** How much a source keeps. */
export interface SourceLimits {
  /** From 1. */
  readonly maxEvents: number
  /** Above 0. */
  readonly maxAgeMs: number
}

/** Ends a subscription; a second call does nothing. */
export type Unsubscribe = () => void

/** A broker. */
export interface Broker {
  /** Publishes an event to a channel. Returns its id. The limits of the last call apply. */
  publish(channel: string, text: string, limits: SourceLimits): MaybePromise<number>
  /** Returns the events after an id, which is any number from 0; undefined: no events, only `lastId`. */
  read(channel: string, since: number | undefined): MaybePromise<ChannelRead>
  /** Calls the listener with every event from now on. */
  subscribe(channel: string, listener: ChannelListener): MaybePromise<Unsubscribe>

  /** Appends an event to a queue. The limits of the last call apply. */
  push(queue: string, text: string, limits: SourceLimits): MaybePromise<void>
  /**
   * Takes the oldest event; undefined when the queue is empty.
   * @param leaseMs takes it with a lease of this time, above 0 and at most {@link maxLeaseMs}
   */
  take(queue: string, leaseMs?: number): MaybePromise<QueueEvent | undefined>
  /** Puts back an event that could not be delivered. Its age still counts from its `push`. */
  putBack(queue: string, event: QueueEvent): MaybePromise<void>
  /** Confirms that a client got the event: it will not be put back, unless its lease ends without `done`. */
  handedOut(queue: string, event: QueueEvent): void
  /** Ends a lease. Returns whether the queue had it, and its time was not over. */
  endLease(queue: string, lease: string, end: LeaseEnd): MaybePromise<boolean>
  /** Calls the listener when the queue may have an event. */
  onAvailable(queue: string, listener: () => void): MaybePromise<Unsubscribe>

  /**
   * Calls the listener with an error when the broker is cut off, and with undefined when it is back. In between,
   * requests that need the broker fail with that error.
   */
  onCutOff(listener: (reason: Error | undefined) => void): void

  /** The number of events that queues dropped before a client took them, as far as this process knows. */
  readonly dropped: number
  /** Drops expired events and unused sources. Called about once a minute; does not fail. */
  sweep(): MaybePromise<void>
  /** Frees everything. */
  close(): MaybePromise<void>
}
