/**
 * Long polls: a GET that is answered when there is an event, or with an empty response after its timeout.
 *
 * Responses are never compressed: one body serves all waiting clients, and compressing it for each costs more than it
 * saves.
 */
import type { LongPollOptions } from 'svc'
import type { CoreContext as Context } from '../http/context.ts'
import type { StreamReply } from '../http/reply.ts'
import { ParkedReply, type EndReason } from '../http/parked.ts'
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import { maxLeaseMs, type ChannelRead } from './broker.ts'
import { Channel } from './channel.ts'
import { readSince } from './cursor.ts'
import { Follower } from './follow.ts'
import { Queue, QueuePoll } from './queue.ts'
import { checkOptions, checkTimeout } from './source.ts'

const defaultTimeoutSeconds = 30
const optionNames = ['timeout_s', 'form', 'lease_s']

/**
 * Makes the reply that waits for events.
 * @param source a queue, or a channel, which is read starting at the query's `since`
 * @throws TypeError for another source and for wrong options
 * @throws HttpError 400 `bad_cursor` when `since` is not a whole number from 0
 */
export function longPoll(ctx: Context, source: Channel | Queue, options: LongPollOptions = {}): ParkedReply {
  const what = 'a long poll'
  checkOptions(what, options, optionNames)
  const timeoutMs = checkTimeout(`open ${what}`, options.timeout_s ?? defaultTimeoutSeconds)
  const { form } = options
  if (source instanceof Channel) {
    if (form !== undefined && form !== 'cursor') throw wrongForm('cursor', form)
    if (options.lease_s !== undefined) {
      throw new TypeError(`Cannot open ${what}: lease_s is an option of queues: its source is a channel`)
    }
    return new ChannelPoll(ctx, timeoutMs, source)
  }
  if (source instanceof Queue) {
    if (form !== undefined && form !== 'simple' && form !== 'typed') throw wrongForm('simple or typed', form)
    return new QueuePoll(ctx, timeoutMs, source, form ?? 'simple', leaseOf(what, options.lease_s))
  }
  throw new TypeError(`Cannot open ${what}: its source must be a channel or a queue: it is of type ${typeof source}`)
}

/** Returns the option `lease_s` in milliseconds. */
function leaseOf(what: string, seconds: unknown): number | undefined {
  if (seconds === undefined) return undefined
  if (typeof seconds === 'number' && seconds > 0 && seconds * 1000 <= maxLeaseMs) return seconds * 1000
  const range = `a number of seconds above 0, at most ${maxLeaseMs / 1000}`
  throw new TypeError(`Cannot open ${what}: lease_s must be ${range}: it is ${String(seconds)}`)
}

function wrongForm(allowed: string, form: unknown): TypeError {
  return new TypeError(`Cannot open a long poll: for this source the form must be ${allowed}: it is ${String(form)}`)
}

class ChannelPoll extends ParkedReply {
  readonly #channel: Channel
  /** From the query; without one, the newest id when the channel was read. Undefined before that. */
  #cursor: number | undefined
  /** Set while it waits. */
  #follower: Follower | undefined = undefined

  constructor(ctx: Context, timeoutMs: number, channel: Channel) {
    super(ctx, timeoutMs)
    this.#channel = channel
    this.#cursor = readSince(ctx)
  }

  get kind() {
    return 'longpoll' as const
  }

  ready(): MaybePromise<StreamReply | undefined> {
    this.#channel.checkReach()
    return after(this.#channel.read(this.#cursor), (read) => {
      this.#cursor ??= read.lastId
      if (read.events.length === 0 && !read.gap) return undefined
      this.#channel.services.counts.delivered += read.events.length
      return this.#channel.encoder.pollReply(read)
    })
  }

  waiting(): void {
    this.#follower = new Follower(this.#channel, this, this.#cursor, false)
    void this.#follower.begin()
  }

  started(): undefined {}

  ended(reason: EndReason): MaybePromise<StreamReply | undefined> {
    this.#follower?.end()
    if (reason === 'left') return undefined
    return after(this.#cursor ?? this.#channel.last_id, (lastId) => this.#emptyReply(lastId))
  }

  // ---- called by the follower ----

  /** Sends the response. */
  send(read: ChannelRead): boolean {
    this.#follower?.end()
    const lastId = read.events.at(-1)?.id ?? read.lastId // The channel may have more events than these.
    return this.answer(this.#channel.encoder.pollReply({ ...read, lastId }))
  }

  /** No-op: a poll sends one response. */
  async drained(): Promise<void> {}

  /** Ends the wait as a timeout does, or with the error of the broker. */
  stopped(error?: unknown): void {
    if (error === undefined) this.answer(this.#emptyReply(this.#cursor ?? 0))
    else this.fail(error)
  }

  #emptyReply(lastId: number): StreamReply {
    return this.#channel.encoder.pollReply({ events: [], lastId, gap: false })
  }
}
