/**
 * The target of a request and the framing of its body (RFC 9112, sections 3.2 and 6). Ambiguous requests are refused,
 * even if Node's parser accepts them.
 */
import type { IncomingMessage } from 'node:http'
import type { CoreContext } from './context.ts'
import { HttpError } from './errors.ts'
import { parseAuthority } from './host.ts'

/**
 * Converts the target of a request to origin form, a path: `request.url` begins with '/' afterwards. For the absolute
 * form, which a server must accept too, sets the Host field to the host of the target (section 3.2.2). The `*` of
 * `OPTIONS *` stays (RFC 9110, section 9.3.7): it matches no route.
 * @returns false if the target is neither a path nor an `http:` or `https:` URL, nor the `*` of OPTIONS
 */
export function toOriginForm(request: IncomingMessage): boolean {
  const target = request.url as string
  if (target.charCodeAt(0) === 47) return true
  if (target === '*' && request.method === 'OPTIONS') return true
  const parts = /^https?:\/\/([^/?#@\s]+)([/?].*)?$/i.exec(target)
  if (parts === null || parseAuthority(parts[1] as string) === undefined) {
    request.url = '/'
    return false
  }
  const rest = parts[2] ?? '/'
  request.url = rest.startsWith('/') ? rest : `/${rest}`
  request.headers.host = parts[1] as string
  return true
}

/**
 * Refuses versions other than 1.0 and 1.1, and every Transfer-Encoding except a single `chunked` in HTTP/1.1 (RFC 9112,
 * section 6.1). The parser accepts a list that ends with `chunked`, but other codings are not supported here.
 * @throws HttpError 400 `bad_request`; for a Transfer-Encoding it is the last response on the connection
 */
export function checkFraming(ctx: CoreContext): void {
  if (ctx.request.httpVersionMajor !== 1) throw new HttpError(400, 'bad_request', 'The HTTP version must be 1.0 or 1.1')
  if (!ctx.hasBody) return
  const coding = ctx.header('transfer-encoding')
  if (coding === undefined || (coding.toLowerCase() === 'chunked' && ctx.httpVersion === '1.1')) return
  ctx.lastOnConnection = true
  throw new HttpError(400, 'bad_request', 'Transfer-Encoding must be chunked, in HTTP/1.1')
}
