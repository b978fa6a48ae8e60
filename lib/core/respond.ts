/**
 * Writes a reply: the one place where header sections and bodies leave. Small bodies go out in one write.
 *
 * Surprise: a body that the action did not read is a matter of the answer. A small rest is read and thrown away by
 * `node:http`, so that the connection can serve on; a large or unknown one ends the connection, politely
 * (`Connection.linger`).
 */
import { Buffer } from 'node:buffer'
import { acceptsGzip, compressAboveBytes, gzipReply, isCompressible } from '../http/compress.ts'
import { connectionOf } from './connection.ts'
import type { CoreContext } from '../http/context.ts'
import { endWithText } from '../http/one-write.ts'
import { BodyReply, emptyReply, StreamReply, type Reply } from '../http/reply.ts'

const noFields: readonly string[] = []

/**
 * Writes the reply with the context's status, header fields and cookies.
 * @param lastOnConnection adds `Connection: close`, as a server that is stopping must
 * @throws RangeError for a status that no reply can have, and TypeError for a reply that waits or upgrades, before
 *   anything is written
 */
export function respond(ctx: CoreContext, reply: Reply, lastOnConnection: boolean): void {
  if (reply instanceof BodyReply) return respondBody(ctx, reply, lastOnConnection)
  if (reply instanceof StreamReply) return respondStream(ctx, reply, lastOnConnection)
  throw new TypeError('A reply that waits or upgrades cannot be written: that is for the server to do')
}

/** As `respond`, for the reply that most requests have. */
export function respondBody(ctx: CoreContext, reply: BodyReply, lastOnConnection: boolean): void {
  const status = ctx.status === 0 ? (reply === emptyReply ? 204 : 200) : ctx.status
  checkStatus(status)
  const fields = fieldsOf(ctx, status, lastOnConnection)
  if (status === 204 || status === 304) {
    if (isOver(ctx)) return
    ctx.response.writeHead(status, fields.slice())
    ctx.response.end()
    return
  }

  const { body, type: ownType } = status === 205 ? emptyReply : reply
  const type = ctx.outgoingIfAny?.get('Content-Type') === undefined ? ownType : ''
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength
  if (length > compressAboveBytes && status !== 206 && mayCompress(ctx, ownType)) {
    const varied = vary(fields)
    if (acceptsGzip(ctx.header('accept-encoding'))) return respondGzip(ctx, reply, status, varied, type, length)
    write(ctx, status, varied, type, body, length)
  } else {
    write(ctx, status, fields, type, body, length)
  }
}

function respondStream(ctx: CoreContext, reply: StreamReply, lastOnConnection: boolean): void {
  const status = ctx.status === 0 ? reply.status : ctx.status
  checkStatus(status)
  const headers = withFields(fieldsOf(ctx, status, lastOnConnection), reply.headers)
  ctx.sentBytes = ctx.method === 'HEAD' ? 0 : reply.length
  if (!isOver(ctx)) ctx.response.writeHead(status, headers)
  reply.send(ctx.response)
  // A response that was closed while it waited behind another does not tell it to who comes late.
  if (ctx.closed) ctx.response.emit('close')
}

/** A compressor that fails is no reason to fail the request: the body goes out as it is. */
function respondGzip(
  ctx: CoreContext,
  reply: BodyReply,
  status: number,
  fields: readonly string[],
  type: string,
  length: number,
): void {
  const plain = (): void => write(ctx, status, fields, type, reply.body, length)
  const packed = (body: Uint8Array): void => {
    write(ctx, status, [...weakenEtag(fields), 'Content-Encoding', 'gzip'], type, body, body.byteLength)
  }
  const body = gzipReply(reply.body)
  if (body instanceof Uint8Array) packed(body)
  else body.then(packed, plain)
}

