/**
 * Connections apart from the requests that are served: limits per address, malformed and late requests, CONNECT, the
 * responses of handshakes, and closing idle connections when the server stops.
 *
 * Responses are sent in the order of their requests. So a refused connection first sends the responses that are still
 * pending, and once the response to the broken request itself has begun, the connection can only be cut.
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
import { connectionOf, type ServedRequest } from './connection.ts'
import type { Overdue } from './deadlines.ts'
import { attachSocket, closeListening, emitClose, releaseSocket } from './node-internals.ts'

/** The limits of connections, and a callback for refused requests. */
export interface ConnectionOptions {
  /** The maximum of open connections; undefined: no limit. */
  readonly maxOpen?: number | undefined
  /** The limit of connections per address; undefined: no limit. */
  readonly addressLimit: AddressLimit | undefined
  /** Whether an address is exempt from that limit: trusted proxies are, since they have many clients. */
  readonly isTrusted: (address: string) => boolean
  /** The log of module `socket`. */
  readonly log: LogPort
  /** Called for each request refused before it was complete: by the parser, a time-out, or as CONNECT. */
  readonly onRefused: (refused: EndedRequest) => void
}

/** The status for Node's error codes of requests that cannot be served; 400 for all other `HPE_` codes. */
const statusOfError: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
}

/** `acceptWaiting` ends after this many turns of the event loop, even while connections keep arriving. */
const mostTurns = 1000

/**
 * Attaches the limits to a server that does not listen yet.
 * @returns `refused`: the number of connections that a limit refused since the start; `end`: ends a connection whose
 *   client is overdue
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
      log.say(`refused a connection from ${address}: it already has ${addressLimit.most} open`)
      socket.destroy()
    })
    socket.once('close', leave)
  })

  // Node caches the address on first read: the access log needs it when the client may have disconnected.
  server.on('secureConnection', (socket: Socket) => void socket.remoteAddress)

  server.on('clientError', (error: NodeJS.ErrnoException, stream) => {
    const socket = stream as Socket // Streams of a listening server are sockets.
    const { code = '' } = error
    const status = statusOfError[code] ?? (code.startsWith('HPE_') ? 400 : undefined)
    if (status === undefined) return void socket.destroy()
    const connection = connectionOf(socket)
    if (hasLeft(socket, code)) return void connection.endAfterCurrent()
    if (status === 408 && connection.isServing) {
      connection.isHeaderLate = true // The header time-out starts with the turn of its request.
      return
    }
    if (status === 408 && socket.bytesRead === 0) return void socket.destroy() // Browsers open spare connections.
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
    // Node has released this socket: nothing else reads it or handles its errors.
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
 * Creates a response on a socket that Node has released for a handshake. Unless a WebSocket takes over the socket, the
 * input behind the handshake is the next request; without such input, the response is the last.
 */
export function handshakeResponse(socket: Socket, request: IncomingMessage, head: Buffer): Response {
  const response = new ServerResponse(request)
  const connection = connectionOf(socket)
  response.shouldKeepAlive = request.httpVersion === '1.1' && !hasToken(request.headers.connection, 'close')
  socket.on('error', destroy)
  attachSocket(response, socket)
  response.on('finish', () => {
    emitClose(response) // As Node does for its own responses.
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
 * Accepts the connections that wait in the kernel. Node accepts one per turn of the event loop, and the kernel resets
 * the rest when the socket is closed. Resolves after the first turn without a new connection.
 */
export async function acceptWaiting(server: Server): Promise<void> {
  let arrived = true
  const note = (): void => {
    arrived = true
  }
  server.on('connection', note)
  await nextTurn() // The rest of this turn may accept none.
  for (let turn = 0; arrived && turn < mostTurns; turn += 1) {
    arrived = false
    await nextTurn()
  }
  server.off('connection', note)
}

/** Stops accepting; open connections stay. Resolves when the last of them has closed. */
export function stopAccepting(server: Server): Promise<void> {
  return new Promise((resolve) => {
    if (!server.listening) return resolve()
    closeListening(server, resolve)
  })
}

/**
 * Closes a connection that serves no request, even if its client has sent nothing yet or part of a header section,
 * which Node's `closeIdleConnections()` spares. Does nothing on a closing connection. If the client still sends the
 * body of an answered request, the close is a lingering one.
 */
export function retire(socket: Socket): void {
  const connection = connectionOf(socket)
  if (!connection.isIdle) return
  if (!connection.isReading) return void socket.destroy()
  connection.linger()
  socket.destroySoon()
}

/** Whether the client ended its side in the middle of a header section, while an earlier request is being served. */
function hasLeft(socket: Socket, code: string): boolean {
  return code === 'HPE_INVALID_EOF_STATE' && connectionOf(socket).current?.request.complete === true
}

/** An HTML page, or JSON when the request's header section has arrived and its route or its client prefers it. */
function bodyOf(
  status: number,
  served: ServedRequest | undefined,
  detail: string | undefined,
): { readonly type: string; readonly body: string } {
  // `wantsJson` reads only fields that Node returns as one string.
  const header = (name: string): string | undefined => served?.response.req.headers[name] as string | undefined
  const errorFormat = served?.errorFormat ?? 'auto'
  if (!wantsJson({ header, errorFormat })) return { type: htmlType, body: errorPage(status, detail) }
  const error: ErrorCode = status === 408 ? 'request_timeout' : status === 413 ? 'body_too_large' : 'bad_request'
  return { type: jsonType, body: JSON.stringify({ error, detail }) }
}

/**
 * Ends a connection with an error. A fully read request gets its own response first. A request that is still being read
 * gets the error as its response; without a request, the error is written to the socket.
 * @param detail the reason as the client may see it
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
  const { type, body } = bodyOf(status, pending, detail)
  const sentBytes = Buffer.byteLength(body)
  const headers = ['Content-Type', type, 'Content-Length', String(sentBytes), 'Connection', 'close']
  if (status === 405) headers.push('Allow', 'GET, HEAD')
  if (response) {
    pending.sentBytes = sentBytes
    response.once('close', () => connectionOf(socket).lost()) // The action may still be running.
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
    sentBytes,
    receivedBytes: 0,
    durationMs: 0,
    leftWait: false,
    routeName: '',
    givenId: undefined,
    idToSend: undefined,
    header: () => undefined,
  })
}
