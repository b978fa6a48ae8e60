/**
 * Limits log lines that clients can cause to one per interval: the first is written at once, further lines within the
 * interval are only counted, and the next line after it has the count. So no client can flood the log.
 */
import { performance } from 'node:perf_hooks'
import type { LogDetails, LogPort } from './ports.ts'

/** The maximum of remembered causes. */
const maxCauses = 1000

/** Until when the lines of a cause are counted, and their number. */
interface Suppressed {
  until: number
  count: number
}

/** Calls `write` at most once per interval for each cause. */
export class RateLimited {
  readonly #write: LogPort['warn']
  readonly #intervalMs: number
  readonly #now: () => number
  readonly #byCause = new Map<string, Suppressed>()

  /** @param now a monotonic clock in milliseconds */
  constructor(write: LogPort['warn'], intervalMs: number, now: () => number = () => performance.now()) {
    this.#write = write
    this.#intervalMs = intervalMs
    this.#now = now
  }

  /** Writes the message, or counts it with the others of its cause; by default all have the same cause. */
  say(message: string, cause = '', details?: LogDetails): void {
    const now = this.#now()
    const held = this.#byCause.get(cause)
    if (held !== undefined && now < held.until) {
      held.count += 1
      return
    }
    if (held === undefined && this.#byCause.size >= maxCauses) this.#byCause.clear()
    this.#byCause.set(cause, { until: now + this.#intervalMs, count: 0 })
    const count = held?.count ?? 0
    this.#write(count === 0 ? message : `${message} (and ${count} more since the last such line)`, details)
  }
}
