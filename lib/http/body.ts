/**
 * The body of one request: read once, on first use, and cached.
 *
 * Surprise: the bytes of a multipart form are not kept, so after `form()` such a body has no `bytes()`. `form()` after
 * `bytes()` works.
 */
import type { IncomingMessage } from 'node:http'
import { ByteCollector } from './byte-collector.ts'
import { charsetOf, decodeText } from './charset.ts'
import { HttpError } from './errors.ts'
import { Form, type MoveFile } from './form.ts'
import { parseJson, type ExplainJson } from './json.ts'
import { MultipartForm } from './multipart-form.ts'
import { parseParameters, type ValueWithParameters } from './parameters.ts'
import { readChunks, type Reading, type ReadingWait } from './read-chunks.ts'
import { announcesBody, fieldOf } from './request-fields.ts'
import { parseUrlencoded } from './urlencoded.ts'

/** How a body is read. */
export interface BodyOptions {
  /** The maximum size in bytes, including the framing of a multipart form. */
  readonly maxBytes: number
  /** Called once before a body is read that has not fully arrived. Throws HttpError 503. */
  readonly onWait?: () => ReadingWait | undefined
  /** Called once before a body is read: for `100 Continue`. */
  readonly onStart?: () => void
  /** The parent of temporary upload folders; default: the system's temporary folder. */
  readonly temporaryFolder?: string | undefined
  /** Moves uploaded files. Without it they cannot be moved. */
  readonly moveFile?: MoveFile | undefined
  /** Explains a body that is not JSON; see `parseJson`. */
  readonly explainJson?: ExplainJson | undefined
}

interface ParsedType {
  readonly header: string
  readonly parsed: ValueWithParameters | undefined
}

/** The last parsed Content-Type: an application's requests nearly all have the same. */
let lastType: ParsedType = { header: '', parsed: undefined }

/** Buffered bytes go to the multipart parser in pieces of this size, so that a file is not buffered a second time. */
const pieceBytes = 65_536
const urlencoded = 'application/x-www-form-urlencoded'
const multipart = 'multipart/form-data'
const formTypes: readonly (string | undefined)[] = [urlencoded, multipart]

/**
 * The body of a request. Methods may be called repeatedly, concurrently and in any order, except `bytes()` after a
 * multipart form. Every promise rejects with HttpError, and does no harm if it is not awaited:
 * - 413 `body_too_large`: at once by Content-Length, else when more bytes arrive; the rest is not read
 * - 415 `unsupported_encoding`: a Content-Encoding other than identity
 * - 415 `unsupported_media_type`: an unsupported charset or type
 * - 400 `client_closed`: the client disconnected, or the request ended, before the body was complete
 * - 500 `internal_error`: an upload cannot be written to disk
 */
export class Body {
  readonly #request: IncomingMessage
  readonly #options: BodyOptions
  readonly #exists: boolean
  #bytes: Promise<Buffer> | undefined
  #text: Promise<string> | undefined
  #json: Promise<unknown> | undefined
  #form: Promise<Form> | undefined
  /** The form, once it has been read. */
  arrivedForm: Form | undefined = undefined
  #upload: MultipartForm | undefined
  #reading: Reading | undefined
  #received = 0
  #tooLarge = false
  /** Whether part of the body will never arrive. */
  #stopped = false
  #disposed = false

  /** @param request whose body has not been read */
  constructor(request: IncomingMessage, options: BodyOptions) {
    this.#request = request
    this.#options = options
    this.#exists = announcesBody(fieldOf(request, 'content-length'), fieldOf(request, 'transfer-encoding'))
  }

