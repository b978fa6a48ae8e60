/**
 * Holds answers back until the requests that arrived together have been handled, and sends them one right after the
 * other.
 *
 * A write wakes the process that reads, often a proxy on the same machine. With the work for another request between
 * two writes the reader is asleep again each time, and waking it takes longer than making a small answer:
 * docs/decisions/answer-batch.md has the figures.
 */
import { performance } from 'node:perf_hooks'

/** An action that begins so many milliseconds after the first answer was ready has the answers sent before it. */
const holdMs = 0.25

/** Answers that are ready to be sent. */
export class AnswerBatch<T> {
  readonly #send: (answer: T) => void
  readonly #onTurnEnd = (): void => {
    this.#isTimed = false
    this.sendAll()
  }
  #ready: T[] = []
  /** When the first of them was ready, on the clock of `performance.now()`. */
  #sinceMs = 0
  /** Whether the end of this turn of the event loop sends what is ready. */
  #isTimed = false

  /** @param send sends one answer; it must not throw */
  constructor(send: (answer: T) => void) {
    this.#send = send
  }

  /** Adds an answer. It is sent in this turn of the event loop. */
  add(answer: T): void {
    if (this.#ready.push(answer) > 1) return
    this.#sinceMs = performance.now()
    if (this.#isTimed) return
    this.#isTimed = true
    setImmediate(this.#onTurnEnd)
  }

  /** Call before an action: it may take long, so answers that have waited for a while are sent. */
  beforeAction(): void {
    if (this.#ready.length > 0 && performance.now() - this.#sinceMs > holdMs) this.sendAll()
  }

  /** Sends what is ready. */
  sendAll(): void {
    const ready = this.#ready
    this.#ready = []
    for (const answer of ready) this.#send(answer)
  }
}
