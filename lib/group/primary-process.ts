/**
 * What the primary of a cluster knows of itself: its memory, its event loop, and what it counts for all. It serves no
 * request, so all that is of requests is 0.
 */
import type { LogLine } from '../log/recent-lines.ts'
import { Histogram } from '../metrics/histogram.ts'
import { Metrics } from '../metrics/metrics.ts'
import { createOwnProcess, type OwnProcess } from '../metrics/processes.ts'
import type { MetricSources } from '../metrics/table.ts'

/** The parts that a primary has. What it counts here the workers must not count as well: the sums are of both. */
export type PrimaryParts = Pick<MetricSources, 'eventLoop' | 'events' | 'sessions' | 'log' | 'accessLog' | 'warnings'>

const noPool = { workers: 0, queueSize: 0, busy: 0, waiting: 0, refused: 0 }

/**
 * Knows the primary by its parts.
 * @param lines gives the last lines that it logged itself, the oldest first
 */
export function createPrimaryProcess(parts: PrimaryParts, lines: () => readonly LogLine[]): OwnProcess {
  const sources: MetricSources = {
    ...parts,
    config: { 'pool_rest.queue_size': 0 },
    metrics: new Metrics(),
    activeRequests: () => 0,
    httpPool: { ...noPool, alert: false },
    queueWaits: new Histogram(),
    restPool: { longpoll: noPool, sse: noPool },
    restQueueWaits: new Histogram(),
    webSockets: { pool: noPool, slow: 0 },
    connections: () => ({ open: 0, refused: 0 }),
    views: { hits: 0, misses: 0 },
  }
  return createOwnProcess(sources, lines)
}
