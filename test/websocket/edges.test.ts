import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { connect as connectTls } from 'node:tls'
import type { FullContext } from '../support/context.ts'
import type { WebSocketHandlers } from '../../lib/websocket/connection.ts'
import { makeCertificate } from '../support/certificate.ts'
import { Connection, cutToo, requestText, splitAnswers } from '../support/connection.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'
import { clientFrame } from './frames.ts'
import { handshakeText, openWebSocket, serveRoutes } from '../support/websocket.ts'

it('sends messages of open over TLS', async (t) => {
  const { cert, key } = makeCertificate(temporaryFolder(), 'tls')
  const { port } = await serveRoutes(
    t,
    { '/ws': { handlers: { open: (ws) => void ws.send('hello') } } },
    { 'server.tls.cert': cert, 'server.tls.key': key },
  )
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
  cutToo(t, socket)
  let text = ''
  socket.setEncoding('latin1').on('data', (piece: string) => (text += piece))
  socket.write(handshakeText('/ws'))
  await until(() => text.endsWith('hello'))
})

it('ends when its client half-closes during open', async (t) => {
  const opening: { done?: () => void; socket?: Socket } = {}
  const endings: number[] = []
  const handlers: WebSocketHandlers<FullContext> = {
    open: (_ws, { request }) => {
      opening.socket = request.socket
      return new Promise<void>((resolve) => (opening.done = resolve))
    },
    close: (_ws, code) => void endings.push(code),
  }
  const { port } = await serveRoutes(t, { '/ws': { handlers } })
  const client = await openWebSocket(t, port, '/ws')
  client.socket.end()
  await until(() => opening.socket?.readableEnded === true)
  opening.done?.()
  await until(() => endings.length === 1)
  assert.deepEqual(endings, [1006])
})

it('stops reading from a peer that does not read, until it reads again', async (t) => {
  const count = 24
  const payload = Buffer.alloc(1_000_000, 'x')
  let heard = 0
  const handlers: WebSocketHandlers<FullContext> = {
    message: (ws, data) => {
      heard += 1
      ws.send(data)
    },
  }
  const { port, url } = await serveRoutes(t, { '/ws': { handlers } }, { 'app.env': 'dev' })
  const client = await openWebSocket(t, port, '/ws')
  client.socket.pause()
  for (let sent = 0; sent < count; sent += 1) client.socket.write(clientFrame({ opcode: 2, payload }))
  const heardSoFar = async (): Promise<number> => {
    const status = (await request(`${url}/svc-status`)).json() as { pool_ws: { active: number; slow: number } }
    assert.deepEqual([status.pool_ws.active, status.pool_ws.slow], [1, 0])
    return heard
  }
  let before = -1
  await until(async () => before === (before = await heardSoFar()) && before > 0)
  assert.ok(heard < count, `${heard} messages were read`)
  let bytes = 0
  client.socket.on('data', (chunk: Buffer) => (bytes += chunk.length))
  client.socket.resume()
  await until(() => heard === count && bytes >= count * payload.length)
})

interface Status {
  readonly connections: { readonly active: number }
  readonly requests: { readonly active: number }
}

describe('a handshake after a response with Connection: close', () => {
  const frames = Buffer.concat(Array.from({ length: 20 }, () => clientFrame({ opcode: 2, payload: Buffer.alloc(60_000, 1) })))

  /** A server whose `/ws` must not be opened. Returns a client that stays when the server has ended its side. */
  async function serveNobody(t: TestContext) {
    const server = await serveRoutes(
      t,
      {
        '/ws': { handlers: { open: () => assert.fail() } },
        '/unread': { action: () => 'not read' },
        '/held': { action: (ctx) => ctx.longPoll(ctx.channel('c')) },
      },
      { 'app.env': 'dev' },
    )
    const client = new Connection(t, server.port, { allowHalfOpen: true })
    const errors: Error[] = []
    client.socket.on('error', (error) => errors.push(error))
    const ended = once(client.socket, 'end', { signal: AbortSignal.timeout(20_000) })
    return { ...server, client, errors, ended }
  }

  it('is ignored: the response is complete and the end orderly, although the client keeps sending', async (t) => {
    const { client, errors, ended, lines, url } = await serveNobody(t)
    await client.send(requestText('POST /unread', ['Transfer-Encoding: chunked'], '3\r\nabc\r\n'))
    const [answer] = await client.answers(1)
    assert.deepEqual([answer?.body, answer?.headers['connection']], ['not read', 'close'])
    await ended
    await client.send(`0\r\n\r\n${handshakeText('/ws')}`)
    await request(`${url}/other`) // By now the server has met the handshake.
    await client.send(frames)
    client.socket.end()
    assert.equal(splitAnswers(await client.closed()).length, 1)
    assert.deepEqual(errors, [])
    assert.equal(lines('access.log').filter((line) => !line.includes('/other')).length, 1)
    await until(async () => {
      const { connections, requests } = (await request(`${url}/svc-status`)).json() as Status
      return connections.active === 1 && requests.active === 1 // Those of this very question.
    })
  })
  const behind: readonly (readonly [what: string, bytes: Uint8Array])[] = [
    ['the handshake alone', Buffer.from(handshakeText('/ws'))],
    ['with frames', Buffer.concat([Buffer.from(handshakeText('/ws')), frames])],
  ]
  for (const [what, bytes] of behind) {
    it(`is ignored when it arrives with the request during a stop: ${what}`, async (t) => {
      const { app, client, errors, ended, lines } = await serveNobody(t)
      await client.send(requestText('GET /unread'))
      await client.answers(1)
      client.socket.pause() // A reset that overtakes what was not read yet is seen so.
      const stopped = app.stop()
      client.socket.write(Buffer.concat([Buffer.from(requestText('GET /unread')), bytes]))
      await stopped
      client.socket.resume()
      await ended
      client.socket.end()
      const answers = splitAnswers(await client.closed())
      assert.deepEqual(answers.map(({ body, headers }) => [body, headers['connection']]), [['not read', 'keep-alive'], ['not read', 'close']])
      assert.deepEqual(errors, [])
      assert.equal(lines('access.log').length, 2)
    })
  }
})
