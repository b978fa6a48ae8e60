/**
 * Follows a channel for a client that stays connected, a stream or a WebSocket: each event once, in order, from a
 * cursor on. It first catches up: it reads older events, piece by piece, as fast as the client takes them. After that
 * the channel wakes it for each new event.
 */
import type { ChannelEvent, ChannelRead } from './broker.ts'
import { Channel, type Waiter } from './channel.ts'
import { eventsAfter } from './event-encoder.ts'

/** The client of a follower. */
interface Receiver {
  /** Sends events, one at least. Returns false when the client has to take them before it gets more. */
  sendEvents(events: readonly ChannelEvent[]): boolean
  /** Tells that events up to `lastId` are missing; the next one has an id above `cursor`. */
  sendGap(cursor: number, lastId: number): void
  /** Resolves when the client has taken what was sent. */
  drained(): Promise<unknown>
  /** Called when the follower has stopped, since the broker is cut off or, with an error, has failed. */
  stopped(error?: unknown): void
}

/** The sending side of a WebSocket. */
export interface Sink {
  /** Sends a text; false when the connection is closed, or was cut since its client does not read. */
  send(text: string): boolean
  /** Bytes that the client has not taken yet. */
  readonly bufferedAmount: number
  /** Resolves when the client has taken them, or the connection has ended. */
  drained(): Promise<void>
}

const retryMs = 1000
/** While catching up, events of about so many characters are sent at once. */
const pieceLength = 65_536

/** Follows one channel for one client. */
export class Follower implements Waiter {
  isOver = false
  readonly #channel: Channel
  readonly #receiver: Receiver
  /** Undefined as long as it is to begin at the newest event and the broker has not told which one that is. */
  #cursor: number | undefined
  #isLost: boolean
  /** The catch-up that is under way. */
  #catchUp: object | undefined

  /**
   * @param cursor the id of the last event that the client has; undefined: it begins with the next event
   * @param isLost whether the client has sent a cursor that is none: it is told of a gap
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

  /** Begins, or goes on after it has stopped. Never rejects. */
  async begin(): Promise<void> {
    const channel = this.#channel
    const own = (this.#catchUp = {})
    try {
      channel.checkReach()
      this.#cursor ??= await channel.last_id
      if (this.isOver) return
      if (this.#isLost) this.#receiver.sendGap(this.#cursor, this.#cursor)
      this.#isLost = false
      channel.joinNow(this)
      await channel.listen()
      while (!this.isOver && this.#catchUp === own) {
        const read = await channel.read(this.cursor)
        if (this.isOver || this.#catchUp !== own) return
        if (read.gap) this.#pass(read)
        if (!this.#send(pieceOf(read.events))) await this.#receiver.drained()
        if (this.#catchUp === own && this.cursor >= channel.newestId) this.#catchUp = undefined
      }
    } catch (error) {
      this.broken(error)
    }
  }

  /** Ends it. */
  end(): void {
    this.isOver = true
    this.#channel.leave(this)
  }

  wake(read: ChannelRead): void {
    if (this.isOver || this.isCatchingUp) return // Its own read finds them.
    if (read.gap) this.#pass(read)
    this.#send(eventsAfter(read.events, this.cursor))
  }

  cutOff(): void {
    this.broken()
  }

  broken(error?: unknown): void {
    if (this.isOver) return
    this.#catchUp = undefined
    this.#channel.leave(this)
    this.#receiver.stopped(error)
  }

  /** Moves the cursor behind events that are gone, and tells of the gap. */
  #pass({ events, lastId }: ChannelRead): void {
    this.#cursor = events[0] === undefined ? lastId : events[0].id - 1
    this.#receiver.sendGap(this.#cursor, lastId)
  }

  #send(events: readonly ChannelEvent[]): boolean {
    const last = events.at(-1)
    if (last === undefined) return true
    this.#cursor = last.id
    this.#channel.services.counts.delivered += events.length
    return this.#receiver.sendEvents(events)
  }
}

/**
 * Sends the events of a channel to a WebSocket: as text, `{"id", "data"}`. While the broker is away it waits, since the
 * connection stays open, and catches up when the broker is back.
 * @param since the id of the last event that the client has; undefined or null: from the next event on. Anything that
 *   is no whole number from 0 is told as a gap
 * @returns what ends it
 * @throws TypeError when the source is not a channel
 */
export function follow(channel: unknown, since: unknown, sink: Sink): () => void {
  if (!(channel instanceof Channel)) {
    throw new TypeError(`Cannot follow: the source must be a channel: it is of type ${typeof channel}`)
  }
  const given = typeof since === 'string' && /^\d+$/.test(since) ? Number(since) : since
  const isId = typeof given === 'number' && Number.isInteger(given) && given >= 0
  const cursor = isId ? Math.min(given, Number.MAX_SAFE_INTEGER) : undefined
  let retry: NodeJS.Timeout | undefined
  const receiver: Receiver = {
    sendEvents: (events) => {
      for (const event of events) if (!sink.send(channel.encoder.message(event))) break
      return sink.bufferedAmount <= pieceLength
    },
    sendGap: (_, lastId) => void sink.send(`{"gap":true,"last_id":${lastId}}`),
    drained: () => sink.drained(),
    stopped: (error) => {
      const { name, services } = channel
      if (error !== undefined) services.logError(`channel "${name}": a WebSocket cannot follow it for a moment`, error)
      clearTimeout(retry)
      retry = setTimeout(() => void follower.begin(), retryMs).unref()
    },
  }
  const follower = new Follower(channel, receiver, cursor, !isId && since !== undefined && since !== null)
  void follower.begin()
  return () => {
    clearTimeout(retry)
    follower.end()
  }
}

/** The first of the events. */
function pieceOf(events: readonly ChannelEvent[]): readonly ChannelEvent[] {
  let length = 0
  const end = events.findIndex(({ text }) => (length += text.length) >= pieceLength)
  return end < 0 ? events : events.slice(0, end + 1)
}
