/**
 * The listening socket and `node:http` or, with a certificate, `node:https`: limits, time-outs, start and stop.
 * `server.ts` serves the requests.
 *
 * Surprise: Node checks its time-outs only every 30 seconds by default, and its `close()` cuts idle connections at
 * once, which breaks a request that a client is just sending.
 */
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { AddressInfo, ListenOptions, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createServer } from '../http/node-http.ts'
import { connectionOf } from './connection.ts'
import { acceptWaiting, guardConnections, retire, stopAccepting, type ConnectionOptions } from './connections.ts'
import { overdueOf, type Deadlines } from './deadlines.ts'
import { watchHandshakes } from './handshakes.ts'
import { mustHold } from './incoming-request.ts'
import {
  announceKeepAlive,
  answerHalfClosed,
  checkNode,
  holdRequests,
  nameLocalPeer,
  readerOf,
  responseOf,
  serveStream,
  socketBelow,
} from './node-internals.ts'
import { isHandshake } from './raw-section.ts'
import type { Expect, RequestServer } from './server.ts'

/** A certificate with its chain, and its private key, in PEM. */
export interface Certificates {
  readonly cert: Buffer
  readonly key: Buffer
}

/** The limits of the listening socket. */
export interface ListenerOptions {
  readonly deadlines: Deadlines
  /** Frees file descriptors by closing connections; undefined where the system's limit is unknown. */
  readonly guardDescriptors: ((sockets: ReadonlySet<Socket>) => DescriptorGuard) | undefined
  /** Undefined: plain HTTP. */
  readonly certificates: Certificates | undefined
  /** Their log also gets an ERROR for each connection that could not be accepted, such as without file descriptors. */
  readonly connections: ConnectionOptions
  /** Whether to warn of an unknown Node version; with several processes only one does. Default: true. */
  readonly warnsOfNode?: boolean
}

/** Closes connections without progress when file descriptors run short. */
export interface DescriptorGuard {
  /** Call for each new connection. */
  accepted(): void
  /** Call at regular intervals. */
  check(): void
  /** Connections closed since the start. */
  readonly closed: number
  /** Messages for the operator while descriptors are short. */
  warnings(): readonly string[]
}

/** Where a server listens. */
export interface Address {
  /** The address; '' for a Unix socket. */
  readonly host: string
  /** The actual port, even if 0 was requested. 0 for a Unix socket. */
  readonly port: number
  /** `http://HOST:PORT`, `https://HOST:PORT` or `a Unix socket` */
  readonly url: string
}

/** Numbers of connections. */
type ConnectionCounts = Readonly<Record<'open' | 'refused' | 'stalled' | 'failed', number>>

/** Where to listen; Node's type lacks `fd`. */
type Target = ListenOptions & { readonly fd?: number }

/** How often time-outs are checked, in milliseconds. A connection is closed at most a second after its time-out. */
const checkEveryMs = 500

/**
 * How many connections may wait to be accepted; the kernel lowers it to `net.core.somaxconn`. Node accepts one per turn
 * of the event loop, and a client retries a second later when the backlog is full.
 */
const backlog = 65_535

/** The listening socket of a request server. It does not listen yet when it is made. */
export class Listener {
  readonly #options: ListenerOptions
  readonly #requests: Pick<RequestServer, 'handle' | 'upgrade'>
  readonly #server: Server | TlsServer
  readonly #isSecure: boolean
  readonly #read: ReturnType<typeof readerOf>
  readonly #guard: ReturnType<typeof guardConnections>
  readonly #failedHandshakes: () => number
  readonly #sockets: ReadonlySet<Socket>
  readonly #descriptors: DescriptorGuard | undefined
  #hasWarned = false
  #idleBefore: ReadonlySet<Socket> = new Set()

