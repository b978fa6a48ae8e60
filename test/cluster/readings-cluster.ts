/** A primary and workers that report readings, in one process with in-memory channels. */
import type { TestContext } from 'node:test'
import { ErrorGroups } from '../../lib/log/error-groups.ts'
import type { EndedRequest } from '../../lib/base/ports.ts'
import { Peer, type PeerPort } from '../../lib/cluster/peer.ts'
import { createPrimaryProcess } from '../../lib/cluster/primary.ts'
import { createClusterProcesses } from '../../lib/cluster/readings.ts'
import { createReadingsHost } from '../../lib/cluster/readings-host.ts'
import type { AppMetricReading } from '../../lib/metrics/app-readings.ts'
import { createEventLoopWatch, type EventLoopWatch } from '../../lib/metrics/event-loop.ts'
import { Histogram } from '../../lib/metrics/histogram.ts'
import { Metrics } from '../../lib/metrics/metrics.ts'
import { createThisProcess, type ThisProcess, type Processes } from '../../lib/metrics/processes.ts'
import type { LineCounts, MetricSources } from '../../lib/metrics/table.ts'
import type { LogLine } from '../../lib/log/recent-lines.ts'
import { endedRequest } from '../support/ended-request.ts'
import { memoryPorts, type MemoryPort } from './memory-ports.ts'

/** A worker, and its test controls. */
export interface Worker {
  readonly processes: Processes
  readonly metrics: Metrics
  readonly queueWaits: Histogram
  readonly lines: LogLine[]
  readonly errors: ErrorGroups
  /** Values that a test can change at any time. */
  readonly parts: WorkerParts
  /** Counts answered requests. */
  serve(count: number, changes?: Partial<EndedRequest>): void
  /** Holds back its messages until `resume()`. */
  hang(): void
  resume(): void
  /** Ends it without a message. */
  crash(): void
  /** Ends it as a graceful stop does. Resolves when its channel is closed. */
  end(): Promise<void>
}

interface WorkerParts {
  busy: number
  open: number
  alert: boolean
  refused: boolean
  ready: boolean
  appMetrics: AppMetricReading[]
  warnings: string[]
  log: LineCounts
}

export interface Cluster {
  readonly host: ReturnType<typeof createReadingsHost>
  readonly workers: readonly Worker[]
  /** The problems reported by the host. */
  readonly problems: string[]
  /** Adds a worker. */
  start(id: string): Worker
}

/** What the primary logged. */
export const primaryLine: LogLine = { time: 1, level: 'info', module: 'server', message: 'the primary began' }

/** Lets the event loop turn, so that messages in memory arrive. No time passes when timers are mocked. */
export async function turns(count = 30): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** Starts a primary with workers `1`, `2` and so on, whose process ids are 101, 102 and so on. */
export function startCluster(t: Pick<TestContext, 'after'>, count: number): Cluster {
  const problems: string[] = []
  const report = (message: string, error: unknown): void => void problems.push(`${message}: ${String(error)}`)
  const host = createReadingsHost({ thisProcess: makePrimaryProcess(t), count, report })
  t.after(() => host.close())
  const start = (id: string): Worker => startWorker(t, host, id)
  return { host, problems, start, workers: Array.from({ length: count }, (_, at) => start(String(at + 1))) }
}

/** A primary with some counts and log lines. */
export function makePrimaryProcess(t: Pick<TestContext, 'after'>): ThisProcess {
  const parts = {
    eventLoop: watch(t),
    events: () => ({ published: 0, delivered: 0, dropped: 4, slow: 0 }),
    sessions: () => ({ evicted: 5, damaged: 0 }),
    jobs: () => ({ done: 0, failed: 0, dead: 0, running: 0 }),
    log: { written: 7, lost: 0 },
    accessLog: { written: 0, lost: 0 },
    descriptors: () => ({ open: 30, limit: 100 }),
    replaced: () => ({ exit: 2 }),
    warnings: () => ['of all'],
  }
  return createPrimaryProcess(parts, { recent: { list: () => [primaryLine] }, errors: new ErrorGroups() })
}

