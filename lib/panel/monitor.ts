/**
 * The monitor: a page that reads the status every `monitor.interval_s` seconds and draws it.
 *
 * The first document comes within the page, so that it is complete when it opens. Whatever a log line or a path holds,
 * it cannot end the element that carries it: `<` is written as `\u003c`, which to JSON is the same.
 */
import type { Action } from '../chain/compose.ts'
import { page } from '../admin/page.ts'
import type { AdminPort } from './port.ts'

/** What the monitor needs of the panel's port. */
export type MonitorPort = Pick<
  AdminPort,
  'config' | 'pages' | 'status' | 'history' | 'recentRequests' | 'recentLines' | 'traceState' | 'monitorLog'
>

/** The most routes in the page's table: the slowest by p99. */
const maxRoutes = 20

/** What the page draws: the status with its slowest routes alone, and under `monitor` what only the page needs. */
export async function monitorDocument(port: MonitorPort) {
  const [status, history, requests, lines] = await Promise.all([
    port.status(),
    port.history(),
    port.recentRequests(),
    port.recentLines(),
  ])
  return {
    ...status,
    routes: [...status.routes].sort((a, b) => b.p99_ms - a.p99_ms).slice(0, maxRoutes),
    monitor: { history, requests, lines, trace: port.traceState() },
  }
}

/** Makes the handler of the page. */
export function createMonitor(port: MonitorPort): Action {
  const intervalSeconds = port.config['monitor.interval_s']
  return async (ctx) => {
    port.monitorLog.info(`opened by ${ctx.ip}`)
    return page(ctx, port, 'monitor.html', {
      title: 'Monitor',
      signedIn: true,
      intervalSeconds,
      documentText: scriptSafe(await monitorDocument(port)),
    })
  }
}

/** A value as JSON that may stand in a script element. */
function scriptSafe(value: unknown): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c')
}
