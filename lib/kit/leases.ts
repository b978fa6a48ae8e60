/**
 * Tokens of buckets that lie elsewhere, in the primary or in the shared engine. A process takes several at a time, a
 * lease of 1/16 of a bucket, so that most requests need no call; a key with an empty bucket is refused here until the
 * next token is due. So each process may refuse a lease's worth of requests too early.
 *
 * While the store cannot be reached, this process counts for itself, with full buckets.
 */
import { performance } from 'node:perf_hooks'
import type { MaybePromise } from '../base/maybe-promise.ts'
import { Buckets, nextTokenMs, type BucketSize, type BucketStore, type Taken } from './buckets.ts'

/** What this process knows of a bucket. Times are of `performance.now()`. */
interface Lease {
  /** Tokens taken and not used. */
  left: number
  /** When the bucket is full again: from then on the rest of the lease is void. */
  fullAtMs: number
  /** Until when the bucket is empty. */
  emptyUntilMs: number
}

/** The part of a bucket that one call takes. */
const shareOfBurst = 1 / 16
const mostLeases = 100_000

/** The buckets of one rule in another place. */
export class Leases implements BucketStore {
  readonly #size: BucketSize
  readonly #store: BucketStore
  readonly #reached: (error: unknown) => void
  readonly #leases = new Map<string, Lease>()
  readonly #calls = new Map<string, Promise<Taken | undefined>>()
  readonly #own: Buckets

  /** @param reached called after each call to the store, with the error of one that failed */
  constructor(size: BucketSize, store: BucketStore, reached: (error: unknown) => void) {
    this.#size = size
    this.#store = store
    this.#reached = reached
    this.#own = new Buckets(size)
  }

  take(key: string): MaybePromise<Taken> {
    const nowMs = performance.now()
    const lease = this.#leases.get(key)
    if (lease === undefined || nowMs >= lease.fullAtMs) return this.#takeAfterCall(key)
    const fullInMs = lease.fullAtMs - nowMs
    if (lease.left > 0) {
      lease.left -= 1
      return { granted: 1, fullInMs: fullInMs - lease.left * this.#size.intervalMs }
    }
    return nowMs < lease.emptyUntilMs ? { granted: 0, fullInMs } : this.#takeAfterCall(key)
  }

  /** Takes a lease, unless a call for this key is pending: its lease is for all who wait. */
  async #takeAfterCall(key: string): Promise<Taken> {
    const pending = this.#calls.get(key)
    if (pending !== undefined) return (await pending) === undefined ? this.#own.take(key, 1) : this.take(key)
    const call = this.#lease(key).finally(() => this.#calls.delete(key))
    this.#calls.set(key, call)
    return (await call) ?? this.#own.take(key, 1)
  }

  /** Takes a lease and uses its first token. Undefined: the store cannot be reached. */
  async #lease(key: string): Promise<Taken | undefined> {
    try {
      const share = Math.max(1, Math.floor(this.#size.burst * shareOfBurst))
      const { granted, fullInMs } = await this.#store.take(key, share)
      this.#reached(undefined)
      const nowMs = performance.now()
      if (this.#leases.size >= mostLeases) this.#forget(nowMs)
      const emptyUntilMs = granted === 0 ? nowMs + nextTokenMs(this.#size, fullInMs) : 0
      const left = Math.max(0, granted - 1)
      this.#leases.delete(key) // So that the oldest leases are the first of the map.
      this.#leases.set(key, { left, fullAtMs: nowMs + fullInMs, emptyUntilMs })
      return { granted: Math.min(granted, 1), fullInMs: fullInMs - left * this.#size.intervalMs }
    } catch (error) {
      this.#reached(error)
      return undefined
    }
  }

  /** Forgets the leases of full buckets, or the oldest one. */
  #forget(nowMs: number): void {
    for (const [key, { fullAtMs }] of this.#leases) {
      if (fullAtMs > nowMs) break
      this.#leases.delete(key)
    }
    if (this.#leases.size < mostLeases) return
    const [oldest] = this.#leases.keys()
    if (oldest !== undefined) this.#leases.delete(oldest)
  }
}
