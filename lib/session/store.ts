/**
 * The contract of a session store: where the sessions of an application lie between requests.
 *
 * A session is a set of fields. A field's value is a text, which the store does not look into (`session.ts` writes
 * JSON). An id is a secret: whoever knows it has the session. Every function may answer at once or with a promise.
 *
 * What holds for every store, however many processes and requests use it at the same time:
 *
 * 1. `read` gives a snapshot: what is merged later does not change what was given.
 * 2. `merge` and `rename` change the named fields alone, as one step. Of two requests that change different fields both
 *    changes are there afterwards, of two that change one field the later one's.
 * 3. A step is done as a whole or not at all, also when the process is killed in the middle of it.
 * 4. What was destroyed, has expired or was dropped does not come back: `merge` and `rename` of an id that is not there
 *    change nothing and say so.
 * 5. A session that was used within its time is there, unless a bound of the store was met. One that was not is not
 *    given any more, whether it has been swept or not. To use it is to create, merge or rename it; to read it is not.
 * 6. What fails rejects or throws, and leaves what was there before. Where nobody can tell, since the store was lost
 *    before it answered, it is one of both. A store that cannot be reached now fails with HttpError 503 `shared_away`.
 */
import type { MaybePromise } from '../base/maybe-promise.ts'

/** Names and values of a session. */
export type Fields = ReadonlyMap<string, string>

/** What a request changed. A name is in one of both. */
export interface FieldChanges {
  readonly set: Fields
  readonly removed: ReadonlySet<string>
}

/** A session as it was found. */
export interface StoredSession {
  readonly fields: Fields
  /**
   * Milliseconds until it expires unless it is used; above 0. More than its time when the store's clock was set back:
   * how much is really left is not known then, so it is to be used.
   */
  readonly remainingMs: number
}

/** What a store counted since it was opened. */
export interface StoreCounts {
  /** Sessions that were dropped before their time, to keep a bound. */
  readonly evicted: number
  /** Sessions that were found damaged, and ignored. */
  readonly damaged: number
}

/** A store. Times to live are in milliseconds, above 0. */
export interface SessionStore {
  /** The session with this id; undefined when there is none. */
  read(id: string): MaybePromise<StoredSession | undefined>
  /** Makes a session under an id that was never used. */
  create(id: string, fields: Fields, ttlMs: number): MaybePromise<void>
  /**
   * Changes fields, and lets the session live for this time from now on; without changes it does that alone. False when
   * there is no such session.
   */
  merge(id: string, changes: FieldChanges, ttlMs: number): MaybePromise<boolean>
  /** Gives a session an id that was never used, and changes fields, as one step: the old id is gone. False as above. */
  rename(id: string, newId: string, changes: FieldChanges, ttlMs: number): MaybePromise<boolean>
  /** Ends a session. One that is not there is no error. */
  destroy(id: string): MaybePromise<void>
  /**
   * Removes what has expired, or as much of it as one go can take without being felt; what stays falls to later ones.
   * Returns how many that were: 0 where what expires is gone by itself.
   */
  sweep(): MaybePromise<number>
  /** Lets go of what the store holds open. Nothing is called afterwards. */
  close(): MaybePromise<void>
  readonly counts: StoreCounts
}

/** Which store: one in memory for so many sessions, or the one in a folder, whose path is absolute. */
export type StorePlace =
  | { readonly store: 'memory'; readonly max: number }
  | { readonly store: 'file'; readonly folder: string }

/** Who is told of what happens in a store. */
export interface StoreReports {
  /** A session was dropped to keep the bound of a store in memory, the first time. */
  readonly onFull: () => void
  /** What the operator should know of a store in files. */
  readonly onProblem: (message: string) => void
}
