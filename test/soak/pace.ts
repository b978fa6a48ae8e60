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

  /** Resolves when it is one's turn, and no earlier, or when the signal aborts. */
  async turn(signal: AbortSignal): Promise<void> {
    const at = Math.max(performance.now(), this.#next)
    this.#next = at + this.#intervalMs
    // A timer may fire early: it counts from when the present turn of the event loop began.
    for (let waitMs = at - performance.now(); waitMs > 0 && !signal.aborted; waitMs = at - performance.now()) {
      await delay(waitMs, undefined, { signal }).catch(() => {}) // Who asked looks at the signal.
    }
  }
}
