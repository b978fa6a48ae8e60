/**
 * Replies from the return value of an action: text, JSON, bytes, a Blob, a `Response` (Fetch standard), a readable
 * stream or an async iterable.
 *
 * A stream is a parked reply: it takes a stream worker, waits while the client does not read, and ends at
 * `pool_rest.stream_timeout_s`. Data that a source yields within one turn of the event loop is read first: if that is
 * the whole body, as for `Response.json()`, the reply has a length and takes no worker.
 *
 * The header section waits for the first piece, so that a stream that fails before it is a 500. A later failure or
 * time-out breaks the connection: with a normal end, the client would mistake an incomplete file for a complete one. So
 * does a stream whose length differs from its Content-Length.
 */
import { Readable } from 'node:stream'
import { types } from 'node:util'
import type { MaybePromise } from '../base/maybe-promise.ts'
import type { CoreContext } from './context.ts'
import { unserved } from './errors.ts'
import { ParkedReply, type EndReason } from './parked.ts'
import {
  BodyReply,
  bytesType,
  emptyReply,
  htmlType,
  isReply,
  jsonReply,
  StreamReply,
  type ReadyReply,
  type Reply,
} from './reply.ts'

/** The pieces of a body, in order. */
interface Source {
  next(): Promise<{ readonly done?: boolean | undefined; readonly value?: unknown }>
  /** Ends the source early. Does not throw. */
  cancel(): void
}

/** A Blob up to this size is read completely before the reply. */
const maxBlobBytes = 2 ** 20
/** The maximum of bytes and pieces that are read before a stream begins. */
const maxReadyBytes = 65_536
const maxReadyPieces = 64
/** Hop-by-hop fields (RFC 9110, section 7.6.1). */
const hopByHop = /^(?:connection|keep-alive|proxy-connection|te|trailer|transfer-encoding|upgrade)$/

const adviceOn: Readonly<Record<string, string>> = {
  null: 'return ctx.fail(404) when there is nothing to show, or ctx.json(null)',
  number: 'return ctx.json(value), or String(value)',
  bigint: 'return String(value)',
  boolean: 'return ctx.json(value), or String(value)',
  symbol: 'return text, an object or bytes',
  function: 'call it and return what it returns',
}

/**
 * Converts an action's return value to a reply, and stores it in the context: undefined keeps the reply so far, or
 * makes an empty 204; a string is HTML, bytes are `application/octet-stream`, and objects and arrays are JSON, except
 * those listed at the top of this file.
 * @throws TypeError for other values, with advice, and for a `Response` that cannot be sent
 */
export function replyOf(ctx: CoreContext, value: unknown): Reply {
  if (value === undefined) ctx.reply ??= emptyReply
  else ctx.reply = replyOfValue(ctx, value)
  return ctx.reply
}

/** Cancels a stream, or the body of a `Response`, that an action returned and that will not be sent. */
export function dropStream(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  if (value instanceof Readable) value.on('error', ignore).destroy()
  else if ('cancel' in value) void (value as ReadableStream).cancel().catch(ignore)
  else if ('body' in value && Reflect.get(value, Symbol.toStringTag) === 'Response') dropStream(value.body)
}

function replyOfValue(ctx: CoreContext, value: unknown): Reply {
  if (typeof value === 'object' && value !== null) {
    if (isReply(value)) return value
    const prototype: unknown = Object.getPrototypeOf(value)
    const isPlain = prototype === Object.prototype || prototype === Array.prototype
    return isPlain && !(Symbol.asyncIterator in value) ? jsonReply(value) : replyOfObject(ctx, value)
  }
  if (typeof value === 'string') return new BodyReply(htmlType, value)
  throw notAReply(value === null ? 'null' : `a ${typeof value}`, adviceOn[value === null ? 'null' : typeof value] ?? '')
}

