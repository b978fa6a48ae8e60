/**
 * The listening socket and `node:http` or, with a certificate, `node:https`: limits, time-outs, start and stop.
 * `server.ts` serves the requests.
 *
 * Surprise: Node checks its time-outs only every 30 seconds by default, and its `close()` cuts idle connections at
 * once, which fails the request that a client is just sending.
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
  /** Keeps file descriptors free by closing connections; undefined where the system does not tell its limit. */
  readonly guardDescriptors: ((sockets: ReadonlySet<Socket>) => DescriptorGuard) | undefined
  /** Undefined: plain HTTP. */
  readonly certificates: Certificates | undefined
  /** Their log also gets an ERROR for each connection that could not be accepted, as for want of file descriptors. */
  readonly connections: ConnectionOptions
  /** Whether to warn of a version of Node that is not known; one of several processes does. True unless given. */
  readonly warnsOfNode?: boolean
}

/** Closes connections without progress when file descriptors run short. */
export interface DescriptorGuard {
  /** Call for each new connection. */
  accepted(): void
  /** Call at regular intervals. */
  check(): void
  /** The connections closed since the start. */
  readonly closed: number
  /** Messages for the operator, while descriptors are short. */
  warnings(): readonly string[]
}

/** Where a server listens. */
export interface Address {
  /** The address; '' for a Unix socket. */
  readonly host: string
  /** The port in use, also when 0 was asked for. 0 for a Unix socket. */
  readonly port: number
  /** `http://HOST:PORT`, `https://HOST:PORT` or `a Unix socket` */
  readonly url: string
}

/** A listening socket. */
export type Listener = ReturnType<typeof createListener>

/** Where to listen; the type of Node lacks `fd`. */
type Target = ListenOptions & { readonly fd?: number }

/** How often time-outs are checked, in milliseconds. A connection is closed at most a second after its time-out. */
const checkEveryMs = 500

/**
 * How many connections may wait to be accepted; the kernel lowers it to `net.core.somaxconn`. Node accepts one in a
 * turn of the event loop, and a client that finds no place retries a second later.
 */
const backlog = 65_535

