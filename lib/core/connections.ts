/**
 * What happens on connections outside of well-formed requests: limits per address, malformed and late requests,
 * CONNECT, and the retirement of connections when the server stops.
 *
 * Surprise: answers leave in the order of their requests. A connection that is refused first sends those that it still
 * owes; where one has begun whose own request is broken, the error can only be told by cutting it.
 */
import type { IncomingMessage, Server, ServerResponse as Response } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ModuleLogger } from '../log/logger.ts'
import { RateLimited } from '../base/rate-limited.ts'
import type { AddressLimit } from './address-limit.ts'
import { connectionOf } from './connection.ts'
import { errorPage, wantsJson } from '../http/error-reply.ts'
import type { ErrorCode } from '../http/errors.ts'
import { normalizeIp } from '../http/ip-address.ts'
import { ServerResponse, STATUS_CODES } from '../http/node-http.ts'
import { htmlType, jsonType } from '../http/reply.ts'

export interface ConnectionOptions {
  /** The most connections that are open at once; undefined: no limit. */
  readonly maxOpen?: number | undefined
  /** The limit of connections of one address; undefined: none. */
  readonly addressLimit: AddressLimit | undefined
  /** Addresses without that limit: trusted proxies, which speak for many clients. */
  readonly isTrusted: (address: string) => boolean
  /** The log of module `socket`. */
  readonly log: ModuleLogger
  /** Told of each request that was refused before it was one: the parser, a time-out, or CONNECT. */
  readonly onRefused: (refused: RefusedRequest) => void
}

/** A request that never came whole, as metrics and the access log have it: `-` for what is not known. */
export interface RefusedRequest {
  readonly ip: string
  readonly method: '-'
  readonly path: '-'
  readonly httpVersion: '1.1'
  readonly sentStatus: number
  readonly sentBytes: number
  readonly durationMs: 0
  readonly routeName: ''
  readonly givenId: undefined
  readonly header: () => undefined
}

/** Node's own codes for requests that cannot be served, and the status that each gets; 400 for the rest of `HPE_`. */
const statusOfError: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
}

/** So long `acceptWaiting` goes on where connections never cease to come. */
const mostTurns = 1000

/** What is counted of connections. */
export interface ConnectionCounts {
  /** Connections open now. */
  readonly open: number
  /** Connections refused by a limit, since the start. */
  readonly refused: number
}

/** Attaches the rules to a server that is not listening yet. Returns what reads the counts. */
export function guardConnections(server: Server, options: ConnectionOptions): () => ConnectionCounts {
  const log = new RateLimited(options.log.info, 1000)
  const refused = new WeakSet<Socket>()

  let open = 0
  let refusedByLimit = 0

  if (options.maxOpen !== undefined) server.maxConnections = options.maxOpen
  const full = new RateLimited(options.log.warn, 1000)
  server.on('drop', () => {
    refusedByLimit += 1
    full.say(
      `refused a connection: ${open} are open, as many as the limit of open files allows; raise it (LimitNOFILE=)`,
    )
  })

  const closed = (): void => {
    open -= 1
  }

  server.on('connection', (socket: Socket) => {
    open += 1
    socket.on('close', closed)
    const address = socket.remoteAddress ?? ''
    const { addressLimit } = options
    if (addressLimit === undefined || options.isTrusted(address)) return
    const leave = addressLimit.enter(address, () => {
      refusedByLimit += 1
      log.say(`refused a connection from ${address}: it has ${addressLimit.most} already`)
      socket.destroy()
    })
    socket.once('close', leave)
  })

  // On TLS too the address must be known when the access log asks for it, which may be after the client has left.
  server.on('secureConnection', (socket: Socket) => void socket.remoteAddress)

  server.on('clientError', (error: NodeJS.ErrnoException, stream) => {
    const socket = stream as Socket // On a listening socket it is one.
    const { code = '' } = error
    const status = statusOfError[code] ?? (code.startsWith('HPE_') ? 400 : undefined)
    if (status === undefined) return void socket.destroy()
    if (hasLeft(socket, code)) return void socket.end() // As Node does where the client ends between two requests.
    // The parser complains of every piece that follows; it is thrown away (see `connection.ts`).
    if (refused.has(socket) || connectionOf(socket).isEnding || !socket.writable) return
    refused.add(socket)
    log.say(`${status} for ${socket.remoteAddress}: ${code} ${error.message}`)
    refuse(socket, status, options.onRefused)
  })

  server.on('connect', (_request, stream) => {
    const socket = stream as Socket
    // Node has let go of this socket: nobody else reads it or hears its errors.
    socket.on('error', () => socket.destroy()).on('end', () => socket.end()).resume()
    log.say(`405 for ${socket.remoteAddress}: CONNECT is for proxies`)
    refuse(socket, 405, options.onRefused)
  })

  return () => ({ open, refused: refusedByLimit })
}

