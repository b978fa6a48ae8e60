/**
 * Logs and counts failed TLS handshakes. Node closes the connection.
 *
 * Surprise: handshakes that end by a reset or a time-out are not counted. Browsers open spare connections, and load
 * balancers check whether the port is open.
 */
import type { EventEmitter } from 'node:events'
import type { TLSSocket } from 'node:tls'
import type { LogPort } from '../base/ports.ts'
import { RateLimited } from '../base/rate-limited.ts'

/** An OpenSSL error as Node reports it; `reason` is OpenSSL's text, such as `no shared cipher`. */
interface HandshakeError extends NodeJS.ErrnoException {
  readonly reason?: string
}

const plainHttp = 'it sent plain HTTP to the HTTPS port: use https://, or remove server.tls'

/**
 * Watches the handshakes of a server. A plain HTTP server has none.
 * @param log of module `socket`; it gets at most one line per second and reason
 * @returns a function that returns the number of failures since the start
 */
export function watchHandshakes(server: EventEmitter, log: LogPort): () => number {
  const failed = new RateLimited(log.info, 1000)
  let count = 0
  server.on('tlsClientError', ({ code, reason }: HandshakeError, { remoteAddress = '-' }: TLSSocket) => {
    if (reason === undefined) return
    count += 1
    const why = code === 'ERR_SSL_HTTP_REQUEST' ? plainHttp : reason
    failed.say(`the TLS handshake of ${remoteAddress} failed: ${why}`, code)
  })
  return () => count
}
