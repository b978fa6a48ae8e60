/** The median of a list that is not empty. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/** The median of the ratios of two lists, pair by pair: what alternating rounds are for. */
export function medianRatio(values: readonly number[], others: readonly number[]): number {
  return median(values.map((value, at) => value / (others[at] ?? Number.NaN)))
}

/** The value below which that percentage of a list lies. The list must not be empty. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? Number.NaN
}
