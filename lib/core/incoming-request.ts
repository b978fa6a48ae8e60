/**
 * Which requests of a connection are served at once, and which wait as raw bytes (`connection.ts`).
 *
 * Of the requests that ask for an upgrade only a WebSocket handshake gets one. The others are served as plain requests,
 * for which Node's parser has to read them once more: behind a request that asks for an upgrade it stops.
 */
import type { IncomingMessage } from 'node:http'
import { connectionOf } from './connection.ts'
import { asksForUpgrade } from './node-internals.ts'
import { isHandshake } from './raw-section.ts'

/** Whether a request has to wait as raw bytes: it comes too early, the connection is ending, or it is parsed again. */
export function mustHold(request: IncomingMessage): boolean {
  const connection = connectionOf(request.socket)
  if (!connection.takesRequest) return true
  if (!asksForUpgrade(request)) return false
  return connection.isServing || (request.method !== 'CONNECT' && !isHandshake(request))
}
