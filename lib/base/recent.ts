/**
 * The last entries of something: a list in which the newest takes the place of the oldest.
 */

/** Keeps the last entries. */
export class Recent<Entry> {
  readonly #size: number
  readonly #entries: Entry[] = []
  #next = 0

  /** @param size how many are kept, from 1 */
  constructor(size: number) {
    this.#size = size
  }

  add(entry: Entry): void {
    this.#entries[this.#next] = entry
    this.#next = (this.#next + 1) % this.#size
  }

  /** The entries, the oldest first. */
  list(): Entry[] {
    return [...this.#entries.slice(this.#next), ...this.#entries.slice(0, this.#next)]
  }
}
