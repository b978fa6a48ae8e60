/**
 * Where the figures of a process come from: the parts of a server that can be asked at any time.
 */
import type { Config } from '../config/table.ts'
import type { EventStatus } from '../events/events.ts'
import type { PoolCounts } from '../core/pool.ts'
import type { StoreCounts } from '../session/store.ts'
import type { EventLoopWatch } from './event-loop.ts'
import type { Figures, Gauges, LineCounts, PartCounters, PoolGauges } from './figures.ts'
import type { Histogram } from './histogram.ts'
import type { Metrics } from './metrics.ts'
import type { RequestFigures } from './request-figures.ts'

export interface StatusSources {
  readonly config: Pick<Config, 'pool_rest.queue_size'>
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

/** What is so now. */
export function readGauges(sources: StatusSources): Gauges {
  const { httpPool, webSockets, restPool } = sources
  const { rss, heapUsed, heapTotal, external } = process.memoryUsage()
  return {
    activeRequests: sources.activeRequests(),
    connections: sources.connections().open,
    memory: { rss, heapUsed, heapTotal, external },
    pools: {
      http: gaugesOf(httpPool),
      ws: gaugesOf(webSockets.pool),
      sse: gaugesOf(restPool.sse),
      longpoll: gaugesOf(restPool.longpoll),
    },
    restQueue: restPool.queue,
    restQueueSize: sources.config['pool_rest.queue_size'],
    alert: httpPool.alert,
  }
}

/**
 * The figures of the process.
 * @param requests those of `sources.metrics`, with all of their routes or some
 * @param atStart the counters as they stood when the bench window began
 */
export function readFigures(sources: StatusSources, requests: RequestFigures, atStart: PartCounters): Figures {
  const { eventLoop, queueWaits, restQueueWaits, restPool } = sources
  const totals = readCounters(sources)
  return {
    requests,
    now: readGauges(sources),
    eventLoop: { window: eventLoop.figures(), totals: eventLoop.totals() },
    waits: { http: queueWaits.toCells(), rest: restQueueWaits.toCells() },
    counters: { window: since(totals, atStart), totals },
    refused: { sse: restPool.sse.refused, longpoll: restPool.longpoll.refused },
    ended: 0,
    warnings: sources.warnings(),
  }
}

function gaugesOf({ workers, busy, waiting, queueSize }: PoolCounts): PoolGauges {
  return { workers, busy, waiting, queueSize }
}

/** What was added to each counter. */
function since(now: PartCounters, before: PartCounters): PartCounters {
  return {
    connections: added(now.connections, before.connections),
    pool_http: added(now.pool_http, before.pool_http),
    pool_ws: added(now.pool_ws, before.pool_ws),
    pool_rest: added(now.pool_rest, before.pool_rest),
    events: added(now.events, before.events),
    sessions: added(now.sessions, before.sessions),
    views: added(now.views, before.views),
    log: added(now.log, before.log),
    access_log: added(now.access_log, before.access_log),
  }
}

function added<Group extends { readonly [Name in keyof Group]: number }>(now: Group, before: Group): Group {
  const names = Object.keys(now) as (keyof Group)[]
  return Object.fromEntries(names.map((name) => [name, now[name] - before[name]])) as Group // it has the same names
}
