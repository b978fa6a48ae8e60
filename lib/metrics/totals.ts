/**
 * What `/svc-metrics` shows, out of the figures of the processes.
 */
import { version } from '../base/version.ts'
import type { ProcessFigures } from './figures.ts'
import { mergeFigures } from './merge.ts'
import type { PoolState, ProcessState, PrometheusInput } from './prometheus.ts'
import { countsOf } from './request-figures.ts'

/** What is said of nodes that are not known to be there. */
const notLive: readonly string[] = ['gone', 'unknown']

/**
 * The input of `renderPrometheus`, from the figures of one process or several.
 * @param nodes where servers share an engine
 */
export function totalsOf(processes: readonly ProcessFigures[], nodes?: readonly { readonly state: string }[]): PrometheusInput {
  const { requests, now, eventLoop, counters, refused, ended, warnings } = mergeFigures(processes)
  const { events, pool_ws: ws, pool_http: http, log, access_log: accessLog, sessions, views } = counters.totals
  const refusedBy = { http: http.refused, ws: ws.refused, ...refused }
  const pool = (name: keyof typeof refusedBy): PoolState => ({ name, ...now.pools[name], refused: refusedBy[name] })
  return {
    version,
    nodeVersion: process.versions.node,
    requests,
    activeRequests: now.activeRequests,
    pools: [pool('http'), pool('ws'), pool('sse'), pool('longpoll')],
    connections: { open: now.connections, refused: counters.totals.connections.refused },
    eventLoop: eventLoop.totals,
    memory: now.memory,
    logs: [
      { name: 'general', ...log },
      { name: 'access', ...accessLog },
    ],
    events,
    slowStreams: { sse: events.slow, ws: ws.slow },
    sessions,
    viewCache: views,
    warnings: warnings.length,
    ...(nodes !== undefined && { liveNodes: nodes.filter(({ state }) => !notLive.includes(state)).length }),
    ...(processes.every(({ role }) => role === 'alone') ? {} : { processes: { ended, living: livingOf(processes) } }),
  }
}

function livingOf(processes: readonly ProcessFigures[]): ProcessState[] {
  return processes
    .filter(({ role }) => role !== 'ended')
    .map(({ id, responding, requests, now, eventLoop }) => ({
      id,
      up: responding,
      startedAtMs: requests.startedAtMs,
      ...totalOf(requests.routes),
      activeRequests: now.activeRequests,
      connections: now.connections,
      memory: now.memory,
      eventLoop: eventLoop.totals,
    }))
}

/** The requests of all routes, and those that were answered with 400 and above. */
export function totalOf(routes: ProcessFigures['requests']['routes']): { readonly requests: number; readonly errors: number } {
  const counts = routes.map(({ byOutcome }) => countsOf(byOutcome))
  return {
    requests: counts.reduce((sum, { total }) => sum + total, 0),
    errors: counts.reduce((sum, { errors }) => sum + errors, 0),
  }
}
