import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { WebSocketHandlers } from '../../lib/websocket/connection.ts'
import type { FullContext } from '../support/context.ts'
import { Connection, requestText, splitAnswers } from '../support/connection.ts'
import { exchange, parseAnswer } from '../support/raw.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'
import { echo, handshakeFields, handshakeText, openWebSocket, serveRoutes, WebSocketClient } from '../support/websocket.ts'

const plain = (): string => 'plain'
const accessLines = (lines: string[]): string[] => lines.map((line) => line.replace(/^.*"(.*)" (\d+)$/, '$1 $2'))

/** The status of a handshake on a new connection; a refused one must be the last on its connection. */
async function statusOf(port: number, target: string, fields: readonly string[] = []): Promise<number> {
  const client = new WebSocketClient({ after: () => {} }, port)
  const { status, headers } = await client.handshake(target, fields)
  if (status !== 101) assert.equal(headers['connection'], 'close', `${status}`)
  client.socket.destroy()
  return status
}

describe('a handshake', () => {
  it('gets 101 with the header fields of the context, then belongs to the application', async (t) => {
    const { port } = await serveRoutes(t, { '/ws': { handlers: echo, middleware: 'fields' } }, {}, {
      middleware: {
        fields: async (ctx, next) => {
          ctx.setHeader('X-Before', 'a')
          await next()
          ctx.setHeader('X-After', 'b')
          ctx.status = 418
        },
      },
    })
    const client = new WebSocketClient(t, port)
    const { status, headers } = await client.handshake('/ws', ['X-Request-Id: 12345678'])
    assert.equal(status, 101)
    assert.deepEqual(Object.keys(headers), [
      'x-before', 'x-after', 'upgrade', 'connection', 'sec-websocket-accept', 'x-request-id', 'date',
    ])
    const { connection, upgrade, 'x-request-id': id } = headers
    assert.deepEqual([connection, upgrade, id], ['Upgrade', 'websocket', '12345678'])
    client.say('hello')
    assert.equal(await client.hear(), 'hello')
  })

  it('names the first protocol of the module that the client offers, if any', async (t) => {
    const open: WebSocketHandlers<FullContext>['open'] = (ws) => void ws.send(`protocol ${ws.protocol}`)
    const { port } = await serveRoutes(t, {
      '/two': { handlers: { protocols: ['chat.v2', 'chat'], open } },
      '/none': { handlers: { open } },
    })
    const rows: [target: string, offered: string[], chosen: string | undefined][] = [
      ['/two', ['chat'], 'chat'],
      ['/two', ['chat, chat.v2'], 'chat.v2'],
      ['/two', ['chat', 'chat.v2'], 'chat.v2'],
      ['/two', ['other'], undefined],
      ['/two', [], undefined],
      ['/none', ['chat'], undefined],
    ]
    for (const [target, offered, chosen] of rows) {
      const client = new WebSocketClient(t, port)
      const fields = offered.map((value) => `Sec-WebSocket-Protocol: ${value}`)
      const { status, headers } = await client.handshake(target, fields)
      const what = `${target} ${offered.join('; ')}`
      assert.deepEqual([status, headers['sec-websocket-protocol']], [101, chosen], what)
      assert.equal(await client.hear(), `protocol ${chosen ?? ''}`, what)
    }
  })

  it('carries the session’s cookie when middleware has written to the session', async (t) => {
    const { port } = await serveRoutes(
      t,
      {
        '/ws': {
          middleware: 'SVC_MwSession,count',
          handlers: { open: (ws, ctx) => void ws.send(String(ctx.session.get('count'))) },
        },
      },
      {},
      {
        middleware: {
          count: (ctx, next) => {
            ctx.session.set('count', Number(ctx.session.get('count') ?? 0) + 1)
            return next()
          },
        },
      },
    )
    const first = new WebSocketClient(t, port)
    const { headers } = await first.handshake('/ws')
    const cookie = /^SVCSID=[^;]+/.exec(headers['set-cookie'] ?? '')?.[0] ?? ''
    assert.match(cookie, /^SVCSID=/)
    assert.equal(await first.hear(), '1')
    const second = await openWebSocket(t, port, '/ws', [`Cookie: ${cookie}`])
    assert.equal(await second.hear(), '2')
  })

  it('is refused by SVC_MwIsAuth, or has the user', async (t) => {
    const { port, url } = await serveRoutes(t, {
      '/ws': {
        middleware: 'SVC_MwSession,SVC_MwIsAuth',
        handlers: { open: (ws, ctx) => void ws.send(String(ctx.state['user'])) },
      },
      '/in': { middleware: 'SVC_MwSession', action: (ctx) => void ctx.session.set('_auth_user', 'ann') },
    })
    const refused = await new WebSocketClient(t, port).handshake('/ws')
    const { location, connection } = refused.headers
    assert.deepEqual([refused.status, location, connection], [302, '/login', 'close'])
    const asJson = await new WebSocketClient(t, port).handshake('/ws', ['Accept: application/json'])
    assert.deepEqual([asJson.status, JSON.parse(asJson.body).error], [401, 'unauthorized'])
    const cookie = (await request(`${url}/in`)).headers['set-cookie']?.[0]?.split(';')[0]
    const client = await openWebSocket(t, port, '/ws', [`Cookie: ${cookie}`])
    assert.equal(await client.hear(), 'ann')
  })

  it('gets the error of middleware that throws, logged with the route', async (t) => {
    const { port, lines } = await serveRoutes(
      t,
      {
        '/ws/:how': { middleware: 'stop', handlers: { open: () => assert.fail() } },
      },
      {},
      {
        middleware: {
          stop: async (ctx, next) => {
            const { how } = ctx.params
            if (how === 'throws') throw new Error('broken')
            if (how === 'later') return Promise.resolve().then(() => ctx.fail(418, 'teapot', 'short and stout'))
            if (how === 'answers') return void ctx.text('no socket', 403)
            await next()
            ctx.json({ instead: true })
          },
        },
      },
    )
    const rows: [string, number, RegExp][] = [
      ['throws', 500, /^<!doctype html>/],
      ['later', 418, /short and stout/],
      ['answers', 403, /^no socket$/],
      ['instead', 200, /^\{"instead":true\}$/],
    ]
    for (const [how, status, body] of rows) {
      const client = new WebSocketClient(t, port)
      const answer = await client.handshake(`/ws/${how}`)
      assert.deepEqual([answer.status, answer.headers['connection']], [status, 'close'], how)
      assert.match(answer.body, body)
      assert.equal(Buffer.byteLength(answer.body), Number(answer.headers['content-length']))
    }
    await until(() => lines('access.log').length === 4)
    assert.deepEqual(accessLines(lines('access.log')), rows.map(([how, status]) => `GET /ws/${how} HTTP/1.1 ${status}`))
    const errors = lines().filter((line) => line.includes('[error]'))
    assert.equal(errors.length, 1)
    assert.match(errors[0] ?? '', /\[ERROR\] \[error\] GET \/ws\/throws \(r0\): broken/)
  })

  it('is accepted only from this host, trusted origins and non-browsers', async (t) => {
    const { port } = await serveRoutes(
      t,
      { '/ws': { handlers: echo } },
      { 'server.trusted_origins': ['https://friend.example', 'capacitor://localhost'], 'server.trusted_proxies': ['127.0.0.2'] },
    )
    const rows: [readonly string[], number][] = [
      [[], 101],
      [['Origin: http://h'], 101],
      [['Origin: https://h'], 101],
      [['Origin: http://h:80'], 101],
      [['Origin: http://H'], 101],
      [['Origin: https://friend.example'], 101],
      [['Origin: https://friend.example', 'Sec-Fetch-Site: cross-site'], 101],
      [['Origin: capacitor://localhost'], 101],
      [['Origin: ionic://localhost'], 403],
      [['Origin: capacitor://h'], 403],
      [['Origin: http://friend.example'], 403],
      [['Origin: http://h:81'], 403],
      [['Origin: http://h.evil.example'], 403],
      [['Origin: http://evil.example'], 403],
      [['Origin: http://h@evil.example'], 403],
      [['Origin: null'], 403],
      [['Origin: '], 403],
      [['Origin: h'], 403],
      [['Origin: http://h, http://evil.example'], 403],
      [['Origin: http://h', 'Sec-Fetch-Site: cross-site'], 403],
      [['Origin: http://h', 'Sec-Fetch-Site: same-site'], 403],
      [['Sec-Fetch-Site: cross-site'], 403],
      [['Origin: http://h', 'Sec-Fetch-Site: same-origin'], 101],
      [['Sec-Fetch-Site: none'], 101],
      [['Referer: http://evil.example/page'], 403],
      // A forwarded host counts only from a trusted proxy.
      [['Origin: http://evil.example', 'X-Forwarded-Host: evil.example'], 403],
    ]
    for (const [fields, status] of rows) assert.equal(await statusOf(port, '/ws', fields), status, fields.join())
    const client = new WebSocketClient(t, port)
    const { status, body } = await client.handshake('/ws', ['Origin: null', 'Accept: application/json'])
    assert.deepEqual([status, JSON.parse(body).error], [403, 'forbidden'])
  })

  it('gets 400 when invalid, or 426 with the supported version', async (t) => {
    const { port } = await serveRoutes(t, { '/ws': { handlers: { open: () => assert.fail() } } })
    const [connection = '', upgrade = '', version = '', key = ''] = handshakeFields
    const rows: [string, string, number][] = [
      ['no key', requestText('GET /ws', [connection, upgrade, version]), 400],
      ['a short key', requestText('GET /ws', [connection, upgrade, version, 'Sec-WebSocket-Key: c2hvcnQ=']), 400],
      ['a key twice', requestText('GET /ws', [connection, upgrade, version, key, key]), 400],
      ['no version', requestText('GET /ws', [connection, upgrade, key]), 426],
      ['another version', requestText('GET /ws', [connection, upgrade, key, 'Sec-WebSocket-Version: 8']), 426],
      ['HTTP/1.0', `GET /ws HTTP/1.0\r\nHost: h\r\n${handshakeFields.join('\r\n')}\r\n\r\n`, 400],
      ['no Host', `GET /ws HTTP/1.1\r\n${handshakeFields.join('\r\n')}\r\n\r\n`, 400],
      ['two Hosts', handshakeText('/ws', ['Host: h']), 400],
    ]
    for (const [what, bytes, status] of rows) {
      const answer = parseAnswer(await exchange(port, bytes))
      assert.deepEqual([answer.status, answer.headers['connection']], [status, 'close'], what)
      assert.equal(answer.headers['sec-websocket-version'], status === 426 ? '13' : undefined, what)
    }
  })

  it('gets the usual error for an unknown path or a host that is not allowed', async (t) => {
    const { port } = await serveRoutes(
      t,
      { '/ws': { handlers: echo }, '/post': { method: 'POST', handlers: echo } },
      { 'server.allowed_hosts': ['h'] },
    )
    assert.equal(await statusOf(port, '/none'), 404)
    assert.equal(await statusOf(port, '/post'), 405)
    assert.equal(await statusOf(port, '/ws/%zz'), 404)
    assert.equal(await statusOf(port, '/ws'), 101)
    const other = handshakeText('/ws').replace('Host: h', 'Host: rebound.example')
    assert.equal(parseAnswer(await exchange(port, other)).status, 400)
  })

  it('gets 500 from a broken module, and 101 from a missing one once it exists', async (t) => {
    const routes = ['broken.mjs', 'wrong.mjs', 'late.mjs', 'late.html'].map((action) => {
      return { name: action, url: `/${action}`, action, scope: '' }
    })
    const files = { 'broken.mjs': 'let x = ;', 'wrong.mjs': 'export const websocket = { onmessage() {} }' }
    const { port, write, lines } = await serveRoutes(t, {}, {}, { files: { ...files, 'routes/s.json': routes } })
    for (const { action } of routes) assert.equal(await statusOf(port, `/${action}`), 500, action)
    assert.ok(lines().some((line) => /wrong\.mjs: its export "websocket" has an unknown member onmessage/.test(line)))
    write({ 'late.mjs': "export const websocket = { open: (ws) => ws.send('there') }", 'late.html': 'there' })
    const client = await openWebSocket(t, port, '/late.mjs')
    assert.equal(await client.hear(), 'there')
    assert.equal(await statusOf(port, '/late.mjs'), 101)
    assert.equal(await statusOf(port, '/late.html'), 200)
  })
})

