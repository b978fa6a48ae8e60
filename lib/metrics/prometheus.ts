/**
 * What `/svc-metrics` answers. Every name begins with `svc_`, units are seconds and bytes, and counters never go back.
 */
import type { EventLoopTotals } from './event-loop.ts'
import { family, histogram, labels, type Row } from './exposition.ts'
import type { MetricsTotals } from './request-figures.ts'
import { outcomes } from './request-counts.ts'

/** A pool of workers now, and what it refused since the start. */
export interface PoolState {
  /** `http`, `ws`, `sse` or `longpoll`. */
  readonly name: string
  readonly workers: number
  readonly busy: number
  readonly waiting: number
  /** Shared by `sse` and `longpoll`: each has all of it where the other takes none. */
  readonly queueSize: number
  readonly refused: number
}

/** The lines of a log since the start. */
export interface LogState {
  /** `general` or `access`. */
  readonly name: string
  readonly written: number
  readonly lost: number
}

/** All that is shown. */
export interface PrometheusInput {
  /** The server's version. */
  readonly version: string
  /** `process.versions.node` */
  readonly nodeVersion: string
  readonly requests: MetricsTotals
  /** Requests being served now. */
  readonly activeRequests: number
  readonly pools: readonly PoolState[]
  readonly connections: { readonly open: number; readonly refused: number }
  readonly eventLoop: EventLoopTotals
  /** In bytes, as `process.memoryUsage()` gives it. */
  readonly memory: Readonly<Record<'rss' | 'heapUsed' | 'heapTotal' | 'external', number>>
  readonly logs: readonly LogState[]
  readonly events: Readonly<Record<'published' | 'delivered' | 'dropped', number>>
  /** Clients that were cut since they did not read. */
  readonly slowStreams: Readonly<Record<'sse' | 'ws', number>>
  readonly sessions: Readonly<Record<'evicted' | 'damaged', number>>
  readonly viewCache: { readonly hits: number; readonly misses: number }
  /** How many warnings `/svc-status` shows now. */
  readonly warnings: number
  /** How many nodes are there; absent where servers share no engine. */
  readonly liveNodes?: number
  /** Absent where the server has one process. */
  readonly processes?: { readonly living: readonly ProcessState[]; readonly ended: number }
}

/** One of several processes. */
export interface ProcessState {
  readonly id: string
  /** Whether it answered in time. When it did not, only this is shown of it. */
  readonly up: boolean
  /** In milliseconds since 1970. */
  readonly startedAtMs: number
  readonly requests: number
  readonly errors: number
  readonly activeRequests: number
  readonly connections: number
  readonly memory: PrometheusInput['memory']
  readonly eventLoop: EventLoopTotals
}

/** Renders the metrics in the text format 0.0.4; send them as `expositionType` of `exposition.ts`. */
export function renderPrometheus(input: PrometheusInput): string {
  const parts = [processFamilies, requestFamilies, poolFamilies, eventLoopFamilies, eventFamilies, otherFamilies, partFamilies]
  return parts.map((render) => render(input)).join('')
}

function processFamilies(input: PrometheusInput): string {
  const { version, nodeVersion, requests, memory } = input
  const build = labels({ version, node: nodeVersion })
  return [
    family('gauge', 'svc_build_info', 'The versions, as labels of a 1.', [[build, 1]]),
    single('gauge', 'svc_start_time_seconds', 'When the server started, since 1970.', requests.startedAtMs / 1000),
    single('gauge', 'svc_uptime_seconds', 'How long the server has been running.', requests.uptimeSeconds),
    single('gauge', 'svc_memory_resident_bytes', 'Memory of the process.', memory.rss),
    single('gauge', 'svc_memory_heap_used_bytes', 'JavaScript heap in use.', memory.heapUsed),
    single('gauge', 'svc_memory_heap_size_bytes', 'JavaScript heap reserved.', memory.heapTotal),
    single('gauge', 'svc_memory_external_bytes', 'Memory that JavaScript objects hold outside of it.', memory.external),
  ].join('')
}

function requestFamilies({ requests, activeRequests }: PrometheusInput): string {
  const routes = requests.routes.map((totals) => ({ ...totals, route: labels({ route: totals.name }) }))
  const byOutcome = routes.flatMap(({ route, byOutcome }) =>
    outcomes.filter((code) => byOutcome[code] > 0).map((code): Row => [`${route},code="${code}"`, byOutcome[code]]),
  )
  return [
    family('counter', 'svc_http_requests_total', 'Requests, by route and status class; left: the client left while it waited for an event.', byOutcome),
    histogram(
      'svc_http_request_duration_seconds',
      'From the request header to the end of the answer, by route.',
      routes.map(({ route, durations }) => [route, durations]),
    ),
    family(
      'counter',
      'svc_http_request_body_bytes_total',
      'Bytes of request bodies, by route.',
      routes.map(({ route, bytesIn }) => [route, bytesIn]),
    ),
    family(
      'counter',
      'svc_http_response_body_bytes_total',
      'Bytes of response bodies, by route.',
      routes.map(({ route, bytesOut }) => [route, bytesOut]),
    ),
    single('gauge', 'svc_http_requests_active', 'Requests being served.', activeRequests),
  ].join('')
}

