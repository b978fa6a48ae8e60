/**
 * When the time of a file of sessions is over, also when the clock is set meanwhile.
 *
 * A file tells when it was changed, by the clock of that moment. Where that lies ahead, the clock was set back since,
 * and how much time has really passed is not known: a session lives for its whole time from when that is noticed. So
 * one that is valid is not lost, and none lives until a wrong clock's time has come.
 *
 * Surprise: nothing is written then. A clock that is put right again finds every file as it was.
 */

/** The clocks, in milliseconds. */
export interface ExpiryClocks {
  /** The calendar's clock: milliseconds since 1970. */
  readonly now: () => number
  /** A clock that does not jump. */
  readonly steadyNow: () => number
}

/** By how much a file may have been changed in the future, in milliseconds: the clock of a file server may differ. */
const toleranceMs = 60_000

/** Judges the files of one folder. */
export class FileExpiry {
  readonly #clocks: ExpiryClocks
  /** The ends of files that were changed in the future, by name and by the clock that does not jump. */
  readonly #ends = new Map<string, number>()

  constructor(clocks: ExpiryClocks) {
    this.#clocks = clocks
  }

  /**
   * Whether a file's time is over.
   * @param changedMs when it was changed, by the calendar's clock
   * @param endMs when its time ends, by the same clock; before `changedMs` where that is no time of this store's
   */
  isOver(name: string, changedMs: number, endMs: number): boolean {
    const now = this.#clocks.now()
    const livesMs = endMs - changedMs
    if (changedMs <= now + toleranceMs || livesMs <= 0) {
      this.#ends.delete(name)
      return endMs <= now
    }
    const steadyNow = this.#clocks.steadyNow()
    const end = this.#ends.get(name) ?? steadyNow + livesMs
    this.#ends.set(name, end)
    return end <= steadyNow
  }

  /** Forgets a file that was changed or removed. */
  forget(name: string): void {
    this.#ends.delete(name)
  }
}
