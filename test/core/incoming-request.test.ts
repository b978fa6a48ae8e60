import assert from 'node:assert/strict'
import { createServer, type IncomingMessage } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { isHandshake, rawSection } from '../../lib/core/raw-section.ts'
import { Connection, requestText } from '../support/connection.ts'
import { listen } from '../support/listen.ts'

/** Parses requests that arrive one at a time, as the server's parser does. */
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

describe('the header section of a waiting request', () => {
  const both = 'Connection: Upgrade'
  const rows: readonly (readonly [what: string, bytes: string, section: string, handshake: boolean])[] = [
    ['as it came', requestText('GET /a?b=%20', ['A: b', 'a: c', 'X:  \xe9 ']), requestText('GET /a?b=%20', ['A: b', 'a: c', 'X: \xe9']), false],
    ['of HTTP/1.0', 'GET / HTTP/1.0\r\n\r\n', 'GET / HTTP/1.0\r\n\r\n', false],
    ['a handshake', requestText('GET /', [both, 'Upgrade: websocket']), requestText('GET /', [both, 'Upgrade: websocket']), true],
    ['in other letters', requestText('GET /', [both, 'Upgrade: WebSocket']), requestText('GET /', [both, 'Upgrade: WebSocket']), true],
    ['in a list', requestText('GET /', ['Connection: keep-alive, Upgrade', 'Upgrade: h2c, websocket']), requestText('GET /', ['Connection: keep-alive, Upgrade', 'Upgrade: h2c, websocket']), true],
    ['with a length of 0', requestText('GET /', [both, 'Upgrade: websocket', 'Content-Length: 0']), requestText('GET /', [both, 'Upgrade: websocket', 'Content-Length: 0']), true],
    ['for h2c', requestText('GET /', ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c']), requestText('GET /', ['Connection:  HTTP2-Settings', 'Upgrade: h2c']), false],
    ['for a similar protocol', requestText('GET /', [both, 'Upgrade: websockets, xwebsocket']), requestText('GET /', ['Connection: ', 'Upgrade: websockets, xwebsocket']), false],
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
