/**
 * Server-sent events (HTML Standard, section 9.2): a stream that sends the events of a channel as they are published.
 *
 * A stream begins with its cursor (`id:` without data). A client that loses its connection before the first event sends
 * the cursor when it connects again, and so misses nothing. A stream first catches up: it reads older events from the
 * channel, piece by piece, as fast as the client reads. After that the channel wakes it for each new event.
 */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { CoreContext as Context } from '../http/context.ts'
import { StreamReply } from '../http/reply.ts'
import { ParkedReply, type EndReason } from '../http/parked.ts'
import type { Beating } from '../base/heartbeat.ts'
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import type { ChannelEvent, ChannelRead } from './broker.ts'
import { Channel, type Waiter } from './channel.ts'
import { readStreamStart } from './cursor.ts'
import { eventsAfter } from './event-encoder.ts'
import { LiveEnd } from './live-end.ts'
import { checkOptions, checkTimeout } from './source.ts'

/** The options of `ctx.sse(channel, options)`. */
export interface SseOptions {
  /** Milliseconds until a browser connects again, an integer from 0; 2000 by default. */
  readonly retry_ms?: number
  /** Seconds from 0 until the stream ends, with the time in the queue of the pool; the limit of the pool by default. */
  readonly timeout_s?: number
}

const defaultRetryMs = 2000
const optionNames = ['retry_ms', 'timeout_s']
/** `X-Accel-Buffering: no` stops nginx from buffering the stream. */
const headers = [
  ...['Content-Type', 'text/event-stream; charset=utf-8'],
  ...['Cache-Control', 'no-store'],
  ...['X-Accel-Buffering', 'no'],
]
const comment = new TextEncoder().encode(':\n')
/** While catching up, events of about so many characters are written at once. */
const pieceLength = 65_536

/**
 * Makes the reply that streams a channel: from `Last-Event-ID`, else from the query's `since`, else only new events.
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

function gapFrame(cursor: number, lastId: number): string {
  return `id: ${cursor}\nevent: gap\ndata: {"last_id":${lastId}}\n\n`
}

class SseStream extends ParkedReply implements Waiter, Beating {
  readonly #channel: Channel
  readonly #retryMs: number
  /** The id of the last event that was written; undefined before `ready`. */
  #cursor: number | undefined
  /** Whether the first frame is a gap, since the client's cursor is not known. */
  readonly #isLost: boolean
  #started = false
  #end: LiveEnd | undefined = undefined
  /** Set while older events are read; these include the events that are published in the meantime. */
  #isCatchingUp = true
  /** Bytes of the events that were published while catching up. */
  #pendingBytes = 0

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

  get cursor(): number {
    return this.#cursor ?? 0
  }

  ready(): MaybePromise<undefined> {
    this.#channel.checkReach()
    if (this.#cursor !== undefined) return undefined
    return after(this.#channel.last_id, (lastId) => {
      this.#cursor = lastId
      return undefined
    })
  }

  /** Does nothing: the cursor marks where the stream starts when it has its worker. */
  waiting(): void {}

  started(): StreamReply {
    this.#channel.checkReach()
    return new StreamReply(200, headers, 0, () => this.#begin())
  }

  wake(read: ChannelRead): void {
    if (this.isOver) return
    const { events, gap } = read
    if (gap && !this.#isCatchingUp) this.#writeGap(read) // While catching up, its own read finds the gap.
    const newer = eventsAfter(events, this.cursor)
    if (newer.length === 0) return
    const frames = this.#channel.encoder.frames(newer)
    if (this.#isCatchingUp) {
      this.#pendingBytes += frames.length
      if (this.#pendingBytes > this.#channel.services.maxUnreadBytes) this.#cut()
    } else if (this.#keepsUp()) this.#writeEvents(newer, frames)
  }

  /** Called by the heartbeat: sends a comment, so that proxies keep the connection open. */
  beat(): void {
    if (!this.isOver && !this.#isCatchingUp && this.#keepsUp()) this.#write(comment)
  }

  broken(error: unknown): void {
    if (this.isOver) return
    const { name, services } = this.#channel
    services.logError(`a stream of channel "${name}" was ended: its events could not be read`, error)
    this.cutOff()
  }

  cutOff(): void {
    this.#leave()
    this.#response.end()
    this.answer(undefined)
  }

  ended(reason: EndReason): StreamReply | undefined {
    this.#leave()
    if (reason === 'left') return undefined
    if (this.#started) return void this.#response.end()
    return new StreamReply(200, headers, 0, (response) => response.end(this.#intro()))
  }

  #begin(): void {
    this.#started = true
    this.#write(this.#intro())
    if (this.#isLost) this.#write(gapFrame(this.cursor, this.cursor))
    this.#channel.joinNow(this)
    this.#channel.services.heartbeat.add(this)
    this.#end = new LiveEnd(this.ctx, (event, json) => this.#say(event, json))
    void this.#catchUp()
  }

  /** Sends an event that is none of the channel. */
  #say(event: string, json: string): void {
    if (!this.isOver && this.#keepsUp()) this.#write(Buffer.from(`event: ${event}\ndata: ${json}\n\n`))
  }

  #leave(): void {
    this.#end?.close()
    this.#channel.leave(this)
    this.#channel.services.heartbeat.remove(this)
  }

  #intro(): string {
    const cursor = this.#cursor === undefined ? '' : `id: ${this.#cursor}\n`
    return `retry: ${this.#retryMs}\n${cursor}\n`
  }

  async #catchUp(): Promise<void> {
    try {
      await this.#channel.listen()
      while (!this.isOver && this.#isCatchingUp) {
        const read = await this.#channel.read(this.cursor)
        if (this.isOver) return
        if (read.gap) this.#writeGap(read)
        await this.#writePiece(read.events)
        if (this.cursor < this.#channel.newestId) continue
        this.#isCatchingUp = false
        this.#pendingBytes = 0
      }
    } catch (error) {
      this.broken(error)
    }
  }

  /** Writes a gap and moves the cursor behind the events that are gone. */
  #writeGap({ events, lastId }: ChannelRead): void {
    this.#cursor = events[0] === undefined ? lastId : events[0].id - 1
    this.#write(gapFrame(this.#cursor, lastId))
  }

  /** Writes the first of the events and waits until the client has read enough. */
  async #writePiece(events: readonly ChannelEvent[]): Promise<void> {
    let count = 0
    for (let length = 0; count < events.length && length < pieceLength; count++) {
      length += (events[count] as ChannelEvent).text.length
    }
    if (count === 0) return
    const piece = events.slice(0, count)
    const room = this.#writeEvents(piece, this.#channel.encoder.frames(piece))
    // If the response closes, `drain` never comes: the promise is freed with the response.
    if (!room) await once(this.#response, 'drain')
  }

  #writeEvents(events: readonly ChannelEvent[], frames: Buffer): boolean {
    this.#cursor = (events[events.length - 1] as ChannelEvent).id // The caller gives at least one.
    this.#channel.services.counts.delivered += events.length
    return this.#write(frames)
  }

  /** Whether the client reads fast enough. Cuts the stream when it does not. */
  #keepsUp(): boolean {
    if (this.#response.writableLength <= this.#channel.services.maxUnreadBytes) return true
    this.#cut()
    return false
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
