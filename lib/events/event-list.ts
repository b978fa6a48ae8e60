/**
 * The events of a channel or queue in memory, the oldest first. Events leave at the front, one by one and in constant
 * time: `shift` of a long array moves all that is behind, which makes a queue of a million events take minutes.
 */

/** Entries before the first are dropped from the array when there are this many, and as many as those that are left. */
const leastDropped = 1024

/** A list that is changed at its ends. */
export class EventList<Event> {
  /** Those before `#first` have left: they are undefined, so that they take no memory. */
  readonly #entries: (Event | undefined)[] = []
  #first = 0

  /** The number of events. */
  get length(): number {
    return this.#entries.length - this.#first
  }

  /** The event at an index from 0, which must be below the length. */
  at(index: number): Event {
    return this.#entries[this.#first + index] as Event
  }

  /** Adds an event behind the others. */
  push(event: Event): void {
    this.#entries.push(event)
  }

  /** Puts an event before the others. */
  unshift(event: Event): void {
    if (this.#first === 0) this.#entries.unshift(event)
    else this.#entries[(this.#first -= 1)] = event
  }

  /** Removes and returns the first event; undefined when there is none. */
  shift(): Event | undefined {
    if (this.length === 0) return undefined
    const event = this.at(0)
    this.dropFirst(1)
    return event
  }

  /** Removes events at the front, as many as there are at most. */
  dropFirst(count: number): void {
    const end = this.#first + Math.min(count, this.length)
    this.#entries.fill(undefined, this.#first, end)
    this.#first = end
    if (end < leastDropped || end < this.length) return
    this.#entries.splice(0, end)
    this.#first = 0
  }

  /** The events from an index on, as an array. */
  slice(from = 0): Event[] {
    return this.#entries.slice(this.#first + from) as Event[] // None of them has left.
  }
}
