/**
 * The response to a GET or HEAD for a file: the whole file, a range of it, 304 or 412. It follows RFC 9110, section 13
 * (conditional requests) and section 14 (ranges).
 *
 * Malformed header fields are ignored, as the RFC requires; only a well-formed range past the end is an error. Several
 * ranges in one request get the whole file, which section 14.2 allows: multipart responses cost more than they save,
 * and have been used for attacks. A range of an empty file gets the whole file too: clients that bound every download
 * send one, and `Content-Range` cannot express a range without bytes.
 */
import type { CoreContext } from '../http/context.ts'
import { HttpError } from '../http/errors.ts'

/** The values that a request is compared with. */
export interface Validators {
  /** With quotes, and with `W/` when it is weak. */
  readonly etag: string
  /** Milliseconds since 1970, a whole number of seconds. */
  readonly modifiedMs: number
}

/** A form in which a file is sent: plain or compressed. */
export interface Representation extends Validators {
  readonly size: number
  /** For 200, with Content-Length: alternating names and values. */
  readonly headers: readonly string[]
  /** The same for a part with this number of bytes. */
  headersOf(length: number): readonly string[]
  /** For 304 and 412; the other headers contain them too. */
  readonly commonHeaders: readonly string[]
  /** Undefined for a large file, which is read while it is sent. */
  readonly bytes: Uint8Array | undefined
}

/** A part of a representation, in bytes. */
export interface ByteRange {
  readonly start: number
  /** 1 or more. */
  readonly length: number
}

/** The part of a request that is read. */
type HeaderSource = Pick<CoreContext, 'header'>

/** A response before it is sent. */
interface StaticAnswer {
  readonly status: 200 | 206 | 304 | 412
  /** Alternating names and values. */
  readonly headers: readonly string[]
  /** The part of the file to send as the body; undefined without a body. */
  readonly part: ByteRange | undefined
}

const rangePattern = /^bytes=(\d*)-(\d*)$/i
const datePatterns = [
  /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/,
  /^[A-Z][a-z]{5,8}, \d\d-[A-Z][a-z]{2}-\d\d \d\d:\d\d:\d\d GMT$/,
  /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}$/,
]

/**
 * Decides the response to a GET or HEAD, in the order of section 13.2.2.
 * @throws HttpError 416 `range_not_satisfiable`
 */
export function answerWith(
  representation: Representation,
  request: Pick<CoreContext, 'header' | 'method'>,
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

/**
 * Evaluates the preconditions: 200 means that the request proceeds.
 * @param validators if `modifiedMs` is undefined, no date is known, and conditions on it are ignored
 */
export function evaluatePreconditions(
  request: HeaderSource,
  { etag, modifiedMs }: { readonly etag: string; readonly modifiedMs: number | undefined },
): 200 | 304 | 412 {
  const ifMatch = request.header('if-match')
  if (ifMatch !== undefined) {
    if (!listHas(ifMatch, etag, 'strong')) return 412
  } else if (modifiedMs !== undefined) {
    const unmodifiedSince = httpDate(request.header('if-unmodified-since'))
    if (unmodifiedSince !== undefined && modifiedMs > unmodifiedSince) return 412
  }
  const ifNoneMatch = request.header('if-none-match')
  if (ifNoneMatch !== undefined) return listHas(ifNoneMatch, etag, 'weak') ? 304 : 200
  if (modifiedMs === undefined) return 200
  const modifiedSince = httpDate(request.header('if-modified-since'))
  return modifiedSince !== undefined && modifiedMs <= modifiedSince ? 304 : 200
}

/**
 * Whether a GET or HEAD gets 304 in place of a 200, by the ETag or Last-Modified that its action has set. Without an
 * ETag, `If-None-Match` only matches `*`.
 */
export function isUnmodified(ctx: CoreContext): boolean {
  if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return false
  const etag = ctx.outgoingIfAny?.get('ETag') ?? ''
  const modifiedMs = httpDate(ctx.outgoingIfAny?.get('Last-Modified'))
  return evaluatePreconditions(ctx, { etag, modifiedMs }) === 304
}

/**
 * Returns the requested range.
 * @param size of the whole representation in bytes
 * @returns undefined for the whole (no range, several, a malformed or empty one, or If-Range names another
 *   version); `unsatisfiable` when it begins past the end
 */
export function requestedRange(
  request: HeaderSource,
  validators: Validators,
  size: number,
): ByteRange | 'unsatisfiable' | undefined {
  const range = request.header('range')
  if (range === undefined || size === 0 || !ifRangeHolds(request.header('if-range'), validators)) return undefined
  const match = rangePattern.exec(range.trim())
  if (match === null) return undefined
  const [, first = '', last = ''] = match
  if (first === '') {
    if (last === '') return undefined
    const length = Math.min(Number(last), size)
    return length === 0 ? 'unsatisfiable' : { start: size - length, length }
  }
  const start = Number(first)
  const end = last === '' ? Infinity : Number(last)
  if (end < start) return undefined
  return start >= size ? 'unsatisfiable' : { start, length: Math.min(end, size - 1) - start + 1 }
}

/**
 * Reads an HTTP date in any of its three forms (section 5.6.7).
 * @returns milliseconds since 1970; undefined when it is absent or malformed
 */
export function httpDate(text: string | undefined): number | undefined {
  if (text === undefined || !datePatterns.some((pattern) => pattern.test(text))) return undefined
  const time = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`)
  return Number.isNaN(time) ? undefined : time
}

/** Whether a list of entity tags contains one. Splitting at commas is enough: the tags made here contain none. */
function listHas(list: string, etag: string, comparison: 'strong' | 'weak'): boolean {
  const text = list.trim()
  if (text === '*') return true
  if (comparison === 'strong' && etag.startsWith('W/')) return false
  const wanted = comparison === 'weak' ? withoutWeakMark(etag) : etag
  return text.split(',').some((element) => {
    const tag = element.trim()
    return (comparison === 'weak' ? withoutWeakMark(tag) : tag) === wanted
  })
}

/** If-Range needs a strong match: the same strong tag, or, while the tag is strong, the same date (section 13.1.5). */
function ifRangeHolds(ifRange: string | undefined, validators: Validators): boolean {
  if (ifRange === undefined) return true
  if (validators.etag.startsWith('W/')) return false
  return ifRange === validators.etag || httpDate(ifRange) === validators.modifiedMs
}

function withoutWeakMark(tag: string): string {
  return tag.startsWith('W/') ? tag.slice(2) : tag
}
