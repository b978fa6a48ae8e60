/**
 * Server-sent events (HTML Standard, section 9.2): a stream that hands out the events of a channel as they come.
 *
 * Surprise: a stream begins with its cursor (`id:` without data), so that a client which loses its connection before
 * the first event comes back with it, and has what was published meanwhile. What is older than the stream is read from
 * the channel piece by piece, as the client reads it; then the stream is written to when the channel wakes it.
 */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { CoreContext as Context } from '../http/context.ts'
import { StreamReply } from '../http/reply.ts'
import { ParkedReply, type EndReason } from '../http/parked.ts'
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import type { ChannelEvent, ChannelRead } from './broker.ts'
import { Channel, ChannelWaiter, type ChannelStream } from './channel.ts'
import { readStreamStart } from './cursor.ts'
import { eventsAfter } from './event-forms.ts'
import { checkOptions, checkTimeout } from './source.ts'

/** How a stream is sent. */
export interface SseOptions {
  /** How long a browser waits before it connects again, in milliseconds, an integer from 0; 2000 unless given. */
  readonly retry_ms?: number
  /** Seconds from 0 after which it ends, in the queue as well; as long as the pool allows unless given. */
  readonly timeout_s?: number
}

const defaultRetryMs = 2000
const optionNames = ['retry_ms', 'timeout_s']
/** nginx buffers answers unless `X-Accel-Buffering` forbids it. */
const headers = [
  ...['Content-Type', 'text/event-stream; charset=utf-8'],
  ...['Cache-Control', 'no-store'],
  ...['X-Accel-Buffering', 'no'],
]
const comment = new TextEncoder().encode(':\n')
/** About how many characters of older events are written at once. */
const pieceLength = 65_536

/**
 * Makes the reply that streams a channel: from `Last-Event-ID`, else from the query's `since`, else new events alone.
 * @throws TypeError for what is no channel and for wrong options
 * @throws HttpError 400 `bad_cursor` when the cursor is no whole number from 0
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

class SseStream extends ChannelWaiter implements ChannelStream {
  readonly #channel: Channel
  readonly #retryMs: number
  /** The last event that was written; undefined before `ready`. */
  #cursor: number | undefined
  /** Whether the client must be told of a gap first, since nobody knows what it has. */
  readonly #isLost: boolean
  #begun = false
  /** Whether older events are being read: what comes meanwhile is read as well. */
  #behind = true
  /** How many bytes came while it was behind. */
  #owedBytes = 0

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

  /** In the queue its cursor is all it needs. */
  waiting(): void {}

  started(): StreamReply {
    this.#channel.checkReach()
    return new StreamReply(200, headers, 0, () => this.#begin())
  }

  wake(read: ChannelRead): void {
    if (this.isOver) return
    const { events, gap } = read
    if (gap && !this.#behind) this.#tellGap(read) // One that is behind reads, and is told then.
    const newer = eventsAfter(events, this.cursor)
    if (newer.length === 0) return
    const frames = this.#channel.forms.frames(newer)
    if (this.#behind) {
      this.#owedBytes += frames.length
      if (this.#owedBytes > this.#channel.parts.maxUnreadBytes) this.#cut()
    } else if (this.#keepsUp()) this.#writeEvents(newer, frames)
  }

  beat(): void {
    if (!this.isOver && !this.#behind && this.#keepsUp()) this.#write(comment)
  }

  broken(error: unknown): void {
    if (this.isOver) return
    const { name, parts } = this.#channel
    parts.report(`a stream of channel "${name}" was ended: its events could not be read`, error)
    this.cutOff()
  }

  cutOff(): void {
    this.#channel.leaveStream(this)
    this.#response.end()
    this.answer(undefined)
  }

  ended(reason: EndReason): StreamReply | undefined {
    this.#channel.leaveStream(this)
    if (reason === 'left') return undefined
    if (this.#begun) return void this.#response.end()
    return new StreamReply(200, headers, 0, (response) => response.end(this.#intro()))
  }

  #begin(): void {
    this.#begun = true
    this.#write(this.#intro())
    if (this.#isLost) this.#write(gapFrame(this.cursor, this.cursor))
    this.#channel.joinStream(this)
    void this.#catchUp()
  }

  #intro(): string {
    const cursor = this.#cursor === undefined ? '' : `id: ${this.#cursor}\n`
    return `retry: ${this.#retryMs}\n${cursor}\n`
  }

  async #catchUp(): Promise<void> {
    try {
      await this.#channel.listen()
      while (!this.isOver && this.#behind) {
        const read = await this.#channel.read(this.cursor)
        if (this.isOver) return
        if (read.gap) this.#tellGap(read)
        await this.#writePiece(read.events)
        if (this.cursor < this.#channel.tip) continue
        this.#behind = false
        this.#owedBytes = 0
      }
    } catch (error) {
      this.broken(error)
    }
  }

  /** What follows begins after the events that are gone. */
  #tellGap({ events, lastId }: ChannelRead): void {
    this.#cursor = events[0] === undefined ? lastId : events[0].id - 1
    this.#write(gapFrame(this.#cursor, lastId))
  }

  /** Writes the first of the events, and waits until the client has read what it can hold. */
  async #writePiece(events: readonly ChannelEvent[]): Promise<void> {
    let count = 0
    for (let length = 0; count < events.length && length < pieceLength; count++) {
      length += (events[count] as ChannelEvent).text.length
    }
    if (count === 0) return
    const piece = events.slice(0, count)
    const room = this.#writeEvents(piece, this.#channel.forms.frames(piece))
    // Nobody waits in vain: when the response is closed, it and this promise go together.
    if (!room) await once(this.#response, 'drain')
  }

  #writeEvents(events: readonly ChannelEvent[], frames: Buffer): boolean {
    this.#cursor = (events[events.length - 1] as ChannelEvent).id // There is one.
    this.#channel.parts.counts.delivered += events.length
    return this.#write(frames)
  }

  /** Whether the client reads. One that does not is cut. */
  #keepsUp(): boolean {
    if (this.#response.writableLength <= this.#channel.parts.maxUnreadBytes) return true
    this.#cut()
    return false
  }

  #cut(): void {
    const { name, parts } = this.#channel
    parts.counts.slow += 1
    parts.onSlow(`cut a stream of channel "${name}": its client has not read ${parts.maxUnreadBytes} bytes`)
    this.#channel.leaveStream(this)
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
