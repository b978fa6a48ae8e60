/**
 * The document of `/svc-status`: the state of the server in one place, nested as `svc.json` is. Also what `/svc-metrics`
 * and the charts of the monitor are made of.
 *
 * Surprise: counters and timings are those of the bench window, gauges are those of this moment.
 */
import type { Config } from '../config/table.ts'
import type { EventStatus } from '../events/events.ts'
import type { EventLoopSnapshot, EventLoopWatch } from '../metrics/event-loop.ts'
import type { Histogram } from '../metrics/histogram.ts'
import type { Sample } from '../metrics/history.ts'
import type { Metrics, MetricsSnapshot } from '../metrics/metrics.ts'
import type { PoolState, PrometheusInput } from '../metrics/prometheus.ts'
import { round3 } from '../metrics/round.ts'
import type { PoolCounts } from '../pool/pool.ts'
import type { StoreCounts } from '../session/store.ts'
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
  readonly restPool: RestPoolCounts
  /** The same as `queueWaits`, of the pool of long polls and streams. */
  readonly restQueueWaits: Histogram
  readonly webSockets: { readonly pool: PoolCounts; readonly slow: number }
  readonly events: () => EventStatus
  /** Since the start: no number goes back here (`session-totals.ts`). */
  readonly sessions: () => StoreCounts
  /** Open connections, and those refused by a limit since the start. */
  readonly connections: () => { readonly open: number; readonly refused: number }
  readonly views: { readonly hits: number; readonly misses: number }
  readonly log: LineCounts
  readonly accessLog: LineCounts
  /** What the operator should know. */
  readonly warnings: () => readonly string[]
}

/** The pool of the plain requests. */
export interface HttpPool extends PoolCounts {
  readonly alert: boolean
}

/** The pool of the long polls and streams. */
export interface RestPoolCounts {
  readonly longpoll: PoolCounts
  readonly sse: PoolCounts
  /** Of both kinds, waiting now. */
  readonly queue: number
  /** Of both kinds, since the start. */
  readonly refused: number
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
  readonly pool_ws: { readonly refused: number; readonly slow: number }
  readonly pool_rest: { readonly refused: number }
  readonly events: EventStatus
  readonly sessions: StoreCounts
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
  readonly pool_ws: {
    readonly workers: number
    readonly active: number
    readonly refused: number
    /** Connections cut since their clients did not read. */
    readonly slow: number
  }
  readonly pool_rest: {
    readonly workers_sse: number
    readonly sse: number
    readonly workers_longpoll: number
    readonly longpoll: number
    /** Streams and long polls that wait for a worker. */
    readonly queue: number
    readonly queue_size: number
    readonly refused: number
    readonly waits: QueueWaits
  }
  readonly events: EventStatus
  readonly sessions: StoreCounts
  readonly views: { readonly hits: number; readonly misses: number }
  readonly log: LineCounts
  readonly access_log: LineCounts
  readonly warnings: readonly string[]
}

/** The counters as they stand when a server starts. */
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

