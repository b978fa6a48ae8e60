/**
 * Follows a channel for a client, a stream, a WebSocket or a waiting poll: each event once, in order, starting at a
 * cursor. It first catches up: it reads older events in pieces, as fast as the client accepts them. After that the
 * channel wakes it for each new event.
 */
import type { ChannelEvent, ChannelRead } from './broker.ts'
import { Channel, type Waiter } from './channel.ts'
import { cursorOf } from './cursor.ts'
import { eventsAfter } from './event-encoder.ts'

/** The client of a follower. */
interface Receiver {
  /**
   * Sends events, or reports a gap before them, or both.
   * @returns false when the client must read them before it gets more
   */
  send(read: ChannelRead): boolean
  /** Resolves when the client has read everything sent. */
  drained(): Promise<unknown>
  /** Called when the follower has stopped, because the broker is cut off or, with an error, has failed. */
  stopped(error?: unknown): void
}

/** The sending side of a WebSocket. */
export interface Sink {
  /** Sends a text; false when the connection is closed, or was cut because its client does not read. */
  send(text: string): boolean
  /** Bytes that the client has not read yet. */
  readonly bufferedAmount: number
  /** Resolves when the client has read them, or the connection has ended. */
  drained(): Promise<void>
}

const retryMs = 1000
/** While catching up, about this many characters of events are sent at once. */
const pieceLength = 65_536

/** Follows one channel for one client. */
export class Follower implements Waiter {
  #isOver = false
  readonly #channel: Channel
  readonly #receiver: Receiver
  /** Undefined while it is to begin at the newest event and the broker has not returned its id. */
  #cursor: number | undefined
  #isLost: boolean
  /** The catch-up in progress. */
  #catchUp: object | undefined

  /**
   * @param cursor the id of the last event that the client has; undefined to begin with the next event
   * @param isLost whether the client has sent an invalid cursor: it gets a gap
   */
  constructor(channel: Channel, receiver: Receiver, cursor: number | undefined, isLost: boolean) {
    this.#channel = channel
    this.#receiver = receiver
    this.#cursor = cursor
    this.#isLost = isLost
  }

  get cursor(): number {
    return this.#cursor ?? 0
  }

  /** Whether older events are being sent. */
  get isCatchingUp(): boolean {
    return this.#catchUp !== undefined
  }

  /** Begins, or resumes after it has stopped. Never rejects. */
  async begin(): Promise<void> {
    const channel = this.#channel
    const own = (this.#catchUp = {})
    try {
      if (channel.services.cutOff !== undefined) return this.broken()
      this.#cursor ??= await channel.last_id
      if (this.#isOver) return
      if (this.#isLost) this.#receiver.send({ events: [], lastId: this.#cursor, gap: true })
      this.#isLost = false
      channel.join(this)
      if (!channel.isListening) await channel.listen()
      // A cursor that is ahead is a gap, which the first read reports.
      let isCurrent = this.#cursor === channel.newestId
      while (!this.#isOver && this.#catchUp === own && !isCurrent) {
        const read = await channel.read(this.cursor)
        if (this.#isOver || this.#catchUp !== own) return
        if (!this.#send({ ...read, events: pieceOf(read.events) })) await this.#receiver.drained()
        isCurrent = this.cursor >= channel.newestId
      }
      if (this.#catchUp === own) this.#catchUp = undefined
    } catch (error) {
      this.broken(error)
    }
  }

  /** Ends following. */
  end(): void {
    this.#isOver = true
    this.#channel.leave(this)
  }

  wake(read: ChannelRead): void {
    if (this.#isOver || this.isCatchingUp) return // The catch-up reads them.
    this.#send(read.gap ? read : { ...read, events: eventsAfter(read.events, this.cursor) })
  }

  cutOff(): void {
    this.broken()
  }

  broken(error?: unknown): void {
    if (this.#isOver) return
    this.#catchUp = undefined
    this.#channel.leave(this)
    this.#receiver.stopped(error)
  }

  #send(read: ChannelRead): boolean {
    const { events, lastId, gap } = read
    if (events.length === 0 && !gap) return true
    this.#cursor = events.at(-1)?.id ?? lastId
    this.#channel.services.counts.delivered += events.length
    return this.#receiver.send(read)
  }
}

/**
 * Sends the events of a channel to a WebSocket: as text, `{"event": "message", "id", "data"}`, and `{"event": "gap",
 * "data": {"last_id"}}`. While the broker is away the connection stays open, and it catches up when the broker is back.
 * @param since the id of the last event that the client has; undefined or null: from the next event on. Anything but
 *   a whole number from 0 is reported as a gap
 * @returns a function that ends it
 * @throws TypeError when the source is not a channel
 */
export function follow(channel: unknown, since: unknown, sink: Sink): () => void {
  if (!(channel instanceof Channel)) {
    throw new TypeError(`Cannot follow: the source must be a channel: it is of type ${typeof channel}`)
  }
  const cursor = cursorOf(since)
  let retry: NodeJS.Timeout | undefined
  const receiver: Receiver = {
    send: ({ events, lastId, gap }) => {
      if (gap) sink.send(`{"event":"gap","data":{"last_id":${lastId}}}`)
      for (const event of events) if (!sink.send(channel.encoder.message(event))) break
      return sink.bufferedAmount <= pieceLength
    },
    drained: () => sink.drained(),
    stopped: (error) => {
      const { name, services } = channel
      if (error !== undefined) services.logError(`channel "${name}": a WebSocket cannot follow it, retrying`, error)
      clearTimeout(retry)
      retry = setTimeout(() => void follower.begin(), retryMs).unref()
    },
  }
  const isLost = cursor === undefined && since !== undefined && since !== null
  const follower = new Follower(channel, receiver, cursor, isLost)
  void follower.begin()
  return () => {
    clearTimeout(retry)
    follower.end()
  }
}

/** The first events, up to the piece length. */
function pieceOf(events: readonly ChannelEvent[]): readonly ChannelEvent[] {
  let length = 0
  const end = events.findIndex(({ text }) => (length += text.length) >= pieceLength)
  return end < 0 ? events : events.slice(0, end + 1)
}
