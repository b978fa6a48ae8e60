/**
 * The events of a channel or queue in memory, oldest first. Events are removed at the front, one by one and in constant
 * time: `shift` of a long array moves all other elements, so draining a queue of a million events would take minutes.
 */

/** Removed entries are cut from the array when there are at least this many, and no fewer than remaining ones. */
const leastDropped = 1024

/** A list that is modified at its ends. */
export class EventList<Event> {
  /** Entries before `#first` were removed: they are undefined, so that they take no memory. */
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

  /** Adds an event at the end. */
  push(event: Event): void {
    this.#entries.push(event)
  }

  /** Adds an event at the front. */
  unshift(event: Event): void {
    if (this.#first === 0) this.#entries.unshift(event)
    else this.#entries[(this.#first -= 1)] = event
  }

  /** Removes and returns the first event; undefined when the list is empty. */
  shift(): Event | undefined {
    if (this.length === 0) return undefined
    const event = this.at(0)
    this.dropFirst(1)
    return event
  }

  /** Removes up to this many events at the front. */
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
    return this.#entries.slice(this.#first + from) as Event[] // None of them was removed.
  }
}
