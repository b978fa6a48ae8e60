/** Made-up data for the monitor, controlled by a test. */
import type { ErrorGroup } from '../../lib/log/error-groups.ts'
import type { MonitorPort } from '../../lib/panel/monitor.ts'
import type { NodeStatus, ProcessStatus, Status } from '../../lib/panel/status.ts'
import { sampleFields, type HistorySnapshot } from '../../lib/metrics/history.ts'
import { makePort } from '../access/support.ts'

/** The data that a test can change at any time. */
export interface MonitorFigures {
  status: Status
  history: HistorySnapshot
  requests: Awaited<ReturnType<MonitorPort['recentRequests']>>
  lines: Awaited<ReturnType<MonitorPort['recentLines']>>
  trace: Record<string, boolean>
  errors: readonly ErrorGroup[]
}

type AnsweringProcess = Extract<ProcessStatus, { readonly responding: true }>

/** Makes a port with ordinary figures. */
export function makeMonitorPort(config: Readonly<Record<string, unknown>> = {}) {
  const held = makePort({ 'app.env': 'prod', ...config })
  const figures: MonitorFigures = {
    status: makeStatus(),
    history: makeHistory(Array.from({ length: 180 }, (_, at) => at + 1)),
    requests: [],
    lines: [],
    trace: { app: true, pool: false },
    errors: [],
  }
  const port: MonitorPort = {
    ...held.port,
    status: async () => figures.status,
    history: async () => figures.history,
    recentRequests: async () => figures.requests,
    recentLines: async () => figures.lines,
    traceState: () => figures.trace,
    errors: async () => figures.errors,
    monitorLog: held.port.log,
  }
  return { held, port, figures }
}

/** A history in which every series has the same values, one every five seconds until now. */
export function makeHistory(values: readonly number[]): HistorySnapshot {
  const now = Date.now()
  const time = values.map((_, at) => now - (values.length - 1 - at) * 5000)
  const entries = [['time', time], ...sampleFields.map((field) => [field, values])]
  return Object.fromEntries(entries) as HistorySnapshot // an entry per field
}

/** A route of the status with this p99. */
export function makeRoute(
  name: string,
  p99_ms: number,
  more: Partial<Status['routes'][number]> = {},
): Status['routes'][number] {
  return { name, count: 10, errors: 0, p50_ms: 1, p95_ms: 2, p99_ms, max_ms: p99_ms, time_ms: 12, ...more }
}

/** A server that shares an engine with others, with ordinary figures. */
export function makeNode(name: string, more: Partial<NodeStatus> = {}): NodeStatus {
  return {
    name,
    self: false,
    state: 'ready',
    problem: '',
    change: 7,
    seen_s: 0.4,
    version: '0.1.0',
    pid: 4242,
    processes: 1,
    uptime_s: 93_784,
    requests: { total: 1234, errors: 0, per_second: 12.5, active: 3 },
    memory: { rss_mb: 80.4 },
    event_loop: { p99_ms: 11 },
    ...more,
  }
}

/** One of several processes, with ordinary figures. */
export function makeProcess(id: string, pid: number): AnsweringProcess {
  const { uptime_s, requests, latency_ms, event_loop, memory } = makeStatus()
  return {
    id,
    pid,
    responding: true,
    uptime_s,
    requests: { total: requests.total, errors: 0, active: 1 },
    latency_ms,
    connections: { active: 7 },
    event_loop,
    memory,
    cpu_s: 12.5,
    descriptors: { open: 40, limit: 1024 },
    pool_http: { busy: 4, queue: 3, alert: false },
    pool_ws: { active: 2 },
    pool_rest: { sse: 5, longpoll: 6, queue: 0 },
  }
}

function makeStatus(): Status {
  return {
    server: 'svc/0.1.0',
    env: 'prod',
    pid: 4242,
    node: '20.20.2',
    code: { version: '0.1.0', digest: 'ab'.repeat(32), tier1: 'cd'.repeat(32) },
    permission: { active: false, dropped: [] },
    uptime_s: 93_784,
    window_s: 100,
    requests: {
      total: 1234,
      errors: 5,
      active: 1,
      by_class: { '1xx': 0, '2xx': 1229, '3xx': 0, '4xx': 5, '5xx': 0 },
      left: 0,
      bytes_in: 0,
      bytes_out: 98_765,
    },
    latency_ms: { p50: 1.5, p95: 6, p99: 22, max: 812, mean: 2 },
    routes: [makeRoute('home', 3)],
    connections: { active: 7, refused: 0, stalled: 0, tls_failed: 0 },
    event_loop: { p50_ms: 10, p99_ms: 11, max_ms: 40, utilization: 0.25 },
    memory: { rss_mb: 80, heap_used_mb: 30, heap_total_mb: 40, external_mb: 2, array_buffers_mb: 1, heap_limit_mb: 2096 },
    cpu_s: 25,
    descriptors: { open: 80, limit: 2048 },
    pool_http: {
      workers: 64, busy: 16, queue: 0, queue_size: 1000, refused: 0, alert: false,
      waits: { count: 0, p50_ms: 0, p99_ms: 0, max_ms: 0 },
    },
    pool_ws: { workers: 100, active: 0, refused: 0, slow: 0 },
    pool_rest: {
      workers_sse: 100, sse: 0, workers_longpoll: 100, longpoll: 0, queue: 0, queue_size: 1000, refused: 0,
      waits: { count: 0, p50_ms: 0, p99_ms: 0, max_ms: 0 },
    },
    events: { published: 0, delivered: 0, dropped: 0, slow: 0 },
    limits: { refused: { login: 3 } },
    sessions: { stored: 5, evicted: 0, damaged: 0 },
    views: { hits: 0, misses: 0 },
    log: { written: 1, lost: 0 },
    access_log: { written: 1, lost: 0 },
    app: {},
    ready: true,
    warnings: [],
  }
}
