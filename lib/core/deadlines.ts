/**
 * Deadlines of many entries in one ordered structure with one timer: a binary heap, in which each entry keeps its own
 * place, so that it is removed without being looked for.
 *
 * Surprise: the timer is never moved to a later time. When its entry has been removed it fires for nothing and is set
 * anew, so that most waits cost no timer at all.
 */
import { performance } from 'node:perf_hooks'

/** What has a deadline. Both fields are changed by `Deadlines` alone while the entry is in it. */
export interface Timed {
  /** By the clock of the deadlines; Infinity: never. */
  deadlineAt: number
  /** Its place in the heap; -1: it is in none. */
  heapIndex: number
}

/** A clock in milliseconds that does not jump, and its timer. */
export interface Clock {
  now(): number
  /** Calls `run` once, at the earliest after some milliseconds. Returns what cancels it. */
  after(delayMs: number, run: () => void): () => void
}

export const systemClock: Clock = {
  now: () => performance.now(),
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs)
    return () => clearTimeout(timer)
  },
}

/** How many entries run out in one turn of the event loop, before others get theirs. */
export const entriesPerTurn = 256
/** The longest that a timer of Node can take, in milliseconds. */
const maxDelayMs = 2 ** 31 - 1

/** Entries by their deadlines. They run out in order; equal ones in any order. */
export class Deadlines<T extends Timed> {
  readonly #clock: Clock
  readonly #runOut: (entry: T) => void
  readonly #heap: T[] = []
  #cancel: (() => void) | undefined = undefined
  #timerAt = Infinity
  #allAreDue = false

  /** @param runOut called with an entry whose time is over, after it was removed. It must not throw */
  constructor(runOut: (entry: T) => void, clock: Clock = systemClock) {
    this.#runOut = runOut
    this.#clock = clock
  }

  /** How many entries are in it, those included that never run out. */
  get size(): number {
    return this.#heap.length
  }

  /** The clock's time now. */
  now(): number {
    return this.#clock.now()
  }

  /** Adds an entry that is in none, by its `deadlineAt`. */
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
    const last = this.#heap.pop() as T // It has at least the entry.
    if (last !== entry) {
      this.#place(last, at)
      this.#rise(last)
      this.#sink(last)
    }
    if (this.#heap.length === 0) this.#clearTimer()
    return true
  }

  /** From now on everything is due, whatever its deadline: what is there runs out in the turns that follow. */
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

  /** Sets the timer for the first entry, unless it fires before that anyway. */
  #setTimer(): void {
    const dueAt = this.#allAreDue ? -Infinity : (this.#heap[0] as T).deadlineAt // Only called where there is one.
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
      const parent = heap[parentAt] as T // Above a place in the heap there is one.
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
