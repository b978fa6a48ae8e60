/**
 * Writes replies: the only place that sends header sections and bodies. Small bodies are sent in one write.
 *
 * Also handles a request body that the action did not read. Node reads and discards a small rest, so that the
 * connection can be reused; a large or unknown rest ends the connection with a lingering close (`Connection.linger`).
 */
import { Buffer } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import { inspect } from 'node:util'
import {
  codingFor,
  compressAboveBytes,
  compressReply,
  isCompressible,
  replyCodings,
  type Coding,
} from '../http/compress.ts'
import type { CoreContext } from '../http/context.ts'
import type { HeaderList } from '../http/header-list.ts'
import { BodyReply, emptyReply, type ReadyReply, type StreamReply } from '../http/reply.ts'
import { connectionOf } from './connection.ts'
import { endWithText, HeaderSections } from './header-section.ts'
import { emitClose } from './node-internals.ts'

const noFields: readonly string[] = []
/** The directive that forbids a compression (RFC 9111, section 5.2.2.6). */
const noTransform = /(?:^|[\s,])no-transform(?:$|[\s,])/i
const onlyVary: readonly string[] = ['Vary', 'Accept-Encoding']

/** Writes the replies of one server. */
export class Responder {
  readonly #sections = new HeaderSections()

  /**
   * Writes the reply with the context's status, header fields and cookies.
   * @param lastOnConnection adds `Connection: close`, as required while the server stops
   * @throws RangeError for an invalid status, before anything is written
   */
  respond(ctx: CoreContext, reply: ReadyReply, lastOnConnection: boolean): void {
    if (reply instanceof BodyReply) this.respondBody(ctx, reply, lastOnConnection)
    else this.#respondStream(ctx, reply, lastOnConnection)
  }

  /** Like `respond`, for the most common kind of reply. */
  respondBody(ctx: CoreContext, reply: BodyReply, lastOnConnection: boolean): void {
    let status = ctx.status === 0 ? (reply === emptyReply ? 204 : 200) : ctx.status
    checkStatus(status)
    if (status === 200 && ctx.isUnmodified) status = 304
    setOwnFields(ctx, status, lastOnConnection)
    if (status === 204 || status === 304) {
      if (isOver(ctx)) return
      ctx.response.writeHead(status, fieldsOf(ctx).slice())
      ctx.response.end()
      return
    }

    const { body, type } = status === 205 ? emptyReply : reply
    const length = typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength
    if (length > compressAboveBytes && status !== 206 && mayCompress(ctx, type)) {
      addVary(ctx.outgoing)
      const coding = codingFor(ctx.header('accept-encoding'), replyCodings)
      if (coding !== undefined) return this.#respondCompressed(ctx, status, type, body, coding)
    }
    this.#write(ctx, status, type, body, length)
  }

  #respondStream(ctx: CoreContext, reply: StreamReply, lastOnConnection: boolean): void {
    const status = ctx.status === 0 ? reply.status : ctx.status
    checkStatus(status)
    setOwnFields(ctx, status, lastOnConnection)
    const headers = withFields(fieldsOf(ctx), reply.headers)
    ctx.sentBytes = ctx.method === 'HEAD' ? 0 : reply.length
    if (!isOver(ctx)) ctx.response.writeHead(status, headers)
    reply.send(ctx.response)
    // A response that was closed while waiting for its turn emitted `close` before `send` could listen.
    if (ctx.closed) emitClose(ctx.response)
  }

  /** Sends the body uncompressed if the compressor fails. */
  #respondCompressed(
    ctx: CoreContext,
    status: number,
    type: string,
    body: string | Uint8Array,
    coding: Coding,
  ): void {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    const plain = (): void => this.#write(ctx, status, type, bytes, bytes.byteLength)
    const packed = (smaller: Uint8Array): void => {
      const etag = ctx.outgoing.get('ETag')
      // Compressed bytes differ, so a strong ETag becomes a weak one (RFC 9110, section 8.8.1).
      if (etag !== undefined && !etag.startsWith('W/')) ctx.outgoing.set('ETag', `W/${etag}`)
      ctx.outgoing.set('Content-Encoding', coding)
      this.#write(ctx, status, type, smaller, smaller.byteLength)
    }
    const outcome = compressReply(bytes, coding)
    if (outcome instanceof Uint8Array) packed(outcome)
    else outcome.then(packed, plain)
  }

  /** @param type the Content-Type unless the context has one */
  #write(ctx: CoreContext, status: number, type: string, body: string | Uint8Array, length: number): void {
    if (isOver(ctx)) return
    const { response } = ctx
    const outgoing = ctx.outgoingIfAny
    const ownType = outgoing?.get('Content-Type') === undefined ? type : ''
    // Only the sections of Node's own responses all end the same way; a handshake has another.
    const isOrdinary = outgoing?.plain !== false && ctx.upgrading === undefined
    const isHead = ctx.method === 'HEAD'
    const announced = isHead && length === 0 ? (outgoing?.length ?? 0) : length
    this.#sections.write(response, status, fieldsOf(ctx), isOrdinary, ownType, announced)
    if (isHead || length === 0) {
      response.end()
      return
    }
    ctx.sentBytes = length
    // Bytes equal characters: ASCII.
    if (typeof body === 'string' && body.length === length) endWithText(response, body)
    else response.end(body)
  }
}

