/**
 * The sessions of several processes: they lie in the primary, in a store for each place that workers run with, so that
 * sessions in memory are those of each worker, and no two processes change one session file at the same time. A read is
 * one call, and so is a save.
 *
 * The last worker that leaves a store does not close it. It stays until another one is used, so that the sessions
 * outlive all workers that crash or are replaced, and go when the settings change.
 */
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import type { FieldChanges, SessionStore, StorePlace, StoreReports } from '../session/store.ts'
import { openLocalStore } from '../stores/local-store.ts'
import type { Peer } from './peer.ts'
import { remote, serve, type Remote } from './remote.ts'

/** Names and values in their order: JSON has no maps. */
type Pairs = readonly (readonly [name: string, text: string])[]

/** What the primary serves to a worker. Each call names the store it means, as JSON, which is there from then on. */
interface Served {
  read(place: string, id: string): MaybePromise<{ readonly fields: Pairs; readonly remainingMs: number } | undefined>
  /** Gives how many sessions were dropped by now to keep the bound, where this call dropped one. */
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
 * Makes a store of a worker whose peer is attached to a host.
 * @param onFull called when a session is dropped to keep the bound of a store in memory: in the process that made the
 *   session in its place, the first time in all of them alone
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
    close: () => void primary?.leave(place).catch(() => {}), // A primary that is gone has no stores.
    /** Of the calls of this process alone; damaged sessions are counted by the primary. */
    get counts() {
      return { evicted, damaged: 0 }
    },
  }
}

export interface SessionHostOptions {
  /** Called with what the operator should know of a store in files. */
  readonly onProblem: (message: string) => void
  /** Opens a store; `openLocalStore` unless given. */
  readonly open?: (place: StorePlace, reports: StoreReports) => SessionStore
}

/** The sessions of all workers. */
export interface SessionHost {
  /** Serves a worker, until its channel closes; call it once, before anything has come from the worker. */
  attach(peer: Peer): void
  /** Sessions that were found damaged, since the start. */
  readonly damaged: number
  /** Removes what has expired, or as much of it as is not felt; done once a minute. */
  sweep(): void
  /** Lets go of everything. */
  close(): void
}

interface Hosted {
  readonly store: SessionStore
  readonly users: Set<Peer>
}

const sweepEveryMs = 60_000

/** Makes the primary's part: no store as yet. */
export function hostSessions({ onProblem, open = openLocalStore }: SessionHostOptions): SessionHost {
  /** By the place, as a worker names it. */
  const stores = new Map<string, Hosted>()
  let damagedInClosed = 0
  const timer = setInterval(sweep, sweepEveryMs).unref()

  function use(place: string, peer: Peer): SessionStore {
    let hosted = stores.get(place)
    if (hosted === undefined) {
      // The worker whose session was the first to take the place of another says so.
      const reports = { onFull: () => {}, onProblem }
      hosted = { store: open(JSON.parse(place) as StorePlace, reports), users: new Set() } // A worker has named it.
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

  /** Closes the stores that nobody uses, once there is another that somebody uses. */
  function closeUnused(): void {
    if (![...stores.values()].some(({ users }) => users.size > 0)) return
    for (const [place, { store, users }] of stores) if (users.size === 0) close(place, store)
  }

  function close(place: string, store: SessionStore): void {
    damagedInClosed += store.counts.damaged
    stores.delete(place)
    attempt('close the session store', () => store.close())
  }

  /** Of a store that nobody uses as well: its sessions stay no longer than their time. */
  function sweep(): void {
    for (const { store } of stores.values()) attempt('sweep the sessions', () => store.sweep())
  }

  /** Runs what no request waits for. */
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
