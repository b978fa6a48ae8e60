/**
 * What a request gets of a file: the whole, a part, or only the news that it has not changed.
 *
 * Surprise: several ranges in one request get the whole file, which RFC 9110 section 14.2 allows. The parts of such an
 * answer would cost more than they save, and have served attacks.
 */
import { evaluatePreconditions, requestedRange, type ByteRange, type HeaderSource } from './conditional.ts'
import { HttpError } from '../http/errors.ts'
import type { Representation } from './static-file.ts'

/** An answer before it is sent. */
export interface StaticAnswer {
  readonly status: 200 | 206 | 304 | 412
  /** Name and value in turn. */
  readonly headers: readonly string[]
  /** What to send as the body; undefined for none. */
  readonly part: ByteRange | undefined
}

/**
 * Decides the answer to a GET or HEAD (RFC 9110 section 13.2.2).
 * @throws HttpError 416 `range_not_satisfiable`
 */
export function answerWith(
  representation: Representation,
  request: HeaderSource & { readonly method: string },
): StaticAnswer {
  const { commonHeaders, headers, size } = representation
  const status = evaluatePreconditions(request, representation)
  if (status === 304) return { status, headers: commonHeaders, part: undefined }
  if (status === 412) return { status, headers: ['Content-Length', '0', ...commonHeaders], part: undefined }
  if (request.method === 'HEAD') return { status, headers, part: undefined }

  const range = requestedRange(request, representation, size)
  if (range === undefined) return { status, headers, part: { start: 0, length: size } }
  if (range === 'unsatisfiable') {
    throw new HttpError(416, 'range_not_satisfiable', `The file has ${size} bytes: the range begins past its end`, {
      headers: { 'Content-Range': `bytes */${size}` },
    })
  }
  const { start, length } = range
  const contentRange = `bytes ${start}-${start + length - 1}/${size}`
  return { status: 206, headers: [...representation.headersOf(length), 'Content-Range', contentRange], part: range }
}
