/**
 * The context member for flash messages: `flash(id)`, in views `UFlash(id)`.
 *
 * Surprise: without a session, a bag lasts only for the request. Messages are then lost at the first redirect, so a
 * WARN, once per route, names the missing middleware.
 */
import type { CoreContext } from '../http/context.ts'
import type { Feature } from '../http/features.ts'
import { isPrefetch } from '../http/origin.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { SessionMembers } from '../session/feature.ts'
import { FlashBag, RequestFlash } from './bag.ts'

type Context = CoreContext & SessionMembers

/**
 * Makes the feature for one server. A bag's id must be a non-empty string; otherwise `flash` throws a TypeError.
 * @param log returns the log of a module
 */
export function flashFeature(log: (module: string) => ModuleLogger): Feature {
  const warnedRoutes = new Set<string>()

  function warnOnce(ctx: Context): void {
    const route = ctx.routeName
    if (warnedRoutes.has(route)) return
    warnedRoutes.add(route)
    const message = `flash on route "${route}" has no session: add SVC_MwSession to its middleware`
    log('error').warn(message, { request: ctx })
  }

  const make = (ctx: Context) => {
    const keepOnGet = ctx.method === 'HEAD' || isPrefetch(ctx)
    let requestFlash: RequestFlash | undefined
    return (id: string): FlashBag => {
      if (typeof id !== 'string' || id === '') {
        throw new TypeError(`Cannot open a flash bag: its id must be a non-empty string: it is ${describe(id)}`)
      }
      if (ctx.session.isOpen) return new FlashBag(id, { holder: ctx.session, keepOnGet })
      warnOnce(ctx)
      return new FlashBag(id, { holder: (requestFlash ??= new RequestFlash()), keepOnGet })
    }
  }
  return { name: 'flash', members: [{ name: 'flash', aliases: ['UFlash'], inViews: 'aliases', make }] }
}

function describe(id: unknown): string {
  return id === '' ? 'empty' : id === undefined || id === null ? String(id) : `a ${typeof id}`
}
