/**
 * A session store of a worker. The primary has it (`session-host.ts`): sessions in memory are those of each worker then,
 * and of those in files no two processes change one at the same time. A read is one call, and so is a save.
 *
 * Surprise: nothing is opened. Each call names the store it means, and the primary has it from then on.
 */
import type { FieldChanges, Fields, SessionStore, StoreCounts, StorePlace, StoredSession } from '../session/store.ts'
import type { Peer } from './peer.ts'
import type { FieldPairs } from './session-host.ts'

/**
 * Makes a store of a worker whose peer is attached to a host.
 * @param onFull called when a session is dropped to keep the bound of a store in memory: in the process that made the
 *   session in its place, the first time in all of them alone
 */
export function createClusterSessionStore(peer: Peer, place: StorePlace, onFull: () => void): SessionStore {
  return new ClusterSessionStore(peer, place, onFull)
}

class ClusterSessionStore implements SessionStore {
  readonly #peer: Peer
  /** As `session-host.ts` keeps it. */
  readonly #place: string
  readonly #onFull: () => void
  #isUsed = false
  #evicted = 0

  constructor(peer: Peer, place: StorePlace, onFull: () => void) {
    this.#peer = peer
    this.#place = JSON.stringify(place)
    this.#onFull = onFull
  }

  /** Of the calls of this process alone; what is damaged the primary counts. */
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
    if (this.#isUsed) this.#peer.tell('session.leave', this.#place)
  }

  /** The host answers what its handler says. */
  #call(name: string, ...taken: unknown[]): Promise<unknown> {
    this.#isUsed = true
    return this.#peer.call(name, [this.#place, ...taken])
  }
}