  /** Whether nothing is left to read: there is no body, or all of it has arrived, been read and was not too large. */
  get consumed(): boolean {
    if (!this.#exists) return true
    return !this.#tooLarge && this.#request.complete && this.#request.readableLength === 0
  }

  /** The number of bytes read. */
  get received(): number {
    return this.#received
  }

  /** The Content-Type; undefined if missing or malformed. */
  get contentType(): ValueWithParameters | undefined {
    const header = fieldOf(this.#request, 'content-type')
    if (header === undefined) return undefined
    if (header !== lastType.header) lastType = { header, parsed: parseParameters(header) }
    return lastType.parsed
  }

  /** Whether the Content-Type is a form type. */
  get isForm(): boolean {
    return formTypes.includes(this.contentType?.value)
  }

  /** Reads the bytes; empty without a body. Rejects with 415 once a multipart form is being read. */
  bytes(): Promise<Buffer> {
    return handled(this.#wholeBytes())
  }

  /** Reads text in the charset of the Content-Type: UTF-8, US-ASCII, ISO-8859-1. Invalid: 400 `bad_request`. */
  text(): Promise<string> {
    return (this.#text ??= handled(this.#readText()))
  }

  /** Reads JSON, whatever the Content-Type; returns the same object each time. Invalid or empty: 400 `bad_json`. */
  json(): Promise<unknown> {
    return (this.#json ??= handled(this.#readJson()))
  }

  /**
   * Reads a form, urlencoded or multipart by its Content-Type; an empty form without a body. Invalid: 400 `bad_form`;
   * any other type: 415 `unsupported_media_type`.
   */
  form(): Promise<Form> {
    return (this.#form ??= handled(this.#readForm()))
  }

  /** Aborts current and later reads of an incomplete body. A body that has fully arrived can still be read. */
  stop(): void {
    if (!this.#exists || this.#request.complete) return
    this.#stopped = true
    this.#reading?.stop()
    this.#request.resume()
  }

  /**
   * Aborts a read and removes temporary files. Call it when the request has ended, for whatever reason; it may be
   * called at any time and again. Returns a promise only if there may be files; it rejects when a file cannot be
   * removed.
   */
  dispose(): Promise<void> | undefined {
    this.#disposed = true
    this.#reading?.stop()
    const upload = this.#upload
    const form = this.#form
    if (upload === undefined || form === undefined) return undefined
    const discard = (): Promise<void> => upload.discard()
    return handled(form.then(discard, discard))
  }

  #wholeBytes(): Promise<Buffer> {
    return (this.#bytes ??= this.#readBytes())
  }

  async #readBytes(): Promise<Buffer> {
    if (this.#upload !== undefined) {
      throw unsupportedType('it was read as a multipart form, whose bytes are not kept: read the bytes before the form')
    }
    const collector = new ByteCollector()
    const add = (chunk: Buffer): undefined => void collector.add(chunk)
    await this.#read(add, () => collector.length)
    return collector.take()
  }

  async #readText(): Promise<string> {
    const charset = charsetOf(this.contentType?.parameters.get('charset'))
    const text = decodeText(await this.#wholeBytes(), charset)
    if (text === undefined) throw new HttpError(400, 'bad_request', 'Cannot read the body as text: it is not UTF-8')
    return text
  }

  async #readJson(): Promise<unknown> {
    const charset = charsetOf(this.contentType?.parameters.get('charset'))
    const text = decodeText(await this.#wholeBytes(), charset)
    if (text === undefined) throw new HttpError(400, 'bad_json', 'Cannot read the body as JSON: it is not UTF-8')
    return parseJson(text, this.#options.explainJson)
  }

  async #readForm(): Promise<Form> {
    if (!this.#exists) return (this.arrivedForm = new Form(new Map(), []))
    const type = this.contentType
    const sent = fieldOf(this.#request, 'content-type')
    if (type === undefined && sent !== undefined) {
      throw unsupportedType(`its Content-Type is malformed: it is ${JSON.stringify(sent.slice(0, 100))}`)
    }
    if (type?.value === multipart) return this.#readMultipart(type.parameters.get('boundary') ?? '')
    if (type?.value !== urlencoded) throw unsupportedType(`a form must be ${urlencoded} or ${multipart}`)
    const charset = charsetOf(type.parameters.get('charset'))
    return (this.arrivedForm = parseUrlencoded(await this.#wholeBytes(), charset))
  }

  async #readMultipart(boundary: string): Promise<Form> {
    if (this.#disposed || this.#stopped) throw incomplete()
    const upload = new MultipartForm(
      boundary,
      this.#options.temporaryFolder ?? process.getBuiltinModule('node:os').tmpdir(),
      this.#options.moveFile ?? (() => Promise.reject(new Error('This server moves no uploaded files'))),
    )
    this.#upload = upload
    if (this.#bytes === undefined) {
      await this.#read((chunk) => upload.write(chunk), () => upload.heldBytes)
    } else {
      const bytes = await this.#bytes
      for (let at = 0; at < bytes.length; at += pieceBytes) await upload.write(bytes.subarray(at, at + pieceBytes))
    }
    return (this.arrivedForm = upload.end())
  }

  /**
   * Reads to the end. Throws at once for a body that cannot be read.
   * @param heldBytes returns the bytes of the body that are in memory
   */
  #read(accept: (chunk: Buffer) => Promise<void> | undefined, heldBytes: () => number): Promise<void> | undefined {
    const request = this.#request
    if (!this.#exists) return undefined
    this.#checkReadable()
    const wait = request.complete ? undefined : this.#options.onWait?.()
    this.#options.onStart?.()
    if (request.complete) return this.#readArrived(accept)
    const counted = (chunk: Buffer): Promise<void> | undefined => {
      wait?.hold(heldBytes() + chunk.length)
      this.#count(chunk.length)
      return accept(chunk)
    }
    this.#reading = readChunks(request, counted, incomplete, wait)
    return this.#reading.done
  }

  /** Reads a body that has fully arrived, without events, even if its client has disconnected since. */
  async #readArrived(accept: (chunk: Buffer) => Promise<void> | undefined): Promise<void> {
    const { readableLength } = this.#request
    if (readableLength === 0) return
    const bytes = this.#request.read(readableLength) as Buffer // `read()` would also emit `end`, in two more ticks.
    this.#count(bytes.length)
    for (let at = 0; at < bytes.length; at += pieceBytes) await accept(bytes.subarray(at, at + pieceBytes))
  }

  #count(bytes: number): void {
    this.#received += bytes
    if (this.#received > this.#options.maxBytes) throw this.#refuseSize()
  }

  #checkReadable(): void {
    const request = this.#request
    if (this.#disposed) throw incomplete()
    if (request.readableDidRead) throw new Error('Cannot read the body: other code has read from the request before')
    if (this.#stopped || (request.destroyed && !request.complete)) throw incomplete()
    const encoding = fieldOf(request, 'content-encoding')?.trim().toLowerCase() ?? ''
    if (encoding !== '' && encoding !== 'identity') {
      throw new HttpError(415, 'unsupported_encoding', 'Cannot read the body: it must have no Content-Encoding', {
        headers: { 'Accept-Encoding': 'identity' },
      })
    }
    if (Number(fieldOf(request, 'content-length') ?? 0) > this.#options.maxBytes) throw this.#refuseSize()
  }

  #refuseSize(): HttpError {
    this.#tooLarge = true
    const { maxBytes } = this.#options
    return new HttpError(413, 'body_too_large', `The body is too large: the limit is ${maxBytes / 1024} KiB`)
  }
}

function handled<T>(promise: Promise<T>): Promise<T> {
  // The caller gets the rejection; a caller that does not await it must not end the process.
  promise.catch(ignore)
  return promise
}

function ignore(): void {}

function incomplete(): HttpError {
  return new HttpError(400, 'client_closed', 'Cannot read the body: the request ended before it was complete')
}

function unsupportedType(reason: string): HttpError {
  return new HttpError(415, 'unsupported_media_type', `Cannot read the body: ${reason}`)
}
