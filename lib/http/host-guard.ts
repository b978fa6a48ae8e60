/**
 * Refuses requests by their Host header field (RFC 9112, section 3.2; `server.allowed_hosts`).
 *
 * Surprise: without `allowed_hosts` the last good field is remembered, since nearly all requests of a server have the
 * same one: the check is then the comparison of two short texts.
 */
import type { CoreContext } from './context.ts'
import { HttpError } from './errors.ts'
import { createHostCheck } from './host.ts'

/**
 * Makes the guard. It throws HttpError 400 `bad_host` for a field that is missing in HTTP/1.1, doubled, malformed or,
 * with a list, not on it. Behind a trusted proxy the list is held against the host that the proxy states.
 * @param allowed see `createHostCheck`
 */
export function createHostGuard(allowed: readonly string[]): (ctx: CoreContext) => void {
  const isWellFormed = createHostCheck([])
  const isAllowed = createHostCheck(allowed)
  let lastGood: string | undefined
  return (ctx) => {
    if (ctx.hostCount > 1) throw badHost('The request has more than one Host field')
    const field = ctx.hostField
    if (field === undefined && ctx.httpVersion === '1.1') throw badHost('The request has no Host field')
    if (field !== lastGood) {
      if (!isWellFormed(field)) throw badHost('The Host field is malformed')
      lastGood = field
    }
    if (allowed.length > 0 && !isAllowed(ctx.host)) throw badHost('This server does not answer to that host')
  }
}

function badHost(message: string): HttpError {
  return new HttpError(400, 'bad_host', message)
}
