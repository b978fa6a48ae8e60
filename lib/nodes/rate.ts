/** The rate of a counter. */
import { performance } from 'node:perf_hooks'

/** Computes a rate per second from successive values of a counter. */
export class Rate {
  #count = 0
  #at = performance.now()
  #perSecond = 0

  /** Returns the rate since the previous call; within half a second of it, the same value again. */
  of(count: number): number {
    const seconds = (performance.now() - this.#at) / 1000
    if (seconds < 0.5) return this.#perSecond
    this.#perSecond = Math.max(0, Math.round(((count - this.#count) / seconds) * 10) / 10)
    this.#count = count
    this.#at = performance.now()
    return this.#perSecond
  }
}
