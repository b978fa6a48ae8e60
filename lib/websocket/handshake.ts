/**
 * The server side of the WebSocket opening handshake (RFC 6455, section 4.2). It accepts no extensions. The caller
 * checks `Origin`.
 *
 * A handshake that announces a body is refused. The bytes after its header section are frames; a proxy that treats
 * them as a body would parse the connection differently from this server, which allows request smuggling.
 */
import { createHash } from 'node:crypto'
import type { CoreContext } from '../http/context.ts'
import { announcesBody } from '../http/request-fields.ts'
import { HttpError } from '../http/errors.ts'
import { hasToken } from '../base/token.ts'

/** The only version (RFC 6455, section 4.1). */
const version = '13'
/** Appended to the key before hashing (RFC 6455, section 1.3). */
const guid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
/** 16 bytes in base64. */
const keyPattern = /^[A-Za-z0-9+/]{22}==$/

/**
 * Checks a handshake (RFC 6455, section 4.2.1). Returns the value of Sec-WebSocket-Accept.
 * @throws HttpError 400 `bad_handshake`; 426 `upgrade_required`, with its header fields, for a version other than 13
 */
export function checkHandshake(request: Pick<CoreContext, 'method' | 'httpVersion' | 'header'>): string {
  if (request.method !== 'GET') throw bad(`The method must be GET: it is ${request.method}`)
  if (request.httpVersion !== '1.1') throw bad(`The HTTP version must be 1.1: it is ${request.httpVersion}`)
  if (!request.header('host')) throw bad('There is no Host')
  if (!hasToken(request.header('upgrade'), 'websocket')) throw bad('Upgrade must name websocket')
  if (!hasToken(request.header('connection'), 'upgrade')) throw bad('Connection must name Upgrade')
  if (announcesBody(request.header('content-length'), request.header('transfer-encoding'))) {
    throw bad('It must not have a body')
  }
  const requested = request.header('sec-websocket-version')
  if (requested !== version) {
    const headers = { 'Sec-WebSocket-Version': version, Upgrade: 'websocket' }
    const message = `Sec-WebSocket-Version must be ${version}: it is ${requested ?? 'missing'}`
    throw new HttpError(426, 'upgrade_required', message, { headers })
  }
  const key = request.header('sec-websocket-key')
  if (key === undefined || !keyPattern.test(key)) throw bad('Sec-WebSocket-Key must be 16 bytes in base64')
  return createHash('sha1').update(key + guid).digest('base64')
}

/**
 * Chooses a subprotocol: the server's first one that the client offers (RFC 6455, section 4.2.2). Case-sensitive.
 * @param offered the value of Sec-WebSocket-Protocol
 * @returns undefined for none: the response then lacks the field, and a browser that offers any closes the connection
 */
export function chooseProtocol(offered: string | undefined, protocols: readonly string[] = []): string | undefined {
  if (offered === undefined || protocols.length === 0) return undefined
  const names = offered.split(',').map((name) => name.trim())
  return protocols.find((protocol) => names.includes(protocol))
}

function bad(reason: string): HttpError {
  return new HttpError(400, 'bad_handshake', `The WebSocket handshake is wrong: ${reason}`)
}
