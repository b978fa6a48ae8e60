/**
 * Every metric of a process, declared once: its kind, how it is read, and its name and help in the Prometheus text.
 * Readings, sums, differences and the text derive from this table, and the text follows its order.
 */
import { getHeapStatistics } from 'node:v8'
import type { Config } from '../config/table.ts'
import type { PoolCounts } from '../core/pool.ts'
import type { EventStatus } from '../events/events.ts'
import type { StoreCounts } from '../session/store.ts'
import type { EventLoopWatch } from './event-loop.ts'
import type { Histogram } from './histogram.ts'
import type { Metrics, RequestValues } from './metrics.ts'
import type { AppMetricReading } from './app-readings.ts'
import { optional, type Value } from './values.ts'

/** The parts of a server that the metrics are read from. */
export interface MetricSources {
  readonly config: Pick<Config, 'pool_rest.queue_size'>
  readonly metrics: Metrics
  readonly eventLoop: EventLoopWatch
  /** Requests being served, from the header section to the end of the response. */
  readonly activeRequests: () => number
  readonly httpPool: PoolCounts & { readonly alert: boolean }
  /** How long requests waited for a worker in the pool's queue. */
  readonly queueWaits: Histogram
  readonly restPool: { readonly longpoll: PoolCounts; readonly sse: PoolCounts }
  /** The same as `queueWaits`, for the pool of long polls and streams. */
  readonly restQueueWaits: Histogram
  readonly webSockets: { readonly pool: PoolCounts; readonly slow: number }
  readonly events: () => EventStatus
  /** Since the start; no number decreases, but that of the stored sessions, where it is known. */
  readonly sessions: () => StoreCounts & { readonly stored?: number | undefined }
  /** The tries of jobs since the start, by their end, and the number of jobs that run. */
  readonly jobs: () => {
    readonly done: number
    readonly failed: number
    readonly dead: number
    readonly running: number
  }
  /** The refused requests of each rule of `setup.limit` since the start. */
  readonly limits: () => Readonly<Record<string, number>>
  /** Open connections; since the start, those refused by a limit, closed when file descriptors ran short, and those
      whose TLS handshake failed. */
  readonly connections: () => {
    readonly open: number
    readonly refused: number
    readonly stalled: number
    readonly failed: number
  }
  readonly views: { readonly hits: number; readonly misses: number }
  readonly log: LineCounts & { readonly consoleLost?: number }
  readonly accessLog: LineCounts
  /** Open file descriptors and their limit; undefined where the system does not report them. */
  readonly descriptors: () => { readonly open: number | undefined; readonly limit: number } | undefined
  /** Processes that were replaced, by reason; none in a process that replaces no other. */
  readonly replaced: () => Readonly<Record<string, number>>
  /** Whether the last reload of routes or certificates was refused. */
  readonly isReloadRefused: () => boolean
  /** Whether this process is ready, as of the last checks. */
  readonly isReady: () => boolean
  /** The metrics of the application. */
  readonly appMetrics: () => readonly AppMetricReading[]
  /** Messages for the operator. */
  readonly warnings: () => readonly string[]
}

/** The lines of a log since the start. */
export interface LineCounts {
  readonly written: number
  readonly lost: number
}

/** A metric of the table. */
export interface Metric<Of extends Value = Value> {
  /** Counters and histograms never decrease; a gauge is a current value. */
  readonly kind: 'counter' | 'gauge' | 'histogram'
  readonly read: (from: Moment) => Of
  /** Its name in the Prometheus text; '' if it is not shown there. */
  readonly name: string
  /** One line without a backslash. */
  readonly help: string
  /** The label of a metric with several numbers. */
  readonly label: string
  /** If it is counted for each route too: its name among the values of a route. The text has a row for each route. */
  readonly byRoute: keyof RequestValues | undefined
}

/** The sources at one moment. */
interface Moment extends MetricSources {
  readonly served: RequestValues
  readonly memory: NodeJS.MemoryUsage
}

const declare =
  (kind: Metric['kind']) =>
  <Of extends Value>(read: (from: Moment) => Of, name = '', help = '', label = ''): Metric<Of> => ({
    kind,
    read,
    name,
    help,
    label,
    byRoute: undefined,
  })
const counter = declare('counter')
const gauge = declare('gauge')
const histogram = declare('histogram')

