/**
 * The monitor: a page that reads the status every `monitor.interval_s` seconds and draws it.
 *
 * The page contains the first document, so it is complete when it opens. In it `<` is written as `\u003c`, which means
 * the same in JSON, so no log line or path can end the script element.
 */
import type { Action } from '../chain/compose.ts'
import { panelPage } from './page.ts'
import type { AdminPort } from './port.ts'

/** The part of the panel's port that the monitor uses. */
export type MonitorPort = Pick<
  AdminPort,
  'config' | 'errors' | 'pages' | 'status' | 'history' | 'recentRequests' | 'recentLines' | 'traceState' | 'monitorLog'
>

/** The most routes in the page's table: the slowest by p99. */
const maxRoutes = 20

/** The data of the page: the status with only its slowest routes, and under `monitor` the data that only it uses. */
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
    return panelPage(ctx, port, 'monitor.html', {
      title: 'Monitor',
      intervalSeconds,
      documentText: scriptSafe(await monitorDocument(port)),
    })
  }
}

/** Returns a value as JSON that is safe in a script element. */
function scriptSafe(value: unknown): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c')
}
