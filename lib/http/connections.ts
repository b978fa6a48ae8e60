/**
 * What happens on connections outside of well-formed requests: limits per address, malformed and late requests, CONNECT,
 * and the retirement of connections when the server stops.
 *
 * Surprise: an error on a connection whose answer has begun can only be told by cutting it.
 */
import { STATUS_CODES, type Server, type ServerResponse } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import type { ModuleLogger } from '../log/logger.ts'
import { RateLimited } from '../log/rate-limited.ts'
import { errorPage } from './error-reply.ts'
import { linger } from './linger.ts'
import { htmlType } from './reply.ts'

export interface ConnectionOptions {
  /** The most connections that one address may have; 0: no limit. */
  readonly maxPerIp: number
  /** Addresses without that limit: trusted proxies, which speak for many clients. */
  readonly isTrusted: (address: string) => boolean
  /** The log of module `socket`. */
  readonly log: ModuleLogger
}

/** How long a connection may stay idle after the stop began before it is closed, in milliseconds. */
export const retireAfterMs = 500

/** Node's own codes for requests that cannot be served, and the status that each gets. */
const statusOfError: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
}

/** Attaches the rules to a server that is not listening yet. */
export function guardConnections(server: Server, options: ConnectionOptions): void {
  const log = new RateLimited(options.log.info, 1000)
  const perAddress = new Map<string, number>()

  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? ''
    if (options.maxPerIp === 0 || options.isTrusted(address)) return
    const count = (perAddress.get(address) ?? 0) + 1
    if (count > options.maxPerIp) {
      log.say(`refused a connection from ${address}: it has ${options.maxPerIp} already`)
      socket.destroy()
      return
    }
    perAddress.set(address, count)
    socket.once('close', () => {
      const left = (perAddress.get(address) ?? 1) - 1
      if (left === 0) perAddress.delete(address)
      else perAddress.set(address, left)
    })
  })

  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const peer = (socket as Socket).remoteAddress ?? 'a client that has left'
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    const status = statusOfError[error.code ?? ''] ?? 400
    log.say(`${status} for ${peer}: ${error.code ?? ''} ${error.message}`)
    refuse(socket as Socket, status)
  })

  server.on('connect', (request, socket) => {
    log.say(`405 for ${request.socket.remoteAddress}: CONNECT is for proxies`)
    refuse(socket as Socket, 405)
  })
}

/** Stops accepting without touching open connections: `http.Server.close()` would cut the idle ones at once. */
export function stopAccepting(server: Server): Promise<void> {
  return new Promise((resolve) => {
    if (!server.listening) return resolve()
    NetServer.prototype.close.call(server, () => resolve())
  })
}

/**
 * Ends a connection with an error. A request that is still being read gets it as its answer; one that was read whole
 * keeps its own, which is then the last on this connection; where there is none, the answer is written by hand.
 */
function refuse(socket: Socket, status: number): void {
  const body = errorPage(status, undefined)
  const headers = ['Content-Type', htmlType, 'Content-Length', String(Buffer.byteLength(body)), 'Connection', 'close']
  if (status === 405) headers.push('Allow', 'GET, HEAD')
  // Node keeps the response in progress in this field of the socket; there is no documented way to it.
  const pending = (socket as { _httpMessage?: ServerResponse | null })._httpMessage
  if (pending) {
    if (pending.req.complete) pending.shouldKeepAlive = false
    else if (pending.headersSent) socket.destroy()
    else {
      linger(socket)
      pending.writeHead(status, headers).end(body)
    }
    return
  }
  const fields = headers.map((field, at) => (at % 2 === 0 ? `${field}: ` : `${field}\r\n`)).join('')
  linger(socket)
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}\r\n${fields}\r\n${body}`)
  socket.destroySoon()
}
