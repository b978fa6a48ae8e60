/**
 * The cells of histograms as plain values: what one process tells another. Merged cell by cell, the histograms of
 * several processes are the histogram of all that they counted, so percentiles of the sum are as good as those of one.
 */
import { standInUs, type DurationCells } from './histogram.ts'

/** The cells of an empty histogram. */
export const noDurations: DurationCells = { cells: [], sumUs: 0, maxUs: 0 }

/** The histogram of everything that the histograms of a list counted. */
export function mergeDurations(list: readonly DurationCells[]): DurationCells {
  return list.reduce(merge, noDurations)
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

function merge(a: DurationCells, b: DurationCells): DurationCells {
  if (a.cells.length === 0) return b
  if (b.cells.length === 0) return a
  const cells: number[] = []
  let [atA, atB] = [0, 0]
  while (atA < a.cells.length || atB < b.cells.length) {
    const [cellA, cellB] = [a.cells[atA] ?? Infinity, b.cells[atB] ?? Infinity]
    const held = (cellA <= cellB ? heldAt(a, atA) : 0) + (cellB <= cellA ? heldAt(b, atB) : 0)
    cells.push(Math.min(cellA, cellB), held)
    if (cellA <= cellB) atA += 2
    if (cellB <= cellA) atB += 2
  }
  return { cells, sumUs: a.sumUs + b.sumUs, maxUs: Math.max(a.maxUs, b.maxUs) }
}

/** How many durations the cell at a place of the list holds. */
function heldAt({ cells }: DurationCells, at: number): number {
  return cells[at + 1] as number
}
