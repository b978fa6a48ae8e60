/**
 * A table from texts to values, for looking up texts that were just cut out of a request.
 *
 * Surprise: the hash reads the length and the last two characters alone, and texts that share a slot are compared
 * whole. A `Map` reads every character of a new string before it can say no; here most misses end after two. Where
 * the texts are such that one slot gets too many, the table becomes a `Map` for good, so that no set of texts makes
 * it slow.
 */

interface Entry<V> {
  readonly text: string
  readonly value: V
  next: Entry<V> | undefined
}

const fewestSlots = 16
/** The most texts in one slot. With twice as many slots as texts, more of them are no accident. */
const chainLimit = 8

/** A table from texts of at least one character to values. */
export class TextTable<V> {
  /** Their number is a power of two, and at least twice that of the texts. */
  #slots = emptySlots<V>(fewestSlots)
  #map: Map<string, V> | undefined = undefined
  #size = 0

  /** The number of texts. */
  get size(): number {
    return this.#size
  }

  /** The value of the text that is a part of a path, from `start` to before `end`. */
  get(path: string, start: number, end: number): V | undefined {
    if (this.#map !== undefined) return this.#map.get(path.slice(start, end))
    let entry = this.#slots[hashOf(path, start, end) & (this.#slots.length - 1)]
    if (entry === undefined) return undefined
    const text = path.slice(start, end)
    while (entry !== undefined && entry.text !== text) entry = entry.next
    return entry?.value
  }

  /** Gives a text a value. It must have none yet. */
  add(text: string, value: V): void {
    this.#size += 1
    if (this.#map !== undefined) {
      this.#map.set(text, value)
      return
    }
    const entries = 2 * this.#size > this.#slots.length ? this.#entries() : []
    if (entries.length > 0) this.#slots = emptySlots(2 * this.#slots.length)
    for (const entry of entries) this.#link(entry)
    this.#link({ text, value, next: undefined })
    if (this.#chainOf(text).length > chainLimit) {
      this.#map = new Map(this.#entries().map((entry) => [entry.text, entry.value]))
      this.#slots = []
    }
  }

  /** Takes a text out. It must be in. */
  remove(text: string): void {
    this.#size -= 1
    if (this.#map !== undefined) {
      this.#map.delete(text)
      return
    }
    const left = this.#chainOf(text).filter((entry) => entry.text !== text)
    this.#slots[this.#slotOf(text)] = undefined
    for (const entry of left) this.#link(entry)
  }

  #link(entry: Entry<V>): void {
    const slot = this.#slotOf(entry.text)
    entry.next = this.#slots[slot]
    this.#slots[slot] = entry
  }

  #slotOf(text: string): number {
    return hashOf(text, 0, text.length) & (this.#slots.length - 1)
  }

  #chainOf(text: string): Entry<V>[] {
    return listOf(this.#slots[this.#slotOf(text)])
  }

  #entries(): Entry<V>[] {
    return this.#slots.flatMap(listOf)
  }
}

function emptySlots<V>(count: number): (Entry<V> | undefined)[] {
  return new Array<Entry<V> | undefined>(count).fill(undefined)
}

function listOf<V>(first: Entry<V> | undefined): Entry<V>[] {
  const list: Entry<V>[] = []
  for (let entry = first; entry !== undefined; entry = entry.next) list.push(entry)
  return list
}

function hashOf(path: string, start: number, end: number): number {
  if (end - start < 2) return path.charCodeAt(start)
  return (end - start) * 961 + path.charCodeAt(end - 1) * 31 + path.charCodeAt(end - 2)
}