/** The counters as they stand now. */
export function readCounters(sources: StatusSources): PartCounters {
  const { httpPool, webSockets, restPool, views, log, accessLog } = sources
  const { published, delivered, dropped, slow } = sources.events()
  const { evicted, damaged } = sources.sessions()
  return {
    connections: { refused: sources.connections().refused },
    pool_http: { refused: httpPool.refused },
    pool_ws: { refused: webSockets.pool.refused, slow: webSockets.slow },
    pool_rest: { refused: restPool.refused },
    events: { published, delivered, dropped, slow },
    sessions: { evicted, damaged },
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
  const { config, httpPool, restPool, webSockets } = sources
  const snapshot = sources.metrics.snapshot()
  const now = readCounters(sources)
  return {
    server: serverName,
    env: config['app.env'],
    pid: process.pid,
    node: process.versions.node,
    ...snapshot,
    requests: { ...snapshot.requests, active: sources.activeRequests() },
    connections: { active: sources.connections().open, ...added(now.connections, atStart.connections) },
    event_loop: sources.eventLoop.snapshot(),
    memory: memoryInMegabytes(),
    pool_http: {
      workers: httpPool.workers,
      busy: httpPool.busy,
      queue: httpPool.waiting,
      queue_size: httpPool.queueSize,
      ...added(now.pool_http, atStart.pool_http),
      alert: httpPool.alert,
      waits: waitsOf(sources.queueWaits),
    },
    pool_ws: {
      workers: webSockets.pool.workers,
      active: webSockets.pool.busy,
      ...added(now.pool_ws, atStart.pool_ws),
    },
    pool_rest: {
      workers_sse: restPool.sse.workers,
      sse: restPool.sse.busy,
      workers_longpoll: restPool.longpoll.workers,
      longpoll: restPool.longpoll.busy,
      queue: restPool.queue,
      queue_size: config['pool_rest.queue_size'],
      ...added(now.pool_rest, atStart.pool_rest),
      waits: waitsOf(sources.restQueueWaits),
    },
    events: added(now.events, atStart.events),
    sessions: added(now.sessions, atStart.sessions),
    views: added(now.views, atStart.views),
    log: added(now.log, atStart.log),
    access_log: added(now.access_log, atStart.access_log),
    warnings: sources.warnings(),
  }
}

/** The input of `renderPrometheus`. */
export function readTotals(sources: StatusSources): PrometheusInput {
  const { httpPool, restPool, webSockets, log, accessLog, views } = sources
  const events = sources.events()
  return {
    version,
    nodeVersion: process.versions.node,
    requests: sources.metrics.totals(),
    activeRequests: sources.activeRequests(),
    pools: [
      poolState('http', httpPool),
      poolState('ws', webSockets.pool),
      poolState('sse', restPool.sse),
      poolState('longpoll', restPool.longpoll),
    ],
    connections: sources.connections(),
    eventLoop: sources.eventLoop.totals(),
    memory: process.memoryUsage(),
    logs: [
      { name: 'general', written: log.written, lost: log.lost },
      { name: 'access', written: accessLog.written, lost: accessLog.lost },
    ],
    events,
    slowStreams: { sse: events.slow, ws: webSockets.slow },
    sessions: sources.sessions(),
    viewCache: { hits: views.hits, misses: views.misses },
    warnings: sources.warnings().length,
  }
}

/** One sample for the charts: what happened since the last one. */
export function takeSample(sources: StatusSources): Sample {
  const { metrics, eventLoop, httpPool, restPool, webSockets } = sources
  const memory = memoryInMegabytes()
  return {
    ...metrics.takeInterval(),
    ...eventLoop.takeInterval(),
    busy_http: httpPool.busy,
    queue_http: httpPool.waiting,
    longpoll: restPool.longpoll.busy,
    sse: restPool.sse.busy,
    ws: webSockets.pool.busy,
    rss_mb: memory.rss_mb,
    heap_mb: memory.heap_used_mb,
    connections: sources.connections().open,
  }
}

/** What was added to each counter of a group. */
function added<Group extends { readonly [Name in keyof Group]: number }>(now: Group, before: Group): Group {
  const names = Object.keys(now) as (keyof Group)[]
  return Object.fromEntries(names.map((name) => [name, now[name] - before[name]])) as Group // it has the same names
}

function waitsOf(waits: Histogram): QueueWaits {
  const { count, maxMs } = waits
  return { count, p50_ms: round3(waits.percentile(50)), p99_ms: round3(waits.percentile(99)), max_ms: round3(maxMs) }
}

function poolState(name: string, { workers, busy, waiting, queueSize, refused }: PoolCounts): PoolState {
  return { name, workers, busy, waiting, queueSize, refused }
}

function memoryInMegabytes(): Status['memory'] {
  const { rss, heapUsed, heapTotal, external } = process.memoryUsage()
  const [rss_mb, heap_used_mb, heap_total_mb, external_mb] = [rss, heapUsed, heapTotal, external].map(
    (bytes) => Math.round((bytes / 2 ** 20) * 10) / 10,
  ) as [number, number, number, number]
  return { rss_mb, heap_used_mb, heap_total_mb, external_mb }
}