function write(
  ctx: CoreContext,
  status: number,
  fields: readonly string[],
  type: string,
  body: string | Uint8Array,
  length: number,
): void {
  if (isOver(ctx)) return
  const { response } = ctx
  ctx.headerSections.write(response, status, fields, ctx.outgoingIfAny?.plain !== false, type, length)
  if (ctx.method === 'HEAD' || length === 0) {
    response.end()
    return
  }
  ctx.sentBytes = length
  // as many bytes as characters: ASCII
  if (typeof body === 'string' && body.length === length) endWithText(response, body)
  else response.end(body)
}

/** The application's fields and those that a stream or a file must have, which take the place of the former. */
function withFields(fields: readonly string[], own: readonly string[]): string[] {
  if (fields.length === 0) return own.slice()
  const names = own.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase())
  const kept = fields.filter((_, at) => !names.includes((fields[at - (at % 2)] as string).toLowerCase()))
  return [...kept, ...own]
}

/** Whether the client has left, or the connection was ended with an error meanwhile (see `connections.ts`). */
function isOver(ctx: CoreContext): boolean {
  return ctx.closed || ctx.response.headersSent || ctx.response.destroyed
}

/** The header fields that a reply begins with: the application's own, then the server's. Name and value in turn. */
function fieldsOf(ctx: CoreContext, status: number, lastOnConnection: boolean): readonly string[] {
  // Node closes where the client was not told to go on, and would do so without a note that nothing behind it may be
  // served.
  if ((ctx.hasBody && mustCut(ctx)) || lastOnConnection || ctx.lastOnConnection || ctx.expectsContinue) {
    ctx.outgoing.set('Connection', 'close')
    connectionOf(ctx.request.socket).markLast()
  } else if (ctx.response.shouldKeepAlive === false || ctx.outgoingIfAny?.get('Connection') !== undefined) {
    connectionOf(ctx.request.socket).linger()
  }
  const id = status < 500 ? ctx.idToSend : ctx.id // Who was failed by the server can say which request it was.
  if (id !== undefined) ctx.outgoing.set('X-Request-Id', id)
  return ctx.outgoingIfAny?.flat ?? noFields
}

/** Whether what is left of the request's body is too much to be read and thrown away. */
function mustCut(ctx: CoreContext): boolean {
  if (ctx.request.complete || ctx.body.consumed) return false
  if (ctx.expectsContinue) return true
  const announced = ctx.header('content-length')
  return announced === undefined || Number(announced) > ctx.services.bodyLimitBytes
}

function mayCompress(ctx: CoreContext, type: string): boolean {
  if (ctx.neverCompressed) return false
  const outgoing = ctx.outgoingIfAny
  return outgoing?.get('Content-Encoding') === undefined && isCompressible(outgoing?.get('Content-Type') ?? type)
}

/** A copy: a compressor may take longer than the action leaves its context alone. */
function vary(fields: readonly string[]): readonly string[] {
  const at = indexOfField(fields, 'vary')
  if (at < 0) return [...fields, 'Vary', 'Accept-Encoding']
  const value = fields[at + 1] as string
  const isSaid = /(^|[\s,])(accept-encoding|\*)($|[\s,])/i.test(value)
  return fields.with(at + 1, isSaid ? value : `${value}, Accept-Encoding`)
}

/** Compressed bytes are other bytes: a strong ETag no longer holds (RFC 9110, section 8.8.1). */
function weakenEtag(fields: readonly string[]): readonly string[] {
  const at = indexOfField(fields, 'etag')
  if (at < 0) return fields
  const value = fields[at + 1] as string
  return value.startsWith('W/') ? fields : fields.with(at + 1, `W/${value}`)
}

function indexOfField(fields: readonly string[], name: string): number {
  return fields.findIndex((field, at) => at % 2 === 0 && field.toLowerCase() === name)
}

function checkStatus(status: number): void {
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    throw new RangeError(`A reply's status is an integer from 200 to 599: it is ${String(status)}`)
  }
}
