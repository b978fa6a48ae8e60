/** Made-up sources of readings, and what a server of one process reports of them. */
import { version } from '../../lib/base/version.ts'
import { ErrorGroups } from '../../lib/log/error-groups.ts'
import { Histogram } from '../../lib/metrics/histogram.ts'
import { Metrics } from '../../lib/metrics/metrics.ts'
import { createThisProcess, type ThisProcess } from '../../lib/metrics/processes.ts'
import { renderPrometheus } from '../../lib/metrics/prometheus.ts'
import type { MetricSources } from '../../lib/metrics/table.ts'
import { statusOf, type Status } from '../../lib/panel/status.ts'
import type { CodeDigest } from '../../lib/proof/code-digest.ts'
import { endedRequest } from '../support/ended-request.ts'

/** A route's name with everything that a label must escape. */
export const hostileName = 'a"b\\c\nd,e="f"} 1 é\u{1f600}'

/** Sources with nothing counted, plus changes. */
export function makeSources(changes: Partial<MetricSources> = {}): MetricSources {
  const pool = { workers: 0, queueSize: 0, busy: 0, waiting: 0, refused: 0 }
  return {
    config: { 'pool_rest.queue_size': 0 },
    metrics: new Metrics(),
    eventLoop: { delay: new Histogram(), activeSeconds: 0, idleSeconds: 0, close: () => {} },
    activeRequests: () => 0,
    httpPool: { ...pool, alert: false },
    queueWaits: new Histogram(),
    restPool: { longpoll: pool, sse: pool },
    restQueueWaits: new Histogram(),
    webSockets: { pool, slow: 0 },
    events: () => ({ published: 0, delivered: 0, dropped: 0, slow: 0 }),
    sessions: () => ({ evicted: 0, damaged: 0 }),
    jobs: () => ({ done: 0, failed: 0, dead: 0, running: 0 }),
    limits: () => ({}),
    connections: () => ({ open: 0, refused: 0, stalled: 0, failed: 0 }),
    views: { hits: 0, misses: 0 },
    log: { written: 0, lost: 0 },
    accessLog: { written: 0, lost: 0 },
    descriptors: () => undefined,
    replaced: () => ({}),
    isReloadRefused: () => false,
    isReady: () => true,
    appMetrics: () => [],
    warnings: () => [],
    ...changes,
  }
}

/** Sources with a number in each place that Prometheus shows. */
export function busySources(): MetricSources {
  const eventLoop = { delay: new Histogram(), activeSeconds: 1.5, idleSeconds: 2, close: () => {} }
  eventLoop.delay.record(3)
  return makeSources({
    metrics: busyMetrics(),
    eventLoop,
    activeRequests: () => 4,
    httpPool: { workers: 1024, busy: 3, waiting: 1, queueSize: 4096, refused: 9, alert: false },
    restPool: {
      longpoll: { workers: 1000, busy: 700, waiting: 0, queueSize: 1000, refused: 0 },
      sse: { workers: 1000, busy: 0, waiting: 0, queueSize: 1000, refused: 0 },
    },
    webSockets: { pool: { workers: 10, busy: 0, waiting: 0, queueSize: 0, refused: 0 }, slow: 35 },
    connections: () => ({ open: 17, refused: 2, stalled: 3, failed: 3 }),
    log: { written: 100, lost: 0, consoleLost: 6 },
    accessLog: { written: 2 ** 40, lost: 5 },
    events: () => ({ published: 31, delivered: 32, dropped: 33, slow: 34 }),
    sessions: () => ({ stored: 42, evicted: 36, damaged: 37 }),
    jobs: () => ({ done: 38, failed: 39, dead: 40, running: 41 }),
    limits: () => ({ login: 38 }),
    views: { hits: 12, misses: 3 },
    descriptors: () => ({ open: 43, limit: 1024 }),
    replaced: () => ({ exit: 44 }),
    warnings: () => ['one'],
  })
}

/** The digests of some code. */
export const code: CodeDigest = { version, digest: 'ab'.repeat(32), tier1: 'cd'.repeat(32), warnings: [] }

/** Metrics of a few routes, one with a name that needs escaping. */
export function busyMetrics(): Metrics {
  const metrics = new Metrics({ now: () => 0, wallNow: () => 1_700_000_000_500 })
  const requests = [
    { sentStatus: 200, routeName: 'area.a' },
    { sentStatus: 500, routeName: 'area.a', durationMs: 20_000 },
    { sentStatus: 404, routeName: '' },
    { sentStatus: 200, routeName: hostileName },
  ]
  for (const each of requests) {
    metrics.record(endedRequest({ sentBytes: 100, receivedBytes: 7, ...each }), true, 1_700_000_000_500)
  }
  return metrics
}

/** The process of some sources. */
export function ownProcess(sources: MetricSources): ThisProcess {
  return createThisProcess(sources, { recent: { list: () => [] }, errors: new ErrorGroups() })
}

/** The status of a server that has one process. */
export function statusBy(own: ThisProcess): Status {
  return statusOf({ env: 'prod', code }, { pid: process.pid, total: own.read('window') })
}

/** Its Prometheus text. */
export function prometheusBy(own: ThisProcess): string {
  return renderPrometheus(code, { pid: process.pid, total: own.read('start') })
}
