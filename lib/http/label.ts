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

/** The parts of a message about a request. Route and id are lists, empty where the message has none. */
interface LabelParts {
  /** The name of the route. */
  readonly route: readonly string[]
  readonly id: readonly string[]
  /** The rest. */
  readonly text: string
}

/** Takes a message apart that {@link label} and {@link withRequestId} have made. */
export function partsOfLabel(message: string): LabelParts {
  const [, about = '', id] = /^([^]*) \[([\w.-]{8,128})\]$/.exec(message) ?? [, message]
  const [, route, text = about] = /^[A-Z]+ \/\S*(?: \(([^)]*)\))?: ([^]*)$/.exec(about) ?? []
  return { route: route === undefined ? [] : [route], id: id === undefined ? [] : [id], text }
}
