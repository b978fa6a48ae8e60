/**
 * The target of a request and the framing of its body (RFC 9112, sections 3.2 and 6). Requests that two readers could
 * read in different ways are refused, even when Node's parser accepts them.
 */
import type { IncomingMessage } from 'node:http'
import type { CoreContext } from './context.ts'
import { HttpError } from './errors.ts'
import { parseAuthority } from './host.ts'

/**
 * Brings the target of a request into origin form, a path, as nearly all are: `request.url` begins with '/' afterwards.
 * From the absolute form, which a server must take too, the Host field becomes the host of the target (section 3.2.2).
 * The `*` of `OPTIONS *` stays (RFC 9110, section 9.3.7): it is the path of no route.
 * @returns false when the target is neither a path nor an `http:` or `https:` URL, nor the `*` of OPTIONS
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
 * Refuses versions other than 1.0 and 1.1, and every Transfer-Encoding but `chunked` alone in HTTP/1.1 (RFC 9112,
 * section 6.1). The parser accepts a list that ends with `chunked`, but the other codings are not decoded here.
 * @throws HttpError 400 `bad_request`; for a Transfer-Encoding it is the last answer on its connection
 */
export function checkFraming(ctx: CoreContext): void {
  if (ctx.request.httpVersionMajor !== 1) throw new HttpError(400, 'bad_request', 'The HTTP version must be 1.0 or 1.1')
  if (!ctx.hasBody) return
  const coding = ctx.header('transfer-encoding')
  if (coding === undefined || (coding.toLowerCase() === 'chunked' && ctx.httpVersion === '1.1')) return
  ctx.lastOnConnection = true
  throw new HttpError(400, 'bad_request', 'Transfer-Encoding takes chunked alone, in HTTP/1.1')
}
