import { DurationBuckets } from '../../lib/metrics/duration-buckets.ts'
import { Metrics } from '../../lib/metrics/metrics.ts'
import type { PrometheusInput } from '../../lib/metrics/prometheus.ts'

/** A route's name with all that a label must escape. */
export const hostileName = 'a"b\\c\nd,e="f"} 1 é\u{1f600}'

/** What `renderPrometheus` takes, with some figures in each place. */
export function inputOf(metrics: Metrics, changes: Partial<PrometheusInput> = {}): PrometheusInput {
  const delay = new DurationBuckets()
  delay.record(3)
  return {
    version: '1.2.3',
    nodeVersion: '24.1.0',
    requests: metrics.totals(),
    activeRequests: 4,
    pools: [
      { name: 'http', workers: 1024, busy: 3, waiting: 1, queueSize: 4096, refused: 9 },
      { name: 'longpoll', workers: 1000, busy: 700, waiting: 0, queueSize: 1000, refused: 0 },
    ],
    connections: { open: 17, refused: 2 },
    eventLoop: { delay: delay.totals(), activeSeconds: 1.5 },
    memory: { rss: 50_000_000, heapUsed: 10_000_000, heapTotal: 20_000_000, external: 1_000_000 },
    logs: [{ name: 'general', written: 100, lost: 0 }, { name: 'access', written: 2 ** 40, lost: 5 }],
    events: { published: 31, delivered: 32, dropped: 33 },
    slowStreams: { sse: 34, ws: 35 },
    sessions: { evicted: 36, damaged: 37 },
    viewCache: { hits: 12, misses: 3 },
    warnings: 1,
    ...changes,
  }
}

/** Metrics of a few routes, one of a name that wants escaping. */
export function busyMetrics(): Metrics {
  const metrics = new Metrics({ now: () => 0, wallNow: () => 1_700_000_000_500 })
  const request = { method: 'GET', path: '/a', sentBytes: 100, receivedBytes: 7, durationMs: 2 }
  metrics.record({ ...request, sentStatus: 200, routeName: 'area.a' })
  metrics.record({ ...request, sentStatus: 500, routeName: 'area.a', durationMs: 20_000 })
  metrics.record({ ...request, sentStatus: 404, routeName: '' })
  metrics.record({ ...request, sentStatus: 200, routeName: hostileName })
  return metrics
}
