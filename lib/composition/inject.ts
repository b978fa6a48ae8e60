/**
 * Requests without a port, for tests: `app.request('/notes')`. The bytes go through a pair of streams in memory instead
 * of a socket; everything else is the way of every request, Node's parser included.
 */
import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { duplexPair, Readable, type Duplex } from 'node:stream'
import { inspect } from 'node:util'

/** Statuses whose answers have no body (Fetch standard, "null body status"). */
const withoutBody = [204, 205, 304]

/**
 * Sends a request and resolves with its answer as soon as the header section is there. A redirect is not followed.
 * @param accept takes the server's side of the connection; `isSecure`: it counts as TLS
 * @param input what `fetch` takes; a path, with its query, is one of `http://localhost`. The name of the address is the
 *   Host, and over `https:` the connection counts as TLS
 * @param init as `fetch` takes it, and as loosely: `FormData` is multipart, `URLSearchParams` urlencoded
 * @throws TypeError, as a rejection, for an input that is none, or an address of another scheme; Error when the
 *   connection ends before an answer
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
  client.on('close', () => server.destroy()) // The streams of a pair do not learn of each other's destruction.
  server.on('close', () => {
    if (!server.writableFinished) client.destroy(new Error('The server has cut the connection'))
  })
  accept(server, isSecure)
  // `Request` leaves out fields that a browser does not let a page set, such as Host.
  const fields = Object.fromEntries([...headers, ...new Headers(init.headers)])
  const sent = request({
    createConnection: () => client as Socket, // The client needs no more of a socket than a stream.
    method,
    path: target.pathname + target.search,
    headers: { host: target.host, ...fields },
    signal,
  })
  const answered = answerOf(sent)
  if (body === null) sent.end()
  else {
    const source = Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]) // Two types for one thing.
    source.on('error', (error) => sent.destroy(error)).pipe(sent)
  }
  const answer = await answered
  const isEmpty = method === 'HEAD' || withoutBody.includes(answer.statusCode as number)
  if (isEmpty) answer.resume()
  return new Response(isEmpty ? null : (Readable.toWeb(answer) as globalThis.ReadableStream), {
    status: answer.statusCode as number, // An answer has one.
    headers: pairsOf(answer.rawHeaders),
  })
}

/** The input for `Request`, which would take any object as the text of a path. */
function addressOf(input: unknown): URL | Request {
  if (input instanceof Request) return input
  if (typeof input === 'string' || input instanceof URL) return new URL(input, 'http://localhost')
  throw new TypeError(`Cannot send a request: give a path, a URL or a Request: it is ${inspect(input, { depth: 0 })}`)
}

function answerOf(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => sent.on('response', resolve).on('error', reject))
}

function pairsOf(flat: readonly string[]): [string, string][] {
  return Array.from({ length: flat.length / 2 }, (_, at) => [flat[2 * at] as string, flat[2 * at + 1] as string])
}
