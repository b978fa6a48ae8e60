/**
 * What is counted of the requests: since the server started (for Prometheus), in the window (since the start or the
 * last `bench-start`, for the status), since the last sample (for the monitor's charts), and the last 100.
 *
 * Surprise: the window's counters are differences of those that never go back, so `resetWindow` loses nothing.
 */
import { performance } from 'node:perf_hooks'
import { Histogram, toMicroseconds } from './histogram.ts'
import { RecentRequests, type RecentRequest } from './recent-requests.ts'
import { RequestCounts } from './request-counts.ts'
import { ratesOf, requestWindow } from './request-figures.ts'
import type { MetricsSnapshot, MetricsTotals, RequestFigures, RequestInterval, RequestsSince } from './request-figures.ts'
import { RouteTable, type RouteFigures, type RouteTimings } from './route-metrics.ts'

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
  /** Whether the client left while it waited for an event: that is no error. */
  readonly leftWait?: boolean
  /** '' when no route answered. */
  readonly routeName: string
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
  readonly #wallNow: () => number
  readonly #startedAt: number
  readonly #startedAtMs: number
  readonly #counts = new RequestCounts()
  readonly #routes = new RouteTable()
  readonly #recent = new RecentRequests()
  readonly #windowLatency = new Histogram()
  readonly #intervalLatency = new Histogram()
  readonly #countsAtReset = new RequestCounts()
  readonly #countsAtSample = new RequestCounts()
  #resetAt: number
  #sampledAt: number

  constructor(options: MetricsOptions = {}) {
    this.#now = options.now ?? (() => performance.now())
    this.#wallNow = options.wallNow ?? Date.now
    this.#startedAtMs = this.#wallNow()
    this.#startedAt = this.#now()
    this.#resetAt = this.#startedAt
    this.#sampledAt = this.#startedAt
  }

  /**
   * Counts a request that has ended. On the way of every request: it makes no object but on a route's first.
   * @param timed false leaves its duration out of percentiles and histograms: it waited for an event, which says nothing
   *   of the server
   * @param endedAtMs when it ended, in milliseconds since 1970; whoever has just looked at the clock need not have it looked
   *   at again
   */
  record(request: RequestRecord, timed = true, endedAtMs = this.#wallNow()): void {
    const { method, path, sentStatus, sentBytes, receivedBytes = 0, routeName } = request
    const durationUs = toMicroseconds(request.durationMs)
    const route = this.#routes.of(routeName)
    if (request.leftWait === true) {
      this.#counts.addLeft(receivedBytes)
      route.countLeft(receivedBytes)
    } else {
      this.#counts.add(sentStatus, receivedBytes, sentBytes)
      route.count(sentStatus, receivedBytes, sentBytes)
    }
    if (timed) {
      this.#windowLatency.add(durationUs)
      this.#intervalLatency.add(durationUs)
      route.time(durationUs)
    }
    this.#recent.add(endedAtMs, method, path, sentStatus, durationUs, routeName)
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
    return requestWindow(this.figures('window'))
  }

  /** What was counted, as a value. The durations of routes that are not asked for are empty. */
  figures(timings: RouteTimings = 'all'): RequestFigures {
    return this.#figuresOf(this.#routes.all.filter((route) => route.used).map((route) => route.figures(timings)))
  }

  /** All that was counted, but of the routes those alone that were asked for since this was last called. */
  takeChanges(): RequestFigures {
    return this.#figuresOf(this.#routes.all.filter((route) => route.takeChanged()).map((route) => route.figures()))
  }

  /** What was counted since the start. */
  totals(): MetricsTotals {
    return {
      startedAtMs: this.#startedAtMs,
      uptimeSeconds: this.#secondsSince(this.#startedAt),
      routes: this.#routes.all.filter((route) => route.used).map((route) => route.totals()),
    }
  }

  /** How many requests were answered since the start, and how many of them with 400 and above. */
  answered(): { readonly requests: number; readonly errors: number; readonly uptimeSeconds: number } {
    const { total: requests, errors } = this.#counts
    return { requests, errors, uptimeSeconds: this.#secondsSince(this.#startedAt) }
  }

  /** The last 100 requests, the oldest first. */
  recent(): readonly RecentRequest[] {
    return this.#recent.list()
  }

  /** What happened since this or `takeCounts` was last called, or since the start. */
  takeInterval(): RequestInterval {
    return ratesOf(this.takeCounts())
  }

  /** What was counted since this was last called, or since the start. It has one caller: the history of the monitor. */
  takeCounts(): RequestsSince {
    const { total, errors, bytesOut } = this.#counts.since(this.#countsAtSample)
    const seconds = Math.max(this.#secondsSince(this.#sampledAt), 0.001)
    const taken = { seconds, requests: total, errors, bytesOut, latency: this.#intervalLatency.toCells() }
    this.#sampledAt = this.#now()
    this.#countsAtSample.copy(this.#counts)
    this.#intervalLatency.reset()
    return taken
  }

  #figuresOf(routes: readonly RouteFigures[]): RequestFigures {
    const { byOutcome, bytesIn, bytesOut } = this.#counts.since(this.#countsAtReset)
    return {
      startedAtMs: this.#startedAtMs,
      uptimeSeconds: this.#secondsSince(this.#startedAt),
      windowSeconds: this.#secondsSince(this.#resetAt),
      requests: { byOutcome, bytesIn, bytesOut },
      latency: this.#windowLatency.toCells(),
      routes,
    }
  }

  #secondsSince(startMs: number): number {
    return toMicroseconds(this.#now() - startMs) / 1e6
  }
}
