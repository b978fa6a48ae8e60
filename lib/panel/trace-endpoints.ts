/**
 * The trace switches: reads them, and sets one or all.
 */
import type { CoreContext } from '../http/context.ts'
import type { Reply } from '../http/reply.ts'
import { readObject, refuse } from './json-body.ts'
import type { AdminPort } from './port.ts'
import { formOf } from './result.ts'

/** Makes the handlers. */
export function createTraceEndpoints({ control, traceState, log }: AdminPort) {
  function stateOf(module: string): string {
    const state = traceState()
    const switches = new Set(module === 'all' ? Object.values(state) : [state[module] === true])
    return switches.size > 1 ? 'various' : onOff(switches.has(true))
  }

  async function apply(ctx: CoreContext, module: string, enabled: boolean): Promise<Reply> {
    const from = stateOf(module)
    try {
      const state = await control.apply({ type: 'trace.set', module, enabled })
      log.info(`trace of ${module} set by ${ctx.ip}: from ${from} to ${onOff(enabled)}`)
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
    return apply(ctx, module, on === '1')
  }

  return {
    /** `?mod=&on=` switches first; without a query it only answers the state. */
    get: (ctx: CoreContext): Reply | Promise<Reply> => {
      return ctx.rawQuery.length > 1 ? setByQuery(ctx) : ctx.json(traceState())
    },

    /** `{module, enabled}`; without members, a query as with GET. */
    async set(ctx: CoreContext): Promise<Reply> {
      if (ctx.rawQuery.length > 1 && (await hasNoMembers(ctx))) return setByQuery(ctx)
      const body = await readObject(ctx)
      if ('refusal' in body) return body.refusal
      const { module, enabled } = body.value
      if (typeof module !== 'string') {
        return refuse(ctx, 400, 'module is missing: it must be the name of a module, or all')
      }
      if (typeof enabled !== 'boolean') return refuse(ctx, 400, 'enabled must be true or false')
      return apply(ctx, module, enabled)
    },
  }
}

/** Whether there is no body, or a form of the panel with nothing in it. */
async function hasNoMembers(ctx: CoreContext): Promise<boolean> {
  const fields = await formOf(ctx)
  return fields === undefined ? (await ctx.readBytes()).length === 0 : Object.keys(fields).length === 0
}

function onOff(on: boolean): string {
  return on ? 'on' : 'off'
}
