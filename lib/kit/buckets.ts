/**
 * Token buckets: a key may take `burst` tokens at once, and gets one back each interval. Of a bucket only the time is
 * kept at which it will be full again (the generic cell rate algorithm), so a bucket that is full takes no memory.
 *
 * At most 100,000 buckets are kept: past that, those that are full soonest go, an eighth at a time, since forgetting
 * them gives their keys the fewest tokens. 10 million addresses cost the memory of 100,000.
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

/** The outcome of taking tokens. */
export interface Taken {
  /** The tokens taken; 0 when there was none. */
  readonly granted: number
  /** Milliseconds until the bucket is full. */
  readonly fullInMs: number
}

/** Holds the buckets of a rule, in this process or for several. */
export interface BucketStore {
  /**
   * Takes tokens of a bucket, as many as there are.
   * @param most how many to take at most, from 1
   */
  take(key: string, most: number): MaybePromise<Taken>
}

const mostBuckets = 100_000
/** Fewer buckets than this are not looked through. */
const leastSweep = 100
/** Makes up for the rounding of times, so that a token is there when it is due. */
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
  /** When each bucket is full again. */
  readonly #fullAtMs = new Map<string, number>()
  /** With so many buckets, those that are full go: twice as many as were left the last time. */
  #sweepAt = 0
  #allFullAtMs = 0

  /** @param now a monotonic clock in milliseconds */
  constructor(size: BucketSize, most = mostBuckets, now: () => number = () => performance.now()) {
    this.#size = size
    this.#most = most
    this.#now = now
  }

  /** The buckets that are kept. */
  get count(): number {
    return this.#fullAtMs.size
  }

  /** Whether every bucket is full, so that nothing would be lost with them. */
  get areFull(): boolean {
    return this.#allFullAtMs <= this.#now()
  }

  take(key: string, most: number): Taken {
    const nowMs = this.#now()
    const fullInMs = Math.max(0, (this.#fullAtMs.get(key) ?? 0) - nowMs)
    const granted = Math.min(most, tokensIn(this.#size, fullInMs))
    if (granted === 0) return { granted, fullInMs }
    // Not `fullAtMs - nowMs`, whose rounding would make 30 s a little more, and so 31 in a header field.
    const fullAgainInMs = fullInMs + granted * this.#size.intervalMs
    const fullAtMs = nowMs + fullAgainInMs
    this.#allFullAtMs = Math.max(this.#allFullAtMs, fullAtMs)
    if (this.#fullAtMs.size >= this.#sweepAt && !this.#fullAtMs.has(key)) this.#sweep(nowMs)
    this.#fullAtMs.set(key, fullAtMs)
    return { granted, fullInMs: fullAgainInMs }
  }

  /** Makes room for a bucket: removes those that are full and, when there are too many, those that are full soonest. */
  #sweep(nowMs: number): void {
    const buckets = this.#fullAtMs
    for (const [key, fullAtMs] of buckets) if (fullAtMs <= nowMs) buckets.delete(key)
    if (buckets.size >= this.#most) {
      const count = Math.max(1, Math.floor(this.#most / 8))
      const lastMs = Float64Array.from(buckets.values()).sort()[count - 1] as number // There are more.
      let removed = 0
      for (const [key, fullAtMs] of buckets) {
        if (fullAtMs > lastMs) continue
        buckets.delete(key)
        if (++removed === count) break
      }
    }
    this.#sweepAt = Math.min(this.#most, Math.max(buckets.size * 2, leastSweep))
  }
}