/** Throws away what still comes on a socket that Node has let go of, and that is closing. */
export function passOver(socket: Socket): void {
  socket.on('error', () => socket.destroy()).resume()
}

/**
 * A response on a socket that Node has let go of, since its request asked for an upgrade. The connection ends with the
 * answer, unless the socket was detached before; so it does when the client sends nothing more, as on any connection.
 */
export function lastResponseOn(socket: Socket, request: IncomingMessage): Response {
  const response = new ServerResponse(request)
  socket.on('error', () => socket.destroy())
  socket.once('end', () => {
    if (response.socket !== null) socket.destroy()
  })
  response.assignSocket(socket)
  response.on('finish', () => {
    response.emit('close') // Node's server does so for the responses that it makes.
    if (response.socket === null) return connectionOf(socket).upgraded()
    response.detachSocket(socket)
    connectionOf(socket).linger()
    socket.resume().destroySoon()
  })
  return response
}

/**
 * Accepts the connections that wait for it. Node takes one in a turn of the event loop, and the kernel resets those
 * that nobody has taken when the socket is closed. Resolves with the first turn that brought none.
 */
export async function acceptWaiting(server: Server): Promise<void> {
  let came = true
  const note = (): void => {
    came = true
  }
  server.on('connection', note)
  await nextTurn() // The rest of this one may be over without a look at the socket.
  for (let turn = 0; came && turn < mostTurns; turn += 1) {
    came = false
    await nextTurn()
  }
  server.off('connection', note)
}

/** Stops accepting without touching open connections: `http.Server.close()` would cut the idle ones at once. */
export function stopAccepting(server: Server): Promise<void> {
  return new Promise((resolve) => {
    if (!server.listening) return resolve()
    NetServer.prototype.close.call(server, () => resolve())
  })
}

/**
 * Closes a connection on which no request is being served, from its header section to the end of its answer: Node's
 * `closeIdleConnections()` spares one that has sent nothing yet, or a part of a header section. A connection that is
 * closing by itself is left alone; one that still sends the body of a request that has its answer is closed politely.
 */
export function retire(socket: Socket): void {
  const connection = connectionOf(socket)
  if (!connection.isIdle) return
  if (!connection.isReading) return void socket.destroy()
  connection.linger()
  socket.destroySoon()
}

/** Whether the client ended within a request while answers to earlier ones are owed: it waits for none of them. */
function hasLeft(socket: Socket, code: string): boolean {
  return code === 'HPE_INVALID_EOF_STATE' && connectionOf(socket).current?.req.complete === true
}

/** The page, or JSON where the header section of a request has come and asks for it. */
function bodyOf(
  status: number,
  request: IncomingMessage | undefined,
): { readonly type: string; readonly body: string } {
  // Those asked for are texts.
  const header = (name: string): string | undefined => request?.headers[name] as string | undefined
  if (!wantsJson({ header })) return { type: htmlType, body: errorPage(status, undefined) }
  const error: ErrorCode = status === 408 ? 'request_timeout' : status === 413 ? 'body_too_large' : 'bad_request'
  return { type: jsonType, body: JSON.stringify({ error }) }
}

/**
 * Ends a connection with an error. Requests that were read whole get their own answers first; one that is still being
 * read gets the error as its answer; where there is none, the answer is written by hand.
 */
function refuse(socket: Socket, status: number, onRefused: ConnectionOptions['onRefused']): void {
  if (!socket.writable) return
  const pending = connectionOf(socket).current
  if (pending && (pending.req.complete || pending.writableEnded)) {
    pending.once('close', () => refuse(socket, status, onRefused))
    return
  }
  if (pending?.headersSent) return void socket.destroy()
  connectionOf(socket).linger()
  const { type, body } = bodyOf(status, pending?.req)
  const headers = ['Content-Type', type, 'Content-Length', String(Buffer.byteLength(body)), 'Connection', 'close']
  if (status === 405) headers.push('Allow', 'GET, HEAD')
  if (pending) return void pending.writeHead(status, headers).end(body)
  headers.push('Date', new Date().toUTCString())
  const fields = headers.map((field, at) => (at % 2 === 0 ? `${field}: ` : `${field}\r\n`)).join('')
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${fields}\r\n${body}`)
  socket.destroySoon()
  onRefused({
    ip: normalizeIp(socket.remoteAddress ?? '') ?? '-',
    method: '-',
    path: '-',
    httpVersion: '1.1',
    sentStatus: status,
    sentBytes: Buffer.byteLength(body),
    durationMs: 0,
    routeName: '',
    givenId: undefined,
    header: () => undefined,
  })
}
