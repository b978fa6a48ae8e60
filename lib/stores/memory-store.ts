/**
 * Sessions in the memory of this process. They end with it.
 *
 * The map is in the order of use: a session that is read or changed moves to its end. So the first session is the one
 * to drop when the store is full. Nearly all expired sessions are in front too, so a sweep begins there and ends after
 * 1000 live ones: its cost does not grow with the number of sessions. An expired session that a sweep leaves is not
 * returned.
 */
import { performance } from 'node:perf_hooks'
import { applyChanges } from '../session/apply-changes.ts'
import type { FieldChanges, Fields, SessionStore, StoreCounts, StoredSession } from '../session/store.ts'

interface Entry {
  /** Replaced, never changed: readers hold it. */
  readonly fields: Fields
  readonly expiresAt: number
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
  /**
   * Kept from one drop to the next, until a session is used: a new iterator would visit the places of all entries that
   * have been removed since the map was last compacted.
   */
  #oldest: Iterator<[string, Entry]> | undefined
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
    const entry = this.#take(id, now)
    if (entry === undefined) return undefined
    this.#entries.set(id, entry)
    return { fields: entry.fields, remainingMs: entry.expiresAt - now }
  }

  create(id: string, fields: Fields, ttlMs: number): void {
    const now = this.#now()
    this.#entries.delete(id)
    if (this.#entries.size >= this.#max) this.#dropFirst(now)
    this.#entries.set(id, { fields: new Map(fields), expiresAt: now + ttlMs })
  }

  merge(id: string, changes: FieldChanges, ttlMs: number): boolean {
    return this.rename(id, id, changes, ttlMs)
  }

  rename(id: string, newId: string, changes: FieldChanges, ttlMs: number): boolean {
    const now = this.#now()
    const entry = this.#take(id, now)
    if (entry === undefined) return false
    this.#entries.set(newId, { fields: applyChanges(entry.fields, changes), expiresAt: now + ttlMs })
    return true
  }

  destroy(id: string): void {
    this.#entries.delete(id)
  }

  sweep(): number {
    const now = this.#now()
    let removed = 0
    let live = 0
    for (const [id, entry] of this.#entries) {
      if (entry.expiresAt <= now) {
        this.#entries.delete(id)
        removed += 1
      } else if (++live === sweepBound) break
    }
    return removed
  }

  close(): void {
    this.#entries.clear()
  }

  /** Removes an entry and returns it, unless it has expired. */
  #take(id: string, now: number): Entry | undefined {
    const entry = this.#entries.get(id)
    if (entry === undefined) return undefined
    this.#entries.delete(id)
    this.#oldest = undefined
    return entry.expiresAt > now ? entry : undefined
  }

  #dropFirst(now: number): void {
    this.#oldest ??= this.#entries.entries()
    const { value, done } = this.#oldest.next()
    if (done === true) return
    const [id, { expiresAt }] = value
    this.#entries.delete(id)
    if (expiresAt <= now) return
    this.#evicted += 1
    if (this.#evicted === 1) this.#onFull()
  }
}
