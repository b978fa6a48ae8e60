/**
 * The requests of the server: those of `node:http`, except that only WebSocket handshakes and CONNECT count as
 * upgrades, and that nothing is done to the end of a body that nobody reads (`IncomingRequest` in
 * `node-internals.ts`).
 *
 * A handshake with a body, or one sent before the answers to earlier requests of its connection have left, is served as
 * a plain request too: that body and those answers still need the connection.
 */
import type { IncomingMessage } from 'node:http'
import { hasToken } from '../base/token.ts'
import { announcesBody } from '../http/framing.ts'
import { connectionOf } from './connection.ts'
import { currentPiece, decideUpgrades, IncomingRequest, isAnswering } from './node-internals.ts'

decideUpgrades((request) => request.method === 'CONNECT' || isHandshake(request))

/** The class of a request. Its events `end` and `close` come only when its body is read. */
export { IncomingRequest }

/**
 * Whether bytes that the client sent after this request may be lost. After a request that asks for an upgrade the
 * parser stops, and when there is none, Node throws away the rest of the piece of input. Call it while the request is
 * new.
 */
export function losesWhatFollows(request: IncomingMessage): boolean {
  if ((request as Partial<IncomingRequest>).upgradeAsked !== true) return false
  const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers
  const piece = currentPiece(request.socket)
  // A piece that begins with a line end may hold only the rest of this request's own end.
  if (piece === undefined || coding !== undefined || piece[0] === 13 || piece[0] === 10) return true
  const end = piece.indexOf('\r\n\r\n')
  return end < 0 || end !== piece.lastIndexOf('\r\n\r\n') || end + 4 + Number(length) !== piece.length
}

function isHandshake({ method, headers, socket }: IncomingMessage): boolean {
  if (method !== 'GET' || connectionOf(socket).isServing || isAnswering(socket)) return false
  if (announcesBody(headers['content-length'], headers['transfer-encoding'])) return false
  return hasToken(headers.upgrade, 'websocket')
}
