import { connect, type Socket } from 'node:net'
import { once } from 'node:events'

/** A response as received over the wire. */
export interface RawAnswer {
  readonly status: number
  /** By lower-case name; the last of a name. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/**
 * Sends bytes on a connection of its own and reads until the server closes it. Send `Connection: close` with a good
 * request, or this waits for the server's timeout.
 */
export async function exchange(port: number, bytes: string | Uint8Array): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => {}) // A server may cut the connection; the bytes before that are the response.
  socket.write(bytes)
  return readAll(socket)
}

/** Reads a socket until it is closed, as Latin-1 text. */
export async function readAll(socket: Socket): Promise<string> {
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  if (!socket.closed) await once(socket, 'close')
  return Buffer.concat(chunks).toString('latin1')
}

/** Parses one response with a Content-Length, or without a body. */
export function parseAnswer(text: string): RawAnswer {
  const end = text.indexOf('\r\n\r\n')
  const [line = '', ...fields] = text.slice(0, end).split('\r\n')
  const headers = Object.fromEntries(
    fields.map((field) => [field.slice(0, field.indexOf(':')).toLowerCase(), field.slice(field.indexOf(':') + 1).trim()]),
  )
  return { status: Number(line.split(' ')[1]), headers, body: text.slice(end + 4) }
}
