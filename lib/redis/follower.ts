/**
 * Delivers the events of a channel to a listener: each event after its start id, once, in the order of ids. After an
 * interruption of the connection it reads the missed events, and holds back new messages until then.
 *
 * Surprise: a message may arrive before the answer to the call that published it, which comes over another connection.
 * An event of this process is therefore held back until its call has been answered. The listener is never called in the
 * turn of the event loop in which a message arrives.
 *
 * Surprise: anyone with access to the server can publish a message. A message that no svc server has written only
 * triggers a read of the events.
 */
import { isJsonLine } from '../base/json-text.ts'
import type { ChannelEvent, ChannelGap, ChannelListener as ChannelEvents, ChannelRead } from '../events/broker.ts'
import type { Calls } from '../events/calls.ts'
import { decoded } from './reply.ts'
import type { ChannelListener } from './subscriber.ts'

interface FollowerOptions {
  readonly calls: Calls
  /** The listener. */
  readonly deliver: ChannelEvents
  /** Reads the events after an id of the channel. Returns a gap when the server has lost that id. */
  readonly read: (since: number) => Promise<ChannelRead>
  /** Called when some of the missed events no longer exist. */
  readonly onGap: () => void
  /** Called for a message that no server of this version can have published. */
  readonly onDamaged: () => void
}

interface Message extends ChannelEvent {
  /** The tag of the call that published the event; '' when the event was read. */
  readonly tag: string
}

/** An id further ahead of this machine's clock than this, in microseconds, is not trusted. */
const maxAheadUs = 86_400_000_000
/** The maximum of messages held back while missed events are read. */
const maxHeld = 10_000
/** Milliseconds before a failed read is repeated. */
const retryMs = 250

/** Follows one channel for one listener. */
export class Follower implements ChannelListener {
  readonly #options: FollowerOptions
  /** The id of the last delivered event; undefined before `begin`. */
  #position: number | undefined = undefined
  /** The events and gaps to deliver next. */
  #due: (Message | ChannelGap)[] = []
  #isConnected = true
  /** Whether events after `#due` may have been missed. If so, new messages are held back. */
  #isBehind = false
  #held: Message[] = []
  /** How many times messages may have been missed. */
  #misses = 0
  #isReading = false
  #isScheduled = false
  #isClosed = false
  #retry: NodeJS.Timeout | undefined = undefined

  /** Subscribe it to the channel before `begin`. */
  constructor(options: FollowerOptions) {
    this.#options = options
  }

  /** Starts delivering the events after this id. Call it once. */
  begin(position: number): void {
    this.#position = position
    this.#continue()
  }

  /** Ends delivery. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#retry)
  }

  onMessage(message: string): void {
    const event = messageIn(message)
    if (event === undefined) {
      if (message !== '') this.#options.onDamaged() // An empty message means that events were lost.
      return this.#distrust()
    }
    // A clock that was set back may have given an id that is too low.
    if (!this.#isBehind && this.#position !== undefined && event.id <= this.#position) return this.#distrust()
    if (!this.#isBehind) {
      this.#due.push(event)
      this.#schedule()
    } else if (this.#held.push(event) > maxHeld) this.#miss()
  }

  onLost(): void {
    this.#isConnected = false
    this.#isBehind = true
    this.#miss()
  }

  onReconnected(): void {
    this.#isConnected = true
    this.#continue()
  }

  /** Reads the events instead of trusting a message: it may replace a real one. */
  #distrust(): void {
    this.#isBehind = true
    this.#miss()
    this.#continue()
  }

  #miss(): void {
    this.#held = []
    this.#misses += 1
  }

  #continue(): void {
    if (this.#isBehind) void this.#catchUp()
    else this.#schedule()
  }

  /** Reads again until no message was missed during the read. Then all held messages are newer than the events read. */
  async #catchUp(): Promise<void> {
    if (this.#isReading) return
    this.#isReading = true
    clearTimeout(this.#retry)
    try {
      while (this.#isBehind && this.#isConnected && this.#position !== undefined && !this.#isClosed) {
        const misses = this.#misses
        const position = Math.max(this.#position, this.#due.at(-1)?.id ?? 0)
        const read = await this.#options.read(position)
        if (misses === this.#misses) this.#take(read)
      }
    } catch {
      // The server is away or refuses temporarily, which is logged elsewhere. Messages are held back meanwhile.
      this.#retry = setTimeout(() => void this.#catchUp(), retryMs).unref()
    } finally {
      this.#isReading = false
    }
  }

  #take({ events, lastId, gap }: ChannelRead): void {
    if (gap) {
      this.#options.onGap()
      this.#due.push({ id: events[0] === undefined ? lastId : events[0].id - 1, gap })
    }
    // Not with spread arguments: there may be more events than fit on the stack.
    for (const { id, text } of events) this.#due.push({ id, text, tag: '' })
    for (const held of this.#held) this.#due.push(held)
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
      const due = this.#due[at] as Message | ChannelGap // `at` is below the length.
      if (due.id <= this.#position) continue
      if (!('gap' in due) && this.#options.calls.waitFor(due.tag, () => this.#flush())) {
        this.#isScheduled = true
        break
      }
      this.#position = due.id
      this.#options.deliver('gap' in due ? due : { id: due.id, text: due.text })
    }
    this.#due.splice(0, at)
  }
}

/** Parses a message: id, tag and text, separated by spaces. Returns undefined for any other. */
function messageIn(message: string): Message | undefined {
  const [, digits = '', tag = '', sent = ''] = /^(\d{1,16}) (\S+) (.*)$/s.exec(message) ?? []
  const [id, text] = [Number(digits), decoded(sent)]
  const isPlausible = id > 0 && id <= Date.now() * 1000 + maxAheadUs
  return isPlausible && text !== undefined && isJsonLine(text) ? { id, tag, text } : undefined
}
