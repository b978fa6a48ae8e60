/**
 * Server-sent events (HTML Standard, section 9.2): a stream that sends the events of a channel as they are published.
 *
 * A stream begins with its cursor (`id:` without data). A client that loses its connection before the first event sends
 * the cursor when it reconnects, and so misses nothing.
 */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { SseOptions } from 'svc'
import type { CoreContext as Context } from '../http/context.ts'
import { StreamReply } from '../http/reply.ts'
import { ParkedReply, type EndReason } from '../http/parked.ts'
import type { Beating } from '../base/heartbeat.ts'
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import type { ChannelRead } from './broker.ts'
import { Channel } from './channel.ts'
import { readStreamStart } from './cursor.ts'
import { Follower } from './follow.ts'
import { ReplySender } from './reply-sender.ts'
import { checkOptions, checkTimeout } from './source.ts'

const defaultRetryMs = 2000
const optionNames = ['retry_ms', 'timeout_s']
/** `no-transform` keeps gateways from compressing, and so buffering, the stream; the last field does so for nginx. */
const headers = [
  ...['Content-Type', 'text/event-stream; charset=utf-8'],
  ...['Cache-Control', 'no-store, no-transform'],
  ...['X-Accel-Buffering', 'no'],
]
const comment = new TextEncoder().encode(':\n')

/**
 * Makes the reply that streams a channel: from `Last-Event-ID`, else from the query's `since`, else new events only.
 * @throws TypeError when the source is not a channel, and for wrong options
 * @throws HttpError 400 `bad_cursor` when the query's `since` is used and is not a whole number from 0
 */
export function sse(ctx: Context, channel: Channel, options: SseOptions = {}): ParkedReply {
  const what = 'a stream'
  if (!(channel instanceof Channel)) {
    throw new TypeError(`Cannot open ${what}: its source must be a channel: it is of type ${typeof channel}`)
  }
  checkOptions(what, options, optionNames)
  const { retry_ms = defaultRetryMs, timeout_s = Infinity } = options
  if (!Number.isSafeInteger(retry_ms) || retry_ms < 0) {
    throw new TypeError(`Cannot open ${what}: retry_ms must be an integer from 0: it is ${String(retry_ms)}`)
  }
  return new SseStream(ctx, checkTimeout(`open ${what}`, timeout_s), channel, retry_ms)
}

class SseStream extends ParkedReply implements Beating {
  readonly #channel: Channel
  readonly #retryMs: number
  /** Where it begins; undefined before `ready`. */
  #cursor: number | undefined
  /** Whether the first frame is a gap, since the client's cursor is unknown. */
  readonly #isLost: boolean
  /** Set once it has begun. */
  #follower: Follower | undefined = undefined
  #end: ReplySender | undefined = undefined

  constructor(ctx: Context, timeoutMs: number, channel: Channel, retryMs: number) {
    super(ctx, timeoutMs)
    this.#channel = channel
    this.#retryMs = retryMs
    const { cursor, isLost } = readStreamStart(ctx)
    this.#cursor = cursor
    this.#isLost = isLost
  }

  get kind() {
    return 'sse' as const
  }

  ready(): MaybePromise<undefined> {
    this.#channel.checkReach()
    if (this.#cursor !== undefined) return undefined
    return after(this.#channel.last_id, (lastId) => {
      this.#cursor = lastId
      return undefined
    })
  }

  /** No-op: the cursor marks where the stream starts once it has its worker. */
  waiting(): void {}

  started(): StreamReply {
    this.#channel.checkReach()
    return new StreamReply(200, headers, 0, () => this.#begin())
  }

  ended(reason: EndReason): StreamReply | undefined {
    this.#leave()
    if (reason === 'left') return undefined
    if (this.#follower !== undefined) {
      if (reason === 'stop') this.#write(this.#laterRetry())
      return void this.#response.end()
    }
    const last = reason === 'stop' ? this.#laterRetry() : ''
    return new StreamReply(200, headers, 0, (response) => response.end(this.#intro() + last))
  }

  /** Called by the heartbeat: sends a comment, so that proxies keep the connection open. */
  beat(): void {
    if (this.#follower?.isCatchingUp === false) this.#writeIfRead(comment)
  }

  // ---- called by the follower ----

  /** Sends a gap, and events. */
  send({ events, lastId, gap }: ChannelRead): boolean {
    const cursor = events[0] === undefined ? lastId : events[0].id - 1
    if (gap) this.#write(`id: ${cursor}\nevent: gap\ndata: {"last_id":${lastId}}\n\n`)
    return events.length === 0 || this.#writeIfRead(this.#channel.encoder.frames(events))
  }

  /** If the response closes, `drain` never fires: the promise is freed with the response. */
  drained(): Promise<unknown> {
    return once(this.#response, 'drain')
  }

  /** Ends the stream: its client reconnects. */
  stopped(error?: unknown): void {
    const { name, services } = this.#channel
    if (error !== undefined) {
      services.logError(`a stream of channel "${name}" was ended: its events could not be read`, error)
    }
    this.#finish(this.#laterRetry())
  }

  /** Ends the stream, with a last text. */
  #finish(last: string): void {
    this.#leave()
    this.#write(last)
    this.#response.end()
    this.answer(undefined)
  }

  /** A random retry delay, so that streams that end together do not all reconnect together. */
  #laterRetry(): string {
    return `retry: ${Math.round(this.#retryMs * (1 + 2 * Math.random()))}\n\n`
  }

  #begin(): void {
    this.#write(this.#intro())
    this.#follower = new Follower(this.#channel, this, this.#cursor, this.#isLost)
    this.#channel.services.heartbeat.add(this)
    const send: ReplySender['send'] = (event, json) => {
      this.#writeIfRead(Buffer.from(`event: ${event}\ndata: ${json}\n\n`))
    }
    this.#end = new ReplySender(this.ctx, send, () => {
      if (!this.isOver) this.#finish('retry: 0\n\n')
    })
    void this.#follower.begin()
  }

  #leave(): void {
    this.#end?.close()
    this.#follower?.end()
    this.#channel.services.heartbeat.remove(this)
  }

  #intro(): string {
    const cursor = this.#cursor === undefined ? '' : `id: ${this.#cursor}\n`
    return `retry: ${this.#retryMs}\n${cursor}\n`
  }

  /** Writes, or cuts the stream if the client does not read. Returns false if the client has to read first. */
  #writeIfRead(chunk: Uint8Array): boolean {
    if (this.isOver) return true
    if (this.#response.writableLength <= this.#channel.services.maxUnreadBytes) return this.#write(chunk)
    this.#cut()
    return true
  }

  #cut(): void {
    const { name, services } = this.#channel
    services.counts.slow += 1
    services.logSlow(`cut a stream of channel "${name}": its client has not read ${services.maxUnreadBytes} bytes`)
    this.#leave()
    this.#response.destroy()
  }

  #write(chunk: string | Uint8Array): boolean {
    this.ctx.sentBytes += chunk.length
    return this.#response.write(chunk)
  }

  get #response(): ServerResponse {
    return this.ctx.response
  }
}
