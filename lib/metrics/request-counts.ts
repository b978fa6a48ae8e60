/**
 * How many requests there were, by what became of them, and the bytes of their bodies. They only ever grow; a window is the
 * difference to what they were when it began.
 */

/** The status classes, in order. */
export const statusClasses = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const

/** The name of a status class. */
export type StatusClass = (typeof statusClasses)[number]

/** What became of requests, in order: a status class, or that the client left while it waited for an event. */
export const outcomes = [...statusClasses, 'left'] as const

/** The name of an outcome. */
export type Outcome = (typeof outcomes)[number]

const left = statusClasses.length
const bytesIn = left + 1
const bytesOut = bytesIn + 1
const slotCount = bytesOut + 1

/** Counts requests. */
export class RequestCounts {
  readonly #slots = new Float64Array(slotCount)

  /** Counts a request. A status outside 100 to 599 is of the nearest class; a number of bytes below 0 or NaN is 0. */
  add(status: number, receivedBytes: number, sentBytes: number): void {
    const hundreds = Math.trunc(status / 100)
    this.#count(hundreds > 5 ? 4 : hundreds > 1 ? hundreds - 1 : 0, receivedBytes, sentBytes)
  }

  /** Counts a request whose client left while it waited for an event: it is no error. */
  addLeft(receivedBytes: number): void {
    this.#count(left, receivedBytes, 0)
  }

  #count(slot: number, receivedBytes: number, sentBytes: number): void {
    this.#slots[slot]! += 1 // 0 to 5, as the two below are constants within the array
    if (receivedBytes > 0) this.#slots[bytesIn]! += receivedBytes
    if (sentBytes > 0) this.#slots[bytesOut]! += sentBytes
  }

  get total(): number {
    let total = 0
    for (let slot = 0; slot < bytesIn; slot += 1) total += this.#slots[slot] as number
    return total
  }

  /** Requests that were answered with 400 or above. */
  get errors(): number {
    return (this.#slots[3] as number) + (this.#slots[4] as number)
  }

  get byOutcome(): Record<Outcome, number> {
    const [first = 0, second = 0, third = 0, fourth = 0, fifth = 0, gone = 0] = this.#slots
    return { '1xx': first, '2xx': second, '3xx': third, '4xx': fourth, '5xx': fifth, left: gone }
  }

  get bytesIn(): number {
    return this.#slots[bytesIn] as number
  }

  get bytesOut(): number {
    return this.#slots[bytesOut] as number
  }

  /** Takes over the numbers of another. */
  copy(other: RequestCounts): void {
    this.#slots.set(other.#slots)
  }

  /** What was counted since `earlier` was a copy of this. */
  since(earlier: RequestCounts): RequestCounts {
    const difference = new RequestCounts()
    for (let slot = 0; slot < slotCount; slot += 1) {
      difference.#slots[slot] = (this.#slots[slot] as number) - (earlier.#slots[slot] as number)
    }
    return difference
  }
}