function poolFamilies({ pools, connections }: PrometheusInput): string {
  const named = pools.map((pool) => [labels({ pool: pool.name }), pool] as const)
  const rows = (value: (pool: PoolState) => number): Row[] => named.map(([pool, state]) => [pool, value(state)])
  const placesHelp = 'Places in the queue of a pool; sse and longpoll share theirs.'
  return [
    family('gauge', 'svc_pool_workers', 'Workers of a pool.', rows((pool) => pool.workers)),
    family('gauge', 'svc_pool_workers_busy', 'Workers of a pool that are at work.', rows((pool) => pool.busy)),
    family('gauge', 'svc_pool_queue_size', placesHelp, rows((pool) => pool.queueSize)),
    family('gauge', 'svc_pool_queue_waiting', 'Requests in the queue of a pool.', rows((pool) => pool.waiting)),
    family('counter', 'svc_pool_refused_total', 'Found no worker and no place to wait.', rows((pool) => pool.refused)),
    single('gauge', 'svc_connections_open', 'Open connections.', connections.open),
    single('counter', 'svc_connections_refused_total', 'Connections refused by a limit.', connections.refused),
  ].join('')
}

function eventLoopFamilies({ eventLoop }: PrometheusInput): string {
  const { delay, activeSeconds } = eventLoop
  return [
    histogram('svc_event_loop_delay_seconds', 'How late a timer came, looked at every 50 ms.', [['', delay]]),
    single('counter', 'svc_event_loop_active_seconds_total', 'Time it did not wait.', activeSeconds),
  ].join('')
}

function eventFamilies({ events, slowStreams, sessions }: PrometheusInput): string {
  const slow = Object.entries(slowStreams).map(([kind, cut]): Row => [labels({ kind }), cut])
  return [
    single('counter', 'svc_events_published_total', 'Events published.', events.published),
    single('counter', 'svc_events_delivered_total', 'Events handed out, once for each client.', events.delivered),
    single('counter', 'svc_events_dropped_total', 'Events of queues that nobody took in time.', events.dropped),
    family('counter', 'svc_streams_slow_total', 'Clients cut because they did not read.', slow),
    single('counter', 'svc_sessions_evicted_total', 'Sessions dropped to keep a bound.', sessions.evicted),
    single('counter', 'svc_sessions_damaged_total', 'Sessions found damaged, and ignored.', sessions.damaged),
  ].join('')
}

function otherFamilies({ logs, viewCache, warnings, liveNodes }: PrometheusInput): string {
  const named = logs.map((log) => [labels({ log: log.name }), log] as const)
  const rows = (value: (log: LogState) => number): Row[] => named.map(([log, state]) => [log, value(state)])
  return [
    family('counter', 'svc_log_lines_written_total', 'Log lines on disk.', rows((log) => log.written)),
    family('counter', 'svc_log_lines_lost_total', 'Log lines that could not be written.', rows((log) => log.lost)),
    single('counter', 'svc_view_cache_hits_total', 'Views found compiled.', viewCache.hits),
    single('counter', 'svc_view_cache_misses_total', 'Views that had to be compiled.', viewCache.misses),
    single('gauge', 'svc_warnings', 'Warnings that the status shows.', warnings),
    liveNodes === undefined ? '' : single('gauge', 'svc_nodes_live', 'Nodes that are there, this one among them.', liveNodes),
  ].join('')
}

/** What each of several processes adds to the sums above. */
function partFamilies({ processes }: PrometheusInput): string {
  if (processes === undefined) return ''
  const all = processes.living.map((state) => ({ ...state, named: labels({ process: state.id }) }))
  const up = all.filter((state) => state.up)
  const rows = (value: (state: ProcessState) => number): Row[] => up.map((state) => [state.named, value(state)])
  const counter = (name: string, help: string, value: (state: ProcessState) => number): string =>
    family('counter', name, help, rows(value))
  const gauge = (name: string, help: string, value: (state: ProcessState) => number): string =>
    family('gauge', name, help, rows(value))
  return [
    family('gauge', 'svc_process_up', 'Whether a process answered in time.', all.map(({ named, up }) => [named, Number(up)])),
    gauge('svc_process_start_time_seconds', 'When a process started, since 1970.', ({ startedAtMs }) => startedAtMs / 1000),
    counter('svc_process_requests_total', 'Requests answered by a process.', ({ requests }) => requests),
    counter('svc_process_errors_total', 'Its answers of 400 and above.', ({ errors }) => errors),
    gauge('svc_process_requests_active', 'Requests being served by a process.', ({ activeRequests }) => activeRequests),
    gauge('svc_process_connections_open', 'Open connections of a process.', ({ connections }) => connections),
    gauge('svc_process_memory_resident_bytes', 'Memory of a process.', ({ memory }) => memory.rss),
    gauge('svc_process_memory_heap_used_bytes', 'JavaScript heap in use by a process.', ({ memory }) => memory.heapUsed),
    histogram(
      'svc_process_event_loop_delay_seconds',
      'How late a timer of a process came, looked at every 50 ms.',
      up.map(({ named, eventLoop }) => [named, eventLoop.delay]),
    ),
    counter(
      'svc_process_event_loop_active_seconds_total',
      'Time a process did not wait.',
      ({ eventLoop }) => eventLoop.activeSeconds,
    ),
    single('counter', 'svc_processes_ended_total', 'Processes that ended, and were replaced or not.', processes.ended),
  ].join('')
}

function single(type: 'counter' | 'gauge', name: string, help: string, value: number): string {
  return family(type, name, help, [['', value]])
}
