/** What each proxy of docs/deploy does for the nodes behind it. The test files have the proxies. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import * as http2 from 'node:http2'
import { Agent, request as httpsRequest, type RequestOptions } from 'node:https'
import { createServer, type AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { connect } from 'node:tls'
import { startClient } from '../support/keep-alive-client.ts'
import type { Node, Nodes } from '../support/nodes.ts'
import type { Proxy } from '../support/proxies.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'
import { handshakeText } from '../support/websocket.ts'
import { clientFrame } from '../websocket/frames.ts'

/** Another address of this machine: a client from outside. */
const outside = '127.0.0.5'
const MiB = 2 ** 20

interface Reply {
  readonly status: number
  readonly body: string
  readonly headers: Readonly<Record<string, unknown>>
}

/** Asks over TLS, on a connection of its own. */
export async function ask(url: string, options: RequestOptions = {}, body?: string | Buffer): Promise<Reply> {
  const method = body === undefined ? 'GET' : 'POST'
  const sent = httpsRequest(url, { method, agent: false, rejectUnauthorized: false, ...options })
  sent.end(body)
  const [response] = await once(sent, 'response')
  return { status: response.statusCode, body: await text(response), headers: response.headers }
}

/**
 * The status for a body that is larger than allowed. The pieces are sent once the body is asked for (`100 Continue`), and
 * nothing is sent after the byte that is too many: a proxy that refuses a body closes the connection, and a write on a
 * connection that was reset loses the answer.
 */
async function statusOfBody(url: string, headers: OutgoingHttpHeaders, pieces: readonly Buffer[]): Promise<number | undefined> {
  const sent = httpsRequest(url, {
    method: 'POST',
    agent: false,
    rejectUnauthorized: false,
    headers: { ...headers, Expect: '100-continue' },
  })
  sent.once('continue', () => pieces.forEach((piece) => sent.write(piece))).flushHeaders()
  try {
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    return response.statusCode
  } finally {
    sent.on('error', () => {}).destroy()
  }
}

/** Waits until every node is asked by the proxy. */
export async function allServe({ url, check }: Proxy, pids: readonly number[]): Promise<void> {
  const seen = new Set<string>()
  await until(async () => {
    check()
    seen.add((await ask(`${url}/`).catch(() => undefined))?.body ?? '')
    return pids.every((pid) => seen.has(String(pid)))
  })
}

/** Who asks, by which name, and under which id is what the proxy knows, whatever the client says. */
export async function tellsWhoAsks({ url, port }: Proxy): Promise<void> {
  const headers = {
    'X-Forwarded-For': '192.0.2.1, 127.0.0.1',
    'X-Forwarded-Host': 'evil.example',
    'X-Forwarded-Proto': 'http',
    'X-Request-Id': 'made-up-by-the-client',
  }
  for (const localAddress of ['127.0.0.1', outside]) {
    const { body, headers: sent } = await ask(`${url}/who`, { localAddress, headers })
    const { id, ...who } = JSON.parse(body) as Record<string, string>
    assert.deepEqual(who, { ip: localAddress, secure: true, host: `127.0.0.1:${port}` })
    assert.match(id ?? '', /^[0-9a-f-]{32,36}$/)
    assert.equal(sent['x-request-id'], id)
  }
}

/** A body of a megabyte passes, one more byte is 413, also where the length is not said. */
export async function limitsBodies({ url }: Proxy): Promise<void> {
  const most = Buffer.alloc(MiB, 'a')
  assert.deepEqual(JSON.parse((await ask(`${url}/size`, {}, most)).body), { size: MiB })
  assert.equal(await statusOfBody(`${url}/size`, { 'Content-Length': MiB + 1 }, []), 413, 'by its length')
  assert.equal(await statusOfBody(`${url}/size`, { 'Transfer-Encoding': 'chunked' }, [most, Buffer.from('a')]), 413, 'in chunks')
}

/** A page with the token of a session; see `leavesTokensUncompressed`. */
export const tokenPage = {
  'routes/token.json': [{ name: 'token', url: '/token', action: 'token.mjs', middleware: 'SVC_MwSession, SVC_MwCsrf' }],
  'token.mjs': "export default ({ csrfInput }) => csrfInput() + 'long '.repeat(1000)",
}

/** A page that the server does not compress is compressed by nobody: its length would tell of the token (BREACH). */
export async function leavesTokensUncompressed({ url }: Proxy): Promise<void> {
  const { body, headers } = await ask(`${url}/token`, { headers: { 'Accept-Encoding': 'gzip, br, zstd' } })
  assert.match(body, /name="_csrf"/)
  assert.equal(headers['content-encoding'], undefined)
}

/** The panel answers this machine alone, however its path is written. */
export async function hidesThePanel({ url, port }: Proxy): Promise<void> {
  for (const path of ['/svc-ping', '/svc-status', '/svc-stop', '/svc-routes/add', '/%73vc-ping', '/%2fsvc-ping', '/svc%2Dping']) {
    assert.notEqual((await ask(url + path, { localAddress: outside })).status, 200, path)
  }
  for (const path of ['//svc-ping', '/./svc-ping', '/a/../svc-ping', `https://127.0.0.1:${port}/svc-ping`, '/svc-ping/', '/svc-ping?/svc-ready']) {
    assert.notEqual((await ask(url, { localAddress: outside, path })).status, 200, path)
  }
  assert.equal((await ask(`${url}/svc-ping`, { localAddress: outside })).status, 403)
  assert.equal((await ask(`${url}/svc-ping`)).status, 200)
  assert.equal((await ask(`${url}/svc-ready`, { localAddress: outside })).status, 200)
}

