/**
 * Sessions in the memory of this process. They end with it.
 *
 * The sessions are linked in the order of use: one that is read or changed moves to the end. So the first is the one
 * to drop when the store is full. Nearly all expired sessions are in front too, so a sweep begins there and ends after
 * 1000 live ones: its cost does not grow with the number of sessions. An expired session that a sweep leaves is not
 * returned.
 *
 * A `Map` in the order of use would need 60 lines less: to delete and set an entry at each use takes 4 % of a request
 * with a session.
 */
import { performance } from 'node:perf_hooks'
import { applyChanges, type FieldChanges, type Fields } from '../session/store.ts'
import type { SessionStore, StoreCounts, StoredSession } from '../session/store.ts'

/** A place in the order of use. */
interface Link {
  before: Link
  after: Link
}

interface Entry extends Link {
  id: string
  /** Replaced, never changed: readers hold it. */
  fields: Fields
  expiresAt: number
}

/** How many live sessions a sweep visits before it ends. */
const sweepBound = 1000

/**
 * Makes an empty store, which answers without promises.
 * @param options `max`: the most sessions, from 1; `onFull`: called when a live session is dropped for the first time;
 *   `now`: a clock in milliseconds that does not jump, `performance.now` unless given
 */
export function createMemoryStore(options: { max: number; onFull: () => void; now?: () => number }): MemoryStore {
  return new MemoryStore(options.max, options.onFull, options.now ?? (() => performance.now()))
}

class MemoryStore implements SessionStore {
  readonly #max: number
  readonly #onFull: () => void
  readonly #now: () => number
  readonly #entries = new Map<string, Entry>()
  /** Stands between the last entry and the first one, so that each has neighbours. */
  readonly #ends = makeEnds()
  #evicted = 0

  constructor(max: number, onFull: () => void, now: () => number) {
    this.#max = max
    this.#onFull = onFull
    this.#now = now
  }

  get counts(): StoreCounts {
    return { evicted: this.#evicted, damaged: 0 }
  }

  read(id: string): StoredSession | undefined {
    const now = this.#now()
    const entry = this.#use(id, now)
    return entry && { fields: entry.fields, remainingMs: entry.expiresAt - now }
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
    const entry = this.#use(id, now)
    if (entry === undefined) return false
    entry.fields = applyChanges(entry.fields, changes)
    entry.expiresAt = now + ttlMs
    return true
  }

  rename(id: string, newId: string, changes: FieldChanges, ttlMs: number): boolean {
    if (!this.merge(id, changes, ttlMs)) return false
    const entry = this.#entries.get(id) as Entry // `merge` has found it.
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
    let live = 0
    for (let link = this.#ends.after; link !== this.#ends && live < sweepBound; link = link.after) {
      const entry = link as Entry // All but the ends are entries.
      if (entry.expiresAt > now) live += 1
      else {
        this.#remove(entry) // Its own links stay, so the walk goes on from it.
        removed += 1
      }
    }
    return removed
  }

  close(): void {
    this.#entries.clear()
    this.#ends.before = this.#ends
    this.#ends.after = this.#ends
  }

  /** Moves an entry to the end of the order and returns it; removes an expired one. */
  #use(id: string, now: number): Entry | undefined {
    const entry = this.#entries.get(id)
    if (entry === undefined) return undefined
    if (entry.expiresAt <= now) {
      this.#remove(entry)
      return undefined
    }
    unlink(entry)
    this.#append(entry)
    return entry
  }

  #dropFirst(now: number): void {
    const first = this.#ends.after as Entry // The store is full, so there is one.
    this.#remove(first)
    if (first.expiresAt <= now) return
    this.#evicted += 1
    if (this.#evicted === 1) this.#onFull()
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

function unlink({ before, after }: Link): void {
  before.after = after
  after.before = before
}

function makeEnds(): Link {
  const ends = {} as Link // It gets its links here.
  ends.before = ends
  ends.after = ends
  return ends
}
