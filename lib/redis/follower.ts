/**
 * What one process hears of a channel: each event after the id that it began with, once, in the order of ids. What it
 * missed while its connection was away it reads, and holds back meanwhile what comes.
 *
 * Surprise: it tells nothing within the turn in which it hears, and none of this process's own events before the call
 * that published it was answered: a message may overtake the answer, which comes by another connection.
 */
import type { ChannelEvent, ChannelRead } from '../events/broker.ts'
import type { Calls } from './calls.ts'
import type { ChannelListener } from './subscriber.ts'
import { decoded } from './text.ts'

/** Who listens. */
export interface EventListener {
  readonly hear: (event: ChannelEvent) => void
  /** It hears what is newer. */
  readonly since: number
}

export interface FollowerOptions {
  readonly calls: Calls
  /** Reads the events after an id. */
  readonly read: (since: number) => Promise<ChannelRead>
  /** Told that events were gone when they were to be read. */
  readonly onHole: () => void
}

interface Message extends ChannelEvent {
  /** That of the call which published it; empty where it was read. */
  readonly tag: string
}

/** Of the messages that are held back while what was missed is read. */
const mostHeld = 10_000
/** Milliseconds until a read that failed is tried again. */
const retryMs = 250

export class Follower implements ChannelListener {
  readonly listeners = new Set<EventListener>()
  readonly #options: FollowerOptions
  /** The id up to which all was told; undefined before `begin`. */
  #position: number | undefined = undefined
  /** What is to be told, without a hole. */
  #due: Message[] = []
  #isHeard = true
  /** Whether something may have been missed behind what is due. What comes meanwhile is held back. */
  #isBehind = false
  #held: Message[] = []
  /** How often something may have been missed. */
  #misses = 0
  /** Whether something was missed for good, which the next event tells. */
  #hasHole = false
  #isReading = false
  #isScheduled = false
  #isClosed = false
  #retry: NodeJS.Timeout | undefined = undefined

  /** To be subscribed before `begin`. */
  constructor(options: FollowerOptions) {
    this.#options = options
  }

  /** Tells what comes after an id; a second call does nothing. */
  begin(position: number): void {
    this.#position ??= position
    this.#goOn()
  }

  /** Nothing is told any more. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#retry)
  }

  onMessage(message: string): void {
    const [id = '', tag = ''] = message.split(' ', 2)
    const one = { id: Number(id), tag, text: decoded(message.slice(id.length + tag.length + 2)) ?? '' }
    if (!this.#isBehind) {
      this.#due.push(one)
      this.#schedule()
    } else if (this.#held.push(one) > mostHeld) this.#miss()
  }

  onLost(): void {
    this.#isHeard = false
    this.#isBehind = true
    this.#miss()
  }

  onReconnected(): void {
    this.#isHeard = true
    this.#goOn()
  }

  #miss(): void {
    this.#held = []
    this.#misses += 1
  }

  #goOn(): void {
    if (this.#isBehind) void this.#catchUp()
    else this.#schedule()
  }

  /** Reads until nothing was missed meanwhile. What is held was heard since before the read, and goes behind it. */
  async #catchUp(): Promise<void> {
    if (this.#isReading) return
    this.#isReading = true
    clearTimeout(this.#retry)
    try {
      while (this.#isBehind && this.#isHeard && this.#position !== undefined && !this.#isClosed) {
        const misses = this.#misses
        const position = Math.max(this.#position, this.#due.at(-1)?.id ?? 0)
        const read = await this.#options.read(position)
        if (misses === this.#misses) this.#take(read, position)
      }
    } catch {
      // The engine is away, which is told by others, or refuses for now. Until it can be read, all is held back.
      this.#retry = setTimeout(() => void this.#catchUp(), retryMs).unref()
    } finally {
      this.#isReading = false
    }
  }

  /** An engine that has lost its newest events comes back with ids below those that were told: nothing was missed then. */
  #take({ events, lastId, gap }: ChannelRead, position: number): void {
    if (gap && lastId > position) {
      this.#options.onHole()
      this.#due.push({ id: position, text: '', tag: '', gap: true }) // It is known, so only its mark is told.
    }
    this.#due.push(...events.map(({ id, text }) => ({ id, text, tag: '' })), ...this.#held)
    this.#held = []
    this.#isBehind = false
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#flush())
  }

  #flush(): void {
    this.#isScheduled = false
    if (this.#position === undefined) return
    let at = 0
    for (; at < this.#due.length && !this.#isClosed; at++) {
      const { id, tag, text, gap = false } = this.#due[at] as Message // There are so many.
      this.#hasHole ||= gap
      if (id <= this.#position) continue
      if (this.#options.calls.waitFor(tag, () => this.#flush())) {
        this.#isScheduled = true
        break
      }
      this.#position = id
      this.#tell(this.#hasHole ? { id, text, gap: true } : { id, text })
      this.#hasHole = false
    }
    this.#due.splice(0, at)
  }

  #tell(event: ChannelEvent): void {
    for (const { hear, since } of this.listeners) if (event.id > since) hear(event)
  }
}
