/** The sources of a server's metrics. */
import type { Worker } from '../cluster/joining.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Logs } from '../log/logs.ts'
import { createEventLoopWatch } from '../metrics/event-loop.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { LineCounts, MetricSources } from '../metrics/table.ts'
import type { ApplicationParts } from './application-parts.ts'
import { createDescriptorReader } from './file-descriptors.ts'
import type { Life } from './life.ts'
import type { Serving } from './serving.ts'

/** The parts of a server that provide counts. */
interface CountingParts {
  readonly loaded: LoadedConfig
  readonly metrics: Metrics
  readonly life: Life
  readonly serving: Serving
  readonly built: ApplicationParts
  readonly logs: Logs
  /** Set in one of several processes, whose log lines the primary counts. */
  readonly worker: Worker | undefined
  readonly isReloadRefused: () => boolean
}

/** Creates the sources, and watches the event loop until the server ends. */
export function createMetricSources(parts: CountingParts): MetricSources {
  const { loaded, metrics, life, serving, built, logs, worker, isReloadRefused } = parts
  const { requests, listener, queueWaits, restQueueWaits } = serving
  const { sessions, limits } = built.builtIn
  const eventLoop = createEventLoopWatch({ warn: logs.module('metrics').warn })
  life.atEnd(() => eventLoop.close())
  return {
    config: loaded.config,
    metrics,
    eventLoop,
    activeRequests: () => requests.active,
    httpPool: requests.pool,
    queueWaits,
    restPool: requests.restPool,
    restQueueWaits,
    webSockets: built.webSockets,
    events: () => built.events.status(),
    sessions: () => ({ ...sessions.counts, stored: sessions.stored }),
    jobs: () => built.jobs.counts,
    limits: limits.refused,
    connections: () => listener.connections(),
    views: built.views,
    ...lineCounts(logs, worker !== undefined),
    descriptors: createDescriptorReader(),
    replaced: () => ({}),
    isReloadRefused,
    isReady: () => life.readiness() === 'ready' && built.readyChecks.failed().length === 0,
    appMetrics: () => built.appMetrics.read(),
    warnings: () => life.warnings(),
  }
}

/** Returns the line counts of both logs. A worker counts only lines lost before they reach the primary. */
function lineCounts({ general, access }: Logs, isWorker: boolean): Record<'log' | 'accessLog', LineCounts> {
  const none = { written: 0, lost: 0 }
  if (!isWorker) return { log: general, accessLog: access ?? none }
  const lostOf = (log: LineCounts): LineCounts => ({
    written: 0,
    get lost() {
      return log.lost
    },
  })
  return { log: lostOf(general), accessLog: lostOf(access ?? none) }
}
