/**
 * The sessions of a server with several processes. The primary keeps them, in one store for each place that the
 * settings of workers name: so all workers have the same sessions in memory, and no two processes change one session
 * file at the same time. Reading a session is one call, saving it another.
 * A store stays open, so sessions outlive workers that crash or are replaced.
 */
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import { addCounts, noCounts } from '../session/store.ts'
import type { FieldChanges, SessionStore, StoreCounts, StorePlace } from '../session/store.ts'
import { openLocalStore } from '../session-stores/local-store.ts'
import type { Peer } from './peer.ts'
import { remote, serve } from './remote.ts'

/** The entries of a map, which JSON does not have. */
type Pairs = readonly (readonly [name: string, text: string])[]

/** The functions that the primary serves. `place` is the JSON of a StorePlace; the first call opens its store. */
interface Served {
  read(place: string, id: string): MaybePromise<{ readonly fields: Pairs; readonly remainingMs: number } | undefined>
  create(place: string, id: string, fields: Pairs, ttlMs: number): MaybePromise<void>
  merge(place: string, id: string, set: Pairs, removed: readonly string[], ttlMs: number | null): MaybePromise<boolean>
  rename(
    place: string,
    id: string,
    newId: string,
    set: Pairs,
    removed: readonly string[],
    ttlMs: number,
  ): MaybePromise<boolean>
  destroy(place: string, id: string): MaybePromise<void>
  sweep(place: string): MaybePromise<number>
}

/** Makes the store of a worker. */
export function createClusterSessionStore(peer: Peer, storePlace: StorePlace): SessionStore {
  const place = JSON.stringify(storePlace)
  const primary = remote<Served>(peer, 'session')
  return {
    read: async (id) => {
      const found = await primary.read(place, id)
      return found && { fields: new Map(found.fields), remainingMs: found.remainingMs }
    },
    create: (id, fields, ttlMs) => primary.create(place, id, [...fields], ttlMs),
    merge: (id, { set, removed }, ttlMs) => primary.merge(place, id, [...set], [...removed], ttlMs ?? null),
    rename: (id, newId, { set, removed }, ttlMs) => primary.rename(place, id, newId, [...set], [...removed], ttlMs),
    destroy: (id) => primary.destroy(place, id),
    sweep: () => primary.sweep(place),
    close: () => {},
    counts: noCounts, // The primary counts.
  }
}

interface SessionHostOptions {
  /** Called with what the operator should know. */
  readonly onProblem: (message: string) => void
  /** Opens a store; `openLocalStore` unless given. */
  readonly open?: typeof openLocalStore
}

const sweepEveryMs = 60_000

/** Makes the primary's side, the sessions of all workers, without any store yet. */
export function hostSessions({ onProblem, open = openLocalStore }: SessionHostOptions) {
  /** By place. */
  const stores = new Map<string, SessionStore>()
  const timer = setInterval(sweep, sweepEveryMs).unref()

  function use(place: string): SessionStore {
    const store = stores.get(place) ?? open(JSON.parse(place) as StorePlace, onProblem) // As sent.
    stores.set(place, store)
    return store
  }

  /** Removes expired sessions. */
  function sweep(): void {
    forEach('sweep the sessions', (store) => store.sweep())
  }

  /** Runs work that no request waits for. */
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
        read: (place, id) =>
          after(use(place).read(id), (found) => {
            return found && { fields: [...found.fields], remainingMs: found.remainingMs }
          }),
        create: (place, id, fields, ttlMs) => use(place).create(id, new Map(fields), ttlMs),
        merge: (place, id, set, removed, ttlMs) => use(place).merge(id, changesOf(set, removed), ttlMs ?? undefined),
        rename: (place, id, newId, set, removed, ttlMs) =>
          use(place).rename(id, newId, changesOf(set, removed), ttlMs),
        destroy: (place, id) => use(place).destroy(id),
        sweep: (place) => use(place).sweep(),
      }),
    /** The counts of all stores since the start. */
    get counts(): StoreCounts {
      return [...stores.values()].reduce((sum, { counts }) => addCounts(sum, counts), noCounts)
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
