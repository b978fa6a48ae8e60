/**
 * The trace switches: reads them, and sets one or all, permanently or for a while.
 */
import type { CoreContext } from '../http/context.ts'
import type { Reply } from '../http/reply.ts'
import { readObject, refuse } from './json-body.ts'
import type { AdminPort } from './admin-port.ts'
import { formOf } from './result.ts'

/** The longest `ttl`, in seconds: a day. */
const maxTtlSeconds = 86_400

/** Makes the handlers, by the names of their rows in `table.ts`. */
export function createTraceEndpoints({ audit, control, traceState }: AdminPort) {
  function stateOf(module: string): string {
    const state = traceState()
    const switches = new Set(module === 'all' ? Object.values(state) : [state[module] === true])
    return switches.size > 1 ? 'various' : onOff(switches.has(true))
  }

  async function apply(ctx: CoreContext, module: string, enabled: boolean, ttlSeconds?: number): Promise<Reply> {
    const from = stateOf(module)
    const to = `${onOff(enabled)}${ttlSeconds === undefined ? '' : ` for ${ttlSeconds} s`}`
    try {
      const ttl = ttlSeconds === undefined ? {} : { ttlSeconds }
      const state = await control.apply({ type: 'trace.set', module, enabled, ...ttl })
      audit(ctx, `trace of ${module} set`, { detail: `from ${from} to ${to}`, from, to })
      return ctx.json(state)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      return refuse(ctx, 400, error.message)
    }
  }

  function setByQuery(ctx: CoreContext): Reply | Promise<Reply> {
    const module = ctx.query.get('mod') ?? ''
    const on = ctx.query.get('on') ?? '1'
    if (module === '') return refuse(ctx, 400, 'mod is missing: name a module, or all')
    if (on !== '0' && on !== '1') return refuse(ctx, 400, `on must be 0 or 1: it is ${JSON.stringify(on)}`)
    const given = ctx.query.get('ttl')
    const ttl = given === null ? undefined : /^\d{1,6}$/.test(given) ? Number(given) : Number.NaN
    if (!isTtl(ttl)) return refuse(ctx, 400, wrongTtl(given))
    return apply(ctx, module, on === '1', ttl)
  }

  return {
    /** With `?mod=&on=&ttl=`, sets a switch first; without a query, only returns the state. */
    'svc.trace': (ctx: CoreContext): Reply | Promise<Reply> => {
      return ctx.rawQuery.length > 1 ? setByQuery(ctx) : ctx.json(traceState())
    },

    /** Takes `{module, enabled, ttl?}` or, without a body, a query as with GET. */
    async 'svc.trace.set'(ctx: CoreContext): Promise<Reply> {
      if (ctx.rawQuery.length > 1 && (await hasNoMembers(ctx))) return setByQuery(ctx)
      const body = await readObject(ctx)
      if ('refusal' in body) return body.refusal
      const { module, enabled, ttl } = body.value
      if (typeof module !== 'string') {
        return refuse(ctx, 400, 'module is missing: it must be the name of a module, or all')
      }
      if (typeof enabled !== 'boolean') return refuse(ctx, 400, 'enabled must be true or false')
      if (!isTtl(ttl)) return refuse(ctx, 400, wrongTtl(ttl))
      return apply(ctx, module, enabled, ttl)
    },
  }
}

/** Whether there is no body, or an empty form of the panel. */
async function hasNoMembers(ctx: CoreContext): Promise<boolean> {
  const fields = await formOf(ctx)
  return fields === undefined ? (await ctx.readBytes()).length === 0 : Object.keys(fields).length === 0
}

function isTtl(ttl: unknown): ttl is number | undefined {
  return ttl === undefined || (Number.isInteger(ttl) && (ttl as number) >= 1 && (ttl as number) <= maxTtlSeconds)
}

function wrongTtl(ttl: unknown): string {
  return `ttl must be 1 to ${maxTtlSeconds} whole seconds: it is ${JSON.stringify(ttl)}`
}

function onOff(on: boolean): string {
  return on ? 'on' : 'off'
}
