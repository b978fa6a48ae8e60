/**
 * A memory of values that take a known number of bytes: past its bound the least recently used ones go.
 *
 * Surprise: a value larger than the whole bound is not kept, and nothing is thrown out for it.
 */

interface Entry<V> {
  readonly value: V
  readonly bytes: number
}

/** Values by name, bounded by the bytes that they take. */
export class SizedCache<V> {
  readonly #maxBytes: number
  /** From the least to the most recently used: a Map keeps the order of insertion. */
  readonly #entries = new Map<string, Entry<V>>()
  #bytes = 0

  /** @param maxBytes 0 or more; 0 keeps nothing that takes bytes */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** The bytes that are taken now. */
  get bytes(): number {
    return this.#bytes
  }

  /** The value of a name, which is then the most recently used. */
  get(name: string): V | undefined {
    const entry = this.#entries.get(name)
    if (entry === undefined) return undefined
    this.#entries.delete(name)
    this.#entries.set(name, entry)
    return entry.value
  }

  /** Keeps a value in place of what the name had. */
  set(name: string, value: V, bytes: number): void {
    this.delete(name)
    if (bytes > this.#maxBytes) return
    this.#entries.set(name, { value, bytes })
    this.#bytes += bytes
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#maxBytes) return
      this.delete(oldest)
    }
  }

  /** Forgets a name. */
  delete(name: string): void {
    const entry = this.#entries.get(name)
    if (entry === undefined) return
    this.#entries.delete(name)
    this.#bytes -= entry.bytes
  }
}
