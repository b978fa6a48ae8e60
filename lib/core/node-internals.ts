/**
 * Everything that relies on undocumented behaviour of Node: private fields, replaced methods, events that only Node
 * emits. Each section explains what is used, what it gains, and what happens without it.
 *
 * `test/docs/audit.test.ts` finds such uses in any other file, and `test/core/node-internals.test.ts` verifies the
 * behaviour on this version of Node. Correctness does not depend on it: `connection.ts` tracks which connection is idle
 * and which request is being served. At start-up on an unknown major version, `checkNode` checks what it can.
 */
import type { IncomingMessage as Incoming, Server, ServerResponse } from 'node:http'
import { Server as NetServer, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { IncomingMessage, ServerResponse as Response } from '../http/node-http.ts'

/** The major versions that the tests of this release run on. */
const testedMajors: readonly number[] = [20, 22, 24, 26]

/**
 * Checks an untested version of Node as far as possible without a connection; takes at most 3 ms. If it does not send
 * header sections that were set, Node builds them from then on, in all servers of this process.
 * @param version such as `24.21.0`
 * @returns a warning for each difference
 */
export function checkNode(version: string = process.versions.node): readonly string[] {
  if (testedMajors.includes(Number.parseInt(version))) return []
  const warnings: string[] = []
  const request = new IncomingMessage(undefined as unknown as Socket) // Nothing is read from it.
  request.httpVersionMajor = 1
  request.httpVersionMinor = 1
  if (!sendsSections(new Response(request))) {
    sectionsAreKnown = false
    warnings.push('it builds header sections differently: svc leaves them to Node, which is slower')
  }
  if (!('destroySoon' in Socket.prototype)) {
    warnings.push('it closes connections differently: clients that are refused while sending may miss the response')
  }
  if (!('assignSocket' in Response.prototype)) {
    warnings.push('it answers handshakes differently: WebSockets cannot be opened')
  }
  return warnings.map((warning) => `Node ${version} is not known to this version of svc: ${warning}`)
}

// ---- the header section of a response: `_header` ----

/**
 * Node keeps the header section made by `writeHead` in `response._header`, as Latin-1 text, and sends it with the first
 * bytes of the body. With it, the end of a section (date, keep-alive) is reused for other responses in the same second,
 * and a short body is sent in one write with its section: together about a tenth of a plain response. If it is not a
 * string, or `checkNode` has found different output, every section and body takes the documented way.
 */
interface SectionHolder {
  _header?: unknown
}

/** Whether header sections may be read and written; per process, since it depends only on the version of Node. */
let sectionsAreKnown = true

/** Returns the header section that `writeHead` has made; undefined if unknown. */
export function sectionOf(response: ServerResponse): string | undefined {
  const section = (response as SectionHolder)._header
  return sectionsAreKnown && typeof section === 'string' ? section : undefined
}

/** Sets the header section, or replaces it. Call it only after `sectionOf` has returned one on this server. */
export function setSection(response: ServerResponse, section: string): void {
  ;(response as SectionHolder)._header = section
}

interface ProbedResponse extends SectionHolder {
  readonly outputData?: readonly { readonly data: unknown }[]
}

/**
 * Whether this version keeps header sections in `_header` and sends the section that is set there. A response without a
 * socket collects its output in `outputData`, which is compared; if that is missing, returns false.
 *
 * Surprise: calling this makes every request take 6 % more instructions. This response has no socket, and V8 keeps code
 * for both kinds of responses from then on.
 * @param response new, and without a socket
 */
export function sendsSections(response: ServerResponse): boolean {
  const probe = response as ProbedResponse
  try {
    response.writeHead(200, ['Vary', 'Accept', 'Content-Length', '1'])
    const section = String(probe._header)
    const isKnown = section.startsWith('HTTP/1.1 200 OK\r\nVary: Accept\r\nContent-Length: 1\r\n')
    if (!isKnown || !section.endsWith('\r\n\r\n')) return false
    const other = `${section.replace('Accept', 'Origin')}a`
    probe._header = other
    response.end()
    return probe.outputData?.map(({ data }) => String(data)).join('') === other
  } catch {
    return false
  }
}

// ---- how long a connection stays: `_keepAliveTimeout` ----

/**
 * Announces how long the connection stays open when idle: `Keep-Alive: timeout=5`. Node sends this only together with
 * its own time-out, which costs a twentieth of a plain request. Without it the field is missing, which is allowed.
 */
export function announceKeepAlive(response: ServerResponse, timeoutMs: number): void {
  ;(response as ServerResponse & { _keepAliveTimeout: number })._keepAliveTimeout = timeoutMs
}

// ---- the end of a response: the event `close` ----

/**
 * Notifies the listeners of a response that it has ended. Node emits `close` when the socket of a response closes, but
 * not for a response that never got the socket because an earlier response was pending (before version 24), nor when a
 * WebSocket has taken the socket. Without this, such requests would be counted as running forever.
 */
export function emitClose(response: ServerResponse): void {
  response.emit('close')
}

// ---- the socket of a response: `assignSocket`, `detachSocket` ----

/**
 * Node releases the socket of a request for an upgrade. `assignSocket`, as in Node's own server, lets an ordinary
 * response answer the handshake. Without it, the connection of a handshake is cut.
 */
export function attachSocket(response: ServerResponse, socket: Socket): void {
  if (typeof response.assignSocket === 'function') response.assignSocket(socket)
  else socket.destroy()
}

/** Detaches the socket from a finished response, for the WebSocket or for the close. */
export function releaseSocket(response: ServerResponse, socket: Socket): void {
  if (typeof response.detachSocket === 'function') response.detachSocket(socket)
}

// ---- the close after the last response: `destroySoon` ----

/**
 * Replaces how Node closes a connection after its last response. `node:http` calls `socket.destroySoon()`, which resets
 * a client that is still sending, and the reset can overtake the response. A version that closes differently may lose
 * such responses; `checkNode` warns about it.
 */
export function replaceClose(socket: Socket, close: () => void): void {
  socket.destroySoon = close
}

// ---- the parser of a connection: `parser.onIncoming` ----

interface HttpParser {
  onIncoming?: ((request: Incoming, keepAlive: boolean) => number) | null
}

/** A request as the parser creates it; `upgrade`: whether Node releases its socket. */
interface ParsedRequest extends Incoming {
  upgrade?: boolean
}

/** Return value of `onIncoming`: no further input belongs to HTTP. */
const stopParsing = 2

/**
 * Calls `mustHold` for each request of a connection when its header section has been parsed, before it is served. Node
 * does not serve a held request: it parses nothing behind it, including the body, releases the socket, and emits
 * `upgrade` or `connect` with the request and the bytes behind its header section, as after a handshake.
 *
 * Without `parser.onIncoming`, Node parses all pipelined requests at once, and `server.ts` serves only the first.
 * @param socket that the server has begun to read
 * @returns false if this version of Node has no such function
 */
export function holdRequests(socket: Socket, mustHold: (request: Incoming) => boolean): boolean {
  const { parser } = socket as Socket & { readonly parser?: HttpParser | null }
  const onIncoming = parser?.onIncoming
  if (typeof onIncoming !== 'function' || !parser) return false
  parser.onIncoming = (request: ParsedRequest, keepAlive) => {
    if (!mustHold(request)) return onIncoming(request, keepAlive)
    request.upgrade = true
    return stopParsing
  }
  return true
}

/** Whether the parser takes a request for an upgrade. */
export function asksForUpgrade(request: Incoming): boolean {
  return (request as ParsedRequest).upgrade === true
}

// ---- the state of a socket: `_httpMessage`, `writeQueueSize`, `_parent` ----

interface InnerSocket extends Socket {
  readonly _httpMessage?: ServerResponse | null
  readonly _handle?: { readonly writeQueueSize?: number; reading?: boolean; readStart?(): number } | null
  readonly _parent?: InnerSocket | null
}

/**
 * Returns the response that still uses the socket, for example because it ended in this turn of the event loop. Without
 * the field, the next request of a connection may be served in the same turn, and Node orders the two.
 */
export function responseOf(socket: Socket): ServerResponse | undefined {
  return (socket as InnerSocket)._httpMessage ?? undefined
}

/**
 * Emits `drain` on the response of a socket, as Node does while it reads the socket. Without it, a response to a slow
 * client would stall once a further request has been read.
 */
export function emitDrain(socket: Socket): void {
  const response = responseOf(socket)
  if (response?.writableEnded === false) response.emit('drain')
}

/** Returns the TCP socket below a TLS socket. Without the field, a connection would be counted twice. */
export function socketBelow(socket: Socket): Socket | undefined {
  return (socket as InnerSocket)._parent ?? undefined
}

/**
 * Returns a number that changes only when the system accepts output of a socket. Without `writeQueueSize`, which Node
 * itself checks before it emits `timeout`, it changes with each write that the system has accepted completely.
 */
export function takenByClient(socket: Socket): number {
  const { _parent: below, _handle: handle } = socket as InnerSocket
  return socket.bytesWritten - socket.writableLength - ((below?._handle ?? handle)?.writeQueueSize ?? 0)
}

// ---- a Unix socket: `remoteAddress` ----

/**
 * Sets the missing address of a Unix socket connection to 127.0.0.1, so that limits, logs and `server.trusted_proxies`
 * have one. Only this server reads it.
 */
export function nameLocalPeer(socket: Socket): void {
  Object.defineProperty(socket, 'remoteAddress', { value: '127.0.0.1' })
}

// ---- the listening socket: `close` ----

/**
 * Closes only the listening socket, by the method of `net.Server`. The method of `http.Server` also cuts idle
 * connections, which breaks a request that a client is just sending.
 */
export function closeListening(server: Server, closed: () => void): void {
  NetServer.prototype.close.call(server, closed)
}

/**
 * Restarts reading on the system handle of a released socket. Node stops the handle while a body waits to be read and
 * restarts it a tick later, by a listener that no longer exists if the socket was released in between. Without this,
 * such a connection would receive nothing more until its time-out.
 */
export function startReading(socket: Socket): void {
  const { _handle: handle } = socket as InnerSocket
  if (handle?.reading !== false) return
  handle.reading = true
  handle.readStart?.()
}

/** Passes a piece of raw input to the server that reads a socket, as the socket itself does. */
export function feed(socket: Socket, piece: Buffer): void {
  socket.emit('data', piece)
}

/** Signals the end of a socket's input, which came while the server did not read it. */
export function endInput(socket: Socket): void {
  socket.emit('end')
}

// ---- a client that ends its side: `httpAllowHalfOpen` ----

/**
 * Lets a server answer a client that has ended its side of the connection, as `socat` and `nc` do after a request.
 * Otherwise, and in a version without this member, Node destroys the request. TLS also needs `allowHalfOpen` of
 * `net.Server`, which a plain HTTP server sets itself.
 */
export function answerHalfClosed(server: Server): void {
  Object.assign(server, { httpAllowHalfOpen: true })
}

// ---- a socket that a server reads again: the first listener of `connection` ----

/**
 * Returns the function with which a server starts to read a socket, for sockets that it has released. Node documents
 * that a server accepts any stream by the event `connection`, whose other listeners must not see a socket twice.
 * @param server without listeners other than its own
 */
export function readerOf(server: Server, isSecure: boolean): (socket: Socket) => void {
  const [listener] = server.listeners(isSecure ? 'secureConnection' : 'connection')
  return (socket) => void listener?.call(server, socket)
}

// ---- a connection that did not come through the socket: `connection` ----

/**
 * Serves a stream as a connection. Node documents that a server accepts any stream by this event, and that it needs
 * some members of a socket; which of them this server and Node use is not documented. Used only by `app.request()`, for
 * tests.
 * @param isTls whether the server has a certificate: the handshake then counts as done
 * @param isSecure whether requests on the stream count as sent over TLS
 */
export function serveStream(server: Server, stream: Duplex, isTls: boolean, isSecure = isTls): void {
  const socket = stream as Socket
  const itself = (): Socket => socket
  Object.assign(socket, {
    remoteAddress: '127.0.0.1',
    encrypted: isTls || isSecure,
    bytesRead: 0,
    setTimeout: itself,
    setNoDelay: itself,
    setKeepAlive: itself,
    destroySoon: () => void socket.end(() => socket.destroy()),
  })
  server.emit(isTls ? 'secureConnection' : 'connection', socket)
}
