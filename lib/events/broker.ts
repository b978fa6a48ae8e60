/**
 * The contract of an event broker: where the events of channels and queues lie between those who make them and those
 * who wait. A channel gives each event to everybody, a queue gives each event to one taker.
 *
 * An event's content is a text on one line (`channel.ts` and `queue.ts` write JSON), which the broker does not look
 * into. Every function may answer at once or with a promise. Channels and queues are made by their first use, and the
 * two have names of their own: a channel and a queue may have the same.
 *
 * What holds for every broker, however many processes use it at the same time:
 *
 * 1. The ids of a channel are integers from 1 to below 2^53 that grow from event to event, whichever process published.
 *    None is given twice, also not after a restart of a process or of the broker, as long as the clock is not set back.
 * 2. `publish` and `push` answer when the event is kept: who reads or takes afterwards finds it, in every process. A
 *    process that dies keeps what its broker can keep; the one in memory keeps nothing.
 * 3. `read` gives the events after `since` without a hole, the oldest first, or says that there is one: `gap`. It is
 *    true where an event after `since` may have been dropped, and where `since` is ahead of the newest id.
 * 4. A listener of a channel hears each event that was published after `subscribe` answered, once, in the order of ids.
 *    A broker that was cut off from its other processes reads what it missed before it goes on; where that is no longer
 *    all there, the next event has `gap`.
 * 5. `take` gives an event to one taker alone, in the order of `push`. What was taken is either put back, and is the
 *    next to be taken then, or `handedOut`. What a process had taken when it died is lost: it may have been sent.
 * 6. A listener of a queue hears of every `push` and `putBack`, of whichever process, some time after it. It may hear
 *    of several at once, and in vain: another may have taken the event.
 * 7. Not more than `maxEvents` events of a source are kept, and none for longer than `maxAgeMs`; the oldest go first.
 *    Those that fall out of a queue are counted, since nobody has had them.
 * 8. Listeners are not called before the function that caused it has answered, or are called within it; they do not
 *    throw. Once `unsubscribe` was called nothing more is heard.
 * 9. What fails rejects or throws, and leaves what was there before. Nothing is done twice: where nobody knows whether
 *    a `publish` or `push` was done, it has failed and was done or not. A `take` that failed has taken nothing in the
 *    end.
 * 10. A broker that cannot reach its other processes says so (`onCutOff`), and again when it can. In between its calls
 *    fail and nothing is heard; subscriptions stay.
 */
import type { MaybePromise } from '../base/maybe-promise.ts'

/** An event of a channel. */
export interface ChannelEvent {
  readonly id: number
  /** Its content, on one line. */
  readonly text: string
  /** As it is heard: events before it may have been missed. */
  readonly gap?: true
}

/** An event of a queue, as the broker made it: what is put back must be what was taken. */
export interface QueueEvent {
  /** Its content, on one line. */
  readonly text: string
  /** How many events there were behind it when it was taken. */
  readonly left: number
}

/** What a channel has after an id. */
export interface ChannelRead {
  /** The events, the oldest first. Where there is a gap, all that there are. */
  readonly events: readonly ChannelEvent[]
  /** The id of the newest event that there was; with none yet, the one before the first. */
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
  /** Publishes in a channel. Returns the event's id. The limits of the last call hold. */
  publish(channel: string, text: string, limits: SourceLimits): MaybePromise<number>
  /** The events after an id, any number from 0; undefined: none, only `lastId`. */
  read(channel: string, since: number | undefined): MaybePromise<ChannelRead>
  /** Calls the listener with every event from now on. */
  subscribe(channel: string, listener: (event: ChannelEvent) => void): MaybePromise<Unsubscribe>

  /** Appends to a queue. The limits of the last call hold. */
  push(queue: string, text: string, limits: SourceLimits): MaybePromise<void>
  /** Takes the oldest event; undefined: there is none. */
  take(queue: string): MaybePromise<QueueEvent | undefined>
  /** Gives back what was taken and could not be handed out. Its age is still that from its `push`. */
  putBack(queue: string, event: QueueEvent): MaybePromise<void>
  /** What was taken will not be put back. */
  handedOut(queue: string, event: QueueEvent): void
  /** Calls the listener when there may be something to take. */
  onAvailable(queue: string, listener: () => void): MaybePromise<Unsubscribe>

  /**
   * Calls the listener with the reason when the broker is cut off, with undefined when it no longer is. The reason is
   * what a request that needs it is to be answered with.
   */
  onCutOff(listener: (reason: Error | undefined) => void): void

  /** Events that fell out of queues before anybody took them, as far as this process knows. */
  readonly dropped: number
  /** Called about once a minute: lets go of events that are too old, and of sources that nobody uses. Does not fail. */
  sweep(): MaybePromise<void>
  /** Lets go of everything. */
  close(): MaybePromise<void>
}
