/**
 * The listening socket with `node:http` or, with a certificate, `node:https` behind it: limits, time-outs, start and
 * stop. What a request then meets is in `server.ts`.
 *
 * Surprise: Node looks at its time-outs only every 30 seconds unless told otherwise, and its `close()` cuts idle
 * connections at once, which fails the request that a client is just sending.
 */
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { createSecureContext } from 'node:tls'
import { guardConnections, stopAccepting, type ConnectionOptions } from './http/connections.ts'
import type { RequestServer } from './server.ts'

export interface ListenerOptions {
  readonly headerTimeoutMs: number
  readonly requestTimeoutMs: number
  readonly keepAliveTimeoutMs: number
  /** Absolute paths of certificate and key in PEM; undefined: plain HTTP. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined
  readonly connections: ConnectionOptions
}

export interface Listener {
  /** Binds. Resolves with the real port. Rejects when the address cannot be had. */
  listen(host: string, port: number): Promise<AddressInfo>
  /** Reads the certificate anew, for the connections to come. Throws when it cannot be used; the old one stays. */
  reloadCertificates(): void
  /** Accepts no more connections; those that are there stay. */
  stopAccepting(): Promise<void>
  /** Closes the connections on which nothing is being served. */
  closeIdle(): void
  /** Cuts every connection. */
  closeAll(): void
}

/** How often time-outs are looked at, in milliseconds: they are kept within a second. */
const checkEveryMs = 500

/** Attaches a request server to a socket that does not listen yet. Throws when the certificate cannot be used. */
export function createListener(requests: RequestServer, options: ListenerOptions): Listener {
  const server = makeServer(options)
  server.on('request', ((request, response) => requests.handle(request, response, 'nothing')) satisfies RequestListener)
  server.on('checkContinue', (request, response) => requests.handle(request, response, 'continue'))
  server.on('checkExpectation', (request, response) => requests.handle(request, response, 'unknown'))
  guardConnections(server, options.connections)

  return {
    listen: (host, port) => listen(server, host, port),
    reloadCertificates: () => {
      if (options.tls !== undefined) (server as TlsServer).setSecureContext(readCertificates(options.tls))
    },
    stopAccepting: () => stopAccepting(server),
    closeIdle: () => server.closeIdleConnections(),
    closeAll: () => server.closeAllConnections(),
  }
}

function makeServer(options: ListenerOptions): Server {
  const limits: ServerOptions & { keepAliveTimeoutBuffer: number } = {
    headersTimeout: options.headerTimeoutMs,
    requestTimeout: options.requestTimeoutMs,
    connectionsCheckingInterval: checkEveryMs,
    keepAliveTimeout: options.keepAliveTimeoutMs,
    keepAliveTimeoutBuffer: checkEveryMs, // Later versions wait this much longer than they promise; a second by default.
  }
  return options.tls === undefined ? createServer(limits) : createTlsServer({ ...limits, ...readCertificates(options.tls) })
}

function readCertificates(files: { cert: string; key: string }): { cert: Buffer; key: Buffer } {
  try {
    const pair = { cert: readFileSync(files.cert), key: readFileSync(files.key) }
    createSecureContext(pair)
    return pair
  } catch (error) {
    const reason = (error as Error).message
    throw new Error(`Cannot use the certificate ${files.cert} with the key ${files.key}: ${reason}`, { cause: error })
  }
}

function listen(server: Server, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, () => {
      server.off('error', reject)
      resolve(server.address() as AddressInfo) // A server that listens on a port has an address with one.
    })
  })
}
