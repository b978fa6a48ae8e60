/**
 * Where a login leads: the path in `next`, when it is one on this host that changes nothing.
 *
 * Surprise: a browser does not request the path as it is written. It takes `\` for `/`, and resolves `/x/..//host` to
 * `//host`, which is another site, and `/x/%2e%2e/svc-stop` to `/svc-stop`. So the path is resolved here in the same
 * way (WHATWG URL), then checked, and returned in its resolved form.
 */
import type { AccessPort } from './port.ts'

/** Whether a GET without query on a system route's URL changes something. */
export type Changes = (url: string) => boolean

const controlCharacter = /[\u0000-\u001f\u007f-\u009f]/

/** The value of `next` for a path as it was sent: percent-encoded except `/`. */
export function nextOf(path: string): string {
  return encodeURIComponent(path).replaceAll('%2F', '/')
}

/**
 * The path that `next` leads to, in printable ASCII, without query; undefined when it is not allowed.
 * @param next decoded, as in the form or the query
 */
export function safeNext(
  next: string | undefined,
  port: Pick<AccessPort, 'match'>,
  changes: Changes,
): string | undefined {
  if (next === undefined || !isPath(next) || controlCharacter.test(next)) return undefined
  const { pathname } = new URL(next, 'http://localhost')
  return isPath(pathname) && changesNothing(pathname, port, changes) ? pathname : undefined
}

function isPath(text: string): boolean {
  return /^\/(?![/\\])/.test(text)
}

/** False too for a path that only takes other methods. True for one without a route, which may be a static file. */
function changesNothing(path: string, port: Pick<AccessPort, 'match'>, changes: Changes): boolean {
  try {
    const match = port.match('GET', path)
    return 'record' in match ? !(match.record.name.startsWith('svc.') && changes(match.record.url)) : match.length === 0
  } catch {
    return false // The encoding of the path is wrong: a request for it would get 400.
  }
}
