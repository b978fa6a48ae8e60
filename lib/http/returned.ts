/**
 * Replies made of what an action returns: text, JSON, bytes, a Blob, a `Response` (Fetch standard), a readable stream
 * or an async iterable.
 *
 * A stream is a parked reply: it takes a worker of the streams, waits while the client does not read, and ends at
 * `pool_rest.stream_timeout_s`. What a source gives within one turn of the event loop is read first: when that is all
 * of it, such as the body of `Response.json()`, the reply has its length and takes no worker.
 *
 * The header section waits for the first piece, so that a stream that fails before it is a 500. One that fails later,
 * or is ended by its time-out, breaks the connection: if it ended regularly, the client would take an incomplete file
 * for a complete one.
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

/** The pieces of a body, one after the other. */
interface Source {
  next(): Promise<{ readonly done?: boolean | undefined; readonly value?: unknown }>
  /** Ends the source early. Does not throw. */
  cancel(): void
}

/** A Blob up to this size is read whole. */
const mostBlobBytes = 2 ** 20
/** The most bytes and pieces that are read before a stream begins. */
const mostReadyBytes = 65_536
const mostReadyPieces = 64
/** Fields that concern one connection (RFC 9110, section 7.6.1), and the length, which the server sets. */
const hopByHop = /^(?:connection|content-length|keep-alive|proxy-connection|te|trailer|transfer-encoding|upgrade)$/

const adviceOn: Readonly<Record<string, string>> = {
  null: 'return ctx.fail(404) when there is nothing to show, or ctx.json(null)',
  number: 'return ctx.json(value), or String(value)',
  bigint: 'return String(value)',
  boolean: 'return ctx.json(value), or String(value)',
  symbol: 'return text, an object or bytes',
  function: 'call it and return what it returns',
}

/**
 * Makes the reply of an action's return value, and keeps it as the context's: undefined keeps the reply so far, or
 * makes an empty 204; a string is HTML, bytes are `application/octet-stream`, and objects and arrays are JSON, except
 * those that the head of this file lists.
 * @throws TypeError for other values, with advice, and for a `Response` that cannot be sent
 */
export function replyOf(ctx: CoreContext, value: unknown): Reply {
  if (value === undefined) ctx.reply ??= emptyReply
  else ctx.reply = replyOfValue(ctx, value)
  return ctx.reply
}

/** Ends a stream, or the body of a `Response`, that an action returned and nobody is to read. */
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
  // By its tag: looking at the global `Response` would load all of `fetch`, which an application may never use.
  const { [Symbol.toStringTag]: tag } = value as { readonly [Symbol.toStringTag]?: unknown }
  if (tag === 'Response') return replyOfResponse(ctx, value as Response)
  if (tag === 'Blob' || tag === 'File') {
    const blob = value as Blob
    return new StreamedReply(ctx, () => sourceOf(blob.stream()), bytesType, blob.size)
  }
  if (value instanceof Readable || Symbol.asyncIterator in value || tag === 'ReadableStream') {
    if (value instanceof Readable) value.on('error', ignore) // It may fail when nobody reads it any more.
    return new StreamedReply(ctx, () => sourceOf(value), bytesType)
  }
  if (types.isMap(value)) throw notAReply('a Map', 'return Object.fromEntries(map)')
  if (types.isSet(value)) throw notAReply('a Set', 'return [...set]')
  if (types.isNativeError(value)) throw notAReply('an Error', 'throw it, or return ctx.fail(status, code, message)')
  return jsonReply(value)
}

/** The error of an action that returned a value of another kind. @param what names it, as in `a number` */
function notAReply(what: string, advice: string): TypeError {
  return new TypeError(`An action returned ${what}, of which no reply can be made: ${advice}`)
}

