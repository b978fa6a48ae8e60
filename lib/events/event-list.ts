/**
 * A list of events in order of arrival, bounded by number and age.
 *
 * Removed events leave holes at the front of the array, since moving the rest each time would cost more. The holes are
 * cut off when they are half of the array.
 */
import type { SourceLimits } from './broker.ts'

/** Fewer holes than this are never cut off. */
const minHoles = 32

/** A list of events; `at` is the time of arrival in milliseconds of the broker's clock. */
export class EventList<E extends { readonly at: number }> {
  #items: (E | undefined)[] = []
  /** The index of the oldest event; there are holes before it. */
  #head = 0

  /** The number of events. */
  get length(): number {
    return this.#items.length - this.#head
  }

  /** Returns the event at an index, from 0 for the oldest to below `length`. */
  at(index: number): E {
    return this.#items[this.#head + index] as E // Holes are only before the head.
  }

  /** Returns the events from an index on. */
  from(index: number): E[] {
    return this.#items.slice(this.#head + index) as E[] // As above.
  }

  /** Appends an event. */
  push(event: E): void {
    this.#items.push(event)
  }

  /** Inserts an event before the others. */
  unshift(event: E): void {
    if (this.#head === 0) this.#items.unshift(event)
    else this.#items[--this.#head] = event
  }

  /** Removes and returns the oldest event; undefined when the list is empty. */
  shift(): E | undefined {
    if (this.length === 0) return undefined
    const event = this.#items[this.#head]
    this.#items[this.#head++] = undefined
    if (this.#head > minHoles && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return event
  }

  /** Removes the oldest events that are over the limits. Returns their number. */
  trim(limits: SourceLimits, now: number): number {
    let dropped = 0
    while (this.length > 0 && (this.length > limits.maxEvents || now - this.at(0).at >= limits.maxAgeMs)) {
      this.shift()
      dropped += 1
    }
    return dropped
  }
}
