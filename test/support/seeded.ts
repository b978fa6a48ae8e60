/** A seeded generator of pseudo-random numbers (mulberry32): the same seed gives the same inputs on every machine. */
export class Seeded {
  #state: number

  /** @param seed any integer; it is taken modulo 2^32 */
  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** The next number, 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }

  /** An integer from 0 to `below - 1`. */
  integer(below: number): number {
    return Math.floor(this.next() * below)
  }

  /** One of a non-empty list. */
  pick<T>(list: readonly T[]): T {
    return list[this.integer(list.length)] as T
  }

  /** `length` random bytes. */
  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.integer(256)))
  }
}
