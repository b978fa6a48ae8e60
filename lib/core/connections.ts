/**
 * Connections outside of well-formed requests: limits per address, malformed and late requests, CONNECT, and closing
 * idle connections when the server stops.
 *
 * Answers leave in the order of their requests. So a connection that is refused first sends the answers that it still
 * owes, and when the answer to the broken request itself has begun, the connection can only be cut.
 */
import type { IncomingMessage, Server, ServerResponse as Response } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { EndedRequest, LogPort } from '../base/ports.ts'
import { RateLimited } from '../base/rate-limited.ts'
import { hasToken } from '../base/token.ts'
import { errorPage, wantsJson } from '../http/error-reply.ts'
import type { ErrorCode } from '../http/errors.ts'
import { normalizeIp } from '../http/ip-address.ts'
import { ServerResponse, STATUS_CODES } from '../http/node-http.ts'
import { htmlType, jsonType } from '../http/reply.ts'
import type { AddressLimit } from './address-limit.ts'
import { connectionOf } from './connection.ts'
import type { Overdue } from './deadlines.ts'
import { attachSocket, closeListening, emitClose, releaseSocket } from './node-internals.ts'

/** The limits of connections, and a function that is called with refused ones. */
export interface ConnectionOptions {
  /** The most connections that are open at once; undefined: no limit. */
  readonly maxOpen?: number | undefined
  /** The limit of connections of one address; undefined: none. */
  readonly addressLimit: AddressLimit | undefined
  /** Whether an address is exempt from that limit, as trusted proxies are, which have many clients. */
  readonly isTrusted: (address: string) => boolean
  /** The log of module `socket`. */
  readonly log: LogPort
  /** Called with each request that was refused before it was complete: by the parser, a time-out, or as CONNECT. */
  readonly onRefused: (refused: EndedRequest) => void
}

/** The status for Node's own codes of requests that cannot be served; 400 for the rest of `HPE_`. */
const statusOfError: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
}

/** `acceptWaiting` ends after so many turns of the event loop even when connections keep arriving. */
const mostTurns = 1000

/**
 * Attaches the limits to a server that is not listening yet.
 * @returns the number of connections that a limit has refused since the start, and a function that ends a connection
 *   whose client is overdue
 */