describe('a route', () => {
  it('without WebSockets serves a handshake as a plain request, the last on its connection', async (t) => {
    const seen: boolean[] = []
    const { port } = await serveRoutes(t, { '/plain': { action: (ctx) => (seen.push(ctx.closed), plain()) } })
    const answer = parseAnswer(await exchange(port, handshakeText('/plain')))
    assert.deepEqual([answer.status, answer.body, answer.headers['connection']], [200, 'plain', 'close'])
    assert.deepEqual(seen, [false])
  })

  it('with both serves both', async (t) => {
    const { port, url } = await serveRoutes(t, { '/both': { action: plain, handlers: echo } })
    assert.equal((await request(`${url}/both`)).text, 'plain')
    const client = await openWebSocket(t, port, '/both')
    client.say('x')
    assert.equal(await client.hear(), 'x')
  })

  it('with only WebSockets answers plain requests with 426, and methods by its record', async (t) => {
    const { port, url } = await serveRoutes(t, { '/ws': { method: 'GET', handlers: echo }, '/any': { handlers: echo } })
    const { status, headers } = await request(`${url}/ws`, { headers: { accept: 'application/json' } })
    assert.deepEqual([status, headers.upgrade, headers.connection], [426, 'websocket', 'close, Upgrade'])
    const head = await request(`${url}/ws`, { method: 'HEAD' })
    assert.deepEqual([head.status, head.text], [426, ''])
    const options = await request(`${url}/ws`, { method: 'OPTIONS' })
    assert.deepEqual([options.status, options.headers.allow], [204, 'GET, HEAD, OPTIONS'])
    const post = await request(`${url}/ws`, { method: 'POST' })
    assert.deepEqual([post.status, post.headers.allow], [405, 'GET, HEAD, OPTIONS'])
    assert.equal((await request(`${url}/any`, { method: 'OPTIONS' })).status, 426)
    assert.equal((await request(`${url}/any`, { method: 'POST', body: 'x' })).status, 426)
    const old = parseAnswer(await exchange(port, 'GET /ws HTTP/1.0\r\n\r\n'))
    assert.equal(old.status, 426)
  })

  it('serves other upgrades as plain requests, and keeps the connection', async (t) => {
    const read = async (ctx: FullContext): Promise<string> => `${ctx.method} ${await ctx.readText()}`
    const { port } = await serveRoutes(t, { '/both': { action: read, handlers: echo } })
    const [, ...behind] = handshakeFields
    const chunked = 'Transfer-Encoding: chunked'
    const rows: [string, string, string][] = [
      ['h2c', requestText('GET /both', ['Connection: Upgrade', 'Upgrade: h2c']), 'GET '],
      ['a POST', requestText('POST /both', [...handshakeFields, 'Content-Length: 3'], 'abc'), 'POST abc'],
      ['a body', requestText('GET /both', [...handshakeFields, 'Content-Length: 3'], 'abc'), 'GET abc'],
      ['no option', requestText('GET /both', behind), 'GET '],
      ['another protocol', requestText('GET /both', ['Connection: Upgrade', 'Upgrade: websockets']), 'GET '],
    ]
    const client = new Connection(t, port)
    for (const [at, [what, bytes, body]] of rows.entries()) {
      await client.send(bytes)
      assert.equal((await client.answers(at + 1)).at(-1)?.body, body, what)
    }
    const inChunks = requestText('GET /both', [...handshakeFields, chunked], '3\r\nabc\r\n0\r\n\r\n')
    await client.send(inChunks + requestText('GET /both', ['Connection: close']))
    const answers = splitAnswers(await client.closed()).slice(rows.length)
    assert.deepEqual(answers.map(({ body }) => body), ['GET abc', 'GET '])
  })

  it('never drops requests silently after an upgrade served plainly, for any chunks', async (t) => {
    const { port } = await serveRoutes(t, { '/:name': { action: (ctx) => ctx.params['name'] } })
    const upgrade = ['Connection: Upgrade', 'Upgrade: h2c']
    const behind = requestText('GET /behind')
    const first = requestText('GET /first')
    const withLength = (length: number): string => requestText('POST /up', [...upgrade, `Content-Length: ${length}`])
    const length = Array.from({ length: 50 }, (_, at) => 80 + at).find((bytes) => withLength(bytes).length === bytes)
    const post = withLength(length as number) // One of them is.
    const rows: [string, string[]][] = [
      ['in one piece', [requestText('GET /up', upgrade) + behind]],
      ['its end in two pieces', [requestText('GET /up', upgrade).slice(0, -1), `\n${behind}`]],
      ['its body as long as its own head, behind another request', [first + post, 'x'.repeat(post.length) + behind]],
    ]
    for (const [what, pieces] of rows) {
      const client = new Connection(t, port)
      client.socket.setNoDelay()
      for (const piece of pieces) {
        await client.send(piece)
        await request(`http://127.0.0.1:${port}/other`)
      }
      client.socket.end()
      const answers = splitAnswers(await client.closed())
      const at = answers.findIndex(({ body }) => body === 'up')
      assert.ok(at >= 0, what)
      assert.deepEqual([answers[at]?.headers['connection'], answers[at + 1]?.body], ['keep-alive', 'behind'], what)
    }
  })

  it('accepts a pipelined handshake when it is its turn', async (t) => {
    const { port, url, lines } = await serveRoutes(t, {
      '/both': { action: plain, handlers: echo },
      '/wait': { action: (ctx) => ctx.longPoll(ctx.channel('c')) },
      '/publish': { action: (ctx) => ctx.channel('c').publish('event') },
    })
    const atOnce = new Connection(t, port)
    await atOnce.send(requestText('GET /both') + handshakeText('/both'))
    await until(() => atOnce.received.includes('101 Switching Protocols'))
    assert.match(atOnce.received, /^HTTP\/1\.1 200 OK[^]*\r\n\r\nplainHTTP\/1\.1 101 /)

    const later = new Connection(t, port)
    await later.send(requestText('GET /wait'))
    await until(() => lines().some((line) => line.includes('parked')))
    await later.send(handshakeText('/both'))
    await request(`${url}/publish`)
    await until(() => later.received.includes('101 Switching Protocols'))
    assert.match(later.received, /"data":"event"[^]*HTTP\/1\.1 101 /)
  })
})

