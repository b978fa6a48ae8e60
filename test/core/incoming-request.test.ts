import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { IncomingRequest } from '../../lib/core/incoming-request.ts'
import { isHandshake, rawSection } from '../../lib/core/raw-section.ts'
import { Connection, requestText } from '../support/connection.ts'
import { listen } from '../support/listen.ts'
import { until } from '../support/until.ts'

type Answering = (request: IncomingMessage, response: ServerResponse) => void

/** A server of Node's own with the requests of this one. */
function startServer(t: TestContext, answer: Answering): Promise<number> {
  return listen(t, createServer({ IncomingMessage: IncomingRequest }, answer))
}

describe('a request', () => {
  it('has its body thrown away where nobody reads it, so that the connection serves on', async (t) => {
    const port = await startServer(t, (_request, response) => void response.end('plain'))
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
    const port = await startServer(t, (request, response) => {
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

/** Parses requests that came one by one, as the server's parser does. */
async function parse(t: TestContext, bytes: string): Promise<IncomingMessage> {
  const server = createServer()
  const parsed = new Promise<IncomingMessage>((resolve) => {
    server.on('request', (request, response) => (response.end(), resolve(request)))
    server.on('upgrade', (request, socket) => (socket.destroy(), resolve(request)))
  })
  const port = await listen(t, server)
  new Connection(t, port).socket.write(bytes, 'latin1')
  return parsed
}

describe('the header section of a request that waits', () => {
  const both = 'Connection: Upgrade'
  const rows: readonly (readonly [what: string, bytes: string, section: string, handshake: boolean])[] = [
    ['as it came', requestText('GET /a?b=%20', ['A: b', 'a: c', 'X:  \xe9 ']), requestText('GET /a?b=%20', ['A: b', 'a: c', 'X: \xe9']), false],
    ['of HTTP/1.0', 'GET / HTTP/1.0\r\n\r\n', 'GET / HTTP/1.0\r\n\r\n', false],
    ['a handshake', requestText('GET /', [both, 'Upgrade: websocket']), requestText('GET /', [both, 'Upgrade: websocket']), true],
    ['in other letters', requestText('GET /', [both, 'Upgrade: WebSocket']), requestText('GET /', [both, 'Upgrade: WebSocket']), true],
    ['in a list', requestText('GET /', ['Connection: keep-alive, Upgrade', 'Upgrade: h2c, websocket']), requestText('GET /', ['Connection: keep-alive, Upgrade', 'Upgrade: h2c, websocket']), true],
    ['that says that it has no body', requestText('GET /', [both, 'Upgrade: websocket', 'Content-Length: 0']), requestText('GET /', [both, 'Upgrade: websocket', 'Content-Length: 0']), true],
    ['for h2c', requestText('GET /', ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c']), requestText('GET /', ['Connection:  HTTP2-Settings', 'Upgrade: h2c']), false],
    ['for something like it', requestText('GET /', [both, 'Upgrade: websockets, xwebsocket']), requestText('GET /', ['Connection: ', 'Upgrade: websockets, xwebsocket']), false],
    ['without the option', requestText('GET /', ['Upgrade: websocket']), requestText('GET /', ['Upgrade: websocket']), false],
    ['of HEAD', requestText('HEAD /', [both, 'Upgrade: websocket']), requestText('HEAD /', ['Connection: ', 'Upgrade: websocket']), false],
    ['with a body', requestText('GET /', [both, 'Upgrade: websocket', 'Content-Length: 1'], 'x'), requestText('GET /', ['Connection: ', 'Upgrade: websocket', 'Content-Length: 1']), false],
    ['with chunks', requestText('GET /', [both, 'Upgrade: websocket', 'Transfer-Encoding: chunked'], '0\r\n\r\n'), requestText('GET /', ['Connection: ', 'Upgrade: websocket', 'Transfer-Encoding: chunked']), false],
  ]
  for (const [what, bytes, section, handshake] of rows) {
    it(`is written ${what}`, async (t) => {
      const request = await parse(t, bytes)
      assert.deepEqual([isHandshake(request), rawSection(request).toString('latin1')], [handshake, section])
    })
  }
})
