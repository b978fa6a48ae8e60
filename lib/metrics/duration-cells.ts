/**
 * The cells of histograms as plain values: what one process tells another. Merged cell by cell, the histograms of
 * several processes are the histogram of all that they counted, so percentiles of the sum are as good as those of one.
 */
import { standInUs, type DurationCells } from './histogram.ts'

/** The cells of an empty histogram. */
export const noDurations: DurationCells = { cells: [], sumUs: 0, maxUs: 0 }

/** The histogram of everything that the histograms of a list counted. */
export function mergeDurations(list: readonly DurationCells[]): DurationCells {
  const filled = list.filter(({ cells }) => cells.length > 0)
  if (filled.length < 2) return filled[0] ?? noDurations
  const counts: number[] = []
  let sumUs = 0
  let maxUs = 0
  for (const each of filled) {
    for (let at = 0; at < each.cells.length; at += 2) {
      const cell = each.cells[at] as number
      counts[cell] = (counts[cell] ?? 0) + heldAt(each, at)
    }
    sumUs += each.sumUs
    maxUs = Math.max(maxUs, each.maxUs)
  }
  const cells: number[] = []
  counts.forEach((held, cell) => cells.push(cell, held)) // In order, and without the cells that hold nothing.
  return { cells, sumUs, maxUs }
}

/** How many durations were counted. */
export function countOf(durations: DurationCells): number {
  let count = 0
  for (let at = 0; at < durations.cells.length; at += 2) count += heldAt(durations, at)
  return count
}

/** The duration in milliseconds that `percent` of the durations do not pass, as `Histogram.percentile` tells it. */
export function percentileMs(durations: DurationCells, percent: number): number {
  const { cells, maxUs } = durations
  const rank = Math.ceil((percent / 100) * countOf(durations))
  let passed = 0
  for (let at = 0; at < cells.length; at += 2) {
    passed += heldAt(durations, at)
    if (passed >= rank) return standInUs(cells[at] as number, maxUs) / 1000
  }
  return maxUs / 1000
}

/** The mean in milliseconds; 0 when there is none. */
export function meanMs(durations: DurationCells): number {
  const count = countOf(durations)
  return count === 0 ? 0 : durations.sumUs / count / 1000
}

/** How many durations the cell at a place of the list holds. */
function heldAt({ cells }: DurationCells, at: number): number {
  return cells[at + 1] as number
}
