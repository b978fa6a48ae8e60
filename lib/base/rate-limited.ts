/**
 * A log line that a client can cause, at most once an interval: the first is written at once, those that follow within
 * the interval are only counted, and the next line after it says how many there were. No client can flood the log.
 */
import { performance } from 'node:perf_hooks'
import type { LogDetails, LogPort } from './ports.ts'

/** The causes that are remembered. */
const mostCauses = 1000

/** Until when the lines of a cause are counted, and how many were. */
interface Held {
  until: number
  count: number
}

/** Writes through `write`, at most once an interval for each cause. */
export class RateLimited {
  readonly #write: LogPort['warn']
  readonly #intervalMs: number
  readonly #now: () => number
  readonly #byCause = new Map<string, Held>()

  /** @param now a monotonic clock in milliseconds */
  constructor(write: LogPort['warn'], intervalMs: number, now: () => number = () => performance.now()) {
    this.#write = write
    this.#intervalMs = intervalMs
    this.#now = now
  }

  /** Writes the message, or counts it with the others of its cause; all have the same one unless given. */
  say(message: string, cause = '', details?: LogDetails): void {
    const now = this.#now()
    const held = this.#byCause.get(cause)
    if (held !== undefined && now < held.until) {
      held.count += 1
      return
    }
    if (held === undefined && this.#byCause.size >= mostCauses) this.#byCause.clear()
    this.#byCause.set(cause, { until: now + this.#intervalMs, count: 0 })
    const count = held?.count ?? 0
    this.#write(count === 0 ? message : `${message} (and ${count} more since the last such line)`, details)
  }
}
