/**
 * How many of something there were in a second, from how many there were at all.
 */
import { performance } from 'node:perf_hooks'

/** Counts one thing. */
export class Rate {
  #count = 0
  #at = performance.now()
  #perSecond = 0

  /** Calls that come soon after the last one get what that got. */
  of(count: number): number {
    const seconds = (performance.now() - this.#at) / 1000
    if (seconds < 0.5) return this.#perSecond
    this.#perSecond = Math.max(0, Math.round(((count - this.#count) / seconds) * 10) / 10)
    this.#count = count
    this.#at = performance.now()
    return this.#perSecond
  }
}