/** Takes over status and fields, so that middleware can change them while the chain unwinds. */
function replyOfResponse(ctx: CoreContext, response: Response): Reply {
  const { status, headers, body, url } = response
  if (status < 200) throw new TypeError(`An action returned a Response with status ${status}: it must be 200 to 599`)
  if (response.bodyUsed || body?.locked === true) {
    throw new TypeError('An action returned a Response whose body has been read already: return a new one, or a clone')
  }
  const named = (headers.get('connection') ?? '').toLowerCase().split(/[\s,]+/)
  for (const [name, value] of headers) {
    if (hopByHop.test(name) || named.includes(name)) continue
    if (name === 'content-encoding' && url !== '') continue // `fetch` has decoded the body.
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
  /** Pieces that were read before the stream began, and the next one, which was asked for. */
  #pieces: Uint8Array[] = []
  #next: ReturnType<Source['next']> | undefined = undefined
  #hasBegun = false

  /** @param length in bytes, when it is known */
  constructor(ctx: CoreContext, open: () => Source, type: string, length?: number) {
    super(ctx, Infinity)
    this.#open = open
    this.#type = type
    this.#length = length
    // However the request ends: the chain may fail, the pool refuse, the client disconnect, the stream fail or end.
    if (ctx.closed) this.#cancel()
    else ctx.response.once('close', () => this.#cancel())
  }

  get kind() {
    return 'sse' as const
  }

  async ready(): Promise<ReadyReply | undefined> {
    const source = (this.#source = this.#open())
    const isWhole = this.#length !== undefined && this.#length <= mostBlobBytes
    const turn = new Promise<undefined>((resolve) => setImmediate(resolve, undefined))
    let length = 0
    while (isWhole || (length <= mostReadyBytes && this.#pieces.length < mostReadyPieces)) {
      this.#next = source.next()
      this.#next.catch(() => {}) // It is awaited here, or later by #send().
      const result = await (isWhole ? this.#next : Promise.race([this.#next, turn]))
      if (result === undefined || this.isOver) return undefined
      this.#next = undefined
      if (result.done === true) {
        this.ctx.parked = undefined // It did not wait, so its time counts as that of any other.
        return new BodyReply(this.#type, Buffer.concat(this.#pieces))
      }
      const piece = bytesOf(result.value)
      this.#pieces.push(piece)
      length += piece.length
    }
    return undefined
  }

  /** A client that ends its side may still read a stream to its end. */
  override get needsClient(): boolean {
    return false
  }

  waiting(): void {}

  started(): undefined {
    void this.#send()
  }

  ended(reason: EndReason): ReadyReply | undefined {
    if (reason === 'left') return undefined
    if (reason === 'head') return this.#beginning((response) => response.end())
    if (this.#hasBegun) return void this.ctx.response.destroy()
    throw unserved('The stream could not begin in time')
  }

  /** A source that was never read is opened for this: it may hold a file or a connection. */
  #cancel(): void {
    try {
      this.#source ??= this.#open()
      this.#source.cancel()
    } catch {
      // Somebody else is reading the stream, and ends it. Where it was to be sent, that was an error before.
    }
  }

  #beginning(send: StreamReply['send']): StreamReply {
    const headers: string[] = []
    if (this.#type !== '' && this.ctx.outgoingIfAny?.get('Content-Type') === undefined) {
      headers.push('Content-Type', this.#type)
    }
    if (this.#length !== undefined) headers.push('Content-Length', String(this.#length))
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

  /** Waits while the client does not read. When it disconnects, the promise is freed with the response. */
  #write(piece: Uint8Array): MaybePromise<void> {
    const { response } = this.ctx
    this.#begin()
    if (this.isOver) return
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
  throw new TypeError(`A stream that an action returned gave a value of type ${kind}: it must give text or bytes`)
}

function ignore(): void {}

/** The error of a Node stream that was destroyed before its end, as those are whose clients have disconnected. */
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
    // A generator that is waiting ends when it goes on: `ctx.signal` tells it sooner.
    cancel: () => void Promise.resolve(iterator.return?.()).catch(ignore),
  }
}