function replyOfObject(ctx: CoreContext, value: object): Reply {
  if (types.isAnyArrayBuffer(value)) return new BodyReply(bytesType, new Uint8Array(value))
  if (ArrayBuffer.isView(value)) {
    return new BodyReply(bytesType, new Uint8Array(value.buffer, value.byteOffset, value.byteLength))
  }
  // By its tag: accessing the global `Response` would load all of `fetch`, which an application may never use.
  const { [Symbol.toStringTag]: tag } = value as { readonly [Symbol.toStringTag]?: unknown }
  if (tag === 'Response') return replyOfResponse(ctx, value as Response)
  if (tag === 'Blob' || tag === 'File') {
    const blob = value as Blob
    return new StreamedReply(ctx, () => sourceOf(blob.stream()), bytesType, blob.size)
  }
  if (value instanceof Readable || Symbol.asyncIterator in value || tag === 'ReadableStream') {
    if (value instanceof Readable) value.on('error', ignore) // It may fail when it is no longer read.
    return new StreamedReply(ctx, () => sourceOf(value), bytesType)
  }
  if (types.isMap(value)) throw notAReply('a Map', 'return Object.fromEntries(map)')
  if (types.isSet(value)) throw notAReply('a Set', 'return [...set]')
  if (types.isNativeError(value)) throw notAReply('an Error', 'throw it, or return ctx.fail(status, code, message)')
  return jsonReply(value)
}

/** Makes the error for an action with an unsupported return value. @param what the kind of value, such as `a number` */
function notAReply(what: string, advice: string): TypeError {
  return new TypeError(`An action returned ${what}, which cannot be sent: ${advice}`)
}

/** Copies status and fields to the context, so that middleware can change them while the chain unwinds. */
function replyOfResponse(ctx: CoreContext, response: Response): Reply {
  const { status, headers, body, url } = response
  if (status < 200) throw new TypeError(`An action returned a Response with status ${status}: it must be 200 to 599`)
  if (response.bodyUsed || body?.locked === true) {
    throw new TypeError('An action returned a Response whose body has been read already: return a new one, or a clone')
  }
  const named = (headers.get('connection') ?? '').toLowerCase().split(/[\s,]+/)
  const isDecoded = url !== '' && headers.has('content-encoding') // By `fetch`: its length is no longer known.
  for (const [name, value] of headers) {
    if (hopByHop.test(name) || named.includes(name)) continue
    if (isDecoded && (name === 'content-encoding' || name === 'content-length')) continue
    if (name === 'set-cookie') ctx.outgoing.append('Set-Cookie', value)
    else ctx.outgoing.set(name, value)
  }
  ctx.status = status
  return body === null ? emptyReply : new StreamedReply(ctx, () => sourceOf(body), '')
}

class StreamedReply extends ParkedReply {
  readonly #open: () => Source
  /** The Content-Type unless the context has one; '' for none. */
  readonly #type: string
  readonly #length: number | undefined
  #source: Source | undefined = undefined
  /** Pieces that were read before the stream began, and the pending read of the next. */
  #pieces: Uint8Array[] = []
  #next: ReturnType<Source['next']> | undefined = undefined
  #hasBegun = false

