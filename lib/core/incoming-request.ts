/**
 * The request as `node:http` makes it, but for two things:
 *
 * 1. It has not the end of a stream that nobody reads. When an answer has been sent, Node reads what is left of the
 *    request's body and throws it away, and for that sets the whole machinery of a stream going, up to its events `end`
 *    and `close`. Where the request came whole and nothing of it lies unread, which is so for nearly all that have no
 *    body, there is nothing to throw away. That saves a fifteenth of what a plain request costs. Node's own option for
 *    it, `optimizeEmptyRequests`, is not in version 20 and makes a request look destroyed before its body is asked for.
 * 2. Only WebSocket handshakes and CONNECT count as upgrades. Node takes any `Upgrade` field for one as soon as
 *    somebody listens for them, `h2c` of some clients too, and those must be served as the plain requests that they are
 *    (RFC 9110, section 7.8). Node's own option, `shouldUpgradeCallback`, came with version 24.9. A handshake with a
 *    body, or one sent before the answers to earlier requests of its connection have left, is served as a plain request
 *    too: that body and those answers still need the connection as it is.
 *
 * Surprise: Node sets `upgrade` before it knows the header fields and asks for it once it does.
 */
import type { IncomingMessage as Incoming, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { connectionOf } from './connection.ts'
import { announcesBody } from '../http/framing.ts'
import { IncomingMessage } from '../http/node-http.ts'
import { hasToken } from '../base/token.ts'

/**
 * Node calls `_dump` to throw away what is left of a body; it is not documented. A version without it loses nothing.
 */
interface DumpingMessage extends Incoming {
  _dump(): void
}

const dump = (IncomingMessage.prototype as DumpingMessage)._dump

/**
 * What Node keeps in a socket: the response that it has not let go of yet, which may have ended already in this turn of
 * the event loop. It is not documented. Without it a handshake behind such an answer, in one piece with it, is cut.
 */
type AnsweringSocket = Socket & { readonly _httpMessage?: ServerResponse | null }

/**
 * Node's parser gives the piece that it is reading; it is not documented. Without it a piece counts as one with more in
 * it.
 */
interface PieceParser {
  getCurrentBuffer?(): Buffer
}

/** A request. Its events `end` and `close` come only where its body is read. */
export class IncomingRequest extends IncomingMessage {
  /** Whether the parser took this for an upgrade. */
  upgradeAsked: unknown = false

  /** Whether the connection is to become another one. */
  get upgrade(): boolean {
    return this.upgradeAsked === true && (this.method === 'CONNECT' || isHandshake(this))
  }

  set upgrade(asked: unknown) {
    this.upgradeAsked = asked
  }

  _dump(): void {
    if (!this.complete || this.readableLength > 0) dump.call(this)
  }
}

/**
 * Whether what the client sent behind this request may be lost. Behind one that asks for an upgrade the parser stops,
 * and where there is no upgrade Node throws away the rest of the piece that it is in. To be asked while the request is
 * new.
 */
export function losesWhatFollows(request: Incoming): boolean {
  if ((request as Partial<IncomingRequest>).upgradeAsked !== true) return false
  const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers
  const { parser } = request.socket as Socket & { readonly parser?: PieceParser | null }
  const piece = parser?.getCurrentBuffer?.()
  // A piece that begins with a line end may hold only the rest of this request's own end.
  if (piece === undefined || coding !== undefined || piece[0] === 13 || piece[0] === 10) return true
  const end = piece.indexOf('\r\n\r\n')
  return end < 0 || end !== piece.lastIndexOf('\r\n\r\n') || end + 4 + Number(length) !== piece.length
}

function isHandshake({ method, headers, socket }: Incoming): boolean {
  if (method !== 'GET' || connectionOf(socket).isServing || (socket as AnsweringSocket)._httpMessage) return false
  if (announcesBody(headers['content-length'], headers['transfer-encoding'])) return false
  return hasToken(headers.upgrade, 'websocket')
}
