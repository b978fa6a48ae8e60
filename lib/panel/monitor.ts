/**
 * The monitor: a page that reads the status every `monitor.interval_s` seconds and draws it.
 *
 * The page contains the first document, so it is complete when it opens. There `<` is written as `\u003c`, which is
 * equivalent in JSON, so no log line or path can end the script element.
 */
import type { Action } from '../chain/compose.ts'
import { lastHourOf } from '../log/error-groups.ts'
import { panelPage, type PagePort } from './page.ts'
import type { AdminPort } from './admin-port.ts'
import type { Status } from './status.ts'

/** The part of the panel's port that the monitor uses. */
export type MonitorPort = PagePort &
  Pick<AdminPort, 'history' | 'monitorLog' | 'recentLines' | 'recentRequests' | 'status' | 'traceState'>

type RouteStatus = Status['routes'][number]
type Order = (a: RouteStatus, b: RouteStatus) => number

/** The most routes in the page's table. */
const maxRoutes = 20

/** For each column of the page's table: largest number first, or names from a to z. p99 comes first. */
const orders: readonly Order[] = [
  ...(['p99_ms', 'p95_ms', 'p50_ms', 'max_ms', 'time_ms', 'count', 'errors'] as const).map(
    (field): Order => (a, b) => b[field] - a[field] || b.p99_ms - a.p99_ms,
  ),
  (a, b) => (a.name < b.name ? -1 : 1),
]

/** The data of the page: the status with the routes that it may show, and under `monitor` the data only it uses. */
export async function monitorDocument(port: MonitorPort) {
  const [status, history, requests, lines, errors] = await Promise.all([
    port.status(),
    port.history(),
    port.recentRequests(),
    port.recentLines(),
    port.errors(),
  ])
  return {
    ...status,
    routes: shownRoutes(status.routes),
    monitor: {
      history,
      requests,
      lines,
      error_groups: errors.length,
      errors_last_hour: lastHourOf(errors),
      trace: port.traceState(),
    },
  }
}

/** Makes the handler of the page. */
export function createMonitor(port: MonitorPort): Action {
  const intervalSeconds = port.config['monitor.interval_s']
  return async (ctx) => {
    port.monitorLog.info(`opened by ${ctx.ip}`)
    return panelPage(ctx, port, 'monitor.html', {
      title: 'Monitor',
      intervalSeconds,
      documentText: scriptSafe(await monitorDocument(port)),
    })
  }
}

/**
 * The top routes by each column, with and without the panel's own: whatever the page sorts by, it has the top of all
 * routes without another request. At most 320, usually far fewer; highest p99 first.
 */
function shownRoutes(all: readonly RouteStatus[]): RouteStatus[] {
  const lists = [all, all.filter(({ name }) => !name.startsWith('svc.'))]
  const found = lists.flatMap((routes) => orders.flatMap((order) => routes.toSorted(order).slice(0, maxRoutes)))
  return [...new Set(found)].sort(orders[0])
}

/** Returns a value as JSON that is safe in a script element. */
function scriptSafe(value: unknown): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c')
}
