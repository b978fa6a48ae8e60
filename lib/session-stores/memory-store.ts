/**
 * Sessions in the memory of this process. They end with it.
 *
 * The sessions are in order of use, accurate to a second: moving a session at each use would take 4 % of a request. So
 * the first is dropped when the store is full. Nearly all expired sessions are in front too, so a sweep begins there
 * and ends after 1000 live sessions: its cost does not grow with the number of sessions. An expired session that a
 * sweep misses is never returned.
 */
import { performance } from 'node:perf_hooks'
import { applyChanges, type FieldChanges, type Fields } from '../session/store.ts'
import type { SessionStore, StoreCounts, StoredSession } from '../session/store.ts'

interface Entry {
  /** Replaced, never changed: readers hold it. */
  fields: Fields
  expiresAt: number
  /** When it was moved to the end of the order. */
  movedAt: number
}

/** The number of live sessions that a sweep visits before it ends. */
const maxSweptLive = 1000
/** A session that is used again within this time keeps its position in the order. */
const movesAfterMs = 1000

/**
 * Creates an empty store, which returns no promises.
 * @param options `max`: the maximum of sessions, from 1; `onFull`: called when a live session is dropped for the first
 *   time; `now`: a monotonic clock in milliseconds, default: `performance.now`
 */
export function createMemoryStore(options: { max: number; onFull: () => void; now?: () => number }): MemoryStore {
  return new MemoryStore(options.max, options.onFull, options.now ?? (() => performance.now()))
}

class MemoryStore implements SessionStore {
  readonly #max: number
  readonly #onFull: () => void
  readonly #now: () => number
  /** In order of use. */
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

  get stored(): number {
    return this.#entries.size
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
      else if ((live += 1) === maxSweptLive) break
    }
    return before - this.#entries.size
  }

  close(): void {
    this.#entries.clear()
  }

  /** Returns an entry and moves it to the end of the order; removes it if expired. */
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
