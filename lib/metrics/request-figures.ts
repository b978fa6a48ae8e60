/**
 * What is counted of requests as plain values: what one process tells another, and what the status and the charts make
 * of it.
 */
import { meanMs, percentileMs } from './duration-cells.ts'
import type { DurationCells } from './histogram.ts'
import type { Outcome, StatusClass } from './request-counts.ts'
import { round3 } from './round.ts'
import { routeWindow, type RouteFigures, type RouteTotals, type RouteWindow } from './route-metrics.ts'

/** The window, under the names that `/svc-status` shows. Times have three decimals at most. */
export interface MetricsSnapshot {
  /** Whole seconds since the server started; no reset changes it. */
  readonly uptime_s: number
  /** Seconds since the window began. */
  readonly window_s: number
  readonly requests: {
    readonly total: number
    /** Answers of 400 and above, requests that the parser or a time-out refused, and clients that left before an answer that is no wait (499). */
    readonly errors: number
    readonly by_class: Readonly<Record<StatusClass, number>>
    /** Clients that left while they waited for an event: in `total`, and no errors. */
    readonly left: number
    readonly bytes_in: number
    readonly bytes_out: number
  }
  readonly latency_ms: {
    readonly p50: number
    readonly p95: number
    readonly p99: number
    readonly max: number
    readonly mean: number
  }
  /** The routes that were asked for in the window, in the order in which they were first asked for. */
  readonly routes: readonly RouteWindow[]
}

/** What was counted since the server started. It never goes back. */
export interface MetricsTotals {
  /** When the server started, in milliseconds since 1970. */
  readonly startedAtMs: number
  readonly uptimeSeconds: number
  /** The routes that were asked for. */
  readonly routes: readonly RouteTotals[]
}

/** What one process counted of requests. */
export interface RequestFigures {
  readonly startedAtMs: number
  readonly uptimeSeconds: number
  readonly windowSeconds: number
  /** In the window. */
  readonly requests: RequestSums
  /** In the window. */
  readonly latency: DurationCells
  /** The routes that were asked for since the start, in the order in which they first were. */
  readonly routes: readonly RouteFigures[]
}

/** Answered requests and the bytes of their bodies. */
export interface RequestSums {
  readonly byOutcome: Readonly<Record<Outcome, number>>
  readonly bytesIn: number
  readonly bytesOut: number
}

/** What was counted since the last sample was taken. */
export interface RequestsSince {
  /** How long ago that was; above 0. */
  readonly seconds: number
  readonly requests: number
  readonly errors: number
  readonly bytesOut: number
  readonly latency: DurationCells
}

/** What happened since the last sample was taken. Rates are per second, times in milliseconds. */
export interface RequestInterval {
  readonly requests: number
  readonly errors: number
  readonly bytes_out: number
  readonly p50_ms: number
  readonly p95_ms: number
  readonly p99_ms: number
}

/** The window as the status shows it. */
export function requestWindow(figures: RequestFigures): MetricsSnapshot {
  const { requests, latency } = figures
  const { byOutcome, bytesIn, bytesOut } = requests
  const { left, ...byClass } = byOutcome
  return {
    uptime_s: Math.floor(figures.uptimeSeconds),
    window_s: round3(figures.windowSeconds),
    requests: { ...countsOf(byOutcome), by_class: byClass, left, bytes_in: bytesIn, bytes_out: bytesOut },
    latency_ms: latencyOf(latency),
    routes: figures.routes.filter(({ window }) => window.count > 0).map(routeWindow),
  }
}

/** All requests, and those that were answered with 400 or above. */
export function countsOf(byOutcome: RequestSums['byOutcome']): { readonly total: number; readonly errors: number } {
  const errors = byOutcome['4xx'] + byOutcome['5xx']
  return { total: byOutcome['1xx'] + byOutcome['2xx'] + byOutcome['3xx'] + byOutcome.left + errors, errors }
}

/** Percentiles, the longest and the mean as the status shows them. */
export function latencyOf(latency: DurationCells): MetricsSnapshot['latency_ms'] {
  return {
    p50: round3(percentileMs(latency, 50)),
    p95: round3(percentileMs(latency, 95)),
    p99: round3(percentileMs(latency, 99)),
    max: round3(latency.maxUs / 1000),
    mean: round3(meanMs(latency)),
  }
}

/** Rates and percentiles of what was counted. */
export function ratesOf({ seconds, requests, errors, bytesOut, latency }: RequestsSince): RequestInterval {
  return {
    requests: requests / seconds,
    errors: errors / seconds,
    bytes_out: bytesOut / seconds,
    p50_ms: percentileMs(latency, 50),
    p95_ms: percentileMs(latency, 95),
    p99_ms: percentileMs(latency, 99),
  }
}
