/**
 * The pace of a soak: so many requests a second, whoever sends them. Each takes its turn before it is sent.
 *
 * Surprise: a turn that came too late is not made up for, so a machine that was busy meets no burst afterwards.
 */
import { setTimeout as delay } from 'node:timers/promises'

export class Pace {
  readonly #intervalMs: number
  /** When the next turn is, by `performance.now()`. */
  #next = 0

  /** @param perSecond turns a second, above 0; undefined: nobody waits */
  constructor(perSecond: number | undefined) {
    this.#intervalMs = perSecond === undefined ? 0 : 1000 / perSecond
  }

  /** Resolves when it is one's turn, in the order of the calls, or when the signal aborts. */
  async turn(signal: AbortSignal): Promise<void> {
    const now = performance.now()
    const waitMs = this.#next - now
    this.#next = Math.max(now, this.#next) + this.#intervalMs
    if (waitMs <= 0) return
    await delay(waitMs, undefined, { signal }).catch(() => {}) // Who asked looks at the signal.
  }
}
