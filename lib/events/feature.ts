/**
 * The context members for events: `channel(name)`, `queue(name)`, the replies `longPoll` and `sse` that wait for their
 * events, `live`, which is either of them, and `hold`, which waits for work of the application.
 */
import type { HoldOptions, LongPollOptions, SseOptions } from 'svc'
import type { CoreContext as Context } from '../http/context.ts'
import type { Feature } from '../http/features.ts'
import type { Channel } from './channel.ts'
import type { Events } from './events.ts'
import { hold, type HeldWork } from './hold.ts'
import { longPoll } from './long-poll.ts'
import type { Queue } from './queue.ts'
import { sse } from './sse.ts'

const streamType = /\btext\/event-stream\b/i

/** Makes the feature for one server. */
export function eventsFeature({ channel, queue, checkCacheControl }: Events): Feature {
  const makeLongPoll = (ctx: Context) => (source: Channel | Queue, options?: LongPollOptions) => {
    checkCacheControl(ctx)
    return (ctx.reply = longPoll(ctx, source, options))
  }
  const makeSse = (ctx: Context) => (source: Channel, options?: SseOptions) => {
    checkCacheControl(ctx)
    return (ctx.reply = sse(ctx, source, options))
  }
  // For `/svc-live.js` and other clients of a live page: a stream when they accept its type, else a poll.
  const makeLive = (ctx: Context) => (source: Channel) =>
    streamType.test(ctx.header('accept') ?? '') ? makeSse(ctx)(source) : makeLongPoll(ctx)(source)
  const makeHold = (ctx: Context) => (work: HeldWork, options?: HoldOptions) => (ctx.reply = hold(ctx, work, options))
  return {
    name: 'events',
    members: [
      { name: 'channel', make: () => channel },
      { name: 'queue', make: () => queue },
      { name: 'longPoll', make: makeLongPoll },
      { name: 'sse', make: makeSse },
      { name: 'live', make: makeLive },
      { name: 'hold', make: makeHold },
    ],
  }
}
