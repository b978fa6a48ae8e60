/**
 * The member of the context that renders views: `view(file, data, status)`.
 */
import type { CoreContext as Context } from '../http/context.ts'
import type { Feature, ViewScope } from '../http/features.ts'
import type { Reply } from '../http/reply.ts'
import { parseAction } from '../routing/action.ts'
import type { Views } from './cache.ts'

/** The member that views add to the context. */
export interface ViewMembers {
  /**
   * Replies with a rendered view.
   * @param file relative to `paths.root`, or to the folder of the action
   * @param data what the view's names mean
   * @throws ViewError when the view is missing or wrong
   */
  readonly view: (file: string, data?: Readonly<Record<string, unknown>>, status?: number) => Reply
}

/**
 * Makes the feature.
 * @param viewScope gives what views see besides their data; asked for late, since it is made of all features
 */
export function viewFeature(views: Views, viewScope: () => (ctx: Context) => ViewScope): Feature {
  const make = (ctx: Context) => {
    const from = ctx.route === undefined ? undefined : parseAction(ctx.route.action).file
    return (file: string, data: Readonly<Record<string, unknown>> = {}, status?: number): Reply =>
      ctx.html(views.render(file, data, viewScope()(ctx), from), status)
  }
  return { name: 'views', members: [{ name: 'view', make }] }
}
