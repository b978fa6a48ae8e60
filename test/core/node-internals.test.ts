// What the server uses of Node without documentation is there and works on this version, with TLS too.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { connect, Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { IncomingRequest } from '../../lib/core/incoming-request.ts'
import { attachSocket, checkNode, currentPiece, emitClose, isAnswering, releaseSocket } from '../../lib/core/node-internals.ts'
import { nameLocalPeer, replaceClose, sectionOf, sendsSections, setSection } from '../../lib/core/node-internals.ts'
import { makeCertificate } from '../support/certificate.ts'
import { requestText } from '../support/connection.ts'
import { listen } from '../support/listen.ts'
import { readAll } from '../support/raw.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

interface Handlers {
  readonly request: (request: IncomingMessage, response: ServerResponse) => void
  readonly upgrade?: (request: IncomingMessage, socket: Socket) => void
}

/** Serves one connection, sends it the text, and resolves with all that came back when it is closed. */
async function serveOne(t: TestContext, tls: boolean, text: string, handlers: Handlers): Promise<string> {
  const options = { IncomingMessage: IncomingRequest }
  const files = tls ? makeCertificate(temporaryFolder(), 'node') : undefined
  const server = files === undefined
    ? createServer(options)
    : createTlsServer({ ...options, cert: readFileSync(files.cert), key: readFileSync(files.key) })
  server.on('request', handlers.request)
  server.on('upgrade', (request, socket) => handlers.upgrade?.(request, socket as Socket))
  const port = await listen(t, server)
  const socket = tls ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }) : connect(port, '127.0.0.1')
  if (tls) await once(socket, 'secureConnect')
  socket.write(text)
  return readAll(socket)
}

const last = requestText('GET /last', ['Connection: close'])

for (const tls of [false, true]) {
  describe(tls ? 'Node, with TLS' : 'Node', () => {
    it('keeps the header section that it has made, and sends the one that is set', async (t) => {
      let made: string | undefined
      const received = await serveOne(t, tls, last, {
        request: (_request, response) => {
          response.writeHead(200, ['Content-Length', '1'])
          made = sectionOf(response)
          setSection(response, 'HTTP/1.1 299 Other\r\nConnection: close\r\nContent-Length: 1\r\n\r\n')
          response.end('x')
        },
      })
      assert.match(made ?? '', /^HTTP\/1\.1 200 OK\r\nContent-Length: 1\r\nDate: [^]+\r\n\r\n$/)
      assert.equal(received, 'HTTP/1.1 299 Other\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx')
    })

    it('closes a connection after its last answer with the method that is replaced', async (t) => {
      let closes = 0
      const received = await serveOne(t, tls, last, {
        request: ({ socket }, response) => {
          replaceClose(socket, () => {
            closes += 1
            socket.end()
          })
          response.end('x')
        },
      })
      assert.match(received, /^HTTP\/1\.1 200 OK[^]*x/)
      assert.equal(closes, 1)
    })

    it('shows the piece of input and the response that has the socket', async (t) => {
      const seen: unknown[] = []
      await serveOne(t, tls, last, {
        request: ({ socket }, response) => {
          seen.push(currentPiece(socket)?.toString(), isAnswering(socket))
          response.on('close', () => seen.push(isAnswering(socket)))
          response.end()
        },
      })
      assert.deepEqual(seen, [last, true, false])
    })

    it('lets go of the socket of a handshake alone, and answers it with a response of its own', async (t) => {
      const seen: string[] = []
      const upgrade = ['Connection: Upgrade', 'Upgrade: websocket']
      const plain = requestText('GET /h2c', ['Connection: Upgrade', 'Upgrade: h2c'])
      const ask = (text: string): Promise<string> =>
        serveOne(t, tls, text, {
          request: ({ url }, response) => {
            seen.push(`request ${url}`)
            response.setHeader('Connection', 'close').end('plain')
          },
          upgrade: (request, socket) => {
            seen.push(`upgrade ${request.url}`)
            const response = new ServerResponse(request)
            attachSocket(response, socket)
            response.on('close', () => seen.push('closed'))
            response.writeHead(101, upgrade.flatMap((field) => field.split(': '))).end()
            releaseSocket(response, socket)
            emitClose(response)
            socket.end('frames')
          },
        })
      assert.match(await ask(plain), /^HTTP\/1\.1 200 OK[^]*plain/)
      assert.match(await ask(requestText('GET /ws', upgrade)), /^HTTP\/1\.1 101 Switching Protocols\r\n[^]*\r\n\r\nframes$/)
      assert.deepEqual(seen, ['request /h2c', 'upgrade /ws', 'closed'])
    })

    it('does nothing to the end of a request that nobody reads', async (t) => {
      const seen: string[] = []
      await serveOne(t, tls, last, {
        request: (request, response) => {
          for (const event of ['end', 'close']) request.on(event, () => seen.push(event))
          response.end()
        },
      })
      assert.deepEqual(seen, [])
    })
  })
}

it('gives a Unix socket the address of this machine', () => {
  const socket = connect('/nowhere')
  socket.on('error', () => {})
  nameLocalPeer(socket)
  assert.equal(socket.remoteAddress, '127.0.0.1')
})

const getRequest = { method: 'GET', httpVersionMajor: 1, httpVersionMinor: 1 }

describe('the check at start', () => {
  it('finds nothing wrong with this version, tested or not', () => {
    assert.deepEqual([checkNode(), checkNode('1.0.0')], [[], []])
  })

  it('tells a version that keeps no section, makes another one, or does not send the one that is set', () => {
    const responses: Readonly<Record<string, (response: ServerResponse) => void>> = {
      right: () => {},
      'no section': (response) => void (response.writeHead = () => response),
      'other fields': (response) => {
        const { writeHead } = ServerResponse.prototype
        response.writeHead = (() => writeHead.call(response, 200, { Vary: 'Accept' })) as typeof writeHead
      },
      'a section that is not sent': (response) => {
        const { end } = ServerResponse.prototype
        response.end = (() => {
          setSection(response, 'HTTP/1.1 200 OK\r\n\r\n')
          return end.call(response, '', 'latin1')
        }) as typeof end
      },
      failing: (response) => {
        response.end = () => {
          throw new Error('Node has none of that')
        }
      },
    }
    const found = Object.entries(responses).map(([name, spoil]) => {
      const response = new ServerResponse(Object.assign(new IncomingMessage(new Socket()), getRequest))
      spoil(response)
      return [name, sendsSections(response)]
    })
    assert.deepEqual(found, Object.keys(responses).map((name) => [name, name === 'right']))
  })
})