export function guardConnections(
  server: Server,
  options: ConnectionOptions,
): { refused: () => number; end: (socket: Socket, overdue: Overdue) => void } {
  const log = new RateLimited(options.log.info, 1000)
  const refused = new WeakSet<Socket>()
  let refusedByLimit = 0

  if (options.maxOpen !== undefined) server.maxConnections = options.maxOpen
  const full = new RateLimited(options.log.warn, 1000)
  server.on('drop', () => {
    refusedByLimit += 1
    const problem = `${options.maxOpen} are open, as many as the limit of open files allows; raise it (LimitNOFILE=)`
    full.say(`refused a connection: ${problem}`)
  })

  server.on('connection', (socket: Socket) => {
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

  // Node keeps an address that was read once: the access log reads it after the client may have disconnected.
  server.on('secureConnection', (socket: Socket) => void socket.remoteAddress)

  server.on('clientError', (error: NodeJS.ErrnoException, stream) => {
    const socket = stream as Socket // On a listening socket it is one.
    const { code = '' } = error
    const status = statusOfError[code] ?? (code.startsWith('HPE_') ? 400 : undefined)
    if (status === undefined) return void socket.destroy()
    const connection = connectionOf(socket)
    if (hasLeft(socket, code)) return void connection.endAfterCurrent()
    if (status === 408 && connection.isServing) {
      connection.isHeaderLate = true // The time for a header section begins with the turn of its request.
      return
    }
    if (status === 408 && socket.bytesRead === 0) return void socket.destroy() // Browsers open some ahead of need.
    // The parser reports an error for every further piece of input, which the lingering close discards.
    if (refused.has(socket) || (connection.isEnding && !connection.isServing) || !socket.writable) return
    refused.add(socket)
    log.say(`${status} for ${socket.remoteAddress}: ${code} ${error.message}`)
    refuse(socket, status, options.onRefused)
  })

  server.on('connect', (request, stream, head) => {
    const socket = stream as Socket
    const connection = connectionOf(socket)
    if (connection.isServing || connection.isEnding) return connection.hold(request, head)
    // Node has let go of this socket: nothing else reads it or handles its errors.
    socket.on('error', () => socket.destroy()).on('end', () => socket.end()).resume()
    log.say(`405 for ${socket.remoteAddress}: CONNECT is for proxies`)
    refuse(socket, 405, options.onRefused)
  })

  return {
    refused: () => refusedByLimit,
    end: (socket, { status, reason }) => {
      const { remoteAddress } = socket
      if (status !== undefined) log.say(`${status} for ${remoteAddress}: ${reason}`)
      else if (reason !== '') log.say(`cut the connection of ${remoteAddress}: ${reason}`)
      if (status === undefined) socket.destroy()
      else refuse(socket, status, options.onRefused, `${reason[0]?.toUpperCase()}${reason.slice(1)}.`)
    },
  }
}

/**
 * Makes a response on a socket that Node has let go of, since its request is a handshake. Unless a WebSocket takes the
 * socket, what has come behind the handshake is the next request; where nothing has, the response is the last.
 */
export function handshakeResponse(socket: Socket, request: IncomingMessage, head: Buffer): Response {
  const response = new ServerResponse(request)
  const connection = connectionOf(socket)
  response.shouldKeepAlive = request.httpVersion === '1.1' && !hasToken(request.headers.connection, 'close')
  socket.on('error', destroy)
  attachSocket(response, socket)
  response.on('finish', () => {
    emitClose(response) // As Node's server does for its own responses.
    if (response.socket === null) return connection.upgraded()
    releaseSocket(response, socket)
    if (!connection.isEnding) {
      socket.off('error', destroy)
      return connection.keepInput(head)
    }
    socket.resume().destroySoon()
  })
  return response
}

function destroy(this: Socket): void {
  this.destroy()
}

/**
 * Accepts the connections that wait in the kernel. Node accepts one in a turn of the event loop, and the kernel resets
 * the rest when the socket is closed. Resolves after the first turn without a new connection.
 */
export async function acceptWaiting(server: Server): Promise<void> {
  let arrived = true
  const note = (): void => {
    arrived = true
  }
  server.on('connection', note)
  await nextTurn() // The rest of this turn may not accept any more.
  for (let turn = 0; arrived && turn < mostTurns; turn += 1) {
    arrived = false
    await nextTurn()
  }
  server.off('connection', note)
}

/** Stops accepting and leaves open connections alone. Resolves when the last of them has closed. */
export function stopAccepting(server: Server): Promise<void> {
  return new Promise((resolve) => {
    if (!server.listening) return resolve()
    closeListening(server, resolve)
  })
}

/**
 * Closes a connection on which no request is being served: also one that has sent nothing yet, or a part of a header
 * section, which Node's `closeIdleConnections()` spares. A connection that is closing is left alone. One whose client
 * still sends the body of an answered request gets a lingering close.
 */
export function retire(socket: Socket): void {
  const connection = connectionOf(socket)
  if (!connection.isIdle) return
  if (!connection.isReading) return void socket.destroy()
  connection.linger()
  socket.destroySoon()
}

/** Whether the client ended its side within the header section behind a request that is still being served. */
function hasLeft(socket: Socket, code: string): boolean {
  return code === 'HPE_INVALID_EOF_STATE' && connectionOf(socket).current?.request.complete === true
}

/** An HTML page, or JSON when the request's header section has come and asks for it. */
function bodyOf(
  status: number,
  request: IncomingMessage | undefined,
  detail: string | undefined,
): { readonly type: string; readonly body: string } {
  // `wantsJson` reads fields of which Node has one text each.
  const header = (name: string): string | undefined => request?.headers[name] as string | undefined
  if (!wantsJson({ header })) return { type: htmlType, body: errorPage(status, detail) }
  const error: ErrorCode = status === 408 ? 'request_timeout' : status === 413 ? 'body_too_large' : 'bad_request'
  return { type: jsonType, body: JSON.stringify({ error, detail }) }
}

/**
 * Ends a connection with an error. A request that was read whole gets its own answer first. A request that is still
 * being read gets the error as its answer; without one, the answer is written to the socket.
 * @param detail what the client may know of the reason
 */
function refuse(
  socket: Socket,
  status: number,
  onRefused: ConnectionOptions['onRefused'],
  detail?: string,
): void {
  if (!socket.writable) return
  const pending = connectionOf(socket).current
  const response = pending?.response
  if (response && (response.req.complete || response.writableEnded)) {
    response.once('close', () => refuse(socket, status, onRefused, detail))
    return
  }
  if (response?.headersSent) return void socket.destroy()
  connectionOf(socket).linger()
  const { type, body } = bodyOf(status, response?.req, detail)
  const headers = ['Content-Type', type, 'Content-Length', String(Buffer.byteLength(body)), 'Connection', 'close']
  if (status === 405) headers.push('Allow', 'GET, HEAD')
  if (response) {
    response.once('close', () => connectionOf(socket).lost()) // Its action may still be running.
    response.writeHead(status, headers).end(body)
    return
  }
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
    receivedBytes: 0,
    durationMs: 0,
    leftWait: false,
    routeName: '',
    givenId: undefined,
    header: () => undefined,
  })
}
