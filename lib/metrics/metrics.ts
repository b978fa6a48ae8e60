/**
 * What is counted of the requests: since the server started (for Prometheus), in the window (since the start or the
 * last `bench-start`, for the status), since the last sample (for the monitor's charts), and the last 100.
 *
 * Surprise: the window's counters are differences of those that never go back, so `resetWindow` loses nothing.
 */
import { Histogram, toMicroseconds } from './histogram.ts'
import { RecentRequests, type RecentRequest } from './recent-requests.ts'
import { RequestCounts, type StatusClass } from './request-counts.ts'
import { round3 } from './round.ts'
import { RouteTable, type RouteTotals, type RouteWindow } from './route-metrics.ts'

export type { RecentRequest }

/** What the metrics ask of a request that has ended. Its context is one, so that nothing is made for it. */
export interface RequestRecord {
  readonly method: string
  /** Without the query. */
  readonly path: string
  readonly sentStatus: number
  /** The bytes of the answer's body. */
  readonly sentBytes: number
  /** The bytes of the request's body; 0 when it is not there. */
  readonly receivedBytes?: number
  readonly durationMs: number
  /** '' when no route answered. */
  readonly routeName: string
}

/** The window, under the names that `/svc-status` shows. Times have three decimals at most. */
export interface MetricsSnapshot {
  /** Whole seconds since the server started; no reset changes it. */
  readonly uptime_s: number
  /** Seconds since the window began. */
  readonly window_s: number
  readonly requests: {
    readonly total: number
    /** Answers of 400 and above, and clients that left before theirs (499). */
    readonly errors: number
    readonly by_class: Readonly<Record<StatusClass, number>>
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

/** What happened since the last sample was taken. Rates are per second, times in milliseconds. */
export interface RequestInterval {
  readonly requests: number
  readonly errors: number
  readonly bytes_out: number
  readonly p50_ms: number
  readonly p95_ms: number
  readonly p99_ms: number
}

/** The clocks, in milliseconds. */
export interface MetricsOptions {
  /** One that does not jump; `performance.now` unless given. */
  readonly now?: () => number
  /** That of the calendar; `Date.now` unless given. */
  readonly wallNow?: () => number
}

/** Counts requests. It holds no timer, so there is nothing to close. */
export class Metrics {
  readonly #now: () => number
  readonly #startedAt: number
  readonly #startedAtMs: number
  readonly #counts = new RequestCounts()
  readonly #routes = new RouteTable()
  readonly #recent: RecentRequests
  readonly #windowLatency = new Histogram()
  readonly #intervalLatency = new Histogram()
  readonly #countsAtReset = new RequestCounts()
  readonly #countsAtSample = new RequestCounts()
  #resetAt: number
  #sampledAt: number

  constructor(options: MetricsOptions = {}) {
    this.#now = options.now ?? (() => performance.now())
    const wallNow = options.wallNow ?? Date.now
    this.#recent = new RecentRequests(wallNow)
    this.#startedAtMs = wallNow()
    this.#startedAt = this.#now()
    this.#resetAt = this.#startedAt
    this.#sampledAt = this.#startedAt
  }

  /**
   * Counts a request that has ended. On the way of every request: it makes no object but on a route's first.
   * @param timed false leaves its duration out of percentiles and histograms: it waited for an event, which says nothing
   *   of the server
   */
  record(request: RequestRecord, timed = true): void {
    const { method, path, sentStatus, sentBytes, receivedBytes = 0, routeName } = request
    const durationUs = toMicroseconds(request.durationMs)
    const route = this.#routes.of(routeName)
    this.#counts.add(sentStatus, receivedBytes, sentBytes)
    route.count(sentStatus, receivedBytes, sentBytes)
    if (timed) {
      this.#windowLatency.add(durationUs)
      this.#intervalLatency.add(durationUs)
      route.time(durationUs)
    }
    this.#recent.add(method, path, sentStatus, durationUs, routeName)
  }

  /** Begins a new window: every counter and timing of `snapshot()` is 0 again, but for the uptime. Totals stay. */
  resetWindow(): void {
    this.#resetAt = this.#now()
    this.#countsAtReset.copy(this.#counts)
    this.#windowLatency.reset()
    for (const route of this.#routes.all) route.resetWindow()
  }

  /** The present window. */
  snapshot(): MetricsSnapshot {
    const counts = this.#counts.since(this.#countsAtReset)
    const latency = this.#windowLatency
    return {
      uptime_s: Math.floor(this.#secondsSince(this.#startedAt)),
      window_s: round3(this.#secondsSince(this.#resetAt)),
      requests: {
        total: counts.total,
        errors: counts.errors,
        by_class: counts.byClass,
        bytes_in: counts.bytesIn,
        bytes_out: counts.bytesOut,
      },
      latency_ms: {
        p50: round3(latency.percentile(50)),
        p95: round3(latency.percentile(95)),
        p99: round3(latency.percentile(99)),
        max: round3(latency.maxMs),
        mean: round3(latency.meanMs),
      },
      routes: this.#routes.all.filter((route) => route.active).map((route) => route.window()),
    }
  }

  /** What was counted since the start. */
  totals(): MetricsTotals {
    return {
      startedAtMs: this.#startedAtMs,
      uptimeSeconds: this.#secondsSince(this.#startedAt),
      routes: this.#routes.all.filter((route) => route.used).map((route) => route.totals()),
    }
  }

  /** The last 100 requests, the oldest first. */
  recent(): readonly RecentRequest[] {
    return this.#recent.list()
  }

  /** What happened since this was last called, or since the start. It has one caller: the history of the monitor. */
  takeInterval(): RequestInterval {
    const seconds = Math.max(this.#secondsSince(this.#sampledAt), 0.001)
    const counts = this.#counts.since(this.#countsAtSample)
    const interval = {
      requests: counts.total / seconds,
      errors: counts.errors / seconds,
      bytes_out: counts.bytesOut / seconds,
      p50_ms: this.#intervalLatency.percentile(50),
      p95_ms: this.#intervalLatency.percentile(95),
      p99_ms: this.#intervalLatency.percentile(99),
    }
    this.#sampledAt = this.#now()
    this.#countsAtSample.copy(this.#counts)
    this.#intervalLatency.reset()
    return interval
  }

  #secondsSince(startMs: number): number {
    return toMicroseconds(this.#now() - startMs) / 1e6
  }
}
