/**
 * Durations in a histogram of 464 cells: one for each microsecond up to 32, then 16 for each doubling, up to 71
 * minutes. Cells only ever grow: a window is the difference of two readings, a total over processes is a sum.
 * Percentiles are within 3.1 % of the exact ones.
 *
 * Durations are whole microseconds internally: small integers are passed between functions without allocating,
 * floating-point numbers are not.
 */

/** The counts of a histogram, as a plain value. */
export interface Durations {
  /** For each cell that is not empty, in order: its number, then its count. */
  readonly cells: readonly number[]
  readonly sumUs: number
  /** The longest of the current bench window, exact where cells are not; 0 before the first. */
  readonly maxUs: number
}

/** An empty histogram. */
export const noDurations: Durations = { cells: [], sumUs: 0, maxUs: 0 }

/** The inclusive upper bounds of the buckets of a Prometheus histogram, in seconds. */
export const bucketBoundsSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const

const cellsPerDoubling = 16
/** The longest duration with a cell of its own: 71 minutes. */
const cellLimitUs = 2 ** 32 - 1
/** Counts longer durations as well. */
const lastCell = cellOf(cellLimitUs)

/** For each bound of a bucket, the first cell beyond it. */
const boundCells = bucketBoundsSeconds.map((bound) => {
  let cell = 0
  while (middleUs(cell) <= bound * 1e6) cell += 1
  return cell
})

/** Milliseconds as whole microseconds; 0 for a negative number, NaN and infinity, which only a broken clock gives. */
export function toMicroseconds(ms: number): number {
  return ms >= 0 && ms < Infinity ? Math.round(ms * 1000) : 0
}

/** Counts any number of durations in 4 KiB. */
export class Histogram {
  readonly #cells = new Float64Array(lastCell + 1)
  #sumUs = 0
  #maxUs = 0

  /** Counts a duration in milliseconds, converted by `toMicroseconds`. */
  record(ms: number): void {
    this.add(toMicroseconds(ms))
  }

  /** Counts a duration in whole microseconds, as `toMicroseconds` returns it. */
  add(us: number): void {
    this.#cells[cellOf(us)]! += 1 // `cellOf` returns a valid index
    this.#sumUs += us
    if (us > this.#maxUs) this.#maxUs = us
  }

  /** Resets the longest duration only. */
  beginWindow(): void {
    this.#maxUs = 0
  }

  /** Returns a snapshot of the counts. */
  read(): Durations {
    const cells: number[] = []
    for (let cell = 0; cell <= lastCell; cell += 1) {
      const count = this.#cells[cell] as number
      if (count > 0) cells.push(cell, count)
    }
    return { cells, sumUs: this.#sumUs, maxUs: this.#maxUs }
  }
}

/** The sum of two histograms. */
export function addDurations(a: Durations, b: Durations): Durations {
  return { cells: mergeCells(a.cells, b.cells, 1), sumUs: a.sumUs + b.sumUs, maxUs: Math.max(a.maxUs, b.maxUs) }
}

/** The counts between two readings of a histogram. The longest is exact if a bench window began at `before`. */
export function subtractDurations(now: Durations, before: Durations): Durations {
  const cells = mergeCells(now.cells, before.cells, -1)
  return { cells, sumUs: now.sumUs - before.sumUs, maxUs: longestUs(cells, now.maxUs) }
}

/** The number of durations. */
export function countOf({ cells }: Durations): number {
  let count = 0
  for (let at = 1; at < cells.length; at += 2) count += cells[at] as number
  return count
}

/** The mean in milliseconds; 0 when there are no durations. */
export function meanMs(durations: Durations): number {
  return durations.sumUs / Math.max(countOf(durations), 1) / 1000
}

/**
 * The duration in milliseconds that `percent` (above 0, up to 100) of the durations do not exceed, by nearest rank:
 * within 3.1 % of the exact one up to 71 minutes, and never above the longest. 0 when there are no durations.
 */
export function percentileMs(durations: Durations, percent: number): number {
  const { cells } = durations
  const maxUs = longestUs(cells, durations.maxUs)
  const rank = Math.ceil((percent / 100) * countOf(durations))
  let passed = 0
  for (let at = 0; at < cells.length; at += 2) {
    const cell = cells[at] as number
    passed += cells[at + 1] as number
    if (passed >= rank) return (cell === lastCell ? maxUs : Math.min(middleUs(cell), maxUs)) / 1000
  }
  return 0
}

/** The number of durations up to each of `bucketBoundsSeconds`; each bound is exact within 3.1 %. */
export function bucketCounts({ cells }: Durations): number[] {
  let at = 0
  let count = 0
  return boundCells.map((end) => {
    for (; at < cells.length && (cells[at] as number) < end; at += 2) count += cells[at + 1] as number
    return count
  })
}

/** The longest duration of some cells: `knownUs` if it is in the last cell; otherwise it is from another window. */
function longestUs(cells: readonly number[], knownUs: number): number {
  const last = cells.at(-2)
  if (last === undefined) return 0
  return cellOf(knownUs) === last ? knownUs : middleUs(last)
}

/** The cells of `a` with those of `b` added, or subtracted where `sign` is -1. Cells that become empty are left out. */
function mergeCells(a: readonly number[], b: readonly number[], sign: 1 | -1): readonly number[] {
  if (b.length === 0) return a
  const merged: number[] = []
  let atA = 0
  let atB = 0
  while (atA < a.length || atB < b.length) {
    const cell = Math.min(a[atA] ?? Infinity, b[atB] ?? Infinity)
    let count = 0
    if (a[atA] === cell) {
      count += a[atA + 1] as number
      atA += 2
    }
    if (b[atB] === cell) {
      count += sign * (b[atB + 1] as number)
      atB += 2
    }
    if (count !== 0) merged.push(cell, count)
  }
  return merged
}

/** The cell of a duration. */
function cellOf(us: number): number {
  if (us < cellsPerDoubling) return us
  if (us > cellLimitUs) return lastCell
  const shift = 27 - Math.clz32(us)
  return shift * cellsPerDoubling + (us >>> shift)
}

/** The value that represents all durations of a cell: within 1/33 of each of them. */
function middleUs(cell: number): number {
  if (cell < 2 * cellsPerDoubling) return cell
  const shift = Math.floor(cell / cellsPerDoubling) - 1
  const lower = (cell - shift * cellsPerDoubling) * 2 ** shift
  const upper = lower + 2 ** shift
  return (2 * lower * upper) / (lower + upper)
}
