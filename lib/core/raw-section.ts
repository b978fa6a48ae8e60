/**
 * The header section of a request as raw bytes, so that it can be parsed again when its turn comes.
 */
import { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { hasToken } from '../base/token.ts'
import { announcesBody } from '../http/request-fields.ts'

/** Whether a request is a WebSocket handshake. With a body it is not: its frames could be taken for the body. */
export function isHandshake({ method, headers }: IncomingMessage): boolean {
  if (method !== 'GET' || announcesBody(headers['content-length'], headers['transfer-encoding'])) return false
  return hasToken(headers.connection, 'upgrade') && hasToken(headers.upgrade, 'websocket')
}

/**
 * Writes the header section of a parsed request. The fields keep their order, so it is parsed into the same request.
 * Except in a handshake, the option `upgrade` of Connection is removed: requests for any other upgrade are served as
 * plain requests (RFC 9110, section 7.8).
 */
export function rawSection(request: IncomingMessage): Buffer {
  const { method, url, httpVersion, rawHeaders } = request
  const upgrades = isHandshake(request)
  let section = `${method} ${url} HTTP/${httpVersion}\r\n`
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string
    const value = rawHeaders[at + 1] as string
    const kept = upgrades || name.toLowerCase() !== 'connection' ? value : withoutUpgrade(value)
    section += `${name}: ${kept}\r\n`
  }
  return Buffer.from(`${section}\r\n`, 'latin1')
}

function withoutUpgrade(connection: string): string {
  return connection
    .split(',')
    .filter((option) => option.trim().toLowerCase() !== 'upgrade')
    .join(',')
}
