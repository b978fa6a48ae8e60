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

/** The id at the end of a message that {@link withRequestId} has made; undefined without one. */
export function requestIdOf(message: string): string | undefined {
  return / \[([A-Za-z0-9_.-]{8,128})\]$/.exec(message.slice(-131))?.[1]
}

/** The route that {@link label} has put before a message, if it has, and the message without label and id. */
export function partsOfLabel(message: string): { readonly route: string | undefined; readonly text: string } {
  const id = requestIdOf(message)
  const about = id === undefined ? message : message.slice(0, -` [${id}]`.length)
  const [, route, text = about] = /^[A-Z]+ \/\S*(?: \((.{1,200}?)\))?: ([^]*)$/s.exec(about) ?? []
  return { route, text }
}
