/**
 * Long lists of the panel: the server filters them by words and splits them into pages, so everything works without a
 * script. The script of a page only requests the same address while the user types.
 */
import type { CoreContext } from '../http/context.ts'

/** The most items on one page. */
const pageSize = 200
/** The longest filter, in characters; longer ones are truncated. */
const maxFilterLength = 200

/** Returns the items whose text has every word of the query's filter `q`, ignoring case. */
export function search<Item>(
  ctx: CoreContext,
  items: readonly Item[],
  textOf: (item: Item) => string,
): readonly Item[] {
  const words = filterOf(ctx).toLowerCase().split(/\s+/).filter((word) => word !== '')
  if (words.length === 0) return items
  return items.filter((item) => {
    const text = textOf(item).toLowerCase()
    return words.every((word) => text.includes(word))
  })
}

/**
 * Returns the items on the requested page, and the addresses of the previous and next page; '' if there is none.
 * @param total the number of items without the filter
 * @param noun what an item is, for the count
 */
export function cut<Item>(ctx: CoreContext, found: readonly Item[], total: number, noun: string) {
  const filter = filterOf(ctx)
  const last = Math.max(1, Math.ceil(found.length / pageSize))
  const requested = Number(ctx.query.get('page') ?? 1)
  const number = Number.isInteger(requested) ? Math.min(Math.max(requested, 1), last) : 1
  const first = (number - 1) * pageSize
  const items = found.slice(first, first + pageSize)
  const all = total === 1 ? `1 ${noun}` : `${total} ${noun}s`
  const address = (to: number): string => {
    if (to < 1 || to > last) return ''
    return `${ctx.path}?${new URLSearchParams({ ...(filter !== '' && { q: filter }), page: String(to) })}`
  }
  return {
    items,
    filter,
    count: filter === '' ? all : `${found.length} of ${all}`,
    pageText: last === 1 ? '' : `${first + 1} to ${first + items.length} of ${found.length}`,
    previous: address(number - 1),
    next: address(number + 1),
  }
}

function filterOf(ctx: CoreContext): string {
  return (ctx.query.get('q') ?? '').trim().slice(0, maxFilterLength)
}
