/**
 * A log line that a client can cause, at most once an interval: the first is written at once, those that follow within
 * the interval are only counted, and the next line after it says how many there were. No client can flood the log.
 */
import { performance } from 'node:perf_hooks'

/** The causes that are remembered. */
const mostCauses = 1000

/** Writes through `write`, at most once an interval. */
export class RateLimited {
  readonly #write: (message: string) => void
  readonly #intervalMs: number
  readonly #now: () => number
  #nextAt = -Infinity
  #held = 0

  /** @param now a monotonic clock in milliseconds */
  constructor(write: (message: string) => void, intervalMs: number, now: () => number = () => performance.now()) {
    this.#write = write
    this.#intervalMs = intervalMs
    this.#now = now
  }

  /** Writes the message, or counts it. */
  say(message: string): void {
    const now = this.#now()
    if (now < this.#nextAt) {
      this.#held += 1
      return
    }
    this.#nextAt = now + this.#intervalMs
    this.#write(this.#held === 0 ? message : `${message} (and ${this.#held} more since the last such line)`)
    this.#held = 0
  }
}

/** Lines about many causes, each as often as a RateLimited allows. */
export class RateLimitedByCause {
  readonly #make: () => RateLimited
  readonly #byCause = new Map<string, RateLimited>()

  constructor(write: (message: string) => void, intervalMs: number) {
    this.#make = () => new RateLimited(write, intervalMs)
  }

  /** Writes the message, or counts it with the others of its cause. */
  say(cause: string, message: string): void {
    let lines = this.#byCause.get(cause)
    if (lines === undefined) {
      if (this.#byCause.size >= mostCauses) this.#byCause.clear()
      lines = this.#make()
      this.#byCause.set(cause, lines)
    }
    lines.say(message)
  }
}
