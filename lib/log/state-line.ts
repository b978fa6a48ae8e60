/**
 * For a state that may go on and off often: it is told at once when it goes on and when it goes off, each once an
 * interval. When the interval is over the log tells the state that there is, if it is another one than it told last.
 */

/** Writes through `write`. Keeps no process alive. */
export class StateLine {
  readonly #write: (on: boolean, changes: string) => void
  readonly #intervalMs: number
  #told = false
  #now = false
  /** Changes since the last line, that of it included. */
  #changes = 0
  /** Lines of this interval. */
  #lines = 0

  /**
   * The state is off.
   * @param write given the state, and words for how often it has changed since the last line; empty for once
   */
  constructor(write: (on: boolean, changes: string) => void, intervalMs: number) {
    this.#write = write
    this.#intervalMs = intervalMs
  }

  /** The state is this now. */
  set(on: boolean): void {
    if (on === this.#now) return
    this.#now = on
    this.#changes += 1
    if (this.#lines < 2) this.#tell()
  }

  #tell(): void {
    this.#told = this.#now
    const times = this.#changes
    this.#changes = 0
    this.#write(this.#now, times === 1 ? '' : ` (${times} changes since the last such line)`)
    this.#lines += 1
    if (this.#lines > 1) return
    setTimeout(() => {
      this.#lines = 0
      if (this.#told !== this.#now) this.#tell()
    }, this.#intervalMs).unref()
  }
}
