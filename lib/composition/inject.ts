/**
 * Requests without a port, for tests: `app.request('/notes')`. The bytes go through a pair of in-memory streams instead
 * of a socket; everything else is the path of any request, including Node's parser.
 */
import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { duplexPair, Readable, type Duplex } from 'node:stream'
import { inspect } from 'node:util'

/** Statuses of responses without a body (Fetch standard, "null body status"). */
const withoutBody = [204, 205, 304]

/**
 * Sends a request and resolves with the response once its header section has arrived. Does not follow redirects.
 * @param accept takes the server's side of the connection; `isSecure`: it counts as TLS
 * @param input as for `fetch`; a path, with its query, is relative to `http://localhost`. The host of the address is
 *   the Host field, and with `https:` the connection counts as TLS
 * @param init as for `fetch`: `FormData` becomes multipart, `URLSearchParams` urlencoded
 * @throws TypeError, as a rejection, for invalid input or another scheme; Error when the connection ends before a
 *   response
 */
export async function inject(
  accept: (stream: Duplex, isSecure: boolean) => void,
  input: string | URL | Request,
  init: RequestInit = {},
): Promise<Response> {
  const address = addressOf(input)
  const { method, url, headers, body, signal } = new Request(address, {
    ...init,
    ...(init.body !== undefined && init.body !== null && { duplex: 'half' }),
  })
  const target = new URL(url)
  const isSecure = target.protocol === 'https:'
  if (!isSecure && target.protocol !== 'http:') {
    throw new TypeError(`Cannot send a request: the address must begin with http:, https: or /: it is ${url}`)
  }
  const { request } = process.getBuiltinModule('node:http')
  const [client, server] = duplexPair()
  client.on('close', () => server.destroy()) // Destroying one stream of a pair does not affect the other.
  server.on('close', () => {
    if (!server.writableFinished) client.destroy(new Error('The server has cut the connection'))
  })
  accept(server, isSecure)
  // `Request` drops fields that a browser does not let a page set, such as Host.
  const fields = Object.fromEntries([...headers, ...new Headers(init.headers)])
  const sent = request({
    createConnection: () => client as Socket, // The client uses only the stream members of a socket.
    method,
    path: target.pathname + target.search,
    headers: { host: target.host, ...fields },
    signal,
  })
  const received = responseTo(sent)
  if (body === null) sent.end()
  else {
    const source = Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]) // two types of one class
    source.on('error', (error) => sent.destroy(error)).pipe(sent)
  }
  const response = await received
  const isEmpty = method === 'HEAD' || withoutBody.includes(response.statusCode as number)
  if (isEmpty) response.resume()
  return new Response(isEmpty ? null : (Readable.toWeb(response) as globalThis.ReadableStream), {
    status: response.statusCode as number, // A response has one.
    headers: pairsOf(response.rawHeaders),
  })
}

/** Returns the input for `Request`, which would convert any object to the text of a path. */
function addressOf(input: unknown): URL | Request {
  if (input instanceof Request) return input
  if (typeof input === 'string' || input instanceof URL) return new URL(input, 'http://localhost')
  throw new TypeError(`Cannot send a request: give a path, a URL or a Request: it is ${inspect(input, { depth: 0 })}`)
}

function responseTo(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => sent.on('response', resolve).on('error', reject))
}

function pairsOf(flat: readonly string[]): [string, string][] {
  return Array.from({ length: flat.length / 2 }, (_, at) => [flat[2 * at] as string, flat[2 * at + 1] as string])
}
