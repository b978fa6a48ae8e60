// The undocumented parts of Node that the server uses exist and work on this version, also with TLS.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { connect, Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { asksForUpgrade, attachSocket, checkNode, emitClose, emitDrain, holdRequests, releaseSocket } from '../../lib/core/node-internals.ts'
import { announceKeepAlive, answerHalfClosed, nameLocalPeer, readerOf, replaceClose, responseOf } from '../../lib/core/node-internals.ts'
import { sectionOf, sendsSections, setSection, socketBelow, takenByClient } from '../../lib/core/node-internals.ts'
import { makeCertificate } from '../support/certificate.ts'
import { requestText } from '../support/connection.ts'
import { listen } from '../support/listen.ts'
import { readAll } from '../support/raw.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

interface Handlers {
  readonly request: (request: IncomingMessage, response: ServerResponse) => void
  readonly upgrade?: (request: IncomingMessage, socket: Socket) => void
}

async function makeServer(t: TestContext, tls: boolean) {
  const files = tls ? makeCertificate(temporaryFolder(), 'node') : undefined
  const server = files === undefined
    ? createServer()
    : createTlsServer({ allowHalfOpen: true, cert: readFileSync(files.cert), key: readFileSync(files.key) })
  return { server, port: await listen(t, server) }
}

async function connectTo(port: number, tls: boolean): Promise<Socket> {
  const options = { port, host: '127.0.0.1' }
  const socket = tls ? connectTls({ ...options, rejectUnauthorized: false }) : connect(options)
  await once(socket, tls ? 'secureConnect' : 'connect')
  return socket
}

/** Serves one connection, sends it the text, and resolves with everything received until it is closed. */
async function serveOne(t: TestContext, tls: boolean, text: string, handlers: Handlers): Promise<string> {
  const { server, port } = await makeServer(t, tls)
  server.on('request', handlers.request)
  server.on('upgrade', (request, socket) => handlers.upgrade?.(request, socket as Socket))
  const socket = await connectTo(port, tls)
  socket.write(text)
  return readAll(socket)
}

const last = requestText('GET /last', ['Connection: close'])

