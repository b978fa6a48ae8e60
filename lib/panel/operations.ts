/**
 * Health, metrics and operation: ping, slow, ready, status, metrics, cache-clear, stop, bench.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import type { CoreContext } from '../http/context.ts'
import { BodyReply, type Reply } from '../http/reply.ts'
import { prometheusType } from '../metrics/prometheus.ts'
import { serverName } from '../base/version.ts'
import { monitorDocument } from './monitor.ts'
import type { AdminPort } from './admin-port.ts'
import { formOf } from './result.ts'

const slowMs = 3000
/** The delay of a stop by button, so that the browser can load the page that reports it. */
const buttonStopMs = 2000

/** Makes the handlers, by the names of their rows in `table.ts`. */
export function createOperations(port: AdminPort) {
  const { audit, control, log, metricsLog, monitorLog } = port
  return {
    'svc.ping': (ctx: CoreContext): Reply => ctx.json({ status: 'ok', server: serverName }),

    async 'svc.slow'(ctx: CoreContext): Promise<Reply> {
      // The delay ends when the client disconnects.
      await delay(slowMs, undefined, { signal: ctx.signal }).catch(() => {})
      return ctx.json({ status: 'ok', time: new Date().toTimeString().slice(0, 8) })
    },

    /** Those who may see the panel get the checks that fail. */
    'svc.ready'(ctx: CoreContext): MaybePromise<Reply> {
      const status = port.readiness()
      if (status !== 'ready') return ctx.json({ status }, 503)
      return after(port.failedChecks(), (failed) => {
        if (failed.length === 0) return ctx.json({ status })
        return ctx.json({ status: 'not ready', ...(port.maySee(ctx) && { failed }) }, 503)
      })
    },

    /** The status; with `?monitor=1` the data of the monitor page. */
    async 'svc.status'(ctx: CoreContext): Promise<Reply> {
      if (!ctx.query.has('monitor')) return ctx.json(await port.status())
      if (monitorLog.debugEnabled) monitorLog.debug(`read by ${ctx.ip}`)
      return ctx.json(await monitorDocument(port))
    },

    'svc.metrics': async (): Promise<Reply> => new BodyReply(prometheusType, await port.prometheus()),

    async 'svc.cache.clear'(ctx: CoreContext): Promise<Reply> {
      const { deleted, path } = await control.apply({ type: 'cache.clear' })
      audit(ctx, 'view cache cleared', { detail: `${deleted} files` })
      return ctx.json({ status: 'ok', deleted, path })
    },

    /** If a form of the panel requested it, the stop begins a little later. */
    async 'svc.stop'(ctx: CoreContext): Promise<Reply> {
      const isForm = (await formOf(ctx)) !== undefined
      audit(ctx, 'stop requested')
      if (isForm) {
        setTimeout(() => {
          control.apply({ type: 'stop' }).catch((thrown: unknown) => log.error('Cannot stop', { thrown }))
        }, buttonStopMs)
      } else {
        ctx.lastOnConnection = true
        await control.apply({ type: 'stop' })
      }
      return ctx.json({ status: 'stopping' })
    },

    /** This request is not counted, so the window begins empty. */
    async 'svc.bench.start'(ctx: CoreContext): Promise<Reply> {
      ctx.counted = false
      await control.apply({ type: 'bench.start' })
      audit(ctx, 'bench window started')
      metricsLog.info('bench window started')
      return ctx.json({ bench: 'start' })
    },

    async 'svc.bench.stop'(ctx: CoreContext): Promise<Reply> {
      audit(ctx, 'bench window read')
      const metrics = await port.status()
      metricsLog.info(
        `bench window read: ${metrics.requests.total} requests, ${metrics.requests.errors} errors`,
      )
      return ctx.json({ bench: 'stop', metrics })
    },
  }
}
