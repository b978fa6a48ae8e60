/**
 * Sessions in the memory of this process. They end with it.
 *
 * The sessions are in the order of use, exact to a second: to move one at each use takes 4 % of a request with a
 * session. So the first is the one to drop when the store is full. Nearly all expired sessions are in front too, so a
 * sweep begins there and ends after 1000 live ones: its cost does not grow with the number of sessions. An expired
 * session that a sweep leaves is not returned.
 */
import { performance } from 'node:perf_hooks'
import { applyChanges, type FieldChanges, type Fields } from '../session/store.ts'
import type { SessionStore, StoreCounts, StoredSession } from '../session/store.ts'

interface Entry {
  /** Replaced, never changed: readers hold it. */
  fields: Fields
  expiresAt: number
  /** When it was put at the end of the order. */
  movedAt: number
}

/** How many live sessions a sweep visits before it ends. */
const sweepBound = 1000
/** A session that was used again within this time keeps its place in the order. */
const movesAfterMs = 1000

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
  /** In the order of use. */
  readonly #entries = new Map<string, Entry>()
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
    if (this.#entries.size >= this.#max) this.#dropFirst(now)
    this.#entries.set(id, { fields: new Map(fields), expiresAt: now + ttlMs, movedAt: now })
  }

  merge(id: string, changes: FieldChanges, ttlMs: number | undefined): boolean {
    const now = this.#now()
    const entry = this.#use(id, now)
    if (entry === undefined) return false
    entry.fields = applyChanges(entry.fields, changes)
    if (ttlMs !== undefined) entry.expiresAt = now + ttlMs
    return true
  }

  rename(id: string, newId: string, changes: FieldChanges, ttlMs: number): boolean {
    if (!this.merge(id, changes, ttlMs)) return false
    const entry = this.#entries.get(id) as Entry // `merge` has found it.
    this.#entries.delete(id)
    this.#entries.set(newId, entry)
    return true
  }

  destroy(id: string): void {
    this.#entries.delete(id)
  }

  sweep(): number {
    const now = this.#now()
    const before = this.#entries.size
    let live = 0
    for (const [id, { expiresAt }] of this.#entries) {
      if (expiresAt <= now) this.#entries.delete(id)
      else if ((live += 1) === sweepBound) break
    }
    return before - this.#entries.size
  }

  close(): void {
    this.#entries.clear()
  }

  /** Returns an entry, which is now the last one in the order; removes an expired one. */
  #use(id: string, now: number): Entry | undefined {
    const entry = this.#entries.get(id)
    if (entry === undefined) return undefined
    if (entry.expiresAt <= now) {
      this.#entries.delete(id)
      return undefined
    }
    if (now - entry.movedAt >= movesAfterMs) {
      entry.movedAt = now
      this.#entries.delete(id)
      this.#entries.set(id, entry)
    }
    return entry
  }

  #dropFirst(now: number): void {
    const [first] = this.#entries
    if (first === undefined) return
    const [id, { expiresAt }] = first
    this.#entries.delete(id)
    if (expiresAt <= now) return
    this.#evicted += 1
    if (this.#evicted === 1) this.#onFull()
  }
}
