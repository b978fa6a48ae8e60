/**
 * The requests whose middleware and action run, in memory that another thread reads while this one hangs.
 *
 * Surprise: reading while the other thread writes may give a text that two requests share. Requests beyond the size of
 * the table are only counted.
 */
import type { RunningPort } from '../base/ports.ts'

/** The most requests that are named. */
const slots = 128
/** The bytes of method and path that are kept of a request. */
const slotBytes = 256
const bytesOfInt32 = 4
const textBytes = slots * slotBytes

/** The running requests. */
export class RunningRequests implements RunningPort {
  /** To be passed to another thread, for its own instance. */
  readonly memory: SharedArrayBuffer
  readonly #text: Buffer
  /** The length of the text in each slot, 0 for a free one; then the number of requests without a slot. */
  readonly #lengths: Int32Array
  readonly #free = Array.from({ length: slots }, (_, at) => slots - 1 - at)

  /** @param memory that of the instance to read */
  constructor(memory = new SharedArrayBuffer(textBytes + (slots + 1) * bytesOfInt32)) {
    this.memory = memory
    this.#text = Buffer.from(memory, 0, textBytes)
    this.#lengths = new Int32Array(memory, textBytes)
  }

  began({ method, path }: { readonly method: string; readonly path: string }): number {
    const slot = this.#free.pop() ?? slots
    if (slot === slots) this.#lengths[slots] = this.#unnamed + 1
    else this.#lengths[slot] = this.#text.write(`${method} ${path}`, slot * slotBytes, slotBytes, 'latin1')
    return slot
  }

  ended(slot: number): void {
    if (slot === slots) {
      this.#lengths[slots] = this.#unnamed - 1
      return
    }
    this.#lengths[slot] = 0
    this.#free.push(slot)
  }

  /** Returns method and path of the running requests, and how many others run. In no order. */
  read(): { readonly named: readonly string[]; readonly unnamed: number } {
    const used = [...this.#lengths.subarray(0, slots)].map((length, slot) => ({ length, start: slot * slotBytes }))
    const named = used
      .filter(({ length }) => length > 0)
      .map(({ length, start }) => this.#text.toString('latin1', start, start + length))
    return { named, unnamed: this.#unnamed }
  }

  get #unnamed(): number {
    return this.#lengths[slots] ?? 0
  }
}