/**
 * Whether the operating system has accepted the whole response, so that there is nothing to wait for. Node 20 and 22
 * set `writableFinished` at once, later versions do later. A destroyed socket has accepted nothing.
 */
export function isSent(response: ServerResponse): boolean {
  return response.writableEnded && response.writableLength === 0 && response.socket?.destroyed !== true
}

/** Whether the connection was lost before the response was sent. Node 20 reports such a response as finished. */
export function isLost({ request, response }: CoreContext): boolean {
  return request.socket.errored !== null || response.socket?.destroyed === true
}

/** Whether a response that had begun was lost with its connection. */
export function wasCut(ctx: CoreContext): boolean {
  return isLost(ctx) && ctx.response.headersSent && ctx.upgrading === undefined
}

/** Merges the application's fields with those of a stream or a file, which take precedence. */
function withFields(fields: readonly string[], own: readonly string[]): string[] {
  if (fields.length === 0) return own.slice()
  const names = own.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase())
  const kept = fields.filter((_, at) => !names.includes((fields[at - (at % 2)] as string).toLowerCase()))
  return [...kept, ...own]
}

/** Whether the client has disconnected, or `connections.ts` has meanwhile ended the connection with an error. */
function isOver(ctx: CoreContext): boolean {
  return ctx.closed || ctx.response.headersSent || ctx.response.destroyed
}

/** The header fields of the context, name and value in turn. */
function fieldsOf(ctx: CoreContext): readonly string[] {
  return ctx.outgoingIfAny?.flat ?? noFields
}

/** Sets the fields that the server adds to those of the application. */
function setOwnFields(ctx: CoreContext, status: number, lastOnConnection: boolean): void {
  // Node closes the connection of a client that still expects `100 Continue`, without `Connection: close`.
  const isLast = lastOnConnection || ctx.lastOnConnection || endsHandshake(ctx)
  if ((ctx.hasBody && mustCut(ctx)) || isLast || ctx.expectsContinue) {
    ctx.outgoing.set('Connection', 'close')
    connectionOf(ctx.request.socket).markLast()
  } else if (ctx.response.shouldKeepAlive === false || setsConnection(ctx)) {
    connectionOf(ctx.request.socket).linger()
  }
  const id = status < 500 ? ctx.idToSend : ctx.id // The client can report the id of a failed request.
  if (id !== undefined) ctx.outgoing.set('X-Request-Id', id)
}

/** Whether this refuses a handshake without input behind it: its client does not expect to speak HTTP again. */
function endsHandshake({ upgrading }: CoreContext): boolean {
  return upgrading !== undefined && upgrading.head.length === 0 && upgrading.socket.readableLength === 0
}

/** Whether the application has set `Connection`, a field that Node interprets. */
function setsConnection({ outgoingIfAny: outgoing }: CoreContext): boolean {
  return outgoing?.plain === false && outgoing.get('Connection') !== undefined
}

/** Whether the rest of the body is too large to be read and discarded, or of unknown length. */
function mustCut(ctx: CoreContext): boolean {
  if (ctx.body.consumed) return false
  if (ctx.expectsContinue) return true
  const announced = ctx.header('content-length')
  return announced === undefined || Number(announced) > ctx.bodyLimitBytes
}

function mayCompress(ctx: CoreContext, type: string): boolean {
  if (ctx.neverCompressed) return false
  const outgoing = ctx.outgoingIfAny
  if (outgoing?.get('Content-Encoding') !== undefined) return false
  if (noTransform.test(outgoing?.get('Cache-Control') ?? '')) return false
  return isCompressible(outgoing?.get('Content-Type') ?? type)
}

function addVary(outgoing: HeaderList): void {
  const vary = outgoing.get('Vary')
  if (vary === undefined) outgoing.fill(onlyVary)
  else if (!/(^|[\s,])(accept-encoding|\*)($|[\s,])/i.test(vary)) outgoing.addMember('Vary', 'Accept-Encoding')
}

function checkStatus(status: number): void {
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    throw new RangeError(`A reply's status is an integer from 200 to 599: it is ${inspect(status)}`)
  }
}
