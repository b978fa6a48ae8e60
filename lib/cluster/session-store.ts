/**
 * The store `memory` of a worker. The sessions lie in the primary (`session-host.ts`), so that each worker has them, and
 * end with it. A read is one call, and so is a save.
 *
 * Surprise: nothing is opened. Each call names the store it means by its `max`, and the primary has it from then on.
 */
import type { FieldChanges, Fields, SessionStore, StoreCounts, StoredSession } from '../session/store.ts'
import type { Peer } from './peer.ts'
import type { FieldPairs } from './session-host.ts'

export interface ClusterStoreOptions {
  /** The most sessions, of all workers together, from 1. */
  readonly max: number
  /** Called when a session is dropped to keep the bound: in the process that made the session in its place, the first
   *  time in all of them alone. */
  readonly onFull: () => void
}

/** Makes the store of a worker whose peer is attached to a host. */
export function createClusterSessionStore(peer: Peer, options: ClusterStoreOptions): SessionStore {
  return new ClusterSessionStore(peer, options)
}

class ClusterSessionStore implements SessionStore {
  readonly #peer: Peer
  readonly #max: number
  readonly #onFull: () => void
  #isUsed = false
  #evicted = 0

  constructor(peer: Peer, { max, onFull }: ClusterStoreOptions) {
    this.#peer = peer
    this.#max = max
    this.#onFull = onFull
  }

  /** Of the calls of this process alone. */
  get counts(): StoreCounts {
    return { evicted: this.#evicted, damaged: 0 }
  }

  async read(id: string): Promise<StoredSession | undefined> {
    const found = (await this.#call('session.read', id)) as { fields: FieldPairs; remainingMs: number } | undefined
    return found && { fields: new Map(found.fields), remainingMs: found.remainingMs }
  }

  async create(id: string, fields: Fields, ttlMs: number): Promise<void> {
    const evicted = await this.#call('session.create', id, [...fields], ttlMs)
    if (evicted === undefined) return
    this.#evicted += 1
    if (evicted === 1) this.#onFull()
  }

  merge(id: string, { set, removed }: FieldChanges, ttlMs: number): Promise<boolean> {
    return this.#call('session.merge', id, [...set], [...removed], ttlMs) as Promise<boolean>
  }

  rename(id: string, newId: string, { set, removed }: FieldChanges, ttlMs: number): Promise<boolean> {
    return this.#call('session.rename', id, newId, [...set], [...removed], ttlMs) as Promise<boolean>
  }

  async destroy(id: string): Promise<void> {
    await this.#call('session.destroy', id)
  }

  sweep(): Promise<number> {
    return this.#call('session.sweep') as Promise<number>
  }

  close(): void {
    if (this.#isUsed) this.#peer.tell('session.leave', this.#max)
  }

  /** The host answers what its handler says. */
  #call(name: string, ...taken: unknown[]): Promise<unknown> {
    this.#isUsed = true
    return this.#peer.call(name, [this.#max, ...taken])
  }
}