  /** @param length in bytes, if known */
  constructor(ctx: CoreContext, open: () => Source, type: string, length?: number) {
    super(ctx, Infinity)
    this.#open = open
    this.#type = type
    this.#length = length
    // For every end: the chain fails, the pool refuses, the client disconnects, the stream fails or ends.
    if (ctx.closed) this.#cancel()
    else ctx.response.once('close', () => this.#cancel())
  }

  get kind() {
    return 'sse' as const
  }

  ready(): MaybePromise<ReadyReply | undefined> {
    return this.#isUnmodified() ? this.#notModified() : this.#readFirst()
  }

  async #readFirst(): Promise<ReadyReply | undefined> {
    const source = (this.#source = this.#open())
    const isWhole = this.#length !== undefined && this.#length <= maxBlobBytes
    const turn = new Promise<undefined>((resolve) => setImmediate(resolve, undefined))
    let length = 0
    while (isWhole || (length <= maxReadyBytes && this.#pieces.length < maxReadyPieces)) {
      this.#next = source.next()
      this.#next.catch(() => {}) // It is awaited here, or later by #send().
      const result = await (isWhole ? this.#next : Promise.race([this.#next, turn]))
      if (result === undefined || this.isOver) return undefined
      this.#next = undefined
      if (result.done === true) {
        if (length !== (this.#announced ?? length)) {
          this.#next = Promise.resolve(result)
          return undefined // `#send` cuts it.
        }
        this.ctx.parked = undefined // It did not wait, so its duration counts like any other.
        return new BodyReply(this.#type, Buffer.concat(this.#pieces))
      }
      const piece = bytesOf(result.value)
      this.#pieces.push(piece)
      length += piece.length
    }
    return undefined
  }

  /** A client that has ended its side may still read the stream to its end. */
  override get needsClient(): boolean {
    return false
  }

  waiting(): void {}

  started(): undefined {
    void this.#send()
  }

  ended(reason: EndReason): ReadyReply | undefined {
    if (reason === 'left') return undefined
    if (reason === 'head') {
      return this.#isUnmodified() ? this.#notModified() : this.#beginning((response) => response.end())
    }
    if (this.#hasBegun) return void this.ctx.response.destroy()
    throw unserved('The stream could not begin in time')
  }

  /** The body's length in bytes, if it is known before it is read. */
  get #announced(): number | undefined {
    return this.ctx.outgoingIfAny?.length ?? this.#length
  }

  #isUnmodified(): boolean {
    return (this.ctx.status === 0 || this.ctx.status === 200) && this.ctx.isUnmodified
  }

  #notModified(): ReadyReply {
    this.#cancel()
    this.ctx.status = 304
    return emptyReply
  }

  /** Opens a source that was never read, to cancel it: it may hold a file or a connection. */
  #cancel(): void {
    try {
      this.#source ??= this.#open()
      this.#source.cancel()
    } catch {
      // Other code is reading the stream, and ends it. If it was to be sent, that has already failed.
    }
  }

  #beginning(send: StreamReply['send']): StreamReply {
    const headers: string[] = []
    if (this.#type !== '' && this.ctx.outgoingIfAny?.get('Content-Type') === undefined) {
      headers.push('Content-Type', this.#type)
    }
    if (this.#announced !== undefined) headers.push('Content-Length', String(this.#announced))
    return new StreamReply(this.ctx.status === 0 ? 200 : this.ctx.status, headers, 0, send)
  }

  async #send(): Promise<void> {
    const source = this.#source as Source // ready() has opened it.
    try {
      if (this.#pieces.length > 0) await this.#write(Buffer.concat(this.#pieces))
      this.#pieces = []
      while (!this.isOver) {
        const { done, value } = await (this.#next ?? source.next())
        this.#next = undefined
        if (this.isOver) return
        if (done === true) {
          this.#begin()
          if (this.ctx.sentBytes < (this.#announced ?? 0)) return this.#cut('fewer')
          this.ctx.response.end()
          this.answer(undefined)
          return
        }
        await this.#write(bytesOf(value))
      }
    } catch (error) {
      if (!this.isOver || !isPrematureClose(error)) this.fail(error)
    }
  }

  /** Writes the header section, once. */
  #begin(): void {
    if (this.#hasBegun) return
    this.#hasBegun = true
    this.begin(this.#beginning(() => {}))
  }

  /** Ends a stream that does not keep its length: the client must not mistake it for a complete one. */
  #cut(which: 'fewer' | 'more'): void {
    const { ctx } = this
    const problem = `the stream has ${which} bytes than its Content-Length, ${this.#announced}: the connection was cut`
    ctx.services.misuse?.(ctx, `${problem}; leave the field out where the length is not known`)
    ctx.response.destroy()
  }

  /** Waits while the client does not read. When it disconnects, the promise is garbage-collected with the response. */
  #write(piece: Uint8Array): MaybePromise<void> {
    const { response } = this.ctx
    this.#begin()
    if (this.isOver) return
    if (this.ctx.sentBytes + piece.length > (this.#announced ?? Infinity)) return this.#cut('more')
    this.ctx.sentBytes += piece.length
    if (response.write(piece)) return
    return new Promise((resolve) => response.once('drain', resolve))
  }
}

function bytesOf(piece: unknown): Uint8Array {
  if (typeof piece === 'string') return Buffer.from(piece)
  if (piece instanceof Uint8Array) return piece
  if (types.isAnyArrayBuffer(piece)) return new Uint8Array(piece)
  const kind = piece === null ? 'null' : typeof piece
  throw new TypeError(`A stream that an action returned yielded a value of type ${kind}: it must yield text or bytes`)
}

function ignore(): void {}

/** Whether a Node stream was destroyed before its end, as happens when the client disconnects. */
function isPrematureClose(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE'
}

function sourceOf(value: object): Source {
  if (value instanceof Readable) {
    const iterator = value[Symbol.asyncIterator]()
    return { next: () => iterator.next(), cancel: () => void value.destroy() }
  }
  if (!(Symbol.asyncIterator in value) || 'getReader' in value) {
    const reader = (value as ReadableStream).getReader()
    return { next: () => reader.read(), cancel: () => void reader.cancel().catch(ignore) }
  }
  const iterator = (value as AsyncIterable<unknown>)[Symbol.asyncIterator]()
  return {
    next: async () => iterator.next(),
    // A waiting generator ends when it continues: `ctx.signal` notifies it sooner.
    cancel: () => void Promise.resolve(iterator.return?.()).catch(ignore),
  }
}
