/**
 * The few numbers by which a server is told from others at a glance: cheap enough to be taken every second.
 */
import { megabytes } from './sample.ts'

/** What a process, or several together, says of itself. */
export interface Summary {
  readonly processes: number
  readonly uptime_s: number
  /** Answered since the start, and those of 400 and above. */
  readonly requests: number
  readonly errors: number
  /** Being served now. */
  readonly active: number
  /** In units of 2^20 bytes. */
  readonly rss_mb: number
  /** How late a timer came that is due every 50 ms: of all processes that serve the worst. */
  readonly loop_p99_ms: number
}

/** The requests of processes that have ended. */
export type EndedRequests = Pick<Summary, 'requests' | 'errors'>

/**
 * Several processes as one.
 * @param primary adds its memory and is the oldest; its event loop serves no request
 * @param workers those that serve
 * @param ended what counts though its process is gone
 */
export function sumSummaries(primary: Summary, workers: readonly Summary[], ended: EndedRequests): Summary {
  const sum = (name: 'requests' | 'errors' | 'active' | 'rss_mb'): number => workers.reduce((all, each) => all + each[name], 0)
  return {
    processes: workers.length,
    uptime_s: primary.uptime_s,
    requests: sum('requests') + ended.requests,
    errors: sum('errors') + ended.errors,
    active: sum('active'),
    rss_mb: Math.round((sum('rss_mb') + primary.rss_mb) * 10) / 10,
    loop_p99_ms: Math.max(0, ...workers.map(({ loop_p99_ms: p99 }) => p99)),
  }
}

/** The summary of a process: what it counted, and the memory and event loop of now. */
export function summaryOf(
  counted: { readonly requests: number; readonly errors: number; readonly uptimeSeconds: number },
  now: { readonly active: number; readonly loopP99Ms: number },
): Summary {
  const { requests, errors, uptimeSeconds } = counted
  return {
    processes: 1,
    uptime_s: Math.floor(uptimeSeconds),
    requests,
    errors,
    active: now.active,
    rss_mb: megabytes(process.memoryUsage.rss()),
    loop_p99_ms: now.loopP99Ms,
  }
}
