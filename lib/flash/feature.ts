/**
 * What flash messages add to the context: `flash(id)`, in views `UFlash(id)`.
 *
 * Surprise: without a session a bag works for this request alone. A page that shows a message and sets one then looks
 * right until the redirect, so the log says once a route what is missing.
 */
import type { CoreContext } from '../http/context.ts'
import type { Feature } from '../http/features.ts'
import { isPrefetch } from '../http/origin.ts'
import { withRequestId } from '../http/label.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { SessionMembers } from '../session/feature.ts'
import { FlashBag, RequestFlash } from './bag.ts'

/** The members that flash messages add to the context. */
export interface FlashMembers {
  /**
   * The flash bag of a form id.
   * @throws TypeError when the id is no string or is empty
   */
  readonly flash: (id: string) => FlashBag
  /** The same, by the specification's name. */
  readonly UFlash: (id: string) => FlashBag
}

type Context = CoreContext & SessionMembers

/**
 * Makes the feature for one server.
 * @param log is told, once a route, that there is no session
 */
export function flashFeature(log: (module: string) => ModuleLogger): Feature {
  const toldRoutes = new Set<string>()

  function tell(ctx: Context, route: string): void {
    if (toldRoutes.has(route)) return
    toldRoutes.add(route)
    log('error').warn(
      withRequestId(`flash on route "${route}" has no session: add SVC_MwSession to its middleware`, ctx),
    )
  }

  const make = (ctx: Context) => {
    const keepsWhatIsRead = ctx.method === 'HEAD' || isPrefetch(ctx)
    let ofRequest: RequestFlash | undefined
    return (id: string): FlashBag => {
      if (typeof id !== 'string' || id === '') {
        throw new TypeError(`Cannot give a flash bag: its id must be a string that is not empty: it is ${shown(id)}`)
      }
      if (ctx.session.isOpen) return new FlashBag(id, { holder: ctx.session, keepsWhatIsRead })
      tell(ctx, ctx.routeName)
      return new FlashBag(id, { holder: (ofRequest ??= new RequestFlash()), keepsWhatIsRead })
    }
  }
  return { name: 'flash', members: [{ name: 'flash', aliases: ['UFlash'], inViews: 'aliases', make }] }
}

function shown(id: unknown): string {
  return id === '' ? 'empty' : id === undefined || id === null ? String(id) : `a ${typeof id}`
}