function startWorker(t: Pick<TestContext, 'after'>, host: ReturnType<typeof createReadingsHost>, id: string): Worker {
  const [here, there] = memoryPorts()
  const gated = gate(there)
  const metrics = new Metrics()
  const queueWaits = new Histogram()
  const lines: LogLine[] = []
  const errors = new ErrorGroups()
  const parts: WorkerParts = { busy: 0, open: 0, alert: false, refused: false, ready: true, appMetrics: [], warnings: [], log: { written: 0, lost: 0 } }
  const own = createThisProcess(makeSources(parts, metrics, queueWaits, watch(t)), { recent: { list: () => lines }, errors })
  const number = Number(id)
  host.attach({ peer: new Peer(here), number, pid: 100 + number, serving: true })
  const processes = createClusterProcesses(new Peer(gated.port), own)
  return {
    processes,
    metrics,
    queueWaits,
    lines,
    errors,
    parts,
    serve: (count, changes = {}) => {
      const request = endedRequest({ routeName: 'a', ...changes })
      for (let turn = 0; turn < count; turn += 1) metrics.record(request, true, Date.now())
    },
    hang: gated.hang,
    resume: gated.resume,
    crash: () => here.close(),
    end: async () => {
      processes.close()
      await turns()
      here.close()
      await turns()
    },
  }
}

/** A port that can hold back incoming messages. */
function gate(port: MemoryPort): { port: PeerPort; hang: () => void; resume: () => void } {
  const kept: unknown[] = []
  let isHanging = false
  let listener: (message: unknown) => void = () => {}
  port.onMessage((message) => (isHanging ? void kept.push(message) : listener(message)))
  const gated: PeerPort = {
    send: (message, written) => port.send(message, written),
    onMessage: (given) => {
      listener = given
    },
    onClose: (given) => port.onClose(given),
  }
  return {
    port: gated,
    hang: () => {
      isHanging = true
    },
    resume: () => {
      isHanging = false
      for (const message of kept.splice(0)) listener(message)
    },
  }
}

function makeSources(
  parts: WorkerParts,
  metrics: Metrics,
  queueWaits: Histogram,
  eventLoop: EventLoopWatch,
): MetricSources {
  const pool = { workers: 10, queueSize: 20, busy: 0, waiting: 1, refused: 2 }
  return {
    config: { 'pool_rest.queue_size': 88 },
    metrics,
    eventLoop,
    activeRequests: () => 1,
    get httpPool() {
      return { ...pool, busy: parts.busy, alert: parts.alert }
    },
    queueWaits,
    restQueueWaits: new Histogram(),
    restPool: { longpoll: { ...pool, busy: 3 }, sse: { ...pool, busy: 4 } },
    webSockets: { pool: { ...pool, busy: 5 }, slow: 6 },
    events: () => ({ published: 1, delivered: 2, dropped: 0, slow: 3 }),
    sessions: () => ({ evicted: 0, damaged: 0 }),
    jobs: () => ({ done: 0, failed: 0, dead: 0, running: 0 }),
    limits: () => ({ login: 1 }),
    connections: () => ({ open: parts.open, refused: 1, stalled: 0, failed: 1 }),
    views: { hits: 8, misses: 9 },
    get log() {
      return parts.log
    },
    accessLog: { written: 0, lost: 0 },
    descriptors: () => ({ open: 10, limit: 100 }),
    replaced: () => ({}),
    isReloadRefused: () => parts.refused,
    isReady: () => parts.ready,
    appMetrics: () => parts.appMetrics,
    warnings: () => parts.warnings,
  }
}

function watch(t: Pick<TestContext, 'after'>): EventLoopWatch {
  const eventLoop = createEventLoopWatch()
  t.after(() => eventLoop.close())
  return eventLoop
}
