/**
 * All open connections of a server, and the one timer that they share: it pings those from which nothing came for a
 * while, cuts those that do not answer, and cuts those whose closing takes too long.
 *
 * Surprise: time is counted in beats, not read from a clock. A process that stood still, or a machine that slept,
 * counts one beat for all of it, so that nobody is cut for bytes that only this process had no time to read.
 */

/** What a heartbeat looks after. */
export interface Beating {
  /** Called at every beat. It may delete itself. */
  beat(now: number): void
  /** Begins the closing handshake. */
  close(code: number, reason: string): void
}

export interface HeartbeatOptions {
  /** Milliseconds of silence after which a peer is pinged, and as many again after which it is cut; 30,000. */
  readonly silenceMs?: number
  /** The most milliseconds that closing takes once it has begun; 2000. */
  readonly closeTimeoutMs?: number
}

/** Beats in the time that closing may take. What begins between two beats ends up to one beat early, never late. */
const closeBeats = 4

/** The connections of one server and their timer, which runs as long as there are any. */
export class Heartbeat {
  /** Beats after which a silent peer is pinged, or cut. */
  readonly silentBeats: number
  /** Beats after which a connection that is closing is cut. */
  readonly closeBeats = closeBeats
  readonly #beatMs: number
  readonly #all = new Set<Beating>()
  #timer: NodeJS.Timeout | undefined = undefined
  #now = 0

  /** @throws RangeError when a time is not above 0 */
  constructor({ silenceMs = 30_000, closeTimeoutMs = 2000 }: HeartbeatOptions = {}) {
    if (!(silenceMs > 0 && closeTimeoutMs > 0)) {
      throw new RangeError(`A heartbeat needs times above 0: silenceMs ${silenceMs}, closeTimeoutMs ${closeTimeoutMs}`)
    }
    this.#beatMs = closeTimeoutMs / closeBeats
    this.silentBeats = Math.ceil(silenceMs / this.#beatMs)
  }

  /** Beats so far. */
  get now(): number {
    return this.#now
  }

  /** Connections that are open or closing. */
  get size(): number {
    return this.#all.size
  }

  /** Looks after one more. */
  add(one: Beating): void {
    this.#all.add(one)
    this.#timer ??= setInterval(() => this.beat(), this.#beatMs).unref()
  }

  /** Lets go of one; does nothing where it is not there. */
  delete(one: Beating): void {
    this.#all.delete(one)
    if (this.#all.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Begins to close all, as a server does that stops: 1001. They are gone within the close time-out. */
  closeAll(code: number, reason: string): void {
    for (const one of this.#all) one.close(code, reason)
  }

  /** One beat: what the timer does. */
  beat(): void {
    this.#now += 1
    for (const one of this.#all) one.beat(this.#now)
  }
}
