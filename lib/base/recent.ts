/**
 * The most recent entries: a ring buffer in which the newest entry replaces the oldest.
 */

/** Keeps the last entries. */
export class Recent<Entry> {
  readonly #size: number
  readonly #entries: Entry[] = []
  #next = 0

  /** @param size the number of entries to keep, from 1 */
  constructor(size: number) {
    this.#size = size
  }

  add(entry: Entry): void {
    this.#entries[this.#next] = entry
    this.#next = (this.#next + 1) % this.#size
  }

  /** Returns the entries, oldest first. */
  list(): Entry[] {
    return [...this.#entries.slice(this.#next), ...this.#entries.slice(0, this.#next)]
  }
}
