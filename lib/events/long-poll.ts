/**
 * Long polls: a GET that is answered when there is an event, or empty when its time is over.
 *
 * Surprise: the answer goes out as it is, never compressed: one body serves all that wait, and to compress it for each
 * would cost more than it saves.
 */
import type { CoreContext as Context } from '../http/context.ts'
import type { StreamReply } from '../http/reply.ts'
import { ParkedReply, type EndReason } from '../http/parked.ts'
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import type { ChannelRead, QueueEvent } from './broker.ts'
import { Channel, ChannelWaiter } from './channel.ts'
import { readSince } from './cursor.ts'
import { eventsAfter, jsonAnswer } from './event-forms.ts'
import { Queue, QueueWaiter } from './queue.ts'
import { checkOptions, checkTimeout } from './source.ts'

/** How a poll is answered. */
export interface LongPollOptions {
  /** Seconds from 0 after which it is answered empty; 30 unless given. */
  readonly timeout_s?: number
  /**
   * Of a queue `simple`, `{ok: true, event}`, unless given; or `typed`, `{type: 'event', data}` and `{type: 'idle'}`.
   * Of a channel `cursor`, `{events: [{id, data}], last_id}`.
   */
  readonly form?: 'simple' | 'typed' | 'cursor'
}

const defaultTimeoutSeconds = 30
const queueForms = ['simple', 'typed'] as const
const channelForms = ['cursor'] as const
const optionNames = ['timeout_s', 'form']

/** What an empty answer to a poll of a queue is. */
const noEvent = { simple: jsonAnswer('{"ok":true,"event":null}'), typed: jsonAnswer('{"type":"idle"}') }

/**
 * Makes the reply that waits for events.
 * @param source a channel, read from the query's `since`, or a queue
 * @throws TypeError for another source and for wrong options
 * @throws HttpError 400 `bad_cursor` when `since` is no whole number from 0
 */
export function longPoll(ctx: Context, source: Channel | Queue, options: LongPollOptions = {}): ParkedReply {
  const what = 'a long poll'
  checkOptions(what, options, optionNames)
  const timeoutMs = checkTimeout(`open ${what}`, options.timeout_s ?? defaultTimeoutSeconds)
  if (source instanceof Channel) {
    checkForm(channelForms, options.form)
    return new ChannelPoll(ctx, timeoutMs, source)
  }
  if (source instanceof Queue) {
    return new QueuePoll(ctx, timeoutMs, source, checkForm(queueForms, options.form) ?? 'simple')
  }
  throw new TypeError(`Cannot open ${what}: its source must be a channel or a queue: it is of type ${typeof source}`)
}

function checkForm<F extends string>(forms: readonly F[], form: string | undefined): F | undefined {
  const found = forms.find((one) => one === form)
  if (found !== undefined || form === undefined) return found
  const known = `for this source the form must be ${forms.join(' or ')}`
  throw new TypeError(`Cannot open a long poll: ${known}: it is ${String(form)}`)
}

class ChannelPoll extends ChannelWaiter {
  readonly #channel: Channel
  /** What the client said, then what it is sure to have; undefined: neither yet. */
  #cursor: number | undefined

  constructor(ctx: Context, timeoutMs: number, channel: Channel) {
    super(ctx, timeoutMs)
    this.#channel = channel
    this.#cursor = readSince(ctx)
  }

  get kind() {
    return 'longpoll' as const
  }

  get cursor(): number {
    return this.#cursor ?? 0
  }

  ready(): MaybePromise<StreamReply | undefined> {
    this.#channel.checkReach()
    return after(this.#channel.read(this.#cursor), (read) => {
      this.#cursor ??= read.lastId
      return read.gap || read.events.length > 0 ? this.#channel.answerWith(read) : undefined
    })
  }

  waiting(): void {
    this.#channel.join(this)
  }

  started(): undefined {}

  wake({ events, lastId, gap }: ChannelRead): void {
    const newer = gap ? events : eventsAfter(events, this.cursor)
    if (newer.length === 0 && !gap) return
    this.#channel.leave(this)
    if (!this.isOver) this.answer(this.#channel.answerWith({ events: newer, lastId, gap }))
  }

  broken(error: unknown): void {
    this.fail(error)
  }

  cutOff(): void {
    this.#channel.leave(this)
    this.answer(this.#channel.answerWith({ events: [], lastId: this.cursor, gap: false }))
  }

  ended(reason: EndReason): MaybePromise<StreamReply | undefined> {
    this.#channel.leave(this)
    if (reason === 'left') return undefined
    const cursor = this.#cursor ?? this.#channel.last_id
    return after(cursor, (lastId) => this.#channel.answerWith({ events: [], lastId, gap: false }))
  }
}

class QueuePoll extends QueueWaiter {
  readonly #queue: Queue
  readonly #form: 'simple' | 'typed'

  constructor(ctx: Context, timeoutMs: number, queue: Queue, form: 'simple' | 'typed') {
    super(ctx, timeoutMs)
    this.#queue = queue
    this.#form = form
  }

  get kind() {
    return 'longpoll' as const
  }

  ready(): MaybePromise<StreamReply | undefined> {
    return this.#queue.takeFor(this)
  }

  waiting(): void {
    this.#queue.join(this)
  }

  started(): undefined {}

  answerWith({ text }: QueueEvent): StreamReply {
    return jsonAnswer(this.#form === 'simple' ? `{"ok":true,"event":${text}}` : `{"type":"event","data":${text}}`)
  }

  deliver(event: QueueEvent): boolean {
    return this.answer(this.answerWith(event))
  }

  cutOff(): void {
    this.#queue.leave(this)
    this.answer(noEvent[this.#form])
  }

  ended(reason: EndReason): StreamReply | undefined {
    this.#queue.leave(this)
    return reason === 'left' ? undefined : noEvent[this.#form]
  }
}
