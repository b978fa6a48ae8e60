/**
 * The contract of a session store, which keeps the sessions of an application between requests.
 *
 * A session is a set of fields. A field's value is a text that the store does not interpret (`session.ts` writes JSON).
 * An id is a secret: knowing it is having the session. Every function may return a value or a promise.
 *
 * Every store guarantees, however many processes and requests use it at the same time:
 *
 * 1. `read` gives a snapshot: a later merge does not change it.
 * 2. `merge` and `rename` change the named fields alone, as one step. When two requests change different fields, both
 *    changes are kept; when they change the same field, the later change is.
 * 3. A step is done as a whole or not at all, even when the process is killed in the middle of it.
 * 4. A session that was destroyed, has expired or was dropped does not come back: `merge` and `rename` of an id that is
 *    not there change nothing and return false.
 * 5. A session that was used within its time is there, unless the store had to drop it to keep a bound. One that was
 *    not is never returned, swept or not. Creating, renaming and a merge that renews use a session; reading does not.
 * 6. A step that fails rejects or throws, and changes nothing. When the connection to the store was lost before it
 *    answered, the step may have been done. A store that cannot be reached fails with HttpError 503 `shared_away`.
 */
import type { MaybePromise } from '../base/maybe-promise.ts'

/** Names and values of a session. */
export type Fields = ReadonlyMap<string, string>

/** The changes of a request. A name is in one of the two. */
export interface FieldChanges {
  readonly set: Fields
  readonly removed: ReadonlySet<string>
}

/** Fields with changes made, as a new map; the same map when there are none. */
export function applyChanges(fields: Fields, changes: FieldChanges): Fields {
  if (changes.set.size === 0 && changes.removed.size === 0) return fields
  const changed = new Map(fields)
  for (const [name, text] of changes.set) changed.set(name, text)
  for (const name of changes.removed) changed.delete(name)
  return changed
}

/** A session as the store has it. */
export interface StoredSession {
  readonly fields: Fields
  /**
   * Milliseconds until it expires unless it is used; above 0. It is more than the session's time to live when the
   * store's clock was set back: the real rest is unknown then, and the session should be used.
   */
  readonly remainingMs: number
}

/** Counts since the store was opened. */
export interface StoreCounts {
  /** Sessions dropped before their time to keep a bound. */
  readonly evicted: number
  /** Damaged sessions that were found and ignored. */
  readonly damaged: number
}

/** The counts of a store in which nothing has happened. */
export const noCounts: StoreCounts = { evicted: 0, damaged: 0 }

/** The counts of two stores together. */
export function addCounts(a: StoreCounts, b: StoreCounts): StoreCounts {
  return { evicted: a.evicted + b.evicted, damaged: a.damaged + b.damaged }
}

/** A store. Times to live are in milliseconds, above 0. */
export interface SessionStore {
  /** The session with this id; undefined when there is none. */
  read(id: string): MaybePromise<StoredSession | undefined>
  /** Creates a session under an id that was never used. */
  create(id: string, fields: Fields, ttlMs: number): MaybePromise<void>
  /**
   * Changes fields, if any, and renews the session's time to live, unless `ttlMs` is undefined. False when there is no
   * such session.
   */
  merge(id: string, changes: FieldChanges, ttlMs: number | undefined): MaybePromise<boolean>
  /** Moves a session to an id that was never used and changes fields, as one step. False as above. */
  rename(id: string, newId: string, changes: FieldChanges, ttlMs: number): MaybePromise<boolean>
  /** Ends a session. It is no error when there is none. */
  destroy(id: string): MaybePromise<void>
  /**
   * Removes expired sessions, or a part of them when removing all would take noticeably long. Returns how many it
   * removed; 0 in a store where expired sessions disappear by themselves.
   */
  sweep(): MaybePromise<number>
  /** Closes files and connections. No function is called afterwards. */
  close(): MaybePromise<void>
  readonly counts: StoreCounts
}

/** Which store: one in memory for `max` sessions, or one in files below an absolute folder. */
export type StorePlace =
  | { readonly store: 'memory'; readonly max: number }
  | { readonly store: 'file'; readonly folder: string }
