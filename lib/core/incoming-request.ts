/**
 * Decides which requests of a connection are served at once, and which wait as raw bytes (`connection.ts`).
 *
 * Only a WebSocket handshake gets the upgrade that it requests. Other upgrade requests are served as plain requests:
 * Node's parser stops behind them, so they have to be parsed again without the upgrade.
 */
import type { IncomingMessage } from 'node:http'
import { connectionOf } from './connection.ts'
import { asksForUpgrade } from './node-internals.ts'
import { isHandshake } from './raw-section.ts'

/** Whether a request has to wait as raw bytes: it is early, the connection is ending, or it has to be parsed again. */
export function mustHold(request: IncomingMessage): boolean {
  const connection = connectionOf(request.socket)
  if (!connection.takesRequest) return true
  if (!asksForUpgrade(request)) return false
  return connection.isServing || (request.method !== 'CONNECT' && !isHandshake(request))
}