/** A poll, a stream and a WebSocket hear what happens while they are open. */
export async function letsThroughWhatWaits(t: TestContext, { port }: Proxy, nodes: readonly Pick<Node, 'port'>[]): Promise<void> {
  const converse = async (bytes: string) => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
    t.after(() => socket.destroy())
    await once(socket, 'secureConnect')
    const heard = { text: '', socket }
    socket.setEncoding('latin1').on('data', (piece: string) => (heard.text += piece))
    socket.write(bytes)
    return heard
  }
  const line = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`
  const poll = await converse(line('/wait'))
  const stream = await converse(line('/events'))
  const webSocket = await converse(handshakeText('/socket').replace('Host: h', `Host: 127.0.0.1:${port}`))
  await until(() => stream.text.includes('retry: ') && webSocket.text.includes(' 101 '))
  webSocket.socket.write(clientFrame({ opcode: 1, payload: 'hello' }))
  await until(() => webSocket.text.includes('HELLO'))
  // A request that is on its way to its node waits for the next event.
  await until(async () => {
    for (const node of nodes) await request(`http://127.0.0.1:${node.port}/say`)
    return poll.text.includes('"news"') && stream.text.includes('data: "news"')
  })
}

/** A client that leaves ends its poll on the node at once. */
export async function endsWhatIsLeft({ url }: Proxy, nodes: readonly Pick<Node, 'port'>[]): Promise<void> {
  const held = async (): Promise<number> => {
    const counts = nodes.map(async ({ port }) => {
      const status = (await request(`http://127.0.0.1:${port}/svc-status`)).json() as { pool_rest: { longpoll: number } }
      return status.pool_rest.longpoll
    })
    return (await Promise.all(counts)).reduce((sum, count) => sum + count)
  }
  await until(async () => (await held()) === 0)
  const polls = Array.from({ length: 6 }, () => {
    const sent = httpsRequest(`${url}/wait`, { agent: false, rejectUnauthorized: false })
    sent.on('error', () => {}).end()
    return sent
  })
  await until(async () => (await held()) === polls.length)
  for (const poll of polls) poll.destroy()
  await until(async () => (await held()) === 0)
}

/** While the engine is away what needs it is 503, and the rest goes on. */
export async function goesOnWithoutTheEngine(t: TestContext, { url }: Proxy, { redis }: Nodes): Promise<void> {
  const ready = async (): Promise<number> => (await ask(`${url}/svc-ready`)).status
  await redis.kill()
  await until(async () => (await ready()) === 503)
  const [plain, session] = [await ask(`${url}/who`), await ask(`${url}/in`)]
  assert.deepEqual([plain.status, session.status, session.headers['retry-after']], [200, 503, '1'])
  // Long enough for a proxy that asks the nodes to have heard it from each.
  const client = startClient({ url: `${url}/`, connections: 1, pauseMs: 40 })
  t.after(() => client.stop())
  await until(() => client.tally.answered >= 150)
  assert.deepEqual((await client.stop()).failed, [])
  await redis.start()
  await until(async () => (await ready()) === 200 && (await ask(`${url}/in`)).status === 200)
}

/** Nodes that break the connection on which a POST has come, some with a reset; else they answer. */
export async function startBreaking(t: TestContext, count: number): Promise<{ ports: number[]; posts(): number }> {
  let posts = 0
  const ports = Array.from({ length: count }, async (_, at) => {
    const server = createServer((socket) => {
      socket.on('error', () => {}).setEncoding('latin1').on('data', (piece: string) => {
        if (!piece.startsWith('POST ')) return void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
        posts += 1
        if (at % 2 === 0) socket.resetAndDestroy()
        else socket.end()
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.after(() => server.close())
    return (server.address() as AddressInfo).port // It listens on a port.
  })
  return { ports: await Promise.all(ports), posts: () => posts }
}

/** A POST whose connection breaks after it was sent is 502, over HTTP/1.1 and HTTP/2, and no node gets it again. */
export async function sendsAPostOnce(t: TestContext, { url, check }: Proxy, posts: () => number): Promise<void> {
  await until(async () => {
    check()
    return (await ask(`${url}/`).catch(() => undefined))?.status === 200
  })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const session = http2.connect(url, { rejectUnauthorized: false })
  t.after(() => {
    agent.destroy()
    session.destroy()
  })
  const over: readonly ((method: string) => Promise<number>)[] = [
    async (method) => (await ask(`${url}/`, { agent, method }, method === 'POST' ? 'once' : undefined)).status,
    async (method) => {
      const stream = session.request({ ':path': '/', ':method': method })
      stream.end(method === 'POST' ? 'once' : undefined)
      const [headers] = await once(stream, 'response')
      stream.resume()
      return headers[':status']
    },
  ]
  let sent = 0
  for (const send of over) {
    for (const method of ['GET', 'POST', 'GET', 'POST', 'POST', 'POST']) {
      assert.equal(await send(method), method === 'POST' ? 502 : 200)
      if (method === 'POST') sent += 1
      // Fewer where the proxy has no node left that did not break just now.
      assert.ok(posts() <= sent, `of ${sent} posts, ${posts()} came`)
    }
  }
  assert.ok(posts() >= 3, `${posts()} posts came`)
}

/** What a node refuses goes to another, a POST too. */
export async function goesToTheNext(proxy: Proxy, { nodes, added }: Nodes): Promise<void> {
  await Promise.all(nodes.slice(0, 2).map((node) => node.stop()))
  for (let number = 0; number < 20; number += 1) {
    assert.equal((await ask(`${proxy.url}/add`, {}, `refused ${number}`)).status, 200)
    assert.equal((await ask(`${proxy.url}/`)).status, 200)
  }
  assert.equal(added().length, 20)
}
