/**
 * The document of `/svc-status`: the state of the server in one place, nested as `svc.json` is. Also what `/svc-metrics`
 * and the charts of the monitor are made of.
 *
 * Surprise: counters and timings are those of the bench window, gauges are those of this moment.
 */
import type { Config } from '../config/table.ts'
import type { EventLoopSnapshot, EventLoopWatch } from '../metrics/event-loop.ts'
import type { Histogram } from '../metrics/histogram.ts'
import type { Sample } from '../metrics/history.ts'
import type { Metrics, MetricsSnapshot } from '../metrics/metrics.ts'
import type { PoolState, PrometheusInput } from '../metrics/prometheus.ts'
import { round3 } from '../metrics/round.ts'
import { serverName, version } from '../version.ts'

/** Where the figures come from: what can be asked at any time. */
export interface StatusSources {
  readonly config: Config
  readonly metrics: Metrics
  readonly eventLoop: EventLoopWatch
  /** Requests being served, from the header section to the end of the answer. */
  readonly activeRequests: () => number
  readonly httpPool: HttpPool
  /** How long those that left the pool's queue for a worker had waited, in the bench window. */
  readonly queueWaits: Histogram
  /** Open connections, and those refused by a limit since the start. */
  readonly connections: () => { readonly open: number; readonly refused: number }
  readonly views: { readonly hits: number; readonly misses: number }
  readonly log: LineCounts
  readonly accessLog: LineCounts
  /** What the operator should know. */
  readonly warnings: () => readonly string[]
}

/** The pool of the plain requests. */
export interface HttpPool {
  readonly workers: number
  readonly queueSize: number
  readonly busy: number
  readonly waiting: number
  readonly refused: number
  readonly alert: boolean
}

/** How many waited in a queue, and for how long, in milliseconds. */
export interface QueueWaits {
  readonly count: number
  readonly p50_ms: number
  readonly p99_ms: number
  readonly max_ms: number
}

/** The lines of a log since the start. */
export interface LineCounts {
  readonly written: number
  readonly lost: number
}

/** What is counted elsewhere and never goes back there. In the document only what the bench window added is shown. */
export interface PartCounters {
  readonly connections: { readonly refused: number }
  readonly pool_http: { readonly refused: number }
  readonly views: { readonly hits: number; readonly misses: number }
  readonly log: LineCounts
  readonly access_log: LineCounts
}

/** The document. Names are the specification's where it has them. */
export interface Status extends Omit<MetricsSnapshot, 'requests'> {
  readonly server: string
  readonly env: string
  readonly pid: number
  readonly node: string
  readonly requests: MetricsSnapshot['requests'] & { readonly active: number }
  readonly connections: { readonly active: number; readonly refused: number }
  readonly event_loop: EventLoopSnapshot
  /** In units of 2^20 bytes. */
  readonly memory: Readonly<Record<'rss_mb' | 'heap_used_mb' | 'heap_total_mb' | 'external_mb', number>>
  readonly pool_http: {
    readonly workers: number
    readonly busy: number
    /** Requests that wait for a worker. */
    readonly queue: number
    readonly queue_size: number
    readonly refused: number
    readonly alert: boolean
    readonly waits: QueueWaits
  }
  readonly pool_ws: { readonly workers: number; readonly active: number }
  readonly pool_rest: Readonly<Record<'workers_sse' | 'sse' | 'workers_longpoll' | 'longpoll' | 'queue' | 'queue_size', number>>
  readonly views: { readonly hits: number; readonly misses: number }
  readonly log: LineCounts
  readonly access_log: LineCounts
  readonly warnings: readonly string[]
}

/** The counters as they stand when a server starts. */
export const noCounters: PartCounters = {
  connections: { refused: 0 },
  pool_http: { refused: 0 },
  views: { hits: 0, misses: 0 },
  log: { written: 0, lost: 0 },
  access_log: { written: 0, lost: 0 },
}

/** The counters as they stand now. */
export function readCounters({ connections, httpPool, views, log, accessLog }: StatusSources): PartCounters {
  return {
    connections: { refused: connections().refused },
    pool_http: { refused: httpPool.refused },
    views: { hits: views.hits, misses: views.misses },
    log: { written: log.written, lost: log.lost },
    access_log: { written: accessLog.written, lost: accessLog.lost },
  }
}

