import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { describe, it } from 'node:test'
import { connect as connectTls } from 'node:tls'
import type { FullContext } from '../support/context.ts'
import type { WebSocketConnection, WebSocketHandlers } from '../../lib/websocket/connection.ts'
import { withoutRequestId } from '../support/log-lines.ts'
import { makeCertificate } from '../support/certificate.ts'
import { Connection, cutToo } from '../support/connection.ts'
import { parseAnswer } from '../support/raw.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'
import { echo, handshakeText, openWebSocket, serveRoutes, WebSocketClient } from '../support/websocket.ts'
import { clientFrame } from './frames.ts'
import { activeOn, gate, heldUpMs, linesOf } from './life-support.ts'

describe('a WebSocket', () => {
  it('receives messages that arrive with the handshake, in order', async (t) => {
    const { port } = await serveRoutes(t, { '/ws': { handlers: echo } })
    const long = 'x'.repeat(100_000)
    const texts = ['one', '', 'two', long, 'three']
    const bytes = Buffer.concat(texts.map((payload) => clientFrame({ opcode: 1, payload })))
    const atOnce = await openWebSocket(t, port, '/ws', [], bytes)
    for (const text of texts) assert.equal(await atOnce.hear(), text)

    const split = new WebSocketClient(t, port)
    const whole = Buffer.concat([Buffer.from(handshakeText('/ws')), bytes])
    for (const cut of [10, 100, 150, 200, 213, 1000, 70_000, whole.length]) {
      await split.send(whole.subarray(split.socket.bytesWritten, cut))
    }
    assert.equal((await split.answer()).status, 101)
    for (const text of texts) assert.equal(await split.hear(), text)
  })

  it('has params and query in the context of open, and its state', async (t) => {
    const { port } = await serveRoutes(t, {
      '/rooms/:room/*rest': {
        handlers: {
          open: (ws, { params, query, id, ip, routeName, closed }) => {
            ws.state['count'] = 0
            ws.send(JSON.stringify([params, query.get('as'), id, ip, routeName, closed]))
          },
          message: (ws) => {
            ws.state['count'] = Number(ws.state['count']) + 1
            ws.send(String(ws.state['count']))
          },
        },
      },
    })
    const [first, second] = [
      await openWebSocket(t, port, '/rooms/a%20b/c/d?as=ann', ['X-Request-Id: 12345678']),
      await openWebSocket(t, port, '/rooms/x/?as=bob', ['X-Request-Id: 87654321']),
    ]
    const expected = [{ room: 'a b', rest: 'c/d' }, 'ann', '12345678', '127.0.0.1', 'r0', false]
    assert.deepEqual(JSON.parse(await first.hear()), expected)
    assert.deepEqual(JSON.parse(await second.hear()), [{ room: 'x', rest: '' }, 'bob', '87654321', '127.0.0.1', 'r0', false])
    for (const [client, count] of [[first, '1'], [first, '2'], [second, '1']] as const) {
      client.say('')
      assert.equal(await client.hear(), count)
    }
  })

  it('reads nothing before open is done', async (t) => {
    const { open, opened } = gate()
    const seen: string[] = []
    const { port } = await serveRoutes(t, {
      '/ws': {
        handlers: {
          open: async (ws) => {
            ws.send('opening')
            await opened
            seen.push('open')
          },
          message: (ws, data) => {
            seen.push(String(data))
            ws.send('heard')
          },
        },
      },
    })
    const client = await openWebSocket(t, port, '/ws', [], clientFrame({ opcode: 1, payload: 'early' }))
    client.say('late')
    assert.equal(await client.hear(), 'opening')
    assert.deepEqual(seen, [])
    open()
    assert.equal(await client.hear(), 'heard')
    assert.equal(await client.hear(), 'heard')
    assert.deepEqual(seen, ['open', 'early', 'late'])
  })

  it('is closed with 1011 when a handler fails, which is logged with its route', async (t) => {
    const fail = (ws: WebSocketConnection<FullContext>, at: string): void | Promise<void> => {
      if (ws.state['what'] === at) throw new Error(`${at} failed`)
      if (ws.state['what'] === `${at}-later`) return Promise.resolve().then(() => assert.fail(`${at} failed later`))
    }
    const { port, url, lines } = await serveRoutes(
      t,
      {
        '/ws/:what': {
          handlers: {
            open: (ws, ctx) => {
              ws.state['what'] = ctx.params['what']
              return fail(ws, 'open')
            },
            message: (ws) => fail(ws, 'message'),
            close: (ws) => fail(ws, 'close'),
          },
        },
      },
      { 'app.env': 'dev' },
    )
    for (const what of ['open', 'open-later', 'message', 'message-later', 'close', 'close-later']) {
      const client = await openWebSocket(t, port, `/ws/${what}`)
      if (what.startsWith('message')) client.say('x')
      if (what.startsWith('close')) client.sendFrames({ opcode: 8 })
      assert.deepEqual(await client.closing(), what.startsWith('close') ? [1005, ''] : [1011, ''], what)
      client.socket.end()
      await until(() => linesOf('error', lines()).some((line) => line.includes(`/ws/${what} `)))
    }
    const reported = linesOf('error', lines())
    assert.deepEqual(
      reported.map((line) => withoutRequestId(line.replace('[ERROR] [error] ', ''))),
      ['open', 'open-later', 'message', 'message-later', 'close', 'close-later'].map(
        (what) => `WebSocket /ws/${what} (r0) of 127.0.0.1: a WebSocket handler failed`,
      ),
    )
    assert.ok(lines().some((line) => line.endsWith(': close failed later')))
    await until(async () => (await activeOn(url)) === 0)
  })

  it('has one access line, for the handshake, and log lines for open, close and protocol errors', async (t) => {
    const { port, url, lines } = await serveRoutes(t, { '/ws': { handlers: echo } }, { 'app.env': 'dev' })
    const client = await openWebSocket(t, port, '/ws?secret=1')
    client.say('hello')
    assert.equal(await client.hear(), 'hello')
    assert.equal(lines('access.log').length, 1)
    assert.match(lines('access.log')[0] ?? '', /^127\.0\.0\.1 .* "GET \/ws HTTP\/1\.1" 101$/)
    client.sendFrames({ opcode: 3 })
    assert.equal((await client.closing())[0], 1002)
    client.socket.end()
    await until(() => linesOf('worker_ws', lines()).length === 3)
    const [open, broken, closed] = linesOf('worker_ws', lines())
    assert.equal(open, '[DEBUG] [worker_ws] WebSocket /ws (r0) of 127.0.0.1: open')
    assert.match(broken ?? '', /^\[INFO \] \[worker_ws\] WebSocket \/ws \(r0\) of 127\.0\.0\.1: closed with 1002: /)
    assert.equal(closed, '[DEBUG] [worker_ws] WebSocket /ws (r0) of 127.0.0.1: closed with 1002')
    assert.equal(linesOf('worker_http', lines()).filter((line) => line.includes('GET /ws (r0) -> 101')).length, 1)
    assert.equal(lines('access.log').filter((line) => line.includes('/ws ')).length, 1)
    const { requests } = (await request(`${url}/svc-status`)).json() as { requests: { errors: number; active: number } }
    assert.deepEqual([requests.errors, requests.active], [0, 1])
  })

  it('aborts the signal of its context only when it ends', async (t) => {
    const signals: AbortSignal[] = []
    const handlers: WebSocketHandlers<FullContext> = { ...echo, open: (_ws, ctx) => void signals.push(ctx.signal) }
    const { port } = await serveRoutes(t, { '/ws': { handlers } })
    const client = await openWebSocket(t, port, '/ws')
    client.say('x')
    await client.hear()
    const [signal] = signals as [AbortSignal]
    assert.equal(signal.aborted, false)
    const aborted = once(signal, 'abort')
    client.socket.end()
    await aborted
  })

  it('keeps its handlers after a reload, and a new one gets the new handlers', async (t) => {
    const route = [{ name: 'ws', url: '/ws', action: 'ws.mjs', scope: '' }]
    const source = (name: string): string =>
      `export const websocket = { message: (ws) => ws.send('${name}') }`
    const { app, port, write } = await serveRoutes(t, {}, {}, { files: { 'routes/s.json': route, 'ws.mjs': source('old') } })
    const old = await openWebSocket(t, port, '/ws')
    old.say('?')
    assert.equal(await old.hear(), 'old')
    write({ 'ws.mjs': source('new') })
    await app.control.apply({ type: 'routes.reload' })
    old.say('?')
    assert.equal(await old.hear(), 'old')
    const fresh = await openWebSocket(t, port, '/ws')
    fresh.say('?')
    assert.equal(await fresh.hear(), 'new')
    write({ 'routes/s.json': [] })
    await app.control.apply({ type: 'routes.reload' })
    old.say('?')
    assert.equal(await old.hear(), 'old')
    assert.equal((await new WebSocketClient(t, port).handshake('/ws')).status, 404)
  })

  it('works over TLS, and accepts only pages of TLS', async (t) => {
    const { cert, key } = makeCertificate(temporaryFolder(), 'tls')
    const { port } = await serveRoutes(
      t,
      {
        '/ws': {
          handlers: {
            open: (ws, ctx) => void (ws.state['of'] = `${ctx.secure} ${ctx.ip}`),
            message: (ws) => void ws.send(String(ws.state['of'])),
          },
        },
      },
      { 'server.tls.cert': cert, 'server.tls.key': key },
    )
    const answered = async (origin: string): Promise<{ status: number; frame: string }> => {
      const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
      cutToo(t, socket)
      let text = ''
      socket.setEncoding('latin1').on('data', (piece: string) => (text += piece))
      socket.write(handshakeText('/ws', [`Origin: ${origin}`]))
      await until(() => text.includes('\r\n\r\n'))
      socket.write(clientFrame({ opcode: 1, payload: '?' }))
      await until(() => text.includes('127.0.0.1') || text.includes('</html>'))
      return { status: parseAnswer(text).status, frame: text.slice(text.indexOf('\r\n\r\n') + 6) }
    }
    assert.deepEqual(await answered('https://h'), { status: 101, frame: 'true 127.0.0.1' })
    assert.equal((await answered('http://h')).status, 403)
  })

  it('works over IPv6', async (t) => {
    const handlers: WebSocketHandlers<FullContext> = { open: (ws, ctx) => void ws.send(ctx.ip) }
    const { port } = await serveRoutes(t, { '/ws': { handlers } }, { 'server.host': '::1' })
    const socket = connectTcp({ port, host: '::1' })
    cutToo(t, socket)
    let text = ''
    socket.setEncoding('latin1').on('data', (piece: string) => (text += piece))
    socket.write(handshakeText('/ws', ['Origin: http://[::1]:1']).replace('Host: h', 'Host: [::1]:1'))
    await until(() => text.endsWith('::1'))
    assert.equal(parseAnswer(text).status, 101)
  })
})

