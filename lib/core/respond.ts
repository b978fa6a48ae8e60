/**
 * Writes replies: the only place that sends header sections and bodies. Small bodies leave in one write.
 *
 * The answer also decides about a request body that the action did not read. Node reads and discards a small rest, so
 * that the connection can be reused; a large or unknown rest ends the connection with a lingering close
 * (`Connection.linger`).
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
const onlyVary: readonly string[] = ['Vary', 'Accept-Encoding']

/** Writes the replies of one server. */
export class Responder {
  readonly #sections = new HeaderSections()

  /**
   * Writes the reply with the context's status, header fields and cookies.
   * @param lastOnConnection adds `Connection: close`, as a server that is stopping must
   * @throws RangeError for a status that no reply can have, before anything is written
   */
  respond(ctx: CoreContext, reply: ReadyReply, lastOnConnection: boolean): void {
    if (reply instanceof BodyReply) this.respondBody(ctx, reply, lastOnConnection)
    else this.#respondStream(ctx, reply, lastOnConnection)
  }

  /** Like `respond`, for the kind of reply that most requests have. */
  respondBody(ctx: CoreContext, reply: BodyReply, lastOnConnection: boolean): void {
    const status = ctx.status === 0 ? (reply === emptyReply ? 204 : 200) : ctx.status
    checkStatus(status)
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
      sayThatItVaries(ctx.outgoing)
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
    // A response that was closed while it waited for its turn has emitted `close` before `send` could listen.
    if (ctx.closed) emitClose(ctx.response)
  }

  /** When the compressor fails, the body is sent uncompressed. */
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
    // The response to a handshake is not Node's own, whose sections all end in the same way.
    const isOrdinary = outgoing?.plain !== false && ctx.upgrading === undefined
    this.#sections.write(response, status, fieldsOf(ctx), isOrdinary, ownType, length)
    if (ctx.method === 'HEAD' || length === 0) {
      response.end()
      return
    }
    ctx.sentBytes = length
    // As many bytes as characters: ASCII.
    if (typeof body === 'string' && body.length === length) endWithText(response, body)
    else response.end(body)
  }
}

/**
 * Whether the operating system has taken all of an answer, so that there is nothing to wait for. Node 20 and 22 say so
 * in `writableFinished` at once, later versions later. A socket that is destroyed has taken nothing.
 */
export function isSent(response: ServerResponse): boolean {
  return response.writableEnded && response.writableLength === 0 && response.socket?.destroyed !== true
}

/** Whether the connection was lost before the answer had left it. Node 20 calls such an answer finished. */
export function isLost({ request, response }: CoreContext): boolean {
  return request.socket.errored !== null || response.socket?.destroyed === true
}

/** Whether an answer that had begun was lost with its connection. */
export function wasCut(ctx: CoreContext): boolean {
  return isLost(ctx) && ctx.response.headersSent && ctx.upgrading === undefined
}

/** The application's fields and those of a stream or a file, which replace the application's. */
function withFields(fields: readonly string[], own: readonly string[]): string[] {
  if (fields.length === 0) return own.slice()
  const names = own.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase())
  const kept = fields.filter((_, at) => !names.includes((fields[at - (at % 2)] as string).toLowerCase()))
  return [...kept, ...own]
}

/** Whether the client has disconnected, or the connection was ended with an error meanwhile (`connections.ts`). */
function isOver(ctx: CoreContext): boolean {
  return ctx.closed || ctx.response.headersSent || ctx.response.destroyed
}

/** The header fields of the context, name and value in turn. */
function fieldsOf(ctx: CoreContext): readonly string[] {
  return ctx.outgoingIfAny?.flat ?? noFields
}

/** Sets the fields that the server adds to those of the application. */
function setOwnFields(ctx: CoreContext, status: number, lastOnConnection: boolean): void {
  // Node closes the connection of a client that still expects `100 Continue`, and would not say so in the answer.
  const isLast = lastOnConnection || ctx.lastOnConnection || endsHandshake(ctx)
  if ((ctx.hasBody && mustCut(ctx)) || isLast || ctx.expectsContinue) {
    ctx.outgoing.set('Connection', 'close')
    connectionOf(ctx.request.socket).markLast()
  } else if (ctx.response.shouldKeepAlive === false || setsConnection(ctx)) {
    connectionOf(ctx.request.socket).linger()
  }
  const id = status < 500 ? ctx.idToSend : ctx.id // So that the client of a failed request can name it.
  if (id !== undefined) ctx.outgoing.set('X-Request-Id', id)
}

/** Whether this refuses a handshake behind which nothing has come: its client does not expect to speak HTTP again. */
function endsHandshake({ upgrading }: CoreContext): boolean {
  return upgrading !== undefined && upgrading.head.length === 0 && upgrading.socket.readableLength === 0
}

/** Whether the application has set `Connection`, which is a field that Node knows. */
function setsConnection({ outgoingIfAny: outgoing }: CoreContext): boolean {
  return outgoing?.plain === false && outgoing.get('Connection') !== undefined
}

/** Whether what is left of the body is too large to be read and discarded, or of a length that nobody announced. */
function mustCut(ctx: CoreContext): boolean {
  if (ctx.body.consumed) return false
  if (ctx.expectsContinue) return true
  const announced = ctx.header('content-length')
  return announced === undefined || Number(announced) > ctx.bodyLimitBytes
}

function mayCompress(ctx: CoreContext, type: string): boolean {
  if (ctx.neverCompressed) return false
  const outgoing = ctx.outgoingIfAny
  return outgoing?.get('Content-Encoding') === undefined && isCompressible(outgoing?.get('Content-Type') ?? type)
}

function sayThatItVaries(outgoing: HeaderList): void {
  const said = outgoing.get('Vary')
  if (said === undefined) outgoing.fill(onlyVary)
  else if (!/(^|[\s,])(accept-encoding|\*)($|[\s,])/i.test(said)) outgoing.addMember('Vary', 'Accept-Encoding')
}

function checkStatus(status: number): void {
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    throw new RangeError(`A reply's status is an integer from 200 to 599: it is ${inspect(status)}`)
  }
}
