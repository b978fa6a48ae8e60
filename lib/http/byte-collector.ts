/**
 * Collects chunks into one buffer, in linear time and without keeping the chunks: a list of one-byte chunks would take
 * a hundred times the size of the body. A single chunk is kept without a copy.
 */
import { Buffer } from 'node:buffer'

const empty: Buffer = Buffer.alloc(0)

/** Bytes that arrive in pieces. */
export class ByteCollector {
  #bytes = empty
  #length = 0

  /** The number of bytes. */
  get length(): number {
    return this.#length
  }

  /** Appends a chunk, which must not be changed afterwards. */
  add(chunk: Buffer): void {
    const needed = this.#length + chunk.length
    if (this.#length === 0) {
      // The buffer is full, so nothing is ever written into the caller's chunk.
      this.#bytes = chunk
    } else {
      if (needed > this.#bytes.length) {
        const grown = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2))
        this.#bytes.copy(grown, 0, 0, this.#length)
        this.#bytes = grown
      }
      chunk.copy(this.#bytes, this.#length)
    }
    this.#length = needed
  }

  /** Returns the bytes and becomes empty. */
  take(): Buffer {
    const taken = this.#length === this.#bytes.length ? this.#bytes : this.#bytes.subarray(0, this.#length)
    this.#bytes = empty
    this.#length = 0
    return taken
  }
}
