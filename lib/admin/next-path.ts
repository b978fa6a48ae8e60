/**
 * Where a login leads: the path in `next`, when it is one on this host that changes nothing.
 *
 * Surprise: a browser does not ask for the path as it stands. It takes `\` for `/` and resolves `/x/..//host` to
 * `//host`, which is another site, and `/x/%2e%2e/svc-stop` to `/svc-stop`. So the path is resolved here in the same
 * way (WHATWG URL), checked then, and given in its resolved form.
 */
import type { AdminPort } from '../panel/port.ts'

/** Whether a GET without query on a system route's URL changes something. */
export type Changes = (url: string) => boolean

const controlCharacter = /[\u0000-\u001f\u007f-\u009f]/

/** The value of `next` for a path as it was sent: percent-encoded but for `/`. */
export function nextOf(path: string): string {
  return encodeURIComponent(path).replaceAll('%2F', '/')
}

/**
 * The path that `next` leads to, in printable ASCII, without query; undefined when it does not count.
 * @param next decoded, as the form or the query has it
 */
export function safeNext(
  next: string | undefined,
  port: Pick<AdminPort, 'match'>,
  changes: Changes,
): string | undefined {
  if (next === undefined || !isPath(next) || controlCharacter.test(next)) return undefined
  const { pathname } = new URL(next, 'http://localhost')
  return isPath(pathname) && changesNothing(pathname, port, changes) ? pathname : undefined
}

function isPath(text: string): boolean {
  return /^\/(?![/\\])/.test(text)
}

/** A path that only takes other methods is no place to go to either. One that no route takes may be a static file. */
function changesNothing(path: string, port: Pick<AdminPort, 'match'>, changes: Changes): boolean {
  try {
    const match = port.match('GET', path)
    return 'record' in match ? !(match.record.name.startsWith('svc.') && changes(match.record.url)) : match.length === 0
  } catch {
    // The path's encoding is wrong: a request for it would get 400.
    return false
  }
}
