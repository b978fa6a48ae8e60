/**
 * The sessions of a server with several processes. The primary keeps them, in one store for each place that the
 * settings of workers name: so all workers have the same sessions in memory, and no two processes change one session
 * file at the same time. Reading a session is one call, saving it another.
 *
 * A store stays open without workers until a worker uses another store. So sessions outlive workers that crash or are
 * replaced, and go away when the settings change.
 */
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import type { FieldChanges, SessionStore, StorePlace, StoreReports } from '../session/store.ts'
import { openLocalStore } from '../stores/local-store.ts'
import type { Peer } from './peer.ts'
import { remote, serve, type Remote } from './remote.ts'

/** The entries of a map, which JSON does not have. */
type Pairs = readonly (readonly [name: string, text: string])[]

/** The functions that the primary serves. `place` is the JSON of a StorePlace; the first call opens its store. */
interface Served {
  read(place: string, id: string): MaybePromise<{ readonly fields: Pairs; readonly remainingMs: number } | undefined>
  /** When this call dropped a session, for want of room, returns how many have been dropped so far. */
  create(place: string, id: string, fields: Pairs, ttlMs: number): MaybePromise<number | undefined>
  merge(place: string, id: string, set: Pairs, removed: readonly string[], ttlMs: number): MaybePromise<boolean>
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
  leave(place: string): void
}

/**
 * Makes the store of a worker.
 * @param onFull called once for the whole server, when a store in memory drops its first session for want of room, in
 *   the worker that created the new session
 */
export function createClusterSessionStore(peer: Peer, storePlace: StorePlace, onFull: () => void): SessionStore {
  const place = JSON.stringify(storePlace)
  let primary: Remote<Served> | undefined
  let evicted = 0
  const used = (): Remote<Served> => (primary ??= remote<Served>(peer, 'session'))
  return {
    read: async (id) => {
      const found = await used().read(place, id)
      return found && { fields: new Map(found.fields), remainingMs: found.remainingMs }
    },
    create: async (id, fields, ttlMs) => {
      const dropped = await used().create(place, id, [...fields], ttlMs)
      if (dropped === undefined) return
      evicted += 1
      if (dropped === 1) onFull()
    },
    merge: (id, { set, removed }, ttlMs) => used().merge(place, id, [...set], [...removed], ttlMs),
    rename: (id, newId, { set, removed }, ttlMs) => used().rename(place, id, newId, [...set], [...removed], ttlMs),
    destroy: (id) => used().destroy(place, id),
    sweep: () => used().sweep(place),
    close: () => void primary?.leave(place).catch(() => {}), // A primary that has ended has no stores.
    /** Sessions dropped by calls of this process; the primary counts damaged sessions. */
    get counts() {
      return { evicted, damaged: 0 }
    },
  }
}

interface SessionHostOptions {
  /** Called with problems of a store in files. */
  readonly onProblem: (message: string) => void
  /** Opens a store; `openLocalStore` unless given. */
  readonly open?: (place: StorePlace, reports: StoreReports) => SessionStore
}

/** The primary's side: the sessions of all workers. */
export interface SessionHost {
  /** Serves a worker until its channel closes. Call it once, before the first message of the worker arrives. */
  attach(peer: Peer): void
  /** Damaged sessions found since the start. */
  readonly damaged: number
  /** Removes expired sessions; called once a minute. */
  sweep(): void
  /** Closes all stores. */
  close(): void
}

interface Hosted {
  readonly store: SessionStore
  readonly users: Set<Peer>
}

const sweepEveryMs = 60_000

/** Makes the primary's side, without any store yet. */
export function hostSessions({ onProblem, open = openLocalStore }: SessionHostOptions): SessionHost {
  /** By place. */
  const stores = new Map<string, Hosted>()
  let damagedInClosed = 0
  const timer = setInterval(sweep, sweepEveryMs).unref()

  function use(place: string, peer: Peer): SessionStore {
    let hosted = stores.get(place)
    if (hosted === undefined) {
      // The worker calls its own onFull.
      const reports = { onFull: () => {}, onProblem }
      const parsed = JSON.parse(place) as StorePlace // A worker has made the JSON.
      hosted = { store: open(parsed, reports), users: new Set() }
      stores.set(place, hosted)
    }
    if (!hosted.users.has(peer)) {
      hosted.users.add(peer)
      closeUnused()
    }
    return hosted.store
  }

  function leave(place: string, peer: Peer): void {
    if (stores.get(place)?.users.delete(peer) === true) closeUnused()
  }

  /** Closes the unused stores when a store is in use. */
  function closeUnused(): void {
    if (![...stores.values()].some(({ users }) => users.size > 0)) return
    for (const [place, { store, users }] of stores) if (users.size === 0) close(place, store)
  }

  function close(place: string, store: SessionStore): void {
    damagedInClosed += store.counts.damaged
    stores.delete(place)
    attempt('close the session store', () => store.close())
  }

  /** Sweeps unused stores too: their sessions must not outlive their time. */
  function sweep(): void {
    for (const { store } of stores.values()) attempt('sweep the sessions', () => store.sweep())
  }

  /** Runs work that no request waits for. */
  function attempt(what: string, work: () => unknown): void {
    Promise.resolve()
      .then(work)
      .catch((error: Error) => onProblem(`Cannot ${what}: ${error.message}`))
  }

  return {
    attach: (peer) => {
      serve<Served>(peer, 'session', {
        read: (place, id) =>
          after(use(place, peer).read(id), (found) => {
            return found && { fields: [...found.fields], remainingMs: found.remainingMs }
          }),
        create: (place, id, fields, ttlMs) => {
          const store = use(place, peer)
          const before = store.counts.evicted
          return after(store.create(id, new Map(fields), ttlMs), () => {
            const { evicted } = store.counts
            return evicted > before ? evicted : undefined
          })
        },
        merge: (place, id, set, removed, ttlMs) => use(place, peer).merge(id, changesOf(set, removed), ttlMs),
        rename: (place, id, newId, set, removed, ttlMs) =>
          use(place, peer).rename(id, newId, changesOf(set, removed), ttlMs),
        destroy: (place, id) => use(place, peer).destroy(id),
        sweep: (place) => use(place, peer).sweep(),
        leave: (place) => leave(place, peer),
      })
      void peer.closed.then(() => {
        for (const place of stores.keys()) leave(place, peer)
      })
    },
    get damaged() {
      return [...stores.values()].reduce((sum, { store }) => sum + store.counts.damaged, damagedInClosed)
    },
    sweep,
    close: () => {
      clearInterval(timer)
      for (const [place, { store }] of stores) close(place, store)
    },
  }
}

function changesOf(set: Pairs, removed: readonly string[]): FieldChanges {
  return { set: new Map(set), removed: new Set(removed) }
}
