/**
 * Writes a reply: the one place where header sections and bodies leave. Small bodies go out in one write.
 *
 * Surprise: a body that the action did not read is a matter of the answer. A small rest is read and thrown away by
 * `node:http`, so that the connection can serve on; a large or unknown one ends the connection, politely (`linger`).
 */
import { Buffer } from 'node:buffer'
import { acceptsGzip, compressAboveBytes, gzipReply, isCompressible } from './compress.ts'
import type { Context } from './context.ts'
import { linger, markEnding } from './linger.ts'
import { endWithText } from './one-write.ts'
import { BodyReply, emptyReply, StreamReply, type Reply } from './reply.ts'

/**
 * Writes the reply with the context's status, header fields and cookies.
 * @param lastOnConnection adds `Connection: close`, as a server that is stopping must
 * @throws RangeError for a status that no reply can have, and TypeError for a reply that waits or upgrades, before anything is
 *   written
 */
export function respond(ctx: Context, reply: Reply, lastOnConnection: boolean): void {
  if (reply instanceof BodyReply) return respondBody(ctx, reply, lastOnConnection)
  if (reply instanceof StreamReply) return respondStream(ctx, reply, lastOnConnection)
  throw new TypeError('A reply that waits or upgrades cannot be written: that is for the server to do')
}

/** As `respond`, for the reply that most requests have. */
export function respondBody(ctx: Context, reply: BodyReply, lastOnConnection: boolean): void {
  const status = ctx.status === 0 ? (reply === emptyReply ? 204 : 200) : ctx.status
  checkStatus(status)
  const headers = headersOf(ctx, lastOnConnection)
  if (status === 204 || status === 304) return write(ctx, status, headers, '', 0)

  const { body, type } = status === 205 ? emptyReply : reply
  if (type !== '' && ctx.outgoingIfAny?.get('Content-Type') === undefined) headers.push('Content-Type', type)
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength
  if (length > compressAboveBytes && status !== 206 && mayCompress(ctx, type)) {
    vary(headers)
    if (acceptsGzip(ctx.header('accept-encoding'))) return respondGzip(ctx, reply, status, headers, length)
  }
  headers.push('Content-Length', String(length))
  write(ctx, status, headers, body, length)
}

function respondStream(ctx: Context, reply: StreamReply, lastOnConnection: boolean): void {
  const status = ctx.status === 0 ? reply.status : ctx.status
  checkStatus(status)
  const headers = withFields(headersOf(ctx, lastOnConnection), reply.headers)
  ctx.sentBytes = ctx.method === 'HEAD' ? 0 : reply.length
  if (!isOver(ctx)) ctx.response.writeHead(status, headers)
  reply.send(ctx.response)
  // A response that was closed while it waited behind another does not tell it to who comes late.
  if (ctx.closed) ctx.response.emit('close')
}

/** A compressor that fails is no reason to fail the request: the body goes out as it is. */
function respondGzip(ctx: Context, reply: BodyReply, status: number, headers: string[], length: number): void {
  const plain = (): void => {
    headers.push('Content-Length', String(length))
    write(ctx, status, headers, reply.body, length)
  }
  const packed = (body: Uint8Array): void => {
    headers.push('Content-Encoding', 'gzip', 'Content-Length', String(body.byteLength))
    weakenEtag(headers)
    write(ctx, status, headers, body, body.byteLength)
  }
  const body = gzipReply(reply.body)
  if (body instanceof Uint8Array) packed(body)
  else body.then(packed, plain)
}

function write(ctx: Context, status: number, headers: string[], body: string | Uint8Array, length: number): void {
  if (isOver(ctx)) return
  const { response } = ctx
  response.writeHead(status, headers)
  if (ctx.method === 'HEAD' || length === 0) {
    response.end()
    return
  }
  ctx.sentBytes = length
  if (typeof body === 'string' && body.length === length) endWithText(response, body) // as many bytes as characters: ASCII
  else response.end(body)
}

/** The application's fields and those that a stream or a file must have, which take the place of the former. */
function withFields(headers: string[], own: readonly string[]): string[] {
  if (headers.length === 0) return own.slice()
  const names = own.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase())
  const kept = headers.filter((_, at) => !names.includes((headers[at - (at % 2)] as string).toLowerCase()))
  return [...kept, ...own]
}

/** Whether the client has left, or the connection was ended with an error meanwhile (see `connections.ts`). */
function isOver(ctx: Context): boolean {
  return ctx.closed || ctx.response.headersSent || ctx.response.destroyed
}

/** The header fields that a reply begins with: the application's own, then the server's. */
function headersOf(ctx: Context, lastOnConnection: boolean): string[] {
  const cut = ctx.hasBody && mustCut(ctx)
  if (cut) linger(ctx.request.socket)
  // Node closes where the client was not told to go on, and would do so without a note that nothing behind it may be served.
  if (cut || lastOnConnection || ctx.lastOnConnection || ctx.expectsContinue) {
    ctx.outgoing.set('Connection', 'close')
    markEnding(ctx.request.socket)
  }
  const id = ctx.idToSend
  if (id !== undefined) ctx.outgoing.set('X-Request-Id', id)
  return ctx.outgoingIfAny?.flat.slice() ?? []
}

/** Whether what is left of the request's body is too much to be read and thrown away. */
function mustCut(ctx: Context): boolean {
  if (ctx.request.complete || ctx.body.consumed) return false
  if (ctx.expectsContinue) return true
  const announced = ctx.header('content-length')
  return announced === undefined || Number(announced) > ctx.services.bodyLimitBytes
}

function mayCompress(ctx: Context, type: string): boolean {
  if (ctx.neverCompressed) return false
  const outgoing = ctx.outgoingIfAny
  return outgoing?.get('Content-Encoding') === undefined && isCompressible(outgoing?.get('Content-Type') ?? type)
}

function vary(headers: string[]): void {
  const at = headers.findIndex((field, index) => index % 2 === 0 && field.toLowerCase() === 'vary')
  if (at < 0) headers.push('Vary', 'Accept-Encoding')
  else if (!/(^|[\s,])(accept-encoding|\*)($|[\s,])/i.test(headers[at + 1] as string)) {
    headers[at + 1] += ', Accept-Encoding'
  }
}

/** Compressed bytes are other bytes: a strong ETag no longer holds (RFC 9110, section 8.8.1). */
function weakenEtag(headers: string[]): void {
  const at = headers.findIndex((field, index) => index % 2 === 0 && field.toLowerCase() === 'etag')
  if (at >= 0 && !headers[at + 1]?.startsWith('W/')) headers[at + 1] = `W/${headers[at + 1]}`
}

function checkStatus(status: number): void {
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    throw new RangeError(`A reply's status is an integer from 200 to 599: it is ${String(status)}`)
  }
}
