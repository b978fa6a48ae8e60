/**
 * Sessions in the memory of this process. They end with it.
 *
 * Surprise: they are linked in the order of the last use, reading included, and the first one goes when there is no
 * room. What has expired is in front too, but for a few, so a sweep begins there and ends at a bound: its cost does not
 * grow with the number of sessions. What it leaves is not given any more, and falls to a later sweep.
 */
import { performance } from 'node:perf_hooks'
import { applyChanges, type FieldChanges, type Fields } from '../session/store.ts'
import type { SessionStore, StoreCounts, StoredSession } from '../session/store.ts'

export interface MemoryStoreOptions {
  /** The most sessions, from 1. */
  readonly max: number
  /** Called when a session is dropped to keep the bound, the first time alone. */
  readonly onFull: () => void
  /** A clock in milliseconds that does not jump; `performance.now` unless given. */
  readonly now?: () => number
}

/** A store that answers at once. */
export interface SynchronousStore extends SessionStore {
  read(id: string): StoredSession | undefined
  create(id: string, fields: Fields, ttlMs: number): void
  merge(id: string, changes: FieldChanges, ttlMs: number): boolean
  rename(id: string, newId: string, changes: FieldChanges, ttlMs: number): boolean
  destroy(id: string): void
  sweep(): number
  close(): void
}

interface Entry {
  id: string
  /** Replaced, never changed, when fields change: readers have it. */
  fields: Fields
  expiresAt: number
  /** The neighbours in the order of use. Those of `#ends` are the last and the first entry. */
  before: Entry
  after: Entry
}

/** How many live sessions one sweep looks at before it ends. */
const sweepBound = 1000

/** Makes an empty store. */
export function createMemoryStore(options: MemoryStoreOptions): SynchronousStore {
  return new MemoryStore(options)
}

class MemoryStore implements SynchronousStore {
  readonly #max: number
  readonly #onFull: () => void
  readonly #now: () => number
  readonly #entries = new Map<string, Entry>()
  readonly #ends = makeEnds()
  #evicted = 0

  constructor({ max, onFull, now = () => performance.now() }: MemoryStoreOptions) {
    this.#max = max
    this.#onFull = onFull
    this.#now = now
  }

  get counts(): StoreCounts {
    return { evicted: this.#evicted, damaged: 0 }
  }

  read(id: string): StoredSession | undefined {
    const now = this.#now()
    const entry = this.#live(id, now)
    if (entry === undefined) return undefined
    this.#moveToEnd(entry)
    return { fields: entry.fields, remainingMs: entry.expiresAt - now }
  }

  create(id: string, fields: Fields, ttlMs: number): void {
    const now = this.#now()
    this.destroy(id)
    if (this.#entries.size >= this.#max) this.#dropFirst(now)
    const entry = { id, fields: new Map(fields), expiresAt: now + ttlMs, before: this.#ends, after: this.#ends }
    this.#append(entry)
    this.#entries.set(id, entry)
  }

  merge(id: string, changes: FieldChanges, ttlMs: number): boolean {
    const now = this.#now()
    const entry = this.#live(id, now)
    if (entry === undefined) return false
    entry.fields = applyChanges(entry.fields, changes)
    entry.expiresAt = now + ttlMs
    this.#moveToEnd(entry)
    return true
  }

  rename(id: string, newId: string, changes: FieldChanges, ttlMs: number): boolean {
    if (!this.merge(id, changes, ttlMs)) return false
    const entry = this.#entries.get(id) as Entry // it has just been merged
    this.#entries.delete(id)
    entry.id = newId
    this.#entries.set(newId, entry)
    return true
  }

  destroy(id: string): void {
    const entry = this.#entries.get(id)
    if (entry !== undefined) this.#remove(entry)
  }

  sweep(): number {
    const now = this.#now()
    let removed = 0
    let left = sweepBound
    for (let entry = this.#ends.after; entry !== this.#ends && left > 0; entry = entry.after) {
      if (entry.expiresAt <= now) {
        this.#remove(entry)
        removed += 1
      } else left -= 1
    }
    return removed
  }

  close(): void {
    this.#entries.clear()
    this.#ends.before = this.#ends
    this.#ends.after = this.#ends
  }

  #live(id: string, now: number): Entry | undefined {
    const entry = this.#entries.get(id)
    if (entry === undefined || entry.expiresAt > now) return entry
    this.#remove(entry)
    return undefined
  }

  #dropFirst(now: number): void {
    const first = this.#ends.after
    this.#remove(first)
    if (first.expiresAt <= now) return
    this.#evicted += 1
    if (this.#evicted === 1) this.#onFull()
  }

  #moveToEnd(entry: Entry): void {
    unlink(entry)
    this.#append(entry)
  }

  #append(entry: Entry): void {
    entry.before = this.#ends.before
    entry.after = this.#ends
    this.#ends.before.after = entry
    this.#ends.before = entry
  }

  #remove(entry: Entry): void {
    unlink(entry)
    this.#entries.delete(entry.id)
  }
}

/** Takes an entry out of the order. Its own neighbours stay in it, so a walk can go on from there. */
function unlink(entry: Entry): void {
  entry.before.after = entry.after
  entry.after.before = entry.before
}

/** What stands before the first and after the last entry, so that each has neighbours. */
function makeEnds(): Entry {
  const ends = { id: '', fields: new Map(), expiresAt: Infinity } as unknown as Entry // completed in the next line
  return Object.assign(ends, { before: ends, after: ends })
}
