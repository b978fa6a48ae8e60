/**
 * TLS handshakes that fail: which they are and why, for the log and a counter. Node closes the connection.
 *
 * Surprise: one that ends by a reset or a time-out is not counted. Browsers open connections ahead, and load balancers
 * check whether the port is open.
 */
import type { EventEmitter } from 'node:events'
import type { TLSSocket } from 'node:tls'
import type { LogPort } from '../base/ports.ts'
import { RateLimited } from '../base/rate-limited.ts'

/** An error of OpenSSL as Node has it; `reason` is the text of its reason, such as `no shared cipher`. */
interface HandshakeError extends NodeJS.ErrnoException {
  readonly reason?: string
}

const plainHttp = 'it sent plain HTTP to the port of HTTPS: use https://, or take server.tls out'

/**
 * Watches the handshakes of a server. One of plain HTTP has none.
 * @param log of module `socket`; it gets a line a second at most for each reason
 * @returns a function that returns how many have failed since the start
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
