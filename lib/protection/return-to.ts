/** `ctx.returnTo`: the page that a visitor wanted before the sign-in. */
import { safeNext } from '../access/next-path.ts'
import type { Chain } from '../chain/compose.ts'
import type { CoreContext } from '../http/context.ts'
import type { Registry } from '../routing/registry.ts'

/**
 * Returns the path and query in `next`, of the form if one has been read, else of the query: a path on this host, below
 * the prefix, that a GET changes nothing on, and none of the panel. Undefined if there is no such path.
 */
export function pageToReturnTo(
  ctx: CoreContext,
  registry: Pick<Registry<Chain>, 'find' | 'allowed'>,
): string | undefined {
  const next = ctx.body.arrivedForm?.get('next') || ctx.query.get('next') || undefined
  const match = (method: string, path: string) => registry.find(method, path)?.route ?? registry.allowed(path)
  const path = safeNext(next, ctx, { match }, () => true)
  if (path === undefined || next === undefined) return undefined
  return ctx.prefix + path + new URL(next, 'http://localhost').search
}
