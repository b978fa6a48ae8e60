/**
 * How long things took, counted in 464 cells: one for each microsecond up to 32, then 16 for each doubling, up to 71
 * minutes. A percentile is within 3.1 % of the exact one. 2 KiB, whatever is recorded.
 *
 * Surprise: durations are whole microseconds inside. Small integers are handed from function to function without
 * allocating, which floating-point numbers are not.
 */

/** What a histogram holds, as a plain value. */
export interface DurationCells {
  /** For each cell that holds durations, in order: its number, then how many it holds. */
  readonly cells: readonly number[]
  readonly sumUs: number
  readonly maxUs: number
}

const cellsPerDoubling = 16
/** The most that has a cell of its own kind: 2^32 - 1 microseconds are 71 minutes. */
const maxUs = 2 ** 32 - 1
const lastCell = cellOf(maxUs)
const cellCount = lastCell + 1

/** Milliseconds as whole microseconds; 0 for what only a broken clock gives: a negative number, NaN, infinity. */
export function toMicroseconds(ms: number): number {
  return ms >= 0 && ms < Infinity ? Math.round(ms * 1000) : 0
}

/** Counts durations and tells their percentiles, their mean and the longest. Empty, it tells 0. */
export class Histogram {
  readonly #cells = new Uint32Array(cellCount)
  readonly #cellLimit: number
  #count = 0
  #sumUs = 0
  #maxUs = 0

  /** @param cellLimit the most that one cell holds, 1 to 2^32 - 1; past it all are halved, which keeps the shape */
  constructor(cellLimit = 2 ** 32 - 1) {
    this.#cellLimit = cellLimit
  }

  /** Counts a duration in milliseconds; one that no clock should give counts as 0. */
  record(ms: number): void {
    this.add(toMicroseconds(ms))
  }

  /** Counts a duration in whole microseconds, as `toMicroseconds` returns it. */
  add(us: number): void {
    const cell = cellOf(us)
    if (this.#cells[cell] === this.#cellLimit) this.#halve()
    this.#cells[cell]! += 1 // a cell that `cellOf` gave is there
    this.#count += 1
    this.#sumUs += us
    if (us > this.#maxUs) this.#maxUs = us
  }

  /**
   * The duration, in milliseconds, that `percent` (above 0, up to 100) of the durations do not pass, by nearest rank:
   * within 3.1 % of the exact one up to 71 minutes, and never above the longest.
   */
  percentile(percent: number): number {
    const rank = Math.ceil((percent / 100) * this.#count)
    let passed = 0
    for (let cell = 0; cell < lastCell; cell += 1) {
      passed += this.#cells[cell] as number
      if (passed >= rank) return Math.min(middleUs(cell), this.#maxUs) / 1000
    }
    return this.maxMs
  }

  /** How many durations were counted. */
  get count(): number {
    return this.#count
  }

  /** The longest duration, to the microsecond. */
  get maxMs(): number {
    return this.#maxUs / 1000
  }

  get meanMs(): number {
    return this.#count === 0 ? 0 : this.#sumUs / this.#count / 1000
  }

  /** What was counted, as a value that does not change any more (`duration-cells.ts`). */
  toCells(): DurationCells {
    const cells: number[] = []
    let left = this.#count
    for (let cell = 0; left > 0 && cell < cellCount; cell += 1) {
      const held = this.#cells[cell] as number
      if (held === 0) continue
      cells.push(cell, held)
      left -= held
    }
    return { cells, sumUs: this.#sumUs, maxUs: this.#maxUs }
  }

  /** Forgets everything. */
  reset(): void {
    this.#cells.fill(0)
    this.#count = 0
    this.#sumUs = 0
    this.#maxUs = 0
  }

  #halve(): void {
    const meanUs = this.#sumUs / this.#count
    this.#count = 0
    for (let cell = 0; cell < cellCount; cell += 1) {
      const half = (this.#cells[cell] as number) >>> 1
      this.#cells[cell] = half
      this.#count += half
    }
    this.#sumUs = this.#count * meanUs
  }
}

/** What stands for all durations of a cell, in microseconds: not above the longest of the whole histogram. */
export function standInUs(cell: number, longestUs: number): number {
  return cell < lastCell ? Math.min(middleUs(cell), longestUs) : longestUs
}

/** The cell of a duration; what is longer than all is in the last. */
function cellOf(us: number): number {
  if (us < cellsPerDoubling) return us
  if (us > maxUs) return lastCell
  const shift = 27 - Math.clz32(us)
  return shift * cellsPerDoubling + (us >>> shift)
}

/** What stands for all of a cell: none of its durations is further away than 1/33 of itself. */
function middleUs(cell: number): number {
  if (cell < 2 * cellsPerDoubling) return cell
  const shift = Math.floor(cell / cellsPerDoubling) - 1
  const lower = (cell - shift * cellsPerDoubling) * 2 ** shift
  const upper = lower + 2 ** shift
  return (2 * lower * upper) / (lower + upper)
}
