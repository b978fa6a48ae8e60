/**
 * The sessions of all workers, in the primary: a store for each place that workers run with, and a handler for each call
 * that `session-store.ts` of a worker makes.
 *
 * Surprise: the last worker that leaves a store does not close it. It stays until another one is used, so that the
 * sessions outlive all workers that crash or are replaced, and go when the settings change.
 */
import { after } from '../base/maybe-promise.ts'
import { openLocalStore } from '../stores/local-store.ts'
import type { FieldChanges, SessionStore, StorePlace, StoreReports } from '../session/store.ts'
import type { Peer } from './peer.ts'

export interface SessionHostOptions {
  /** Told of what the operator should know of a store in files. */
  readonly onProblem: (message: string) => void
  /** Opens a store; `openLocalStore` unless given. */
  readonly open?: (place: StorePlace, reports: StoreReports) => SessionStore
}

/** The sessions of all workers. */
export interface SessionHost {
  /** Serves a worker, until its channel closes; to be called once, before anything has come from it. */
  attach(peer: Peer): void
  /** Sessions that were found damaged, since the start. */
  readonly damaged: number
  /** Removes what has expired, or as much of it as is not felt; done once a minute. */
  sweep(): void
  /** Lets go of everything. */
  close(): void
}

/** Names and values in their order: JSON has no maps. */
export type FieldPairs = readonly (readonly [name: string, text: string])[]

interface Hosted {
  readonly store: SessionStore
  readonly users: Set<Peer>
}

const sweepEveryMs = 60_000

/** Makes the host: no store as yet. */
export function hostSessions(options: SessionHostOptions): SessionHost {
  const host = new Host(options)
  const timer = setInterval(() => host.sweep(), sweepEveryMs).unref()
  return {
    attach: (peer) => host.attach(peer),
    get damaged() {
      return host.damaged
    },
    sweep: () => host.sweep(),
    close: () => {
      clearInterval(timer)
      host.close()
    },
  }
}

class Host {
  readonly #options: SessionHostOptions
  /** By the place, as a worker names it. */
  readonly #stores = new Map<string, Hosted>()
  #damagedInClosed = 0

  constructor(options: SessionHostOptions) {
    this.#options = options
  }

  /** What is taken is what `session-store.ts` sends: its types are not looked at again. */
  attach(peer: Peer): void {
    peer.on('session.read', (taken) => {
      const [place, id] = taken as [string, string]
      return after(this.#use(place, peer).read(id), (found) => {
        return found && { fields: [...found.fields], remainingMs: found.remainingMs }
      })
    })
    peer.on('session.create', (taken) => {
      const [place, id, fields, ttlMs] = taken as [string, string, FieldPairs, number]
      const store = this.#use(place, peer)
      const before = store.counts.evicted
      return after(store.create(id, new Map(fields), ttlMs), () => {
        const { evicted } = store.counts
        return evicted > before ? evicted : undefined
      })
    })
    peer.on('session.merge', (taken) => {
      const [place, id, set, removed, ttlMs] = taken as [string, string, FieldPairs, string[], number]
      return this.#use(place, peer).merge(id, changesOf(set, removed), ttlMs)
    })
    peer.on('session.rename', (taken) => {
      const [place, id, newId, set, removed, ttlMs] = taken as [string, string, string, FieldPairs, string[], number]
      return this.#use(place, peer).rename(id, newId, changesOf(set, removed), ttlMs)
    })
    peer.on('session.destroy', (taken) => {
      const [place, id] = taken as [string, string]
      return this.#use(place, peer).destroy(id)
    })
    peer.on('session.sweep', (taken) => this.#use((taken as [string])[0], peer).sweep())
    peer.on('session.leave', (taken) => this.#leave(taken as string, peer))
    void peer.closed.then(() => {
      for (const place of this.#stores.keys()) this.#leave(place, peer)
    })
  }

  get damaged(): number {
    return [...this.#stores.values()].reduce((sum, { store }) => sum + store.counts.damaged, this.#damagedInClosed)
  }

  /** Of a store that nobody uses as well: its sessions stay no longer than their time. */
  sweep(): void {
    for (const { store } of this.#stores.values()) this.#attempt('sweep the sessions', () => store.sweep())
  }

  close(): void {
    for (const [place, { store }] of this.#stores) this.#close(place, store)
  }

  #use(place: string, peer: Peer): SessionStore {
    let hosted = this.#stores.get(place)
    if (hosted === undefined) {
      // The worker whose session was the first to take the place of another says so.
      const reports = { onFull: () => {}, onProblem: this.#options.onProblem }
      // A worker has named it.
      const { open = openLocalStore } = this.#options
      hosted = { store: open(JSON.parse(place) as StorePlace, reports), users: new Set() }
      this.#stores.set(place, hosted)
    }
    if (!hosted.users.has(peer)) {
      hosted.users.add(peer)
      this.#closeUnused()
    }
    return hosted.store
  }

  #leave(place: string, peer: Peer): void {
    if (this.#stores.get(place)?.users.delete(peer) === true) this.#closeUnused()
  }

  /** Closes what nobody uses, once there is another that somebody uses. */
  #closeUnused(): void {
    const hosted = [...this.#stores]
    if (!hosted.some(([, { users }]) => users.size > 0)) return
    for (const [place, { store, users }] of hosted) {
      if (users.size === 0) this.#close(place, store)
    }
  }

  #close(place: string, store: SessionStore): void {
    this.#damagedInClosed += store.counts.damaged
    this.#stores.delete(place)
    this.#attempt('close the session store', () => store.close())
  }

  /** Runs what no request waits for; a failure is told. */
  #attempt(what: string, work: () => unknown): void {
    Promise.resolve()
      .then(work)
      .catch((error: Error) => this.#options.onProblem(`Cannot ${what}: ${error.message}`))
  }
}

function changesOf(set: FieldPairs, removed: readonly string[]): FieldChanges {
  return { set: new Map(set), removed: new Set(removed) }
}
