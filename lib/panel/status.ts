/**
 * The document of `/svc-status`: the state of the server in one place, nested as `svc.json` is. Where a server has
 * several processes it shows their sum, and each of them below `processes`.
 *
 * Surprise: counters and timings are those of the bench window, gauges are those of this moment.
 */
import { countOf, percentileMs } from '../metrics/duration-cells.ts'
import { eventLoopWindow, type EventLoopSnapshot } from '../metrics/event-loop.ts'
import type { LineCounts, PartCounters, ProcessFigures } from '../metrics/figures.ts'
import type { DurationCells } from '../metrics/histogram.ts'
import { mergeFigures } from '../metrics/merge.ts'
import { countsOf, latencyOf, requestWindow, type MetricsSnapshot } from '../metrics/request-figures.ts'
import { round3 } from '../metrics/round.ts'
import { megabytes } from '../metrics/sample.ts'
import type { ListedNode } from '../cluster/node-list.ts'
import { serverName } from '../base/version.ts'

/** How many waited in a queue, and for how long, in milliseconds. */
export interface QueueWaits {
  readonly count: number
  readonly p50_ms: number
  readonly p99_ms: number
  readonly max_ms: number
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
  readonly events: PartCounters['events']
  readonly sessions: PartCounters['sessions']
  readonly views: { readonly hits: number; readonly misses: number }
  readonly log: LineCounts
  readonly access_log: LineCounts
  readonly warnings: readonly string[]
  /** Each node for itself; absent where servers share no engine. */
  readonly nodes?: readonly NodeStatus[]
  /** Each process for itself; absent where there is only one. */
  readonly processes?: readonly ProcessStatus[]
  /** The processes that ended, and what they count for in the sums; absent where there is only one. */
  readonly processes_ended?: { readonly count: number; readonly requests: RequestCounts }
}

/** One of the servers that share an engine, as it told the others of itself. */
export interface NodeStatus {
  /** `HOSTNAME:PORT` */
  readonly name: string
  /** Whether it is the one that answers. */
  readonly self: boolean
  readonly state: ListedNode['state']
  /** Why it is `behind`; else empty. */
  readonly problem: string
  /** The number of the last change that it has taken up. */
  readonly change: number
  /** Seconds since it was heard of. */
  readonly seen_s: number
  readonly version: string
  readonly pid: number
  readonly processes: number
  readonly uptime_s: number
  /** Since its start. */
  readonly requests: RequestCounts & { readonly per_second: number; readonly active: number }
  readonly memory: { readonly rss_mb: number }
  readonly event_loop: { readonly p99_ms: number }
}

/** How many requests were answered in the window, and how many of them with 400 and above. */
export interface RequestCounts {
  readonly total: number
  readonly errors: number
}

/** One of several processes: what it adds to the sums. */
export type ProcessStatus =
  | { readonly id: string; readonly pid: number; readonly responding: false; readonly starting?: true }
  | {
      readonly id: string
      readonly pid: number
      readonly responding: true
      readonly uptime_s: number
      readonly requests: RequestCounts & { readonly active: number }
      readonly latency_ms: Status['latency_ms']
      readonly connections: { readonly active: number }
      readonly event_loop: EventLoopSnapshot
      readonly memory: Status['memory']
      readonly pool_http: { readonly busy: number; readonly queue: number; readonly alert: boolean }
      readonly pool_ws: { readonly active: number }
      readonly pool_rest: { readonly sse: number; readonly longpoll: number; readonly queue: number }
    }

/**
 * Puts the document together.
 * @param env `app.env`
 * @param processes at least one; the first is the one whose `pid` stands at the top
 * @param nodes where servers share an engine
 */
export function statusOf(env: string, processes: readonly ProcessFigures[], nodes?: readonly ListedNode[]): Status {
  const figures = mergeFigures(processes)
  const { now, counters } = figures
  const { http, ws, sse, longpoll } = now.pools
  const window = requestWindow(figures.requests)
  return {
    server: serverName,
    env,
    pid: processes[0]?.pid ?? process.pid,
    node: process.versions.node,
    ...window,
    requests: { ...window.requests, active: now.activeRequests },
    connections: { active: now.connections, ...counters.window.connections },
    event_loop: eventLoopWindow(figures.eventLoop.window),
    memory: memoryInMegabytes(now.memory),
    pool_http: {
      workers: http.workers,
      busy: http.busy,
      queue: http.waiting,
      queue_size: http.queueSize,
      ...counters.window.pool_http,
      alert: now.alert,
      waits: waitsOf(figures.waits.http),
    },
    pool_ws: { workers: ws.workers, active: ws.busy, ...counters.window.pool_ws },
    pool_rest: {
      workers_sse: sse.workers,
      sse: sse.busy,
      workers_longpoll: longpoll.workers,
      longpoll: longpoll.busy,
      queue: now.restQueue,
      queue_size: now.restQueueSize,
      ...counters.window.pool_rest,
      waits: waitsOf(figures.waits.rest),
    },
    events: counters.window.events,
    sessions: counters.window.sessions,
    views: counters.window.views,
    log: counters.window.log,
    access_log: counters.window.access_log,
    warnings: figures.warnings,
    ...(nodes !== undefined && { nodes: nodes.map(nodeOf) }),
    ...partsOf(processes),
  }
}

/** What is shown of each process, where there are several. */
function partsOf(processes: readonly ProcessFigures[]): Pick<Status, 'processes' | 'processes_ended'> {
  if (processes.every(({ role }) => role === 'alone')) return {}
  const ended = mergeFigures(processes.filter(({ role }) => role === 'ended'))
  return {
    processes: processes.filter(({ role }) => role !== 'ended').map(partOf),
    processes_ended: { count: ended.ended, requests: countsOf(ended.requests.requests.byOutcome) },
  }
}

function nodeOf({ requests, errors, active, per_second, rss_mb, loop_p99_ms, seq, ...node }: ListedNode): NodeStatus {
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

function partOf({ id, pid, responding, starting, requests, now, eventLoop }: ProcessFigures): ProcessStatus {
  if (!responding) return { id, pid, responding, ...(starting === true && { starting }) }
  const { http, ws, sse, longpoll } = now.pools
  return {
    id,
    pid,
    responding,
    uptime_s: Math.floor(requests.uptimeSeconds),
    requests: { ...countsOf(requests.requests.byOutcome), active: now.activeRequests },
    latency_ms: latencyOf(requests.latency),
    connections: { active: now.connections },
    event_loop: eventLoopWindow(eventLoop.window),
    memory: memoryInMegabytes(now.memory),
    pool_http: { busy: http.busy, queue: http.waiting, alert: now.alert },
    pool_ws: { active: ws.busy },
    pool_rest: { sse: sse.busy, longpoll: longpoll.busy, queue: now.restQueue },
  }
}

function waitsOf(waits: DurationCells): QueueWaits {
  return {
    count: countOf(waits),
    p50_ms: round3(percentileMs(waits, 50)),
    p99_ms: round3(percentileMs(waits, 99)),
    max_ms: round3(waits.maxUs / 1000),
  }
}

function memoryInMegabytes(memory: ProcessFigures['now']['memory']): Status['memory'] {
  return {
    rss_mb: megabytes(memory.rss),
    heap_used_mb: megabytes(memory.heapUsed),
    heap_total_mb: megabytes(memory.heapTotal),
    external_mb: megabytes(memory.external),
  }
}
