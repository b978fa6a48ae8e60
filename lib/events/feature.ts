/**
 * The context members of events: `channel(name)`, `queue(name)`, the replies `longPoll` and `sse` that wait for their
 * events, and `hold`, which waits for work of the application.
 */
import type { CoreContext as Context } from '../http/context.ts'
import type { Feature } from '../http/features.ts'
import type { ParkedReply } from '../http/parked.ts'
import type { Channel } from './channel.ts'
import type { Events } from './events.ts'
import { hold, type HeldWork, type HoldOptions } from './hold.ts'
import { longPoll, type LongPollOptions } from './long-poll.ts'
import type { Queue } from './queue.ts'
import { sse, type SseOptions } from './sse.ts'
import type { SourceOptions } from './source.ts'

/** The members that events add to the context. */
export interface EventMembers {
  /**
   * Returns the channel with a name; the first use creates it. Each of its events goes to everybody.
   * @throws TypeError for a name that is not a string or is empty, and for wrong options
   * @throws Error when it exists with other options
   */
  readonly channel: (name: string, options?: SourceOptions) => Channel
  /** Returns the queue with a name; each of its events goes to one client. Works and throws as `channel` does. */
  readonly queue: (name: string, options?: SourceOptions) => Queue
  /**
   * Replies when there is an event, or with an empty answer after the time-out.
   * @throws TypeError when the source is not a channel or queue, and for wrong options
   * @throws HttpError 400 `bad_cursor` when the query's `since` is not a whole number from 0
   */
  readonly longPoll: (source: Channel | Queue, options?: LongPollOptions) => ParkedReply
  /**
   * Replies with a stream of a channel's events (`text/event-stream`).
   * @throws TypeError when the source is not a channel, and for wrong options
   * @throws HttpError 400 `bad_cursor` when the query's `since` is used and is not a whole number from 0
   */
  readonly sse: (channel: Channel, options?: SseOptions) => ParkedReply
  /**
   * Replies with the result of work of the application. At the time-out, or when the server stops, the signal aborts;
   * the work can still return until the next turn of the event loop, then the answer is an empty 204. When the client
   * disconnects, the signal aborts and nothing is answered.
   * @throws TypeError when the work is not a function, or `timeout_s` is not a number from 0
   */
  readonly hold: (work: HeldWork, options?: HoldOptions) => ParkedReply
}

/** Makes the feature for one server. */
export function eventsFeature({ channel, queue }: Events): Feature {
  const makeLongPoll = (ctx: Context) => (source: Channel | Queue, options?: LongPollOptions) =>
    (ctx.reply = longPoll(ctx, source, options))
  const makeSse = (ctx: Context) => (source: Channel, options?: SseOptions) => (ctx.reply = sse(ctx, source, options))
  const makeHold = (ctx: Context) => (work: HeldWork, options?: HoldOptions) => (ctx.reply = hold(ctx, work, options))
  return {
    name: 'events',
    members: [
      { name: 'channel', make: () => channel },
      { name: 'queue', make: () => queue },
      { name: 'longPoll', make: makeLongPoll },
      { name: 'sse', make: makeSse },
      { name: 'hold', make: makeHold },
    ],
  }
}