/**
 * Puts the document together.
 * @param atStart the counters as they stood when the bench window began
 */
export function readStatus(sources: StatusSources, atStart: PartCounters): Status {
  const { config, httpPool } = sources
  const snapshot = sources.metrics.snapshot()
  const now = readCounters(sources)
  return {
    server: serverName,
    env: config['app.env'],
    pid: process.pid,
    node: process.versions.node,
    ...snapshot,
    requests: { ...snapshot.requests, active: sources.activeRequests() },
    connections: { active: sources.connections().open, refused: now.connections.refused - atStart.connections.refused },
    event_loop: sources.eventLoop.snapshot(),
    memory: memoryInMegabytes(),
    pool_http: {
      workers: httpPool.workers,
      busy: httpPool.busy,
      queue: httpPool.waiting,
      queue_size: httpPool.queueSize,
      refused: now.pool_http.refused - atStart.pool_http.refused,
      alert: httpPool.alert,
      waits: waitsOf(sources.queueWaits),
    },
    // This version has no streams: nothing is ever active in their pools.
    pool_ws: { workers: config['pool_ws.workers'], active: 0 },
    pool_rest: {
      workers_sse: config['pool_rest.workers_sse'],
      sse: 0,
      workers_longpoll: config['pool_rest.workers_longpoll'],
      longpoll: 0,
      queue: 0,
      queue_size: config['pool_rest.queue_size'],
    },
    views: { hits: now.views.hits - atStart.views.hits, misses: now.views.misses - atStart.views.misses },
    log: linesSince(now.log, atStart.log),
    access_log: linesSince(now.access_log, atStart.access_log),
    warnings: sources.warnings(),
  }
}

/** The input of `renderPrometheus`. */
export function readTotals(sources: StatusSources): PrometheusInput {
  const { httpPool, log, accessLog, views } = sources
  const { workers, busy, waiting, queueSize, refused } = httpPool
  const pools: PoolState[] = [{ name: 'http', workers, busy, waiting, queueSize, refused }]
  return {
    version,
    nodeVersion: process.versions.node,
    requests: sources.metrics.totals(),
    activeRequests: sources.activeRequests(),
    pools,
    connections: sources.connections(),
    eventLoop: sources.eventLoop.totals(),
    memory: process.memoryUsage(),
    logs: [
      { name: 'general', written: log.written, lost: log.lost },
      { name: 'access', written: accessLog.written, lost: accessLog.lost },
    ],
    viewCache: { hits: views.hits, misses: views.misses },
    warnings: sources.warnings().length,
  }
}

/** One sample for the charts: what happened since the last one. */
export function takeSample(sources: StatusSources): Sample {
  const { metrics, eventLoop, httpPool } = sources
  const memory = memoryInMegabytes()
  return {
    ...metrics.takeInterval(),
    ...eventLoop.takeInterval(),
    busy_http: httpPool.busy,
    queue_http: httpPool.waiting,
    longpoll: 0,
    sse: 0,
    ws: 0,
    rss_mb: memory.rss_mb,
    heap_mb: memory.heap_used_mb,
    connections: sources.connections().open,
  }
}

function linesSince(now: LineCounts, before: LineCounts): LineCounts {
  return { written: now.written - before.written, lost: now.lost - before.lost }
}

function waitsOf(waits: Histogram): QueueWaits {
  const { count, maxMs } = waits
  return { count, p50_ms: round3(waits.percentile(50)), p99_ms: round3(waits.percentile(99)), max_ms: round3(maxMs) }
}

function memoryInMegabytes(): Status['memory'] {
  const { rss, heapUsed, heapTotal, external } = process.memoryUsage()
  const [rss_mb, heap_used_mb, heap_total_mb, external_mb] = [rss, heapUsed, heapTotal, external].map(
    (bytes) => Math.round((bytes / 2 ** 20) * 10) / 10,
  ) as [number, number, number, number]
  return { rss_mb, heap_used_mb, heap_total_mb, external_mb }
}
