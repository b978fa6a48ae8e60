/**
 * The socket to a server: a Unix socket, TCP, or TLS with a certificate that is checked as Node does it, so
 * `NODE_EXTRA_CA_CERTS` names authorities of one's own.
 */
import { connect, isIP, type Socket } from 'node:net'
import { reasonOf } from '../base/reason.ts'
import type { RedisTarget } from './url.ts'

/** Begins to connect. `onOpen` is called when bytes can be sent. */
export function openSocket({ address }: RedisTarget, onOpen: () => void): Socket {
  if ('path' in address) return connect({ path: address.path }, onOpen)
  const { host, port, tls } = address
  const options = { host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: 10_000 } as const
  if (!tls) return connect(options, onOpen)
  const { connect: connectTls } = process.getBuiltinModule('node:tls') // Loaded where it is used.
  return connectTls({ ...options, ...(isIP(host) === 0 && { servername: host }) }, onOpen)
}

/** The words for a problem. One that gathers others, as of a host with several addresses, has none of its own. */
export function describe(problem: Error): string {
  if (!(problem instanceof AggregateError)) return problem.message
  return problem.errors.map((each: unknown) => (reasonOf(each))).join(', ')
}
