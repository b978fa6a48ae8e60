/**
 * Where a login redirects to: the path in `next`, if it is on this host and changes nothing.
 *
 * Surprise: a browser does not request the path as written. It treats `\` as `/`, and resolves `/x/..//host` to
 * `//host`, which is another site, and `/x/%2e%2e/svc-stop` to `/svc-stop`. So the path is resolved here in the same
 * way (WHATWG URL), then checked, and returned in resolved form. It is a path of this server, as `ctx.path`: prefixes
 * are taken off, since `/app/svc-stop` below the prefix `/app` is `/svc-stop`.
 */
import type { CoreContext } from '../http/context.ts'
import type { AccessPort } from './access-port.ts'

/** Whether a GET without query on a system route's URL changes something. */
export type Changes = (url: string) => boolean

const controlCharacter = /[\u0000-\u001f\u007f-\u009f]/

/**
 * Returns the path that `next` resolves to, in printable ASCII, without prefix and query; undefined if it is not
 * allowed.
 * @param next decoded, as in the form or the query
 */
export function safeNext(
  next: string | undefined,
  ctx: Pick<CoreContext, 'withoutPrefix'>,
  port: Pick<AccessPort, 'match'>,
  changes: Changes,
): string | undefined {
  if (next === undefined || !isPath(next) || controlCharacter.test(next)) return undefined
  const path = ctx.withoutPrefix(new URL(next, 'http://localhost').pathname)
  return isPath(path) && changesNothing(path, port, changes) ? path : undefined
}

function isPath(text: string): boolean {
  return /^\/(?![/\\])/.test(text)
}

/** Also false for a path that only allows other methods. True without a route, since it may be a static file. */
function changesNothing(path: string, port: Pick<AccessPort, 'match'>, changes: Changes): boolean {
  try {
    const match = port.match('GET', path)
    return 'record' in match ? !(match.record.name.startsWith('svc.') && changes(match.record.url)) : match.length === 0
  } catch {
    return false // The encoding of the path is malformed: a request for it would get 400.
  }
}
