/**
 * The sessions of a server with several processes. The primary keeps them, in one store for each location in
 * the settings of workers: so all workers share the sessions in memory, and no two processes change one session file at
 * the same time. Reading a session is one call, saving it another.
 * A store stays open, so sessions outlive workers that crash or are replaced.
 */
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import { addCounts, noCounts } from '../session/store.ts'
import type { FieldChanges, SessionStore, StoreCounts, StoreSettings } from '../session/store.ts'
import { openLocalStore } from '../session-stores/local-store.ts'
import type { Peer } from './peer.ts'
import { remote, serve } from './remote.ts'

/** The entries of a map, which JSON does not have. */
type Pairs = readonly (readonly [name: string, text: string])[]

/** The functions that the primary serves. `key` is the JSON of a StoreSettings; the first call opens its store. */
interface Served {
  read(key: string, id: string): MaybePromise<{ readonly fields: Pairs; readonly remainingMs: number } | undefined>
  create(key: string, id: string, fields: Pairs, ttlMs: number): MaybePromise<void>
  merge(key: string, id: string, set: Pairs, removed: readonly string[], ttlMs: number | null): MaybePromise<boolean>
  rename(
    key: string,
    id: string,
    newId: string,
    set: Pairs,
    removed: readonly string[],
    ttlMs: number,
  ): MaybePromise<boolean>
  destroy(key: string, id: string): MaybePromise<void>
  sweep(key: string): MaybePromise<number>
}

/** Makes the store of a worker. */
export function createClusterSessionStore(peer: Peer, storeSettings: StoreSettings): SessionStore {
  const key = JSON.stringify(storeSettings)
  const primary = remote<Served>(peer, 'session')
  // Open the database now, so that the start fails if it cannot be used.
  if (storeSettings.store === 'data') void primary.sweep(key).catch(() => {})
  return {
    read: async (id) => {
      const found = await primary.read(key, id)
      return found && { fields: new Map(found.fields), remainingMs: found.remainingMs }
    },
    create: (id, fields, ttlMs) => primary.create(key, id, [...fields], ttlMs),
    merge: (id, { set, removed }, ttlMs) => primary.merge(key, id, [...set], [...removed], ttlMs ?? null),
    rename: (id, newId, { set, removed }, ttlMs) => primary.rename(key, id, newId, [...set], [...removed], ttlMs),
    destroy: (id) => primary.destroy(key, id),
    sweep: () => primary.sweep(key),
    close: () => {},
    counts: noCounts, // The primary counts.
  }
}

interface SessionHostOptions {
  /** Called with a message for the operator. */
  readonly onProblem: (message: string) => void
  /** Opens a store; by default `openLocalStore`. */
  readonly open?: typeof openLocalStore
}

const sweepEveryMs = 60_000

/** Makes the primary's side, the sessions of all workers. No store is open yet. */
export function hostSessions({ onProblem, open = openLocalStore }: SessionHostOptions) {
  /** By the JSON of their StoreSettings. */
  const stores = new Map<string, SessionStore>()
  const timer = setInterval(sweep, sweepEveryMs).unref()

  function use(key: string): SessionStore {
    const store = stores.get(key) ?? open(JSON.parse(key) as StoreSettings, onProblem) // As sent.
    stores.set(key, store)
    return store
  }

  /** Removes expired sessions. */
  function sweep(): void {
    forEach('sweep the sessions', (store) => store.sweep())
  }

  /** Runs work in the background. Reports its errors. */
  function forEach(what: string, work: (store: SessionStore) => unknown): void {
    for (const store of stores.values()) {
      Promise.resolve(store)
        .then(work)
        .catch((error: Error) => onProblem(`Cannot ${what}: ${error.message}`))
    }
  }

  return {
    /** Serves a worker until its channel closes. Call it once, before the first message of the worker arrives. */
    attach: (peer: Peer): void =>
      serve<Served>(peer, 'session', {
        read: (key, id) =>
          after(use(key).read(id), (found) => {
            return found && { fields: [...found.fields], remainingMs: found.remainingMs }
          }),
        create: (key, id, fields, ttlMs) => use(key).create(id, new Map(fields), ttlMs),
        merge: (key, id, set, removed, ttlMs) => use(key).merge(id, changesOf(set, removed), ttlMs ?? undefined),
        rename: (key, id, newId, set, removed, ttlMs) =>
          use(key).rename(id, newId, changesOf(set, removed), ttlMs),
        destroy: (key, id) => use(key).destroy(id),
        sweep: (key) => use(key).sweep(),
      }),
    /** The counts of all stores since the start. */
    get counts(): StoreCounts {
      return [...stores.values()].reduce((sum, { counts }) => addCounts(sum, counts), noCounts)
    },
    /** The sessions in all stores that know their number; undefined if none does. */
    get stored(): number | undefined {
      const known = [...stores.values()].flatMap(({ stored }) => stored ?? [])
      return known.length === 0 ? undefined : known.reduce((sum, stored) => sum + stored, 0)
    },
    sweep,
    /** Closes all stores. */
    close: (): void => {
      clearInterval(timer)
      forEach('close the session store', (store) => store.close())
    },
  }
}

function changesOf(set: Pairs, removed: readonly string[]): FieldChanges {
  return { set: new Map(set), removed: new Set(removed) }
}
