/**
 * The sessions of all workers, in the primary: a store in memory for each `setup.session.max` that workers run with,
 * and a handler for each call that `session-store.ts` of a worker makes.
 *
 * Surprise: the last worker that leaves a store does not close it. It stays until another one is used, so that the
 * sessions outlive all workers that crash or are replaced, and go when the settings change.
 */
import { createMemoryStore, type SynchronousStore } from '../session/memory-store.ts'
import type { FieldChanges } from '../session/store.ts'
import type { Peer } from './peer.ts'

export interface SessionHostOptions {
  /** A clock in milliseconds that does not jump; `performance.now` unless given. */
  readonly now?: () => number
}

/** The sessions of all workers. */
export interface SessionHost {
  /** Serves a worker, until its channel closes; to be called once, before anything has come from it. */
  attach(peer: Peer): void
  /** Removes what has expired, or as much of it as is not felt; done once a minute. */
  sweep(): void
  /** Lets go of everything. */
  close(): void
}

/** Names and values in their order: JSON has no maps. */
export type FieldPairs = readonly (readonly [name: string, text: string])[]

interface Hosted {
  readonly store: SynchronousStore
  readonly users: Set<Peer>
}

const sweepEveryMs = 60_000

/** Makes the host: no store as yet. */
export function hostSessions(options: SessionHostOptions = {}): SessionHost {
  const host = new Host(options)
  const timer = setInterval(() => host.sweep(), sweepEveryMs).unref()
  return {
    attach: (peer) => host.attach(peer),
    sweep: () => host.sweep(),
    close: () => {
      clearInterval(timer)
      host.close()
    },
  }
}

class Host {
  readonly #options: SessionHostOptions
  readonly #stores = new Map<number, Hosted>()

  constructor(options: SessionHostOptions) {
    this.#options = options
  }

  /** What is taken is what `session-store.ts` sends: its types are not looked at again. */
  attach(peer: Peer): void {
    peer.on('session.read', (taken) => {
      const [max, id] = taken as [number, string]
      const found = this.#use(max, peer).read(id)
      return found && { fields: [...found.fields], remainingMs: found.remainingMs }
    })
    peer.on('session.create', (taken) => {
      const [max, id, fields, ttlMs] = taken as [number, string, FieldPairs, number]
      const store = this.#use(max, peer)
      const before = store.counts.evicted
      store.create(id, new Map(fields), ttlMs)
      const { evicted } = store.counts
      return evicted > before ? evicted : undefined
    })
    peer.on('session.merge', (taken) => {
      const [max, id, set, removed, ttlMs] = taken as [number, string, FieldPairs, string[], number]
      return this.#use(max, peer).merge(id, changesOf(set, removed), ttlMs)
    })
    peer.on('session.rename', (taken) => {
      const [max, id, newId, set, removed, ttlMs] = taken as [number, string, string, FieldPairs, string[], number]
      return this.#use(max, peer).rename(id, newId, changesOf(set, removed), ttlMs)
    })
    peer.on('session.destroy', (taken) => {
      const [max, id] = taken as [number, string]
      this.#use(max, peer).destroy(id)
    })
    peer.on('session.sweep', (taken) => this.#use((taken as [number])[0], peer).sweep())
    peer.on('session.leave', (taken) => this.#leave(taken as number, peer))
    void peer.closed.then(() => {
      for (const max of this.#stores.keys()) this.#leave(max, peer)
    })
  }

  /** Of a store that nobody uses as well: its sessions stay no longer than their time. */
  sweep(): void {
    for (const { store } of this.#stores.values()) store.sweep()
  }

  close(): void {
    for (const { store } of this.#stores.values()) store.close()
    this.#stores.clear()
  }

  #use(max: number, peer: Peer): SynchronousStore {
    let hosted = this.#stores.get(max)
    if (hosted === undefined) {
      // The worker whose session was the first to take the place of another says so.
      hosted = { store: createMemoryStore({ ...this.#options, max, onFull: () => {} }), users: new Set() }
      this.#stores.set(max, hosted)
    }
    if (!hosted.users.has(peer)) {
      hosted.users.add(peer)
      this.#closeUnused()
    }
    return hosted.store
  }

  #leave(max: number, peer: Peer): void {
    if (this.#stores.get(max)?.users.delete(peer) === true) this.#closeUnused()
  }

  /** Closes what nobody uses, once there is another that somebody uses. */
  #closeUnused(): void {
    const hosted = [...this.#stores]
    if (!hosted.some(([, { users }]) => users.size > 0)) return
    for (const [max, { store, users }] of hosted) {
      if (users.size > 0) continue
      store.close()
      this.#stores.delete(max)
    }
  }
}

function changesOf(set: FieldPairs, removed: readonly string[]): FieldChanges {
  return { set: new Map(set), removed: new Set(removed) }
}
