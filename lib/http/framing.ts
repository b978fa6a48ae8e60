/**
 * How the body of a request is framed (RFC 9112, section 6). What two readers could take for different requests is
 * refused, though Node's parser takes it.
 */
import type { CoreContext } from './context.ts'
import { HttpError } from './errors.ts'

/** Whether these two fields of a request announce a body (RFC 9112, section 6.3). */
export function announcesBody(contentLength: string | undefined, transferEncoding: string | undefined): boolean {
  return transferEncoding !== undefined || Number(contentLength ?? 0) > 0
}

/**
 * Refuses versions other than 1.0 and 1.1, and every Transfer-Encoding but `chunked` alone in HTTP/1.1 (RFC 9112,
 * section 6.1). The parser takes a list that ends with `chunked`, whose other codings nobody here undoes.
 * @throws HttpError 400 `bad_request`; of a Transfer-Encoding it is the last answer on its connection
 */
export function checkFraming(ctx: CoreContext): void {
  if (ctx.request.httpVersionMajor !== 1) throw new HttpError(400, 'bad_request', 'The HTTP version must be 1.0 or 1.1')
  if (!ctx.hasBody) return
  const coding = ctx.header('transfer-encoding')
  if (coding === undefined || (coding.toLowerCase() === 'chunked' && ctx.httpVersion === '1.1')) return
  ctx.lastOnConnection = true
  throw new HttpError(400, 'bad_request', 'Transfer-Encoding takes chunked alone, in HTTP/1.1')
}
