/**
 * The document of `/svc-status`: the state of the server, nested like `svc.json`. With several processes it shows their
 * sum, and each of them below `processes`.
 *
 * Counters and timings cover the bench window, gauges are current values. Numbers have at most three decimals.
 */
import { countOf, meanMs, percentileMs, type Durations } from '../metrics/histogram.ts'
import { countRequests, type RouteReading } from '../metrics/metrics.ts'
import { utilizationOf, type ProcessReading, type ServerReading } from '../metrics/reading.ts'
import type { MetricValues } from '../metrics/table.ts'
import { permissionState } from '../files/rights.ts'
import { megabytes, round3 } from '../metrics/values.ts'
import type { ListedNode } from '../nodes/node-list.ts'
import type { CodeDigest } from '../proof/code-digest.ts'
import { serverName } from '../base/version.ts'

/** The document. `docs/admin.md` has a row for each field. */
export type Status = ReturnType<typeof statusOf>

/** One of the servers that share an engine. */
export type NodeStatus = ReturnType<typeof nodeOf>

/** One of several processes. */
export type ProcessStatus = ReturnType<typeof processOf>

/** The fields of a server of several processes. */
interface StatusOfProcesses {
  readonly processes?: readonly ProcessStatus[]
  /** The processes that ended, with their share of the sums. */
  readonly processes_ended?: { readonly count: number; readonly requests: ReturnType<typeof countRequests> }
  /** Those of them that were replaced in the window, by reason. */
  readonly processes_replaced?: Readonly<Record<string, number>>
}

/** What does not change while a server runs. */
interface About {
  /** `app.env` */
  readonly env: string
  readonly code: CodeDigest
  /** The end of the certificate in milliseconds since 1970, if the server has one. */
  readonly certificateEndsMs?: number | undefined
}

/**
 * Builds the document.
 * @param server its readings since the bench window began
 * @param nodes the nodes, if servers share an engine
 */
export function statusOf(about: About, server: ServerReading, nodes?: readonly ListedNode[]) {
  const { env, code, certificateEndsMs } = about
  const { values, uptimeSeconds, seconds, routes, appMetrics, warnings } = server.total
  const { poolWorkers: workers, poolBusy: busy, poolWaiting: waiting, poolRefused: refused } = values
  const { left, ...byClass } = values.requests
  return {
    server: serverName,
    env,
    pid: server.pid,
    node: process.versions.node,
    code: { version: code.version, digest: code.digest, tier1: code.tier1 },
    permission: permissionState(),
    uptime_s: Math.floor(uptimeSeconds),
    window_s: round3(seconds),
    requests: {
      ...countRequests(values.requests),
      by_class: byClass,
      left,
      bytes_in: values.bytesIn,
      bytes_out: values.bytesOut,
      active: values.requestsActive,
    },
    latency_ms: latencyOf(values.durations),
    routes: routes.map(routeOf),
    connections: {
      active: values.connectionsOpen,
      refused: values.connectionsRefused,
      stalled: values.connectionsStalled,
      tls_failed: values.handshakesFailed,
    },
    event_loop: eventLoopOf(values),
    memory: memoryOf(values),
    cpu_s: round3(values.cpu),
    descriptors: descriptorsOf(values),
    pool_http: {
      workers: workers.http,
      busy: busy.http,
      queue: waiting.http,
      queue_size: values.poolQueueSize.http,
      refused: refused.http,
      alert: values.httpAlert > 0,
      waits: waitsOf(values.httpWaits),
    },
    pool_ws: { workers: workers.ws, active: busy.ws, refused: refused.ws, slow: values.streamsSlow.ws },
    pool_rest: {
      workers_sse: workers.sse,
      sse: busy.sse,
      workers_longpoll: workers.longpoll,
      longpoll: busy.longpoll,
      queue: waiting.sse + waiting.longpoll,
      queue_size: values.restQueueSize,
      refused: refused.sse + refused.longpoll,
      waits: waitsOf(values.restWaits),
    },
    events: {
      published: values.eventsPublished,
      delivered: values.eventsDelivered,
      dropped: values.eventsDropped,
      slow: values.streamsSlow.sse,
    },
    limits: { refused: values.limitRefused },
    sessions: { stored: values.sessions[''] ?? null, evicted: values.sessionsEvicted, damaged: values.sessionsDamaged },
    views: { hits: values.viewHits, misses: values.viewMisses },
    log: { written: values.linesWritten.general, lost: values.linesLost.general },
    access_log: { written: values.linesWritten.access, lost: values.linesLost.access },
    app: Object.fromEntries(appMetrics.map(({ name, labels, value }) => [name, labels.length > 0 ? value : value['']])),
    ready: values.notReady === 0,
    warnings,
    ...(certificateEndsMs !== undefined && { certificate: certificateOf(certificateEndsMs, Date.now()) }),
    ...(nodes !== undefined && { nodes: nodes.map(nodeOf) }),
    ...processesOf(server),
  }
}

