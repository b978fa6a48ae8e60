/**
 * Who is told that a queue has got something. What comes in one turn is told once, at its end, and what this process has
 * pushed itself when its call was answered.
 */
import type { Calls } from './calls.ts'
import type { ChannelListener } from './subscriber.ts'

export class Availability implements ChannelListener {
  readonly #calls: Calls
  readonly #listener: () => void
  #isScheduled = false
  #isOver = false

  /** @param listener does not throw */
  constructor(calls: Calls, listener: () => void) {
    this.#calls = calls
    this.#listener = listener
  }

  /** Nothing is told any more. */
  end(): void {
    this.#isOver = true
  }

  onMessage(tag: string): void {
    if (!this.#calls.waitFor(tag, () => this.#hear())) this.#hear()
  }

  onLost(): void {}

  /** Something may have come meanwhile. */
  onReconnected(): void {
    this.#hear()
  }

  #hear(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      if (!this.#isOver) this.#listener()
    })
  }
}
