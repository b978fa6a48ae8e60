/**
 * The contract of a session store, which keeps the sessions of an application between requests.
 *
 * A session is a set of fields. A field's value is a string that the store does not interpret (`session.ts` writes
 * JSON). An id is a secret: whoever knows it has the session. Every function may return a value or a promise.
 *
 * Every store guarantees, for any number of concurrent processes and requests:
 *
 * 1. `read` returns a snapshot: a later merge does not change it.
 * 2. `merge` and `rename` change only the named fields, as one step. If two requests change different fields, both
 *    changes are kept; if they change the same field, the later change wins.
 * 3. A step is atomic, even if the process is killed in the middle of it.
 * 4. A session that was destroyed, expired or dropped does not come back: `merge` and `rename` of a missing id change
 *    nothing and return false.
 * 5. A session that was used within its time exists, unless the store had to drop it to stay within a limit. Any other
 *    session is never returned, swept or not. Creating, renaming and a renewing merge use a session; reading does not.
 * 6. A failing step rejects or throws, and changes nothing. If the connection to the store is lost before the answer,
 *    the step may have been done. A store that cannot be reached fails with HttpError 503 `shared_away`.
 */
import type { MaybePromise } from '../base/maybe-promise.ts'

/** Names and values of a session. */
export type Fields = ReadonlyMap<string, string>

/** The changes of a request. A name is in only one of the two. */
export interface FieldChanges {
  readonly set: Fields
  readonly removed: ReadonlySet<string>
}

/** Returns a new map with the changes applied; the same map if there are none. */
export function applyChanges(fields: Fields, changes: FieldChanges): Fields {
  if (changes.set.size === 0 && changes.removed.size === 0) return fields
  const changed = new Map(fields)
  for (const [name, text] of changes.set) changed.set(name, text)
  for (const name of changes.removed) changed.delete(name)
  return changed
}

/** A session in the store. */
export interface StoredSession {
  readonly fields: Fields
  /**
   * Milliseconds until it expires if unused; above 0. It exceeds the time to live if the store's clock was set back:
   * the real rest is then unknown, and the session should be renewed.
   */
  readonly remainingMs: number
}

/** Counts since the store was opened. */
export interface StoreCounts {
  /** Sessions dropped early to stay within a limit. */
  readonly evicted: number
  /** Damaged sessions found and ignored. */
  readonly damaged: number
}

/** The counts of a new store. */
export const noCounts: StoreCounts = { evicted: 0, damaged: 0 }

/** Adds the counts of two stores. */
export function addCounts(a: StoreCounts, b: StoreCounts): StoreCounts {
  return { evicted: a.evicted + b.evicted, damaged: a.damaged + b.damaged }
}

/** A store. Times to live are in milliseconds, above 0. */
export interface SessionStore {
  /** Returns the session with this id; undefined if there is none. */
  read(id: string): MaybePromise<StoredSession | undefined>
  /** Creates a session under an id that was never used. */
  create(id: string, fields: Fields, ttlMs: number): MaybePromise<void>
  /**
   * Changes fields, if any, and renews the session's time to live, unless `ttlMs` is undefined. Returns false if there
   * is no such session.
   */
  merge(id: string, changes: FieldChanges, ttlMs: number | undefined): MaybePromise<boolean>
  /** Moves a session to an id that was never used and changes fields, as one step. Returns false as above. */
  rename(id: string, newId: string, changes: FieldChanges, ttlMs: number): MaybePromise<boolean>
  /** Ends a session. Does nothing if there is none. */
  destroy(id: string): MaybePromise<void>
  /**
   * Removes expired sessions, or part of them if removing all would take noticeably long. Returns the number of removed
   * sessions; 0 in a store that expires sessions itself.
   */
  sweep(): MaybePromise<number>
  /** Closes files and connections. No function is called afterwards. */
  close(): MaybePromise<void>
  readonly counts: StoreCounts
  /** The stored sessions, with expired ones that no sweep has removed; undefined where that is not known. */
  readonly stored?: number | undefined
}

/** Where to store sessions: in memory, at most `max`, in files below an absolute folder, or in the database. */
export type StoreSettings =
  | { readonly store: 'memory'; readonly max: number }
  | { readonly store: 'file'; readonly folder: string }
  | { readonly store: 'data' }
