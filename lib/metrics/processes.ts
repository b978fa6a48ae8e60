/**
 * The processes of a server, as the admin panel reads them: any process can report on all of them. This file has the
 * contract, this process, and a server of one process; `lib/cluster/readings.ts` handles servers of several.
 */
import type { ErrorGroup } from '../log/error-groups.ts'
import type { LogLine } from '../log/recent-lines.ts'
import type { Logs } from '../log/logs.ts'
import { percentileMs } from './histogram.ts'
import { createHistory, createSampler, type HistorySnapshot } from './history.ts'
import { countRequests, type RecentRequest } from './metrics.ts'
import { difference, readProcess, type Reading, type ServerReading } from './reading.ts'
import type { MetricSources } from './table.ts'
import { megabytes, round3 } from './values.ts'

/** Where the counters of a reading begin: at the start of the server, or of the bench window. */
export type Since = 'start' | 'window'

/** The processes of a server on one machine, this one among them. */
export interface Processes {
  /** The total, and each process if there are several. */
  read(since: Since): Promise<ServerReading>
  /** The last lines of the general log, oldest first. */
  lines(): Promise<readonly LogLine[]>
  /** The last requests, oldest first. */
  requests(): Promise<readonly RecentRequest[]>
  /** The errors by cause, the most recently seen first. */
  errors(): Promise<readonly ErrorGroup[]>
  /** Clears the errors of this process, as `ErrorGroups.clear` does. The control command reaches the others. */
  clearErrors(beforeMs?: number): void
  /** The samples of the last minutes, over all processes. */
  history(): Promise<HistorySnapshot>
  /** Begins a bench window in this process. The control command reaches the others. */
  beginWindow(): void
  /** Stops the background work. Call it when no request is running: requests counted later are lost. */
  close(): void
}

/** This process. */
export interface ThisProcess {
  read(since: Since): Reading
  /** Reads since the start, but only the routes requested since the last call. Must have a single caller. */
  takeChanges(): Reading
  /** Reads since the start, without routes and metrics of the application: the cost does not depend on their number. */
  readWithoutRoutes(): Reading
  summary(): Summary
  lines(): readonly LogLine[]
  requests(): readonly RecentRequest[]
  errors(): readonly ErrorGroup[]
  clearErrors(beforeMs?: number): void
  beginWindow(): void
}

/** What the panel shows of the logs of this process. */
export interface PanelLogs {
  readonly recent: Pick<Logs['recent'], 'list'>
  readonly errors: Pick<Logs['errors'], 'list' | 'clear'>
}

/** Joins this process with the others of its server. */
export type JoinProcesses = (own: ThisProcess) => Processes

/** A server in a few numbers, cheap enough to read every second. */
export interface Summary {
  readonly processes: number
  readonly uptime_s: number
  /** Requests answered since the start, and those answered with 400 or above. */
  readonly requests: number
  readonly errors: number
  /** Requests being served now. */
  readonly active: number
  /** In units of 2^20 bytes. */
  readonly rss_mb: number
  /** The delay of the event loop in the bench window: the worst of all processes that serve. */
  readonly loop_p99_ms: number
}

/**
 * Summarizes a server.
 * @param total of all processes, since the start
 * @param windows the readings of the processes that serve, in the bench window
 */
export function summaryOf(total: Reading, windows: readonly Reading[]): Summary {
  const { uptimeSeconds, values } = total
  const { total: requests, errors } = countRequests(values.requests)
  return {
    processes: windows.length,
    uptime_s: Math.floor(uptimeSeconds),
    requests,
    errors,
    active: values.requestsActive,
    rss_mb: megabytes(values.memoryResident),
    loop_p99_ms: Math.max(0, ...windows.map((window) => round3(percentileMs(window.values.loopDelay, 99)))),
  }
}

/** Makes this process, with the lines and errors of its logs. */
export function createThisProcess(sources: MetricSources, { recent, errors }: PanelLogs): ThisProcess {
  const { metrics, eventLoop, queueWaits, restQueueWaits, appMetrics } = sources
  let windowStart: Reading | undefined
  const readWithoutRoutes = (): Reading => readProcess(sources, [], [])
  return {
    read: (since) =>
      since === 'start'
        ? readProcess(sources, metrics.readRoutes(), appMetrics())
        : { ...difference(readProcess(sources, [], appMetrics()), windowStart), routes: metrics.readWindowRoutes() },
    takeChanges: () => readProcess(sources, metrics.takeChangedRoutes(), appMetrics()),
    readWithoutRoutes,
    summary: () => {
      const now = readWithoutRoutes()
      return summaryOf(now, [difference(now, windowStart)])
    },
    lines: () => recent.list(),
    requests: () => metrics.recent(),
    errors: () => errors.list(Date.now()),
    clearErrors: (beforeMs) => errors.clear(beforeMs),
    beginWindow: () => {
      for (const each of [metrics, eventLoop.delay, queueWaits, restQueueWaits]) each.beginWindow()
      windowStart = readProcess(sources, [], appMetrics())
    },
  }
}

/** Makes a server of one process. */
export function createSingleProcess(own: ThisProcess): Processes {
  const history = createHistory({ sample: createSampler(own.readWithoutRoutes) })
  return {
    read: async (since) => ({ pid: process.pid, total: own.read(since) }),
    lines: async () => own.lines(),
    requests: async () => own.requests(),
    errors: async () => own.errors(),
    clearErrors: (beforeMs) => own.clearErrors(beforeMs),
    history: async () => history.snapshot(),
    beginWindow: () => own.beginWindow(),
    close: () => history.close(),
  }
}