describe('a client that disconnects', () => {
  const ways: readonly (readonly [string, (socket: Socket) => void])[] = [
    ['with an end', (socket) => void socket.end()],
    ['with a reset', (socket) => void socket.resetAndDestroy()],
  ]

  for (const [how, leave] of ways) {
    it(`${how} during the middleware is not opened, and aborts the signal`, async (t) => {
      const { port, url, lines } = await serveRoutes(
        t,
        { '/ws': { middleware: 'slow', handlers: { open: () => assert.fail(), close: () => assert.fail() } } },
        { 'app.env': 'dev' },
        {
          middleware: {
            slow: async (ctx, next) => {
              ctx.log('waits')
              if (!ctx.signal.aborted) await once(ctx.signal, 'abort')
              await next()
              ctx.log('over')
            },
          },
        },
      )
      const client = new Connection(t, port)
      await client.send(handshakeText('/ws'))
      await until(() => linesOf('app', lines()).length === 1)
      leave(client.socket)
      await until(() => lines('access.log').some((line) => line.endsWith('"GET /ws HTTP/1.1" 499')))
      await until(() => linesOf('app', lines()).length === 2)
      assert.deepEqual(linesOf('worker_ws', lines()), [])
      assert.deepEqual(linesOf('error', lines()), [])
      assert.equal(await activeOn(url), 0)
    })
  }

  it('with a reset during open is closed with 1006, and open runs to its end', async (t) => {
    const { open, opened } = gate()
    const endings: unknown[] = []
    const { port, url } = await serveRoutes(
      t,
      {
        '/ws': {
          handlers: {
            open: async (ws) => {
              await opened
              endings.push(['open', ws.isOpen, ws.send('too late')])
            },
            message: () => assert.fail(),
            close: (_ws, code, reason) => void endings.push([code, reason]),
          },
        },
      },
      { 'app.env': 'dev' },
    )
    const client = await openWebSocket(t, port, '/ws')
    client.socket.resetAndDestroy()
    await until(async () => (await activeOn(url)) === 0)
    assert.deepEqual(endings, [[1006, '']])
    open()
    await until(() => endings.length === 2)
    assert.deepEqual(endings[1], ['open', false, false])
  })

  it('after a refused handshake is ignored, even while it still sends', async (t) => {
    const { port, url, lines } = await serveRoutes(t, { '/ws': { handlers: { open: () => assert.fail() } } })
    const piece = Buffer.alloc(3_000_000, 1)
    for (const leave of [() => {}, ...ways.map(([, way]) => way)]) {
      const client = new WebSocketClient(t, port)
      client.socket.write(handshakeText('/ws', ['Origin: http://evil.example']))
      client.socket.write(piece, () => {})
      leave(client.socket)
      await client.closed()
      if (leave.length === 0) assert.equal(parseAnswer(client.received).status, 403)
    }
    assert.equal((await request(`${url}/svc-ping`)).status, 200)
    assert.deepEqual(linesOf('error', lines()), [])
  })
})

describe('the stop', () => {
  it('is not delayed by WebSockets whose peers answer', async (t) => {
    const { app, port } = await serveRoutes(t, { '/ws': { handlers: echo } })
    const client = await openWebSocket(t, port, '/ws')
    const before = performance.now()
    const stopped = app.stop()
    await client.closing()
    client.sendFrames({ opcode: 8, payload: Buffer.from([0x03, 0xe9]) })
    client.socket.end()
    await stopped
    assert.ok(performance.now() - before < heldUpMs)
  })
})