/** Attaches a request server to a socket that does not listen yet. */
export function createListener(requests: Pick<RequestServer, 'handle' | 'upgrade'>, options: ListenerOptions) {
  const server = makeServer(options)
  const isSecure = options.certificates !== undefined
  const read = readerOf(server, isSecure)
  answerHalfClosed(server)
  const { log } = options.connections
  let hasWarned = false
  server.on(isSecure ? 'secureConnection' : 'connection', (socket: Socket) => {
    if (!holdRequests(socket, mustHold) && !hasWarned) {
      hasWarned = true
      log.warn(`Node ${process.versions.node} parses in a new way: of pipelined requests only the first is served`)
    }
    connectionOf(socket).attach = attach
  })
  // The size of the section bounds them. By default, Node 20 silently drops those after the thousandth.
  server.maxHeadersCount = 0
  server.on('request', (request, response) => handle(request, response, 'nothing'))
  server.on('checkContinue', (request, response) => handle(request, response, 'continue'))
  server.on('checkExpectation', (request, response) => handle(request, response, 'unknown'))
  server.on('upgrade', (request, stream, head) => {
    const socket = stream as Socket // On a listening socket it is one.
    const connection = connectionOf(socket)
    const isItsTurn = !connection.isServing && !connection.isEnding && responseOf(socket) === undefined
    if (!isItsTurn || !isHandshake(request)) return connection.hold(request, head)
    connection.handOver()
    requests.upgrade(request, socket, head)
    if (connection.inputEnded) socket.destroy() // Nobody would send a frame.
  })
  const { refused: refusedConnections, end: endConnection } = guardConnections(server, options.connections)
  const failedHandshakes = watchHandshakes(server, log)
  const sockets = trackSockets(server)
  const descriptors = options.guardDescriptors?.(sockets)
  if (descriptors !== undefined) server.on('connection', () => descriptors.accepted())
  let idleBefore: ReadonlySet<Socket> = new Set()

  function handle(request: IncomingMessage, response: ServerResponse, expect: Expect): void {
    announceKeepAlive(response, options.deadlines.keepAliveTimeoutMs)
    requests.handle(request, response, expect)
  }

  /** Lets Node read a socket again that it has let go of. */
  function attach(socket: Socket): void {
    read(socket)
    holdRequests(socket, mustHold)
  }

  function endOverdue(): void {
    const nowMs = performance.now()
    for (const socket of sockets) {
      const overdue = overdueOf(connectionOf(socket), nowMs, options.deadlines)
      if (overdue !== undefined) endConnection(socket, overdue)
    }
    descriptors?.check()
  }

  async function listen(target: Target): Promise<Address> {
    const warnings = checkNode()
    if (options.warnsOfNode !== false) for (const warning of warnings) log.warn(warning)
    await bind(server, target)
    const watch = setInterval(endOverdue, checkEveryMs).unref()
    server.once('close', () => clearInterval(watch))
    server.on('error', (error) => log.error(`a connection was not accepted: ${error.message}`))
    const bound = server.address()
    if (bound !== null && typeof bound === 'object') return tcpAddress(bound, options.certificates !== undefined)
    for (const event of ['connection', 'secureConnection']) server.prependListener(event, nameLocalPeer)
    return { host: '', port: 0, url: 'a Unix socket' }
  }

  return {
    /** Whether connections are accepted. */
    get listening(): boolean {
      return server.listening
    },

    /** Binds. Resolves with the port in use. Rejects when the address cannot be used. */
    listen: (host: string, port: number): Promise<Address> =>
      listen({ host, port }).catch((error: NodeJS.ErrnoException) => Promise.reject(cannotListen(host, port, error))),

    /** Listens on a socket that this process was given as a file descriptor. Rejects when it cannot be used. */
    listenOn: async (fd: number): Promise<Address> => {
      try {
        return await listen({ fd })
      } catch (error) {
        const problem = `Cannot listen on file descriptor ${fd}, which was passed: ${(error as Error).message}`
        throw new Error(`${problem}; let svc.socket have ListenStream= and Accept=no`, { cause: error })
      }
    },

    /** Uses another certificate for new connections. Throws TypeError for a server of plain HTTP. */
    setCertificates: (certificates: Certificates): void => {
      if (!('setSecureContext' in server)) throw new TypeError('A server of plain HTTP has no certificate')
      server.setSecureContext(certificates)
    },

    /** Serves a connection that did not come through the socket. With `isSecure` it counts as TLS in any case. */
    accept: (stream: Duplex, isSecure = false): void =>
      serveStream(server, stream, options.certificates !== undefined, isSecure),

    /** Accepts the connections that wait in the kernel now. */
    acceptWaiting: (): Promise<void> => acceptWaiting(server),

    /** Accepts no more connections; open ones stay. Resolves when the last of them has closed. */
    stopAccepting: (): Promise<void> => stopAccepting(server),

    /**
     * Closes the connections that are idle and were idle at the last call, even when a part of a request has arrived.
     * The first call closes none.
     */
    closeIdle: (): void => {
      const idle = new Set([...sockets].filter((socket) => connectionOf(socket).isIdle))
      for (const socket of idle) if (idleBefore.has(socket)) retire(socket)
      idleBefore = idle
    },

    /**
     * Open connections; since the start, those that a limit has refused, those closed for want of descriptors, and TLS
     * handshakes that failed.
     */
    connections: () => ({
      open: sockets.size,
      refused: refusedConnections(),
      stalled: descriptors?.closed ?? 0,
      failed: failedHandshakes(),
    }),

    /** Messages for the operator, as long as their reason lasts. */
    warnings: (): readonly string[] => descriptors?.warnings() ?? [],

    /** Cuts every connection. Resolves when all are closed and their requests have ended. */
    closeAll: async (): Promise<void> => {
      const closed = [...sockets].map((socket) => new Promise((resolve) => socket.once('close', resolve)))
      for (const socket of sockets) socket.destroy()
      await Promise.all(closed)
    },
  }
}

function makeServer({ certificates, deadlines }: ListenerOptions): Server | TlsServer {
  const { headerTimeoutMs } = deadlines
  const limits: ServerOptions & { optimizeEmptyRequests: boolean } = {
    // From 24.12 on: a request without a body is no stream that has to be read to its end.
    optimizeEmptyRequests: true,
    headersTimeout: headerTimeoutMs,
    requestTimeout: 0, // Node's ends a body however steadily it comes; see `deadlines.ts`.
    connectionsCheckingInterval: checkEveryMs,
    keepAliveTimeout: 0, // Node's sets and clears a timer for each request; `deadlines.ts` ends idle connections.
    // Node would answer by itself, without a reason and without an access line; see `createHostGuard`.
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
  EADDRINUSE: 'another program has this port, perhaps this server (ss -ltnp tells which): stop it, or set server.port',
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

/** Surprise: `backlog` in the options counts only for a host and a port; as an argument it counts for every target. */
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