for (const tls of [false, true]) {
  describe(tls ? 'Node, with TLS' : 'Node', () => {
    it(tls ? 'returns the TCP socket below' : 'has no socket below', async (t) => {
      const { server, port } = await makeServer(t, tls)
      const accepted: (Socket | undefined)[] = tls ? [] : [undefined]
      if (tls) server.on('connection', (socket: Socket) => accepted.push(socket))
      const served = once(server, 'request')
      const client = await connectTo(port, tls)
      client.write(last)
      const [request, response] = (await served) as [IncomingMessage, ServerResponse]
      assert.deepEqual([socketBelow(request.socket)], accepted)
      response.end()
      await readAll(client)
    })

    it('announces the given keep-alive time-out', async (t) => {
      const received = await serveOne(t, tls, requestText('GET /') + last, {
        request: (_request, response) => {
          announceKeepAlive(response, 7000)
          response.end()
        },
      })
      assert.match(received, /^Keep-Alive: timeout=7\r$/m)
    })

    it('keeps the header section that it has built, and sends a replaced one', async (t) => {
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

    it('closes a connection after its last response by the replaced method', async (t) => {
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

    it('exposes the response that uses the socket', async (t) => {
      const seen: unknown[] = []
      await serveOne(t, tls, last, {
        request: ({ socket }, response) => {
          seen.push(responseOf(socket) === response)
          response.on('close', () => seen.push(responseOf(socket)))
          response.end()
        },
      })
      assert.deepEqual(seen, [true, undefined])
    })

    it('releases the socket of a handshake, and lets another response answer it', async (t) => {
      const seen: string[] = []
      const upgrade = ['Connection: Upgrade', 'Upgrade: websocket']
      const answer = await serveOne(t, tls, requestText('GET /ws', upgrade), {
        request: () => {},
        upgrade: (request, socket) => {
          seen.push(`upgrade ${request.url} ${asksForUpgrade(request)}`)
          const response = new ServerResponse(request)
          attachSocket(response, socket)
          response.on('close', () => seen.push('closed'))
          response.writeHead(101, upgrade.flatMap((field) => field.split(': '))).end()
          releaseSocket(response, socket)
          emitClose(response)
          socket.end('frames')
        },
      })
      assert.match(answer, /^HTTP\/1\.1 101 Switching Protocols\r\n[^]*\r\n\r\nframes$/)
      assert.deepEqual(seen, ['upgrade /ws true', 'closed'])
    })

    it('holds a request with the bytes behind its header section, and reads the socket again', async (t) => {
      const seen: string[] = []
      const { server, port } = await makeServer(t, tls)
      const read = readerOf(server, tls)
      const holdsB = (socket: Socket): boolean => holdRequests(socket, ({ url }) => url === '/b')
      server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => seen.push(`holds ${holdsB(socket)}`))
      server.on('request', (request, response) => {
        seen.push(request.url ?? '')
        response.end(request.url)
      })
      server.on('upgrade', (request, stream, head) => {
        const socket = stream as Socket
        seen.push(`held ${request.method} ${request.url} ${head}`)
        setImmediate(() => {
          read(socket)
          socket.emit('data', Buffer.from(last))
        })
      })
      const socket = await connectTo(port, tls)
      socket.write(requestText('GET /a') + requestText('POST /b', ['Content-Length: 4'], 'body') + 'more')
      const received = await readAll(socket)
      assert.deepEqual(seen, ['holds true', '/a', 'held POST /b bodymore', '/last'])
      assert.equal(received.match(/HTTP\/1\.1 200/g)?.length, 2)
    })

    it('reports how much of a response the system has accepted, and lets the response continue', async (t) => {
      const size = 20_000_000
      const { server, port } = await makeServer(t, tls)
      const steps: number[] = []
      let drained = false
      server.on('request', (request, response) => {
        response.on('drain', () => (drained = true))
        response.write('x'.repeat(size))
        const look = setInterval(() => steps.push(takenByClient(request.socket)), 5)
        t.after(() => clearInterval(look))
        emitDrain(request.socket)
      })
      const socket = await connectTo(port, tls)
      socket.pause()
      socket.write(requestText('GET /'))
      const stalled = (): boolean => steps.length > 5 && new Set(steps.slice(-5)).size === 1
      await until(stalled)
      assert.ok(drained)
      const before = steps.at(-1) as number
      socket.resume()
      let received = 0
      socket.on('data', (piece: Buffer) => {
        received += piece.length
        if (received > size / 2) socket.pause() // The client reads half of it, and stops again.
      })
      await until(() => received > size / 2)
      steps.length = 0 // Those from before the client read on look stalled, too.
      await until(stalled)
      const after = steps.at(-1) as number
      assert.ok(after > before, `${after} after ${before}`)
      socket.destroy()
    })

    it('answers a client that has ended its side', async (t) => {
      const { server, port } = await makeServer(t, tls)
      answerHalfClosed(server)
      server.on('request', (_request, response) => void setTimeout(() => response.end('late'), 20))
      const socket = await connectTo(port, tls)
      socket.end(requestText('GET /'))
      assert.match(await readAll(socket), /late/)
    })
  })
}

it('gives a Unix socket a local address', () => {
  const socket = connect('/nowhere')
  socket.on('error', () => {})
  nameLocalPeer(socket)
  assert.equal(socket.remoteAddress, '127.0.0.1')
})

const getRequest = { method: 'GET', httpVersionMajor: 1, httpVersionMinor: 1 }

describe('the check at start-up', () => {
  it('finds no problem with this version, tested or not', () => {
    assert.deepEqual([checkNode(), checkNode('1.0.0')], [[], []])
  })

  it('detects a version that keeps no section, builds it differently, or does not send a replaced one', () => {
    const responses: Readonly<Record<string, (response: ServerResponse) => void>> = {
      right: () => {},
      'no section': (response) => void (response.writeHead = () => response),
      'other fields': (response) => {
        const { writeHead } = ServerResponse.prototype
        response.writeHead = (() => writeHead.call(response, 200, { Vary: 'Accept' })) as typeof writeHead
      },
      'an unsent section': (response) => {
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
