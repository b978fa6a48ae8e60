/**
 * All that one process knows of itself at a moment, as a value that another process can be told as JSON. The status and
 * the Prometheus text are made of such figures: of those of one process, or of several merged into one.
 *
 * Surprise: figures hold what was counted and no percentiles, which could not be merged.
 */
import { noDurationTotals } from './duration-buckets.ts'
import { noDurations } from './duration-cells.ts'
import type { EventLoopFigures, EventLoopTotals } from './event-loop.ts'
import type { DurationCells } from './histogram.ts'
import type { Outcome } from './request-counts.ts'
import type { RequestFigures, RequestsSince } from './request-figures.ts'

/** What a process knows. */
export interface Figures {
  readonly requests: RequestFigures
  /** Of this moment. */
  readonly now: Gauges
  readonly eventLoop: { readonly window: EventLoopFigures; readonly totals: EventLoopTotals }
  /** How long those that left the queue of a pool for a worker had waited, in the window. */
  readonly waits: { readonly http: DurationCells; readonly rest: DurationCells }
  readonly counters: { readonly window: PartCounters; readonly totals: PartCounters }
  /** Since the start. */
  readonly refused: { readonly sse: number; readonly longpoll: number }
  /** How many processes ended whose figures are in these. */
  readonly ended: number
  /** What the operator should know. */
  readonly warnings: readonly string[]
}

/** The figures of a process, and which one it is. */
export interface ProcessFigures extends Figures {
  /** What the process is called among those of the server. */
  readonly id: string
  /** `alone`: the only one; `ended`: all those that are no more, as if they were one. */
  readonly role: 'alone' | 'primary' | 'worker' | 'ended'
  readonly pid: number
  /** False: it did not answer in time, and these are its last known figures. */
  readonly responding: boolean
  /** True: it has not been asked, since it is loading the application. */
  readonly starting?: boolean
}

/** What happened in a process since it was last asked. */
export interface Interval {
  readonly requests: RequestsSince
  readonly eventLoop: EventLoopFigures
}

/** What is so at a moment. */
export interface Gauges {
  /** Requests being served, from the header section to the end of the answer. */
  readonly activeRequests: number
  /** Open connections. */
  readonly connections: number
  /** In bytes, as `process.memoryUsage()` gives it. */
  readonly memory: Readonly<Record<'rss' | 'heapUsed' | 'heapTotal' | 'external', number>>
  readonly pools: Readonly<Record<PoolName, PoolGauges>>
  /** Long polls and streams that wait, and the most that may. */
  readonly restQueue: number
  readonly restQueueSize: number
  /** Whether the pool of plain requests is saturated. */
  readonly alert: boolean
}

/** The pools of workers. */
export type PoolName = 'http' | 'ws' | 'sse' | 'longpoll'

export interface PoolGauges {
  readonly workers: number
  readonly busy: number
  readonly waiting: number
  readonly queueSize: number
}

/** What is counted outside of the metrics and never goes back there, by the names of the status. */
export interface PartCounters {
  readonly connections: { readonly refused: number }
  readonly pool_http: { readonly refused: number }
  readonly pool_ws: { readonly refused: number; readonly slow: number }
  readonly pool_rest: { readonly refused: number }
  readonly events: Readonly<Record<'published' | 'delivered' | 'dropped' | 'slow', number>>
  readonly sessions: Readonly<Record<'evicted' | 'damaged', number>>
  readonly views: { readonly hits: number; readonly misses: number }
  readonly log: LineCounts
  readonly access_log: LineCounts
}

/** The lines of a log. */
export interface LineCounts {
  readonly written: number
  readonly lost: number
}

/** The counters as they stand when a process starts. */
export const noCounters: PartCounters = {
  connections: { refused: 0 },
  pool_http: { refused: 0 },
  pool_ws: { refused: 0, slow: 0 },
  pool_rest: { refused: 0 },
  events: { published: 0, delivered: 0, dropped: 0, slow: 0 },
  sessions: { evicted: 0, damaged: 0 },
  views: { hits: 0, misses: 0 },
  log: { written: 0, lost: 0 },
  access_log: { written: 0, lost: 0 },
}

const noPool: PoolGauges = { workers: 0, busy: 0, waiting: 0, queueSize: 0 }

/** The gauges of a process that is not there. */
export const noGauges: Gauges = {
  activeRequests: 0,
  connections: 0,
  memory: { rss: 0, heapUsed: 0, heapTotal: 0, external: 0 },
  pools: { http: noPool, ws: noPool, sse: noPool, longpoll: noPool },
  restQueue: 0,
  restQueueSize: 0,
  alert: false,
}

const noClasses: Readonly<Record<Outcome, number>> = { '1xx': 0, '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 0, left: 0 }
const noEventLoop: EventLoopFigures = { delay: noDurations, activeUs: 0, idleUs: 0 }

/** The figures of a process that has not told any. */
export const noFigures: Figures = {
  requests: {
    startedAtMs: 0, // It is not known.
    uptimeSeconds: 0,
    windowSeconds: 0,
    requests: { byOutcome: noClasses, bytesIn: 0, bytesOut: 0 },
    latency: noDurations,
    routes: [],
  },
  now: noGauges,
  eventLoop: { window: noEventLoop, totals: { delay: noDurationTotals, activeSeconds: 0 } },
  waits: { http: noDurations, rest: noDurations },
  counters: { window: noCounters, totals: noCounters },
  refused: { sse: 0, longpoll: 0 },
  ended: 0,
  warnings: [],
}

/** Figures as if their bench window had just begun. */
export function withoutWindow(figures: Figures): Figures {
  const { requests, latency } = noFigures.requests
  const window = { count: 0, errors: 0, latency }
  const routes = figures.requests.routes.map((route) => ({ ...route, window }))
  return {
    ...figures,
    requests: { ...figures.requests, requests, latency, routes },
    eventLoop: { ...figures.eventLoop, window: noEventLoop },
    waits: noFigures.waits,
    counters: { ...figures.counters, window: noCounters },
  }
}
