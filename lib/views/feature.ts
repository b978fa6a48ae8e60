/**
 * The context member that renders views: `view(file, data, status)`.
 */
import type { CoreContext as Context } from '../http/context.ts'
import type { Feature, ViewScope } from '../http/features.ts'
import type { Reply } from '../http/reply.ts'
import { parseAction } from '../routing/action.ts'
import type { RouteRecord } from '../routing/route.ts'
import type { Views } from './cache.ts'

/** The context member that views add. */
export interface ViewMembers {
  /**
   * Replies with a rendered view.
   * @param file relative to `paths.root`, or to the folder of the action
   * @param data the values of the view's names
   * @throws ViewError when the view is missing or wrong
   */
  readonly view: (file: string, data?: Readonly<Record<string, unknown>>, status?: number) => Reply
}

/**
 * Makes the feature.
 * @param viewScope returns what views see besides their data; called late, since it is built from all features
 */
export function viewFeature(views: Views, viewScope: () => (ctx: Context) => ViewScope): Feature {
  const files = new WeakMap<RouteRecord, string>()
  const fileOfAction = (route: RouteRecord): string => {
    const known = files.get(route)
    if (known !== undefined) return known
    const { file } = parseAction(route.action)
    files.set(route, file)
    return file
  }
  const make = (ctx: Context) => {
    const from = ctx.route === undefined ? undefined : fileOfAction(ctx.route)
    return (file: string, data: Readonly<Record<string, unknown>> = {}, status?: number): Reply =>
      ctx.html(views.render(file, data, viewScope()(ctx), from), status)
  }
  return { name: 'views', members: [{ name: 'view', make }] }
}
