/**
 * The deadlines of many entries in a binary heap with one timer. Each entry knows its index in the heap, so that it can
 * be removed without a search.
 *
 * The timer is never moved to a later time: when its entry has been removed it fires for nothing and is set again, so
 * that most waits cost no timer at all.
 */
import { performance } from 'node:perf_hooks'

/** An entry. While it is in a heap, only `Deadlines` changes the two fields. */
export interface Timed {
  /** Milliseconds by the clock of the deadlines; Infinity: never. */
  deadlineAt: number
  /** Its index in the heap; -1: in none. */
  heapIndex: number
}

/** A monotonic clock in milliseconds, and its timer. */
export interface Clock {
  now(): number
  /** Calls `run` once, after `delayMs` or later. Returns a function that cancels the call. */
  after(delayMs: number, run: () => void): () => void
}

/** The clock of the process. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs)
    return () => clearTimeout(timer)
  },
}

/** The most entries that run out in one turn of the event loop, so that other work gets its turn. */
export const entriesPerTurn = 256
/** The longest delay of a timer, in milliseconds. */
const maxDelayMs = 2 ** 31 - 1

/** A heap of entries. They run out in the order of their deadlines; equal ones in any order. */
export class Deadlines<T extends Timed> {
  readonly #clock: Clock
  readonly #runOut: (entry: T) => void
  readonly #heap: T[] = []
  #cancel: (() => void) | undefined = undefined
  #timerAt = Infinity
  #allAreDue = false

  /** @param runOut called with an entry whose deadline has passed, after it was removed. Must not throw */
  constructor(runOut: (entry: T) => void, clock: Clock = systemClock) {
    this.#runOut = runOut
    this.#clock = clock
  }

  /** The number of entries, including those that never run out. */
  get size(): number {
    return this.#heap.length
  }

  /** The clock's time now. */
  now(): number {
    return this.#clock.now()
  }

  /** Adds an entry that is in no heap. */
  add(entry: T): void {
    entry.heapIndex = this.#heap.length
    this.#heap.push(entry)
    this.#rise(entry)
    if (entry.heapIndex === 0) this.#setTimer()
  }

  /** Removes an entry. Returns false when it was not there. */
  remove(entry: T): boolean {
    const at = entry.heapIndex
    if (at < 0) return false
    entry.heapIndex = -1
    const last = this.#heap.pop() as T // The heap has at least this entry.
    if (last !== entry) {
      this.#place(last, at)
      this.#rise(last)
      this.#sink(last)
    }
    if (this.#heap.length === 0) this.#clearTimer()
    return true
  }

  /** Makes all entries due, also later ones: they run out in the turns that follow. */
  runOutAll(): void {
    this.#allAreDue = true
    if (this.#heap.length > 0) this.#setTimer()
  }

  #isDue(entry: T): boolean {
    return this.#allAreDue || entry.deadlineAt <= this.#clock.now()
  }

  #fire(): void {
    this.#timerAt = Infinity
    this.#cancel = undefined
    for (let count = 0; count < entriesPerTurn; count += 1) {
      const [first] = this.#heap
      if (first === undefined || !this.#isDue(first)) break
      this.remove(first)
      this.#runOut(first)
    }
    if (this.#heap.length > 0) this.#setTimer()
  }

  /** Sets the timer for the first entry, unless it fires earlier anyway. */
  #setTimer(): void {
    const dueAt = this.#allAreDue ? -Infinity : (this.#heap[0] as T).deadlineAt // Only called when there is one.
    if (dueAt >= this.#timerAt) return
    this.#clearTimer()
    this.#timerAt = dueAt
    const delayMs = Math.max(0, Math.ceil(dueAt - this.#clock.now()))
    this.#cancel = this.#clock.after(Math.min(delayMs, maxDelayMs), () => this.#fire())
  }

  #clearTimer(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#timerAt = Infinity
  }

  #rise(entry: T): void {
    const heap = this.#heap
    let at = entry.heapIndex
    while (at > 0) {
      const parentAt = (at - 1) >> 1
      const parent = heap[parentAt] as T // Every index but 0 has a parent.
      if (parent.deadlineAt <= entry.deadlineAt) break
      this.#place(parent, at)
      at = parentAt
    }
    this.#place(entry, at)
  }

  #sink(entry: T): void {
    const heap = this.#heap
    let at = entry.heapIndex
    for (;;) {
      let childAt = 2 * at + 1
      let child = heap[childAt]
      const right = heap[childAt + 1]
      if (child !== undefined && right !== undefined && right.deadlineAt < child.deadlineAt) {
        child = right
        childAt += 1
      }
      if (child === undefined || child.deadlineAt >= entry.deadlineAt) break
      this.#place(child, at)
      at = childAt
    }
    this.#place(entry, at)
  }

  #place(entry: T, at: number): void {
    this.#heap[at] = entry
    entry.heapIndex = at
  }
}