/** The end, and the days until then; negative once it has passed. */
function certificateOf(endsMs: number, nowMs: number) {
  return { ends: new Date(endsMs).toISOString(), days: Math.floor((endsMs - nowMs) / 86_400_000) }
}

function processesOf({ parts, total }: ServerReading): StatusOfProcesses {
  if (parts === undefined) return {}
  const { count, reading } = parts.ended
  const requests = reading === undefined ? { total: 0, errors: 0 } : countRequests(reading.values.requests)
  return {
    processes: parts.processes.map(processOf),
    processes_ended: { count, requests },
    processes_replaced: total.values.processesReplaced,
  }
}

function nodeOf({ requests, errors, active, per_second, rss_mb, loop_p99_ms, seq, ...node }: ListedNode) {
  return {
    name: node.name,
    self: node.self,
    state: node.state,
    problem: node.problem,
    change: seq,
    seen_s: node.seen_s,
    version: node.version,
    pid: node.pid,
    processes: node.processes,
    uptime_s: node.uptime_s,
    requests: { total: requests, errors, per_second, active },
    memory: { rss_mb },
    event_loop: { p99_ms: loop_p99_ms },
  }
}

function processOf({ id, pid, responding, starting, reading }: ProcessReading) {
  if (!responding || reading === undefined) {
    return { id, pid, responding: false as const, ...(starting === true && { starting }) }
  }
  const { uptimeSeconds, values } = reading
  const { poolBusy: busy, poolWaiting: waiting } = values
  return {
    id,
    pid,
    responding: true as const, // A literal type distinguishes the two kinds.
    uptime_s: Math.floor(uptimeSeconds),
    requests: { ...countRequests(values.requests), active: values.requestsActive },
    latency_ms: latencyOf(values.durations),
    connections: { active: values.connectionsOpen },
    event_loop: eventLoopOf(values),
    memory: memoryOf(values),
    cpu_s: round3(values.cpu),
    descriptors: descriptorsOf(values),
    pool_http: { busy: busy.http, queue: waiting.http, alert: values.httpAlert > 0 },
    pool_ws: { active: busy.ws },
    pool_rest: { sse: busy.sse, longpoll: busy.longpoll, queue: waiting.sse + waiting.longpoll },
  }
}

function routeOf({ name, values: { requests, durations } }: RouteReading) {
  const { total, errors } = countRequests(requests)
  const { p50, p95, p99, max } = latencyOf(durations)
  const time = round3(durations.sumUs / 1000)
  return { name, count: total, errors, p50_ms: p50, p95_ms: p95, p99_ms: p99, max_ms: max, time_ms: time }
}

function latencyOf(durations: Durations) {
  return {
    p50: round3(percentileMs(durations, 50)),
    p95: round3(percentileMs(durations, 95)),
    p99: round3(percentileMs(durations, 99)),
    max: round3(durations.maxUs / 1000),
    mean: round3(meanMs(durations)),
  }
}

function eventLoopOf(values: MetricValues) {
  return { ...timesOf(values.loopDelay), utilization: utilizationOf(values) }
}

function waitsOf(waits: Durations) {
  return { count: countOf(waits), ...timesOf(waits) }
}

function timesOf(durations: Durations) {
  const { p50, p99, max } = latencyOf(durations)
  return { p50_ms: p50, p99_ms: p99, max_ms: max }
}

function memoryOf(values: MetricValues) {
  return {
    rss_mb: megabytes(values.memoryResident),
    heap_used_mb: megabytes(values.heapUsed),
    heap_total_mb: megabytes(values.heapSize),
    external_mb: megabytes(values.memoryExternal),
    array_buffers_mb: megabytes(values.memoryBuffers),
    heap_limit_mb: megabytes(values.heapLimit),
  }
}

/** Null where the system does not report them. */
function descriptorsOf({ openDescriptors, maxDescriptors }: MetricValues) {
  return { open: openDescriptors[''] ?? null, limit: maxDescriptors[''] ?? null }
}
