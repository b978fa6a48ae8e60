/**
 * Events in the order in which they came, bounded by number and by age.
 *
 * Surprise: what left at the front stays as a hole in the array for a while, since moving the rest at each time would
 * cost more; the holes are cut off when they are half of it.
 */
import type { SourceLimits } from './broker.ts'

/** What a list holds. */
export interface Aged {
  /** When the event came, in milliseconds of the broker's clock. */
  readonly at: number
}

/** Below this many holes the array stays as it is. */
const fewHoles = 32

/** A list; empty when it is made. */
export class EventList<E extends Aged> {
  #items: (E | undefined)[] = []
  /** Where the oldest event is; before it are holes. */
  #head = 0

  /** How many events there are. */
  get length(): number {
    return this.#items.length - this.#head
  }

  /** The event at a place, from 0 for the oldest to below `length`. */
  at(place: number): E {
    return this.#items[this.#head + place] as E // Holes are before the head alone.
  }

  /** The events from a place on. */
  from(place: number): E[] {
    return this.#items.slice(this.#head + place) as E[] // As above.
  }

  /** Appends an event. */
  push(event: E): void {
    this.#items.push(event)
  }

  /** Puts an event before the others. */
  unshift(event: E): void {
    if (this.#head === 0) this.#items.unshift(event)
    else this.#items[--this.#head] = event
  }

  /** Takes the oldest event; undefined when there is none. */
  shift(): E | undefined {
    if (this.length === 0) return undefined
    const event = this.#items[this.#head]
    this.#items[this.#head++] = undefined
    if (this.#head > fewHoles && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return event
  }

  /** Drops what is over the limits, the oldest first. Returns how many events went. */
  trim(limits: SourceLimits, now: number): number {
    let dropped = 0
    while (this.length > 0 && (this.length > limits.maxEvents || now - this.at(0).at >= limits.maxAgeMs)) {
      this.shift()
      dropped += 1
    }
    return dropped
  }
}