  constructor(requests: Pick<RequestServer, 'handle' | 'upgrade'>, options: ListenerOptions) {
    this.#options = options
    this.#requests = requests
    const server = makeServer(options)
    this.#server = server
    this.#isSecure = options.certificates !== undefined
    this.#read = readerOf(server, this.#isSecure)
    answerHalfClosed(server)
    server.on(this.#isSecure ? 'secureConnection' : 'connection', (socket: Socket) => this.#onConnection(socket))
    // The size of the section bounds their number. By default, Node 20 silently drops fields after the thousandth.
    server.maxHeadersCount = 0
    server.on('request', (request, response) => this.#handle(request, response, 'nothing'))
    server.on('checkContinue', (request, response) => this.#handle(request, response, 'continue'))
    server.on('checkExpectation', (request, response) => this.#handle(request, response, 'unknown'))
    // Streams of a listening server are sockets.
    server.on('upgrade', (request, stream, head) => this.#onUpgrade(request, stream as Socket, head))
    this.#guard = guardConnections(server, options.connections)
    this.#failedHandshakes = watchHandshakes(server, options.connections.log)
    this.#sockets = trackSockets(server)
    const descriptors = options.guardDescriptors?.(this.#sockets)
    if (descriptors !== undefined) server.on('connection', () => descriptors.accepted())
    this.#descriptors = descriptors
  }

  /** Whether connections are accepted. */
  get listening(): boolean {
    return this.#server.listening
  }

  /** Binds. Resolves with the actual address. Rejects when the address cannot be used. */
  async listen(host: string, port: number): Promise<Address> {
    try {
      return await this.#listen({ host, port })
    } catch (error) {
      throw cannotListen(host, port, error as NodeJS.ErrnoException)
    }
  }

  /** Listens on a socket that was passed as a file descriptor. Rejects when it cannot be used. */
  async listenOn(fd: number): Promise<Address> {
    try {
      return await this.#listen({ fd })
    } catch (error) {
      const problem = `Cannot listen on file descriptor ${fd}, which was passed: ${(error as Error).message}`
      throw new Error(`${problem}; let svc.socket have ListenStream= and Accept=no`, { cause: error })
    }
  }

  /** Replaces the certificate for new connections. Throws TypeError for a plain HTTP server. */
  setCertificates(certificates: Certificates): void {
    if (!('setSecureContext' in this.#server)) throw new TypeError('A plain HTTP server has no certificate')
    this.#server.setSecureContext(certificates)
  }

  /** Serves a connection that did not arrive through the socket. With `isSecure` it always counts as TLS. */
  accept(stream: Duplex, isSecure = false): void {
    serveStream(this.#server, stream, this.#isSecure, isSecure)
  }

  /** Accepts the connections that wait in the kernel now. */
  acceptWaiting(): Promise<void> {
    return acceptWaiting(this.#server)
  }

  /** Accepts no more connections; open ones stay. Resolves when the last of them has closed. */
  stopAccepting(): Promise<void> {
    return stopAccepting(this.#server)
  }

  /**
   * Closes the connections that are idle and were idle at the last call, even if part of a request has arrived. The
   * first call closes none.
   */
  closeIdle(): void {
    const idle = new Set([...this.#sockets].filter((socket) => connectionOf(socket).isIdle))
    for (const socket of idle) if (this.#idleBefore.has(socket)) retire(socket)
    this.#idleBefore = idle
  }

  /**
   * Open connections; and since the start: connections refused by a limit, connections closed because descriptors ran
   * short, and failed TLS handshakes.
   */
  connections(): ConnectionCounts {
    return {
      open: this.#sockets.size,
      refused: this.#guard.refused(),
      stalled: this.#descriptors?.closed ?? 0,
      failed: this.#failedHandshakes(),
    }
  }

  /** Messages for the operator while their reason lasts. */
  warnings(): readonly string[] {
    return this.#descriptors?.warnings() ?? []
  }

  /** Cuts every connection. Resolves when all are closed and their requests have ended. */
  async closeAll(): Promise<void> {
    const closed = [...this.#sockets].map((socket) => new Promise((resolve) => socket.once('close', resolve)))
    for (const socket of this.#sockets) socket.destroy()
    await Promise.all(closed)
  }

  #onConnection(socket: Socket): void {
    if (!holdRequests(socket, mustHold) && !this.#hasWarned) {
      this.#hasWarned = true
      const { log } = this.#options.connections
      log.warn(`Node ${process.versions.node} parses differently: only the first of pipelined requests is served`)
    }
    connectionOf(socket).attach = this.#attach
  }

  /** Lets Node read a socket again after it released it. One function for all sockets, for the sake of memory. */
  readonly #attach = (socket: Socket): void => {
    this.#read(socket)
    holdRequests(socket, mustHold)
  }

  #handle(request: IncomingMessage, response: ServerResponse, expect: Expect): void {
    announceKeepAlive(response, this.#options.deadlines.keepAliveTimeoutMs)
    this.#requests.handle(request, response, expect)
  }

  #onUpgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const connection = connectionOf(socket)
    const isItsTurn = !connection.isServing && !connection.isEnding && responseOf(socket) === undefined
    if (!isItsTurn || !isHandshake(request)) return connection.hold(request, head)
    connection.handOver()
    this.#requests.upgrade(request, socket, head)
    if (connection.inputEnded) socket.destroy() // No frame can arrive any more.
  }

  async #listen(target: Target): Promise<Address> {
    const server = this.#server
    const { warnsOfNode = true, connections: { log } } = this.#options
    const warnings = checkNode()
    if (warnsOfNode) for (const warning of warnings) log.warn(warning)
    await bind(server, target)
    const watch = setInterval(() => this.#endOverdue(), checkEveryMs).unref()
    server.once('close', () => clearInterval(watch))
    server.on('error', (error) => log.error(`a connection was not accepted: ${error.message}`))
    const bound = server.address()
    if (bound !== null && typeof bound === 'object') return tcpAddress(bound, this.#isSecure)
    for (const event of ['connection', 'secureConnection']) server.prependListener(event, nameLocalPeer)
    return { host: '', port: 0, url: 'a Unix socket' }
  }

  #endOverdue(): void {
    const nowMs = performance.now()
    for (const socket of this.#sockets) {
      const overdue = overdueOf(connectionOf(socket), nowMs, this.#options.deadlines)
      if (overdue !== undefined) this.#guard.end(socket, overdue)
    }
    this.#descriptors?.check()
  }
}

function makeServer({ certificates, deadlines }: ListenerOptions): Server | TlsServer {
  const { headerTimeoutMs } = deadlines
  const limits: ServerOptions & { optimizeEmptyRequests: boolean } = {
    // Since 24.12: requests without a body are not streams that have to be read to their end.
    optimizeEmptyRequests: true,
    headersTimeout: headerTimeoutMs,
    requestTimeout: 0, // Node's limit ends even a steady upload; see `deadlines.ts`.
    connectionsCheckingInterval: checkEveryMs,
    keepAliveTimeout: 0, // Node would set and clear a timer per request; `deadlines.ts` ends idle connections.
    // Node would send its own response, without a reason and an access log line; see `createHostGuard`.
    requireHostHeader: false,
  }
  if (certificates === undefined) return createServer(limits)
  const tlsOptions = { ...limits, ...certificates, handshakeTimeout: headerTimeoutMs, allowHalfOpen: true }
  return process.getBuiltinModule('node:https').createServer(tlsOptions)
}

/** The open sockets. With TLS, the TCP socket while the handshake is pending, then the TLS socket in its place. */
function trackSockets(server: Server | TlsServer): ReadonlySet<Socket> {
  const sockets = new Set<Socket>()
  // One function for all sockets: a closure for each would add to the memory of an idle connection.
  function forget(this: Socket): void {
    sockets.delete(this)
  }
  function add(socket: Socket): void {
    sockets.add(socket)
    socket.on('close', forget)
  }
  server.on('connection', add)
  server.on('secureConnection', (socket: Socket) => {
    add(socket)
    const below = socketBelow(socket)
    if (below !== undefined) sockets.delete(below)
  })
  return sockets
}

const listenAdvice: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program has this port, perhaps this server (see ss -ltnp): stop it, or set server.port',
  EACCES: 'ports below 1024 are for root: let systemd pass the socket (docs/operations.md), or set server.port',
  EADDRNOTAVAIL: 'no interface of this machine has this address: set server.host',
  ENOTFOUND: 'there is no such host: set server.host to a name or an address of this machine',
  EAI_AGAIN: 'the name cannot be looked up at the moment: set server.host to an address of this machine',
}

function cannotListen(host: string, port: number, error: NodeJS.ErrnoException): Error {
  const advice = listenAdvice[error.code ?? '']
  const message = `Cannot listen on ${host}, port ${port}: ${error.message}${advice === undefined ? '' : `; ${advice}`}`
  return Object.assign(new Error(message, { cause: error }), { code: error.code })
}

/** Surprise: `backlog` in the options applies only to a host and port; as an argument it applies to every target. */
function bind(server: Server, target: Target): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(target, backlog, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function tcpAddress({ address, port, family }: AddressInfo, secure: boolean): Address {
  const host = family === 'IPv6' ? `[${address}]` : address
  return { host: address, port, url: `${secure ? 'https' : 'http'}://${host}:${port}` }
}
