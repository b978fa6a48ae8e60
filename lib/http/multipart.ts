/**
 * Parses the framing of a multipart body (RFC 2046 section 5.1.1): chunks in, events out. It is independent of forms.
 *
 * A delimiter is a line that begins with `--boundary`, including the CRLF before it. So the parser searches for
 * CRLF `--boundary`, and puts a CRLF before the first byte. When a chunk ends within a possible delimiter, those few
 * bytes wait for the next chunk; no boundary has a CR, so they begin at the first CR near the end. An incomplete part
 * header waits too, in a separate buffer, so that with one-byte chunks it is not searched and copied repeatedly.
 *
 * By the RFC a line that merely begins with the boundary is a delimiter too. The rest of such a line is refused as
 * invalid framing, not treated as data.
 */
import { HttpError } from './errors.ts'

/** An event: the header of a part, then its data in any number of pieces, then its end. */
export type MultipartEvent =
  | { readonly kind: 'part'; readonly header: Buffer }
  | { readonly kind: 'data'; readonly bytes: Buffer }
  | { readonly kind: 'end' }

type State = 'preamble' | 'delimiter' | 'closing' | 'padding' | 'line feed' | 'header' | 'data' | 'epilogue'

/** The maximum number of parts. */
export const maxParts = 1000
/** The maximum size of a part header, without the empty line at its end. */
export const maxPartHeaderBytes = 8192

const dash = 0x2d
const carriageReturn = 0x0d
const lineFeed = 0x0a
const space = 0x20
const tab = 0x09
const headerEnd = Buffer.of(carriageReturn, lineFeed, carriageReturn, lineFeed)
const nothing: Buffer = Buffer.alloc(0)

/** Parses one body. Nested parts are not parsed. */
export class MultipartParser {
  readonly #delimiter: Buffer
  #state: State = 'preamble'
  #waiting: Buffer = Buffer.of(carriageReturn, lineFeed)
  /** The incomplete header, in the first `#headerLength` bytes. */
  #header = nothing
  #headerLength = 0
  #parts = 0

  /**
   * @param boundary 1 to 70 printable ASCII characters, not ending with a space (slightly wider than RFC 2046, 5.1.1)
   * @throws HttpError 400 `bad_form` for any other
   */
  constructor(boundary: string) {
    if (!/^[\x20-\x7e]{0,69}[\x21-\x7e]$/.test(boundary)) {
      throw badFraming('the boundary in its Content-Type must be 1 to 70 printable ASCII characters')
    }
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
  }

  /**
   * Parses the next chunk. The events refer to its bytes, so it must not be changed while they are in use.
   * @throws HttpError 400 `bad_form` for invalid framing, too many parts or a header that is too long; do not call the
   *   parser afterwards
   */
  push(chunk: Buffer): MultipartEvent[] {
    const events: MultipartEvent[] = []
    const bytes = this.#waiting.length === 0 ? chunk : Buffer.concat([this.#waiting, chunk])
    this.#waiting = nothing
    let at = 0
    while (at < bytes.length && this.#state !== 'epilogue') {
      if (this.#state === 'data' || this.#state === 'preamble') at = this.#search(bytes, at, events)
      else if (this.#state === 'header') at = this.#readHeader(bytes, at, events)
      else this.#afterDelimiter(bytes[at++])
    }
    return events
  }

  /**
   * Call when the body has ended.
   * @throws HttpError 400 `bad_form` if the closing delimiter is missing
   */
  end(): void {
    if (this.#state === 'epilogue') return
    if (this.#state === 'preamble') throw badFraming('its boundary does not occur in it')
    throw badFraming('it ends before its closing delimiter')
  }

  #search(bytes: Buffer, at: number, events: MultipartEvent[]): number {
    const found = bytes.indexOf(this.#delimiter, at)
    const end = found < 0 ? this.#certainEnd(bytes, at) : found
    if (this.#state === 'data' && end > at) events.push({ kind: 'data', bytes: bytes.subarray(at, end) })
    if (found < 0) {
      if (end < bytes.length) this.#waiting = bytes.subarray(end)
      return bytes.length
    }
    if (this.#state === 'data') events.push({ kind: 'end' })
    this.#state = 'delimiter'
    return found + this.#delimiter.length
  }

  #certainEnd(bytes: Buffer, at: number): number {
    const first = bytes.indexOf(carriageReturn, Math.max(at, bytes.length - this.#delimiter.length + 1))
    return first < 0 ? bytes.length : first
  }

  #afterDelimiter(byte: number | undefined): void {
    if (this.#state === 'delimiter' && byte === dash) this.#state = 'closing'
    else if (this.#state === 'closing' && byte === dash) this.#state = 'epilogue'
    else if (this.#state === 'line feed' && byte === lineFeed) this.#beginPart()
    else if (this.#state === 'closing' || this.#state === 'line feed') throw badDelimiter()
    else if (byte === carriageReturn) this.#state = 'line feed'
    else if (byte === space || byte === tab) this.#state = 'padding'
    else throw badDelimiter()
  }

  #beginPart(): void {
    this.#parts += 1
    if (this.#parts > maxParts) throw badFraming(`it has more than ${maxParts} parts`)
    this.#state = 'header'
  }

  #readHeader(bytes: Buffer, at: number, events: MultipartEvent[]): number {
    const found = this.#headerLength === 0 ? bytes.indexOf(headerEnd, at) : -1
    if (found < 0 || found - at > maxPartHeaderBytes) return this.#holdHeader(bytes, at, events)
    this.#endHeader(bytes.subarray(at, found), events)
    return found + headerEnd.length
  }

  /** Adds to the incomplete header, and emits it when complete. */
  #holdHeader(bytes: Buffer, at: number, events: MultipartEvent[]): number {
    const held = this.#headerLength
    // A new buffer for each header, since the event refers to it.
    if (held === 0) this.#header = Buffer.allocUnsafe(maxPartHeaderBytes + headerEnd.length)
    this.#headerLength += bytes.copy(this.#header, held, at)
    const header = this.#header.subarray(0, this.#headerLength)
    const found = header.indexOf(headerEnd, Math.max(0, held - headerEnd.length + 1))
    if (found >= 0) {
      this.#endHeader(header.subarray(0, found), events)
      return at + found + headerEnd.length - held
    }
    if (header.length < this.#header.length) return bytes.length
    throw badFraming(`the header of part ${this.#parts} is longer than ${maxPartHeaderBytes} bytes`)
  }

  #endHeader(header: Buffer, events: MultipartEvent[]): void {
    events.push({ kind: 'part', header })
    this.#header = nothing
    this.#headerLength = 0
    this.#state = 'data'
  }
}

function badDelimiter(): HttpError {
  return badFraming('a delimiter must be followed by a line end, or by "--" after the last part')
}

function badFraming(reason: string): HttpError {
  return new HttpError(400, 'bad_form', `Cannot read the multipart form: ${reason}`)
}
