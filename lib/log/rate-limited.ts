/**
 * Lines that could flood the log, held back: those that a client can cause, and those of a state that changes often.
 */
import { performance } from 'node:perf_hooks'

/**
 * Writes at most one line per interval. The first is written at once; those that follow within the interval are only
 * counted, and the next line after it says how many there were.
 */
export class RateLimited {
  readonly #write: (message: string) => void
  readonly #intervalMs: number
  readonly #now: () => number
  #nextAt = -Infinity
  #held = 0

  /** @param now a clock in milliseconds that does not jump */
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

/**
 * Writes a line when a state goes on or off, at most two per interval. At the end of the interval it writes the state
 * when it has changed since the last line.
 */
export class StateLine {
  readonly #write: (on: boolean, changes: string) => void
  readonly #intervalMs: number
  #written = false
  #now = false
  /** Changes since the last line. */
  #changes = 0
  /** Lines in this interval. */
  #lines = 0

  /**
   * The state is off at first. The timer keeps no process alive.
   * @param write called with the state, and with a text about the changes since the last line, empty for one change
   */
  constructor(write: (on: boolean, changes: string) => void, intervalMs: number) {
    this.#write = write
    this.#intervalMs = intervalMs
  }

  /** Sets the state. */
  set(on: boolean): void {
    if (on === this.#now) return
    this.#now = on
    this.#changes += 1
    if (this.#lines < 2) this.#writeLine()
  }

  #writeLine(): void {
    this.#written = this.#now
    const changes = this.#changes
    this.#changes = 0
    this.#write(this.#now, changes === 1 ? '' : ` (${changes} changes since the last such line)`)
    this.#lines += 1
    if (this.#lines > 1) return
    setTimeout(() => {
      this.#lines = 0
      if (this.#written !== this.#now) this.#writeLine()
    }, this.#intervalMs).unref()
  }
}
