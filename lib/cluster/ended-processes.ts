/**
 * What the workers counted that have ended, as if they were one: so that the counters of the server do not go back.
 */
import { keptLines } from '../log/recent-lines.ts'
import { noFigures, noGauges, withoutWindow, type Figures, type Interval, type ProcessFigures } from '../metrics/figures.ts'
import { boundRoutes, mergeFigures } from '../metrics/merge.ts'
import { keptRequests } from '../metrics/recent-requests.ts'
import { inOrder, type LastFigures } from './figures.ts'
import type { KnownProcess } from './known-process.ts'

/** The workers that are no more. */
export class EndedProcesses {
  #figures: Figures = noFigures
  #intervals: Interval[] = []
  #lines: LastFigures['lines'] = []
  #requests: LastFigures['requests'] = []

  /** Counts a worker in. What was not told before it ended is lost. */
  add(known: KnownProcess): void {
    const figures: Figures = { ...known.figures, now: noGauges, warnings: [], ended: 1 }
    this.#figures = boundRoutes(mergeFigures([this.#figures, figures]))
    this.#intervals.push(...known.giveIntervals())
    this.#lines = inOrder([this.#lines, known.last.lines], keptLines)
    this.#requests = inOrder([this.#requests, known.last.requests], keptRequests)
  }

  /** What they counted since the last sample of the history. */
  giveIntervals(): Interval[] {
    const intervals = this.#intervals
    this.#intervals = []
    return intervals
  }

  /** Begins a new bench window, in which they have counted nothing. */
  endWindow(): void {
    this.#figures = withoutWindow(this.#figures)
  }

  /** Their sum; nothing when there is none. */
  figures(): readonly ProcessFigures[] {
    if (this.#figures.ended === 0) return []
    return [{ ...this.#figures, id: 'ended', role: 'ended', pid: 0, responding: true }]
  }

  /** The last lines of those that told them at their end. */
  get lines(): LastFigures['lines'] {
    return this.#lines
  }

  /** The last requests of those that told them at their end. */
  get requests(): LastFigures['requests'] {
    return this.#requests
  }
}
