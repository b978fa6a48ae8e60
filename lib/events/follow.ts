/**
 * Follows a channel for a WebSocket: sends each event as text, `{"id", "data"}`, from a cursor on. It first catches up,
 * as fast as the client reads; then the channel wakes it for each new event. While the broker is away it waits, since
 * the connection stays open, and catches up when it is back.
 */
import type { ChannelEvent, ChannelRead } from './broker.ts'
import { Channel, type Waiter } from './channel.ts'
import { eventsAfter } from './event-encoder.ts'

/** The sending side of a connection. */
export interface Sink {
  /** Sends a text; false when the connection is closed, or was cut since its client does not read. */
  send(text: string): boolean
  /** Bytes that the client has not taken yet. */
  readonly bufferedAmount: number
  /** Resolves when the client has taken them, or the connection has ended. */
  drained(): Promise<void>
}

const retryMs = 1000
/** While catching up, the client has to take so many bytes before it gets more. */
const pieceBytes = 65_536

/**
 * Begins to follow.
 * @param since the id of the last event that the client has; undefined or null: from the next event on. Anything that
 *   is no whole number from 0 is told as a gap
 * @returns what ends it
 * @throws TypeError when the source is not a channel
 */
export function follow(channel: unknown, since: unknown, sink: Sink): () => void {
  if (!(channel instanceof Channel)) {
    throw new TypeError(`Cannot follow: the source must be a channel: it is of type ${typeof channel}`)
  }
  const follower = new Follower(channel, sink)
  follower.begin(since)
  return () => follower.end()
}

class Follower implements Waiter {
  isOver = false
  readonly #channel: Channel
  readonly #sink: Sink
  /** Undefined as long as it is to begin at the newest event and the broker has not told which one that is. */
  #cursor: number | undefined = undefined
  #isLost = false
  #isCatchingUp = true
  #retry: NodeJS.Timeout | undefined = undefined

  constructor(channel: Channel, sink: Sink) {
    this.#channel = channel
    this.#sink = sink
  }

  get cursor(): number {
    return this.#cursor ?? 0
  }

  begin(since: unknown): void {
    const given = typeof since === 'string' && /^\d+$/.test(since) ? Number(since) : since
    if (typeof given === 'number' && Number.isInteger(given) && given >= 0) {
      this.#cursor = Math.min(given, Number.MAX_SAFE_INTEGER)
    } else this.#isLost = since !== undefined && since !== null
    void this.#catchUp()
  }

  end(): void {
    this.isOver = true
    clearTimeout(this.#retry)
    this.#channel.leave(this)
  }

  wake({ events, lastId, gap }: ChannelRead): void {
    if (this.isOver || this.#isCatchingUp) return // Its own read finds them.
    if (gap) this.#pass(events[0] === undefined ? lastId : events[0].id - 1, lastId)
    for (const event of eventsAfter(events, this.cursor)) if (!this.#send(event)) return
  }

  cutOff(): void {
    this.#isCatchingUp = true
    this.#channel.leave(this)
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined
      void this.#catchUp()
    }, retryMs).unref()
  }

  broken(error: unknown): void {
    if (this.isOver) return
    this.#channel.services.logError(`channel "${this.#channel.name}": a WebSocket cannot follow it for a moment`, error)
    this.cutOff()
  }

  async #catchUp(): Promise<void> {
    try {
      this.#channel.checkReach()
      if (this.#cursor === undefined) {
        this.#cursor = await this.#channel.last_id
        if (this.#isLost) this.#tellGap(this.#cursor)
      }
      if (this.isOver) return
      this.#channel.joinNow(this)
      await this.#channel.listen()
      while (!this.isOver && this.#isCatchingUp) {
        const { events, lastId, gap } = await this.#channel.read(this.cursor)
        if (gap) this.#pass(events[0] === undefined ? lastId : events[0].id - 1, lastId)
        for (const event of events) {
          // A catch-up that waited for the client while the broker was away may find that the next one has sent these.
          if (event.id <= this.cursor) continue
          if (this.isOver || !this.#send(event)) return
          if (this.#sink.bufferedAmount > pieceBytes) await this.#sink.drained()
        }
        this.#isCatchingUp = this.cursor < this.#channel.newestId
      }
    } catch (error) {
      this.broken(error)
    }
  }

  /** Moves the cursor behind events that are gone, and tells of the gap. */
  #pass(cursor: number, lastId: number): void {
    this.#cursor = cursor
    this.#tellGap(lastId)
  }

  #tellGap(lastId: number): void {
    this.#sink.send(`{"gap":true,"last_id":${lastId}}`)
  }

  #send(event: ChannelEvent): boolean {
    this.#cursor = event.id
    this.#channel.services.counts.delivered += 1
    return this.#sink.send(this.#channel.encoder.message(event))
  }
}
