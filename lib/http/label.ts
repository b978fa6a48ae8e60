/**
 * How a log line names a request.
 */
import type { CoreContext } from './context.ts'

/** Method, path and, in parentheses, the route that answers. */
export function label(ctx: CoreContext): string {
  return ctx.route === undefined ? `${ctx.method} ${ctx.path}` : `${ctx.method} ${ctx.path} (${ctx.route.name})`
}

/**
 * A message about a request with the request's id at its end, as every line from WARN up has it. A request that has no
 * id yet gets one, which is sent back to the client.
 */
export function withRequestId(message: string, { id }: { readonly id: string }): string {
  return `${message} [${id}]`
}
