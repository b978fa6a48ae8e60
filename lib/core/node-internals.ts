/**
 * Everything that relies on behaviour which Node does not document: private fields, replaced methods, events that only
 * Node emits. Each paragraph says what is used, what it buys, and what happens without it.
 *
 * `test/docs/audit.test.ts` finds such uses in any other file, and `test/core/node-internals.test.ts` proves the
 * behaviour on this version of Node. No correctness depends on it: which connection is idle and which request is being
 * served is counted in `connection.ts`. At the start on an unknown major version, `checkNode` compares what it can.
 */
import type { IncomingMessage as Incoming, Server, ServerResponse } from 'node:http'
import { Server as NetServer, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { IncomingMessage, ServerResponse as Response } from '../http/node-http.ts'

/** The major versions that the tests of this release run on. */
const testedMajors: readonly number[] = [20, 22, 24, 26]

/**
 * Checks a version of Node, unless it is tested, as far as that can be done without a connection; it takes 3 ms at
 * most. Where it does not send header sections that were set, they are left to Node from then on, in all servers of
 * this process.
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
    warnings.push('it makes header sections in a new way: they are left to it, which takes longer')
  }
  if (!('destroySoon' in Socket.prototype)) {
    warnings.push('it closes connections in a new way: clients that are refused while they send may miss the answer')
  }
  if (!('assignSocket' in Response.prototype)) {
    warnings.push('it answers handshakes in a new way: WebSockets cannot be opened')
  }
  return warnings.map((warning) => `Node ${version} is not known to this version of svc: ${warning}`)
}

// ---- the header section of a response: `_header` ----

/**
 * Node keeps the header section that `writeHead` has made in `response._header`, as Latin-1 text, and sends it with the
 * first bytes of the body. With it, the end of a section (date, keep-alive) is reused for the other answers of the same
 * second, and a short body leaves in one write with its section: together about a tenth of a plain answer. Where it is
 * no text, or `checkNode` has found another output than Node's, every section and body takes the documented way.
 */
interface SectionHolder {
  _header?: unknown
}

/** Whether header sections may be read and written; per process, since it depends on the version of Node alone. */
let sectionsAreKnown = true

/** The header section that `writeHead` has made; undefined where it is not known. */
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
 * Whether this version keeps header sections in `_header` and sends the one that is set there. A response without a
 * socket collects its output in `outputData`, which is compared; where that is missing, the answer is no.
 *
 * Surprise: it makes every request take 6 % more instructions. This response has no socket, and V8 keeps code for both
 * kinds of responses from then on.
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
 * Has a response say for how long its connection stays open once it is idle: `Keep-Alive: timeout=5`. Node says so only
 * together with its own time-out, which takes a twentieth of a plain request. Without it the field is missing, which is
 * allowed.
 */
export function announceKeepAlive(response: ServerResponse, timeoutMs: number): void {
  ;(response as ServerResponse & { _keepAliveTimeout: number })._keepAliveTimeout = timeoutMs
}

// ---- the end of a response: the event `close` ----

/**
 * Tells the listeners of a response that it has ended. Node emits `close` when the socket of a response closes. It
 * emits none for a response that never had the socket, since the answer before it was still owed (before version 24),
 * nor for one whose socket a WebSocket has. Without it, such requests would be counted as running for ever.
 */
export function emitClose(response: ServerResponse): void {
  response.emit('close')
}

// ---- the socket of a response: `assignSocket`, `detachSocket` ----

/**
 * Node lets go of the socket of a request that asks for an upgrade. With `assignSocket`, as its own server does it, the
 * answer to a handshake is written by an ordinary response. Without it, the connection of a handshake is cut.
 */
export function attachSocket(response: ServerResponse, socket: Socket): void {
  if (typeof response.assignSocket === 'function') response.assignSocket(socket)
  else socket.destroy()
}

/** Takes the socket back from a response that has ended, for the WebSocket or for the close. */
export function releaseSocket(response: ServerResponse, socket: Socket): void {
  if (typeof response.detachSocket === 'function') response.detachSocket(socket)
}

// ---- the close after the last answer: `destroySoon` ----

/**
 * Replaces the way in which Node closes a connection after its last answer. `node:http` calls `socket.destroySoon()`,
 * which resets a client that is still sending, and the reset can overtake the answer. A version that closes in another
 * way may lose such answers: `checkNode` warns of it.
 */
export function replaceClose(socket: Socket, close: () => void): void {
  socket.destroySoon = close
}

// ---- the parser of a connection: `parser.onIncoming` ----

interface HttpParser {
  onIncoming?: ((request: Incoming, keepAlive: boolean) => number) | null
}

/** A request as the parser makes it: with a member that says whether its socket leaves the server. */
interface ParsedRequest extends Incoming {
  upgrade?: boolean
}

/** Tells the parser that no further byte of its input belongs to HTTP. */
const stopParsing = 2

/**
 * Asks about each request of a connection before it is served, when its header section has been parsed. A request that
 * is held is not served: Node parses nothing behind it, body included, lets go of the socket, and emits `upgrade` or
 * `connect` with the request and the bytes behind its header section, as after a handshake.
 *
 * Without `parser.onIncoming`, Node parses requests that were sent without waiting all at once, and `server.ts` serves
 * the first of them alone.
 * @param socket that the server has begun to read
 * @returns false where this version of Node has no such function
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

/** Whether a request asks for an upgrade, as the parser understood it. */
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
 * The response that still uses the socket, as one that has ended in this turn of the event loop does. Without the field
 * the next request of a connection may be served in the same turn, and Node orders the two.
 */
export function responseOf(socket: Socket): ServerResponse | undefined {
  return (socket as InnerSocket)._httpMessage ?? undefined
}

/**
 * Tells the response on a socket that it may write on, as Node does while it reads the socket. Without it, a response
 * to a slow client would stop once a further request has been read.
 */
export function emitDrain(socket: Socket): void {
  const response = responseOf(socket)
  if (response?.writableEnded === false) response.emit('drain')
}

/** The TCP socket below one of TLS. Without the field a connection would be counted twice. */
export function socketBelow(socket: Socket): Socket | undefined {
  return (socket as InnerSocket)._parent ?? undefined
}

/**
 * A number that changes when the system takes output of a socket, and at no other time. Without `writeQueueSize`, which
 * Node itself asks before it emits `timeout`, it changes with each write that the system has taken whole.
 */
export function takenByClient(socket: Socket): number {
  const { _parent: below, _handle: handle } = socket as InnerSocket
  return socket.bytesWritten - socket.writableLength - ((below?._handle ?? handle)?.writeQueueSize ?? 0)
}

// ---- a Unix socket: `remoteAddress` ----

/**
 * Sets the address of a connection over a Unix socket, which has none, to that of a local TCP connection, so that
 * limits, logs and `server.trusted_proxies` know it. Only this server reads it.
 */
export function nameLocalPeer(socket: Socket): void {
  Object.defineProperty(socket, 'remoteAddress', { value: '127.0.0.1' })
}

// ---- the listening socket: `close` ----

/**
 * Closes the listening socket alone, by the method of `net.Server`. That of `http.Server` also cuts idle connections,
 * which fails the request that a client is just sending.
 */
export function closeListening(server: Server, closed: () => void): void {
  NetServer.prototype.close.call(server, closed)
}

/**
 * Lets the system's handle of a socket read again that Node has let go of. Node stops the handle while a body waits to
 * be taken and starts it a tick later, by a listener that is gone when the socket has been let go of in between.
 * Without it such a connection would hear nothing more, until its time-out.
 */
export function startReading(socket: Socket): void {
  const { _handle: handle } = socket as InnerSocket
  if (handle?.reading !== false) return
  handle.reading = true
  handle.readStart?.()
}

/** Hands a piece of raw input to the server that reads a socket, as the socket itself does. */
export function feed(socket: Socket, piece: Buffer): void {
  socket.emit('data', piece)
}

/** Tells the server that reads a socket that its input has ended, which happened while the server did not read it. */
export function endInput(socket: Socket): void {
  socket.emit('end')
}

// ---- a client that ends its side: `httpAllowHalfOpen` ----

/**
 * Lets a server answer a client that has ended its side of the connection, as `socat` and `nc` do after a request. Node
 * destroys its request otherwise. A version without this member does so too. With TLS, `allowHalfOpen` of `net.Server`
 * is needed as well, which a server of plain HTTP sets by itself.
 */
export function answerHalfClosed(server: Server): void {
  Object.assign(server, { httpAllowHalfOpen: true })
}

// ---- a socket that a server reads again: the first listener of `connection` ----

/**
 * Gives the function with which a server begins to read a socket, for sockets that it has let go of. Node documents
 * that a server takes any stream by the event `connection`, whose other listeners must not see a socket twice.
 * @param server without listeners other than its own
 */
export function readerOf(server: Server, isSecure: boolean): (socket: Socket) => void {
  const [listener] = server.listeners(isSecure ? 'secureConnection' : 'connection')
  return (socket) => void listener?.call(server, socket)
}

// ---- a connection that did not come through the socket: `connection` ----

/**
 * Serves a stream as a connection. Node documents that a server takes any stream by this event, and that it needs some
 * members of a socket; which of them this server and Node use is not documented. Used by `app.request()` alone, for
 * tests.
 * @param isTls whether the server has a certificate: the stream then stands behind the handshake
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
