/**
 * What benchmarks make of their rounds: medians, and how sure they are.
 */

/** The two ends of an interval. */
export interface Interval {
  readonly low: number
  readonly high: number
}

/** The median of a list that is not empty. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/**
 * The interval in which the median of what a list was drawn from lies, by the sign test: it asks nothing of the
 * distribution. Its ends are values of the list, so it covers at least `confidence`, mostly more.
 * @param confidence above 0 and below 1
 * @returns undefined when the list is too short: fewer than 6 values for 0.95
 */
export function medianInterval(values: readonly number[], confidence = 0.95): Interval | undefined {
  const sorted = values.toSorted((a, b) => a - b)
  const count = sorted.length
  let outside = 0
  let ways = 1
  let cut = 0
  while (cut < count / 2) {
    outside += ways / 2 ** (count - 1)
    if (outside > 1 - confidence) break
    cut += 1
    ways = (ways * (count - cut + 1)) / cut
  }
  const [low, high] = [sorted[cut - 1], sorted[count - cut]]
  return low === undefined || high === undefined ? undefined : { low, high }
}

/** The ratios of two lists, pair by pair: what alternating rounds are for. The second is as long as the first. */
export function ratios(values: readonly number[], others: readonly number[]): number[] {
  return values.map((value, at) => value / (others[at] ?? Number.NaN))
}

/** The median of the ratios of two lists. */
export function medianRatio(values: readonly number[], others: readonly number[]): number {
  return median(ratios(values, others))
}

/** The value below which that percentage of a list lies. The list must not be empty. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? Number.NaN
}
