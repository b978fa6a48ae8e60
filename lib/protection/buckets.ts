/**
 * Token buckets: a key may take `burst` tokens at once, and gets one back each interval. For each bucket, only the time
 * at which it will be full again is kept (the generic cell rate algorithm), so a full bucket takes no memory.
 *
 * At most 100,000 buckets are kept, in a heap by that time: past that, the one that is full soonest is dropped, since
 * forgetting it gives its key the fewest tokens. 10 million addresses cost the memory of 100,000.
 */
import { performance } from 'node:perf_hooks'
import type { MaybePromise } from '../base/maybe-promise.ts'

/** The size of the buckets of one rule. */
export interface BucketSize {
  /** The tokens of a full bucket, from 1. */
  readonly burst: number
  /** Milliseconds until a bucket gets one token, above 0. */
  readonly intervalMs: number
}

/** The outcome of taking a token. */
export interface Taken {
  /** Whether a token was available. */
  readonly isGranted: boolean
  /** Milliseconds until the bucket is full. */
  readonly fullInMs: number
}

/** Holds the buckets of a rule, for this process or for several. */
export interface BucketStore {
  /** Takes a token from the key's bucket. Rejects when the buckets are remote and cannot be reached. */
  take(key: string): MaybePromise<Taken>
}

/** A bucket that is not full. */
interface Bucket {
  readonly key: string
  fullAtMs: number
  /** Its sort key in the heap; `fullAtMs` may have grown since. */
  rankMs: number
}

const mostBuckets = 100_000
/** Compensates for rounding, so that a token is available when it is due. */
const rounding = 1e-6

/** The whole tokens in a bucket. */
export function tokensIn({ burst, intervalMs }: BucketSize, fullInMs: number): number {
  return Math.max(0, Math.floor(burst - fullInMs / intervalMs + rounding))
}

/** Milliseconds until a bucket has a token; 0 when it has one. */
export function nextTokenMs({ burst, intervalMs }: BucketSize, fullInMs: number): number {
  return Math.max(0, fullInMs - (burst - 1) * intervalMs)
}

/** The buckets of one rule in this process. */
export class Buckets implements BucketStore {
  readonly #size: BucketSize
  readonly #most: number
  readonly #now: () => number
  readonly #byKey = new Map<string, Bucket>()
  /** A binary heap: no bucket has a higher rank than those at `2 * at + 1` and `2 * at + 2`. */
  readonly #heap: Bucket[] = []
  #allFullAtMs = 0

  /** @param now a monotonic clock in milliseconds */
  constructor(size: BucketSize, most = mostBuckets, now: () => number = () => performance.now()) {
    this.#size = size
    this.#most = most
    this.#now = now
  }

  /** The number of buckets kept. */
  get count(): number {
    return this.#heap.length
  }

  /** Whether every bucket is full, so that dropping them loses nothing. */
  get areFull(): boolean {
    return this.#allFullAtMs <= this.#now()
  }

  take(key: string): Taken {
    const nowMs = this.#now()
    const bucket = this.#byKey.get(key)
    const fullInMs = Math.max(0, (bucket?.fullAtMs ?? 0) - nowMs)
    if (tokensIn(this.#size, fullInMs) === 0) return { isGranted: false, fullInMs }
    // Not `fullAtMs - nowMs`, whose rounding would make 30 s a little more, and so 31 in a header field.
    const fullAgainInMs = fullInMs + this.#size.intervalMs
    const fullAtMs = nowMs + fullAgainInMs
    this.#allFullAtMs = Math.max(this.#allFullAtMs, fullAtMs)
    if (bucket === undefined) this.#add(key, fullAtMs, nowMs)
    else bucket.fullAtMs = fullAtMs
    return { isGranted: true, fullInMs: fullAgainInMs }
  }

  /** Adds a bucket. Removes up to two full ones or, past the limit, the one that is full soonest. */
  #add(key: string, fullAtMs: number, nowMs: number): void {
    for (let removed = 0; removed < 2 && this.#soonest(nowMs); removed += 1) this.#removeFirst()
    const bucket = { key, fullAtMs, rankMs: fullAtMs }
    this.#byKey.set(key, bucket)
    let at = this.#heap.push(bucket) - 1
    while (at > 0) {
      const above = (at - 1) >> 1
      const parent = this.#heap[above] as Bucket // Within the heap, as below.
      if (parent.rankMs <= bucket.rankMs) break
      this.#heap[at] = parent
      at = above
    }
    this.#heap[at] = bucket
  }

  /** Moves the bucket that is full soonest to the top. Returns whether to remove it. */
  #soonest(nowMs: number): boolean {
    for (;;) {
      const first = this.#heap[0]
      if (first === undefined) return false
      if (first.rankMs === first.fullAtMs) return first.fullAtMs <= nowMs || this.#heap.length >= this.#most
      first.rankMs = first.fullAtMs
      this.#sink(first)
    }
  }

  #removeFirst(): void {
    const last = this.#heap.pop()
    const first = this.#heap[0] ?? last
    if (first !== undefined) this.#byKey.delete(first.key)
    if (last !== undefined && this.#heap.length > 0) this.#sink(last)
  }

  /** Moves a bucket down from the top to its place. */
  #sink(bucket: Bucket): void {
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      const left = this.#heap[below]
      const right = this.#heap[below + 1]
      if (left === undefined) break
      const child = right !== undefined && right.rankMs < left.rankMs ? right : left
      if (child === right) below += 1
      if (bucket.rankMs <= child.rankMs) break
      this.#heap[at] = child
      at = below
    }
    this.#heap[at] = bucket
  }
}