/** Declares a metric that is counted for each route. @param of its name among the values of a route */
const byRoute = <Of extends keyof RequestValues>(
  declared: ReturnType<typeof declare>,
  of: Of,
  name: string,
  help: string,
  label?: string,
): Metric<RequestValues[Of]> => ({
  ...declared(({ served }) => served[of], name, `${help}, by route.`, label),
  byRoute: of,
})

/** Reads a number of each pool. */
const ofPools =
  (name: keyof PoolCounts) =>
  ({ httpPool, webSockets, restPool: { sse, longpoll } }: Moment) => ({
    http: httpPool[name],
    ws: webSockets.pool[name],
    sse: sse[name],
    longpoll: longpoll[name],
  })

/** The table. Units are seconds and bytes, and in histograms microseconds. */
export const metricTable = {
  cpu: counter(() => cpuSeconds(),
    'process_cpu_seconds_total', 'Time that processors worked for the process.'),
  openDescriptors: gauge(({ descriptors }) => optional(descriptors()?.open),
    'process_open_fds', 'Open file descriptors.'),
  maxDescriptors: gauge(({ descriptors }) => optional(descriptors()?.limit),
    'process_max_fds', 'The most file descriptors that may be open.'),
  memoryResident: gauge(({ memory }) => memory.rss,
    'svc_memory_resident_bytes', 'Memory of the process.'),
  heapUsed: gauge(({ memory }) => memory.heapUsed,
    'svc_memory_heap_used_bytes', 'JavaScript heap in use.'),
  heapSize: gauge(({ memory }) => memory.heapTotal,
    'svc_memory_heap_size_bytes', 'JavaScript heap reserved.'),
  memoryExternal: gauge(({ memory }) => memory.external,
    'svc_memory_external_bytes', 'Memory outside the heap that JavaScript objects hold.'),
  memoryBuffers: gauge(({ memory }) => memory.arrayBuffers,
    'svc_memory_array_buffers_bytes', 'Memory of Buffers and other ArrayBuffers, a part of the external memory.'),
  heapLimit: gauge(() => getHeapStatistics().heap_size_limit,
    'svc_memory_heap_limit_bytes', 'The size of the JavaScript heap at which the process aborts.'),
  requests: byRoute(counter, 'requests', 'svc_http_requests_total',
    'Requests by status class (left: the client disconnected while it waited for an event)', 'code'),
  durations: byRoute(histogram, 'durations', 'svc_http_request_duration_seconds',
    'Time from the header section to the end of the response'),
  bytesIn: byRoute(counter, 'bytesIn', 'svc_http_request_body_bytes_total',
    'Bytes of request bodies'),
  bytesOut: byRoute(counter, 'bytesOut', 'svc_http_response_body_bytes_total',
    'Bytes of response bodies'),
  requestsActive: gauge(({ activeRequests }) => activeRequests(),
    'svc_http_requests_active', 'Requests being served.'),
  poolWorkers: gauge(ofPools('workers'),
    'svc_pool_workers', 'Workers of a pool.', 'pool'),
  poolBusy: gauge(ofPools('busy'),
    'svc_pool_workers_busy', 'Workers of a pool that are running a request.', 'pool'),
  poolQueueSize: gauge(ofPools('queueSize'),
    'svc_pool_queue_size', 'Places in the queue of a pool; sse and longpoll share theirs.', 'pool'),
  poolWaiting: gauge(ofPools('waiting'),
    'svc_pool_queue_waiting', 'Requests in the queue of a pool.', 'pool'),
  poolRefused: counter(ofPools('refused'),
    'svc_pool_refused_total', 'Requests refused because workers and queue were full.', 'pool'),
  /** The queue that sse and longpoll share. */
  restQueueSize: gauge(({ config }) => config['pool_rest.queue_size']),
  /** Whether the pool of plain requests is saturated: 0 or 1; in a total, the number of processes. */
  httpAlert: gauge(({ httpPool }) => Number(httpPool.alert)),
  httpWaits: histogram(({ queueWaits }) => queueWaits.read()),
  restWaits: histogram(({ restQueueWaits }) => restQueueWaits.read()),
  /** 0 or 1; in a total, the number of processes. */
  reloadRefused: gauge(({ isReloadRefused }) => Number(isReloadRefused())),
  /** 0 or 1; in a total, the number of processes. */
  notReady: gauge(({ isReady }) => Number(!isReady())),
  processesReplaced: counter(({ replaced }) => replaced(),
    'svc_processes_replaced_total', 'Processes that ended and were replaced, by reason.', 'reason'),
  connectionsOpen: gauge(({ connections }) => connections().open,
    'svc_connections_open', 'Open connections.'),
  connectionsRefused: counter(({ connections }) => connections().refused,
    'svc_connections_refused_total', 'Connections refused by a limit.'),
  connectionsStalled: counter(({ connections }) => connections().stalled,
    'svc_connections_stalled_total', 'Connections without progress, closed when file descriptors ran short.'),
  handshakesFailed: counter(({ connections }) => connections().failed,
    'svc_tls_handshakes_failed_total', 'TLS handshakes that failed.'),
  loopDelay: histogram(({ eventLoop }) => eventLoop.delay.read(),
    'svc_event_loop_delay_seconds', 'How late a timer fired, sampled every 50 ms.'),
  loopActive: counter(({ eventLoop }) => eventLoop.activeSeconds,
    'svc_event_loop_active_seconds_total', 'Time the event loop did not wait.'),
  loopIdle: counter(({ eventLoop }) => eventLoop.idleSeconds),
  eventsPublished: counter(({ events }) => events().published,
    'svc_events_published_total', 'Events published.'),
  eventsDelivered: counter(({ events }) => events().delivered,
    'svc_events_delivered_total', 'Events delivered, counted once for each client.'),
  eventsDropped: counter(({ events }) => events().dropped,
    'svc_events_dropped_total', 'Events of queues dropped because no client took them in time.'),
  streamsSlow: counter(({ events, webSockets }) => ({ sse: events().slow, ws: webSockets.slow }),
    'svc_streams_slow_total', 'Clients disconnected because they did not read.', 'kind'),
  jobsEnded: counter(({ jobs }) => ({ done: jobs().done, failed: jobs().failed, dead: jobs().dead }),
    'svc_jobs_total', 'Tries of background jobs (dead: the last try of a job failed; failed counts it too).', 'end'),
  jobsRunning: gauge(({ jobs }) => jobs().running,
    'svc_jobs_running', 'Background jobs that run.'),
  sessions: gauge(({ sessions }) => optional(sessions().stored),
    'svc_sessions', 'Sessions in the store, with those that have expired since its last sweep.'),
  sessionsEvicted: counter(({ sessions }) => sessions().evicted,
    'svc_sessions_evicted_total', 'Sessions dropped to stay below the limit.'),
  sessionsDamaged: counter(({ sessions }) => sessions().damaged,
    'svc_sessions_damaged_total', 'Sessions ignored because they were damaged.'),
  limitRefused: counter(({ limits }) => limits(),
    'svc_limit_refused_total', 'Requests refused by a limit, by its rule.', 'rule'),
  linesWritten: counter(({ log, accessLog }) => ({ general: log.written, access: accessLog.written }),
    'svc_log_lines_written_total', 'Log lines on disk.', 'log'),
  linesLost: counter(({ log: { lost, consoleLost = 0 }, accessLog }) =>
    ({ general: lost, access: accessLog.lost, console: consoleLost }),
    'svc_log_lines_lost_total', 'Log lines that could not be written.', 'log'),
  viewHits: counter(({ views }) => views.hits,
    'svc_view_cache_hits_total', 'Views found compiled.'),
  viewMisses: counter(({ views }) => views.misses,
    'svc_view_cache_misses_total', 'Views that had to be compiled.'),
}

/** The name of a metric. */
export type MetricName = keyof typeof metricTable

/** The value of each metric. */
export type MetricValues = { readonly [Name in MetricName]: ReturnType<(typeof metricTable)[Name]['read']> }

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

/** The memory of this process. Node opens a file for it; if no descriptor is free, returns the peak memory instead. */
function memoryUsage(): NodeJS.MemoryUsage {
  try {
    return process.memoryUsage()
  } catch {
    const { used_heap_size, total_heap_size, external_memory } = getHeapStatistics()
    const rss = process.resourceUsage().maxRSS * 1024
    return { rss, heapUsed: used_heap_size, heapTotal: total_heap_size, external: external_memory, arrayBuffers: 0 }
  }
}

/** Reads every metric. */
export function readMetrics(sources: MetricSources): MetricValues {
  const moment: Moment = { ...sources, served: sources.metrics.read(), memory: memoryUsage() }
  const values = Object.entries(metricTable).map(([name, { read }]) => [name, read(moment)])
  return Object.fromEntries(values) as MetricValues // It has a value for each row.
}
