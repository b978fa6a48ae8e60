import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { IncomingRequest } from '../../lib/core/incoming-request.ts'
import { Connection, requestText } from '../support/connection.ts'
import { listen } from '../support/listen.ts'
import { until } from '../support/until.ts'

type Answering = (request: IncomingMessage, response: ServerResponse) => void

/** A server that keeps what it is given. */
async function startServer(t: TestContext, answer: Answering = (_request, response) => void response.end('plain')) {
  const seen = { requests: [] as IncomingMessage[], upgrades: [] as { request: IncomingMessage; head: string }[], connects: 0 }
  const server = createServer({ IncomingMessage: IncomingRequest }, (request, response) => {
    seen.requests.push(request)
    answer(request, response)
  })
  server.on('upgrade', (request, socket, head: Buffer) => {
    seen.upgrades.push({ request, head: head.toString() })
    socket.end('taken')
  })
  server.on('connect', (_request, socket) => {
    seen.connects += 1
    socket.end()
  })
  return { seen, port: await listen(t, server) }
}

describe('a request', () => {
  const both = 'Connection: Upgrade'
  const rows: readonly (readonly [what: string, bytes: string, taken: boolean])[] = [
    ['a handshake', requestText('GET /', [both, 'Upgrade: websocket']), true],
    ['in other letters', requestText('GET /', [both, 'Upgrade: WebSocket']), true],
    ['in a list', requestText('GET /', ['Connection: keep-alive, Upgrade', 'Upgrade: h2c, websocket']), true],
    ['in two fields', requestText('GET /', [both, 'Upgrade: h2c', 'Upgrade: websocket']), true],
    ['that says that it has no body', requestText('GET /', [both, 'Upgrade: websocket', 'Content-Length: 0']), true],
    ['of HTTP/1.0', `GET / HTTP/1.0\r\n${both}\r\nUpgrade: websocket\r\n\r\n`, true],
    ['for h2c', requestText('GET /', [both, 'Upgrade: h2c']), false],
    ['for something like it', requestText('GET /', [both, 'Upgrade: websockets, xwebsocket']), false],
    ['without the option', requestText('GET /', ['Upgrade: websocket']), false],
    ['with nothing to upgrade to', requestText('GET /', [both]), false],
    ['of HEAD', requestText('HEAD /', [both, 'Upgrade: websocket']), false],
    ['of OPTIONS', requestText('OPTIONS /', [both, 'Upgrade: websocket']), false],
    ['of POST', requestText('POST /', [both, 'Upgrade: websocket', 'Content-Length: 1'], 'x'), false],
    ['with a body', requestText('GET /', [both, 'Upgrade: websocket', 'Content-Length: 1'], 'x'), false],
    ['with chunks', requestText('GET /', [both, 'Upgrade: websocket', 'Transfer-Encoding: chunked'], '0\r\n\r\n'), false],
  ]
  for (const [what, bytes, taken] of rows) {
    it(`${what} is ${taken ? 'taken for a handshake' : 'a plain one'}`, async (t) => {
      const { seen, port } = await startServer(t)
      const client = new Connection(t, port)
      await client.send(bytes)
      if (taken) assert.equal(await client.closed(), 'taken')
      else await until(() => client.received.startsWith('HTTP/1.1 200'))
      assert.deepEqual([seen.upgrades.length, seen.requests.length], taken ? [1, 0] : [0, 1])
      assert.equal(Reflect.get(seen.upgrades[0]?.request ?? seen.requests[0] ?? {}, 'upgrade'), taken)
    })
  }

  it('gives what stands behind a handshake with it', async (t) => {
    const { seen, port } = await startServer(t)
    const client = new Connection(t, port)
    await client.send(requestText('GET /', [both, 'Upgrade: websocket']) + 'frames')
    await client.closed()
    assert.equal(seen.upgrades[0]?.head, 'frames')
  })

  it('is no handshake as long as an answer before it is owed, and may be one afterwards', async (t) => {
    const answers: ServerResponse[] = []
    const { seen, port } = await startServer(t, (_request, response) => void answers.push(response))
    const client = new Connection(t, port)
    const handshake = requestText('GET /', [both, 'Upgrade: websocket'])
    await client.send(requestText('GET /') + handshake)
    await until(() => answers.length === 2)
    await client.send(handshake)
    await until(() => answers.length === 3)
    for (const answer of answers) answer.end()
    await client.answers(3)
    assert.equal(seen.upgrades.length, 0)
    await client.send(handshake)
    assert.match(await client.closed(), /taken$/)
  })

  it('with CONNECT is one always', async (t) => {
    const { seen, port } = await startServer(t)
    const client = new Connection(t, port)
    await client.send('CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n')
    await client.closed()
    assert.equal(seen.connects, 1)
  })

  it('has its body thrown away where nobody reads it, so that the connection serves on', async (t) => {
    const { port } = await startServer(t)
    const socket: Socket = connect({ port, host: '127.0.0.1' })
    t.after(() => socket.destroy())
    let text = ''
    socket.setEncoding('latin1').on('data', (piece: string) => (text += piece))
    socket.write(requestText('POST /', ['Content-Length: 300000'], 'x'.repeat(100_000)))
    await until(() => text.endsWith('plain'))
    socket.write('x'.repeat(200_000) + requestText('GET /', ['Connection: close']))
    await once(socket, 'close')
    assert.equal(text.match(/HTTP\/1\.1 200 /g)?.length, 2)
  })

  it('without a body ends without the events of a stream that nobody reads', async (t) => {
    const events: string[] = []
    const { port } = await startServer(t, (request, response) => {
      for (const event of ['end', 'close']) request.on(event, () => events.push(event))
      response.end('plain')
    })
    const client = new Connection(t, port)
    for (const count of [1, 2, 3]) {
      await client.send(requestText('GET /'))
      await client.answers(count)
    }
    assert.deepEqual(events, [])
  })
})