describe('the pools', () => {
  it('refuse a handshake with 503 when all WebSockets are in use, until one ends', async (t) => {
    const { port, url, lines } = await serveRoutes(t, { '/ws': { handlers: echo } }, { 'pool_ws.workers': 2, 'app.env': 'dev' })
    const active = async (): Promise<unknown> => {
      const { pool_ws } = (await request(`${url}/svc-status`)).json() as { pool_ws: unknown }
      return pool_ws
    }
    const first = await openWebSocket(t, port, '/ws')
    await openWebSocket(t, port, '/ws')
    assert.deepEqual(await active(), { workers: 2, active: 2, refused: 0, slow: 0 })
    const refused = await new WebSocketClient(t, port).handshake('/ws', ['Accept: application/json'])
    const { 'retry-after': after, connection } = refused.headers
    assert.deepEqual([refused.status, after, connection, JSON.parse(refused.body).error], [503, '1', 'close', 'overloaded'])
    assert.deepEqual(await active(), { workers: 2, active: 2, refused: 1, slow: 0 })
    assert.ok(lines().some((line) => line.includes('[WARN ] [pool] refused WebSocket /ws (r0): 2 connections are open')))
    first.socket.end()
    await first.closed()
    await openWebSocket(t, port, '/ws')
    assert.deepEqual(await active(), { workers: 2, active: 2, refused: 1, slow: 0 })
  })

  it('queue a handshake for an HTTP worker, release it, and refuse when the queue is full', async (t) => {
    const release: (() => void)[] = []
    const { port, url } = await serveRoutes(
      t,
      {
        '/ws': { handlers: echo },
        '/busy': { action: () => new Promise((resolve) => release.push(() => resolve('done'))) },
      },
      { 'pool_http.workers': 1, 'pool_http.queue_size': 1, 'app.env': 'dev' },
    )
    const pools = async (): Promise<{ busy: number; queue: number }> => {
      const { pool_http } = (await request(`${url}/svc-status`)).json() as { pool_http: { busy: number; queue: number } }
      return { busy: pool_http.busy, queue: pool_http.queue }
    }
    const busy = request(`${url}/busy`)
    await until(() => release.length === 1)
    const waiting = new WebSocketClient(t, port)
    await waiting.send(handshakeText('/ws'))
    await until(async () => (await pools()).queue === 1)
    const refused = await new WebSocketClient(t, port).handshake('/ws')
    assert.deepEqual([refused.status, refused.headers['retry-after']], [503, '1'])
    release[0]?.()
    assert.equal((await busy).text, 'done')
    assert.equal((await waiting.answer()).status, 101)
    assert.deepEqual(await pools(), { busy: 0, queue: 0 })
    assert.equal((await new WebSocketClient(t, port).handshake('/ws')).status, 101)
  })

  it('forget a queued handshake whose client disconnects', async (t) => {
    const release: (() => void)[] = []
    let opened = 0
    const { port, url, lines } = await serveRoutes(
      t,
      {
        '/ws': { handlers: { open: () => void (opened += 1) } },
        '/busy': { action: () => new Promise((resolve) => release.push(() => resolve('done'))) },
      },
      { 'pool_http.workers': 1, 'pool_http.queue_size': 1 },
    )
    const busy = request(`${url}/busy`)
    await until(() => release.length === 1)
    const leaving = new Connection(t, port)
    await leaving.send(handshakeText('/ws'))
    leaving.socket.end()
    await until(() => lines('access.log').some((line) => line.includes('"GET /ws HTTP/1.1" 499')))
    const other = new WebSocketClient(t, port)
    await other.send(handshakeText('/ws'))
    release[0]?.()
    await busy
    assert.equal((await other.answer()).status, 101)
    assert.equal(opened, 1)
  })

  it('count against the connections of an address', async (t) => {
    const { port, lines } = await serveRoutes(t, { '/ws': { handlers: echo } }, { 'server.max_connections_per_ip': 2 })
    const first = await openWebSocket(t, port, '/ws')
    await openWebSocket(t, port, '/ws')
    assert.equal(await new Connection(t, port).closed(), '')
    first.sendFrames({ opcode: 8 })
    await until(() => lines().some((line) => line.includes('closed with 1005')))
    await openWebSocket(t, port, '/ws')
  })
})
