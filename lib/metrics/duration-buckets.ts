/**
 * Durations counted by a few fixed bounds, as a Prometheus histogram shows them. They only ever grow.
 */
import { toMicroseconds } from './histogram.ts'

/** The upper bounds in seconds, each included in its bucket; what is longer than all is counted without a bound. */
export const bucketBoundsSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const

/** What was counted so far. */
export interface DurationTotals {
  /** For each of `bucketBoundsSeconds`, how many durations do not pass it. */
  readonly cumulative: readonly number[]
  /** All durations. */
  readonly count: number
  readonly sumSeconds: number
}

const boundsUs = bucketBoundsSeconds.map((bound) => Math.round(bound * 1e6))
const bucketCount = boundsUs.length + 1

/** What is counted before the first duration. */
export const noDurationTotals: DurationTotals = {
  cumulative: bucketBoundsSeconds.map(() => 0),
  count: 0,
  sumSeconds: 0,
}

/** Counts durations by `bucketBoundsSeconds`. */
export class DurationBuckets {
  readonly #counts = new Float64Array(bucketCount)
  #sumUs = 0

  /** Counts a duration in milliseconds; one that no clock should give counts as 0. */
  record(ms: number): void {
    this.add(toMicroseconds(ms))
  }

  /** Counts a duration in whole microseconds, as `toMicroseconds` returns it. */
  add(us: number): void {
    let bucket = 0
    while (bucket < boundsUs.length && us > (boundsUs[bucket] as number)) bucket += 1
    this.#counts[bucket]! += 1 // `bucket` is below `bucketCount`
    this.#sumUs += us
  }

  totals(): DurationTotals {
    const cumulative: number[] = []
    let count = 0
    for (const each of this.#counts) cumulative.push((count += each))
    cumulative.pop()
    return { cumulative, count, sumSeconds: this.#sumUs / 1e6 }
  }
}
