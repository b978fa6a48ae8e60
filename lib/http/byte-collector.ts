/**
 * Collects chunks into one buffer, in linear time and without keeping the chunks.
 *
 * Surprise: a list of chunks would do for honest clients; but a body sent in chunks of one byte makes a list that takes
 * a hundred times the body's size. A single chunk is kept as it is, without a copy.
 */
import { Buffer } from 'node:buffer'

const empty: Buffer = Buffer.alloc(0)

/** Bytes that arrive in pieces. */
export class ByteCollector {
  #bytes = empty
  #length = 0

  /** How many bytes are held. */
  get length(): number {
    return this.#length
  }

  /** Adds a chunk to the end. The chunk must not be changed afterwards. */
  add(chunk: Buffer): void {
    const needed = this.#length + chunk.length
    if (this.#length === 0) {
      // It has no room to spare, so nothing is ever written into the caller's chunk.
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

  /** Returns what is held and begins anew with nothing. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.#length)
    this.#bytes = empty
    this.#length = 0
    return taken
  }
}
