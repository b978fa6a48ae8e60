/**
 * The contract of the processes of a server: what the admin panel asks of all of them together.
 *
 * Surprise: each process asks, whichever the request for the panel came to, and gets what all of them know.
 */
import type { LogLine } from '../log/recent-lines.ts'
import type { Figures, Gauges, Interval, ProcessFigures } from './figures.ts'
import type { HistorySnapshot } from './history.ts'
import type { RecentRequest } from './recent-requests.ts'
import type { RouteTimings } from './route-metrics.ts'
import type { Summary } from './summary.ts'

/** The processes of a server on one machine, this one among them. */
export interface Processes {
  /**
   * Of each process, those that ended as if they were one; at least one. `mergeFigures` makes their sum.
   * @param timings the durations of routes that the caller looks at: the others may be empty
   */
  figures(timings?: RouteTimings): Promise<readonly ProcessFigures[]>
  /** The last lines of the general log, the oldest first. */
  lines(): Promise<readonly LogLine[]>
  /** The last requests, the oldest first. */
  requests(): Promise<readonly RecentRequest[]>
  /** The samples of the last minutes, each of all processes. */
  history(): Promise<HistorySnapshot>
  /** Begins a new bench window in this process. The others are told to do so, too, by their control. */
  resetWindow(): void
  /** Ends what runs in the background. To be called once no request runs: what is counted later is not told any more. */
  close(): void
}

/** What one process knows of itself. */
export interface OwnProcess {
  figures(timings?: RouteTimings): Figures
  /** The figures with those routes alone that were asked for since this was last called. It has one caller. */
  takeChanges(): Figures
  /** What happened since this was last called. It has one caller. */
  takeInterval(): Interval
  gauges(): Gauges
  summary(): Summary
  lines(): readonly LogLine[]
  requests(): readonly RecentRequest[]
  /** Begins a new bench window. */
  resetWindow(): void
}

/** Makes the processes of a server out of the one that is here. */
export type JoinProcesses = (own: OwnProcess) => Processes
