/**
 * How a log line names a request.
 */
import type { Context } from './context.ts'

/** What was asked and which route answers. */
export function label(ctx: Context): string {
  return ctx.route === undefined ? `${ctx.method} ${ctx.path}` : `${ctx.method} ${ctx.path} (${ctx.route.name})`
}
