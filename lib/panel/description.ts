/**
 * The description of the application's routes as a page, on which each operation can be tried. With `?format=json` it
 * is the document itself, as the action `svc:openapi` answers it.
 */
import type { Action } from '../chain/compose.ts'
import type { AdminPort } from './admin-port.ts'
import { asksForJson, ofRoom, panelPage, type PagePort } from './page.ts'
import { cut, search } from './paging.ts'

/** The part of the panel's port that the description uses. */
type DescriptionPort = PagePort & Pick<AdminPort, 'describe'>

/** Makes the handler of the page. */
export function createDescription(port: DescriptionPort): Action {
  return async (ctx) => {
    const { below, problems, shown } = await ofRoom(port.describe())
    if (asksForJson(ctx)) return ctx.json(below(ctx.prefix))
    const { operations, ...rest } = shown()
    const { items, ...page } = cut(ctx, search(ctx, operations, ({ text }) => text), operations.length, 'operation')
    const areas = [...new Set(items.map(({ area }) => area))]
    return panelPage(ctx, port, ctx.query.has('part') ? 'openapi/results.html' : 'openapi.html', {
      title: 'API',
      problems,
      filterHint: 'path, name, summary',
      ...page,
      ...rest,
      groups: areas.map((area) => {
        return { area, rows: items.filter((each) => each.area === area).map(({ row }) => row()) }
      }),
    })
  }
}
