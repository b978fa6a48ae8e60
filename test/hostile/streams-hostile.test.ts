import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Connection, requestText, splitAnswers } from '../support/connection.ts'
import { parseAnswer } from '../support/raw.ts'
import { request } from '../support/request.ts'
import { Seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'
import { serveStreams } from './streams-hostile-support.ts'

const wrongCursors = ['-1', '1.5', '1e3', '', '+1', '0x10', 'NaN', 'null', '1,2', 'x'.repeat(5000), `-${'9'.repeat(5000)}`]
const farCursors = ['1', '9007199254740993', '9'.repeat(5000)]

describe('cursors', () => {
  it('that are not whole numbers from 0 get 400, and take no event', async (t) => {
    const { url, clean } = await serveStreams(t)
    for (const cursor of wrongCursors) {
      for (const path of ['/poll', '/sse']) {
        const target = `${url}${path}?since=${encodeURIComponent(cursor)}`
        const { status, text } = await request(target, { headers: { accept: 'application/json' } })
        assert.equal(status, 400, `${path} ${cursor.slice(0, 10)}`)
        assert.equal((JSON.parse(text) as { error: string }).error, 'bad_cursor')
        assert.ok(text.length < 300)
      }
    }
    for (const path of ['/poll', '/sse']) assert.equal((await request(`${url}${path}?since=1&since=1`)).status, 400)
    await clean()
  })

  it('that a browser would keep sending are ignored, with a gap', async (t) => {
    const { port, clean } = await serveStreams(t)
    for (const fields of [...wrongCursors.map((cursor) => [`Last-Event-ID: ${cursor}`]), ['Last-Event-ID: 1', 'Last-Event-ID: 1']]) {
      const stream = new Connection(t, port)
      await stream.send(requestText('GET /sse', fields))
      await until(() => /event: gap\ndata: \{"last_id":\d+\}\n\n/.test(stream.received))
      stream.socket.end()
    }
    await clean()
  })

  it('that are far off get a gap at once', async (t) => {
    const { app, port, url, clean } = await serveStreams(t)
    app.channel('c').publish('event')
    for (const cursor of farCursors) {
      const answer = (await request(`${url}/poll?since=${cursor}`)).json() as { gap: boolean; events: unknown[] }
      // A client that is ahead may have the event.
      assert.deepEqual([answer.gap, answer.events.length], [true, cursor === '1' ? 1 : 0])
      const stream = new Connection(t, port)
      await stream.send(requestText('GET /sse?since=x', [`Last-Event-ID: ${cursor}`]))
      await until(() => /event: gap\ndata: \{"last_id":\d+\}\n\n/.test(stream.received))
      stream.socket.end()
    }
    await clean()
  })
})

describe('a client that waits', () => {
  const paths = ['/poll', '/queue', '/sse', '/hold']

  it('and leaves, in any way and also out of the queue, frees its place for the next', async (t) => {
    const server = await serveStreams(t, {
      'pool_rest.workers_longpoll': 1,
      'pool_rest.workers_sse': 1,
      'pool_rest.queue_size': 1,
    })
    for (const path of paths) {
      const isStream = path === '/sse'
      for (const how of ['end', 'destroy', 'reset'] as const) {
        const leave = async (client: Connection): Promise<void> => {
          if (how === 'end') client.socket.end()
          else if (how === 'destroy') client.socket.destroy()
          else await client.reset()
        }
        const ask = async (busy: number, queue: number): Promise<Connection> => {
          const client = new Connection(t, server.port)
          await client.send(requestText(`GET ${path}`))
          await server.waits(isStream ? 0 : busy, isStream ? busy : 0, queue)
          return client
        }
        const working = await ask(1, 0)
        const queued = await ask(1, 1)
        assert.equal((await request(server.url + path)).status, 503, `${path} ${how}`)
        await leave(queued)
        await server.waits(isStream ? 0 : 1, isStream ? 1 : 0, 0)
        const next = await ask(1, 1)
        await leave(working)
        await server.waits(isStream ? 0 : 1, isStream ? 1 : 0, 0)
        await leave(next)
        await server.waits(0)
      }
    }
    await server.clean()
  })

  it('and also requests an upgrade is served and freed like any other', async (t) => {
    const server = await serveStreams(t)
    const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: x']
    for (const path of paths) {
      for (const rude of [false, true]) {
        const client = new Connection(t, server.port)
        await client.send(requestText(`GET ${path}`, upgrade))
        await until(async () => (await server.status()).requests.active === 2)
        if (rude) await client.reset()
        else client.socket.end()
        await server.waits(0)
      }
    }
    const client = new Connection(t, server.port)
    await client.send(requestText('GET /poll', upgrade))
    await server.waits(1)
    server.app.channel('c').publish('event')
    assert.match(await client.closed(), /Connection: close[^]*"data":"event"/)
    await server.clean()
  })

  it('and sends more is answered first, then the later requests, in order', async (t) => {
    const server = await serveStreams(t)
    const client = new Connection(t, server.port)
    await client.send(requestText('GET /poll'))
    await server.waits(1)
    await client.send(requestText('GET /ok').repeat(50) + requestText('GET /none'))
    await client.send(requestText('GET /ok', ['Connection: close']))
    assert.equal(client.received, '')
    server.app.channel('c').publish('event')
    const answers = splitAnswers(await client.closed())
    assert.equal(answers.length, 53)
    assert.match(answers[0]?.body ?? '', /"data":"event"/)
    assert.deepEqual(answers.slice(1).map(({ status }) => status), [...Array(50).fill(200), 404, 200])
    await server.clean()
  })

  it('and sends garbage gets its response, then 400; a stream continues until then', async (t) => {
    const server = await serveStreams(t)
    const rubbish = new Seeded(7).bytes(100_000)
    for (const path of ['/poll', '/queue']) {
      const client = new Connection(t, server.port)
      await client.send(requestText(`GET ${path}`))
      await server.waits(1)
      await client.send(Buffer.concat([Buffer.from('\0'), rubbish]))
      if (path === '/poll') server.app.channel('c').publish('event')
      else server.app.queue('q').push('event')
      const text = await client.closed()
      assert.deepEqual(text.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 200', 'HTTP/1.1 400'], path)
      assert.match(text, /"event"/)
    }
    const stream = new Connection(t, server.port)
    await stream.send(requestText('GET /sse'))
    await server.waits(0, 1)
    await stream.send(Buffer.concat([Buffer.from('\0'), rubbish]))
    server.app.channel('c').publish('still there')
    await until(() => stream.received.includes('data: "still there"'))
    stream.socket.end()
    await server.clean()
  })

  it('and sends more polls at once takes only one worker', async (t) => {
    const server = await serveStreams(t)
    const client = new Connection(t, server.port)
    await client.send(requestText('GET /poll').repeat(50))
    for (let answered = 1; answered <= 3; answered += 1) {
      await server.waits(1)
      server.app.channel('c').publish('event')
      await client.answers(answered)
    }
    client.socket.destroy()
    await server.waits(0)
    const flood = new Connection(t, server.port)
    await flood.send(requestText('GET /poll').repeat(5000))
    assert.equal(await flood.closed(), '', 'so much behind a wait would hide that the client leaves: it is cut')
    await server.waits(0)
    await server.clean()
  })

  it('and leaves after sending more frees everything that it requested', async (t) => {
    const server = await serveStreams(t)
    const behind: [string, string][] = [
      ['requests', requestText('GET /ok').repeat(50)],
      ['polls', requestText('GET /poll').repeat(20) + requestText('GET /sse').repeat(20)],
      ['rubbish', '\0\0\0'],
      ['half a request', 'GET /ok HTTP/1.1\r\nHo'],
      ['CONNECT', requestText('CONNECT h:1')],
      ['a handshake', requestText('GET /ok', ['Connection: Upgrade', 'Upgrade: websocket'])],
      ['h2c', requestText('GET /ok', ['Connection: Upgrade', 'Upgrade: h2c'])],
    ]
    for (const [what, bytes] of behind) {
      for (const rude of [false, true]) {
        const client = new Connection(t, server.port)
        await client.send(requestText('GET /hold'))
        await server.waits(1)
        await client.send(bytes)
        await request(`${server.url}/ok`)
        if (rude) await client.reset()
        else client.socket.end()
        await server.waits(0).catch(() => assert.fail(`${what} ${rude ? 'reset' : 'end'}`))
      }
    }
    await server.clean()
  })
})

describe('a body on a poll', () => {
  const chunked = 'Transfer-Encoding: chunked'

  it('that is not read does no harm, complete or partial', async (t) => {
    const server = await serveStreams(t)
    const rows: [string, string, boolean][] = [
      ['a whole body', requestText('GET /poll', ['Content-Length: 3'], 'abc'), false],
      ['whole chunks', requestText('GET /poll', [chunked], '3\r\nabc\r\n0\r\n\r\n'), true],
      ['a part of a small body', requestText('GET /poll', ['Content-Length: 30'], 'abc'), false],
      ['a part of a large body', requestText('GET /poll', ['Content-Length: 99000000'], 'abc'), true],
      ['a part of chunks', requestText('GET /poll', [chunked], '3\r\nabc\r\n'), true],
      ['a POST in part', requestText('POST /poll', [chunked], '3\r\nab'), true],
    ]
    for (const [what, bytes, last] of rows) {
      const client = new Connection(t, server.port)
      await client.send(bytes)
      await server.waits(1)
      server.app.channel('c').publish('event')
      const [answer] = await client.answers(1)
      assert.match(answer?.body ?? '', /"data":"event"/, what)
      assert.equal(answer?.headers['connection'], last ? 'close' : 'keep-alive', what)
      client.socket.end()
      await server.waits(0)
    }
    await server.clean()
  })

  it('that is malformed ends the wait with 400', async (t) => {
    const server = await serveStreams(t)
    for (const path of ['/poll', '/queue', '/hold', '/read']) {
      const broken = new Connection(t, server.port)
      await broken.send(requestText(`POST ${path}`, [chunked], '3\r\nabc\r\n'))
      if (path !== '/read') await server.waits(1)
      await broken.send('rubbish\r\n')
      assert.equal(parseAnswer(await broken.closed()).status, 400, path)
      await server.waits(0)
    }
    await server.clean()
  })
})

describe('a stream whose client never reads', () => {
  it('is cut past a limit and counted, and others get every event', async (t) => {
    const server = await serveStreams(t)
    const reading = new Connection(t, server.port)
    await reading.send(requestText('GET /sse'))
    const deaf = new Connection(t, server.port)
    deaf.socket.pause()
    await deaf.send(requestText('GET /sse'))
    await server.waits(0, 2)
    const piece = 'x'.repeat(2 ** 18)
    let published = 0
    await until(async () => {
      server.app.channel('c').publish(piece)
      published += 1
      return (await server.status()).events.slow === 1
    })
    await server.waits(0, 1)
    await until(() => reading.received.match(/^data: /gm)?.length === published)
    assert.ok(server.lines().some((line) => line.includes('[worker_otros] cut a stream of channel "c"')))
    deaf.socket.destroy()
    reading.socket.end()
    await server.clean()
  })
})
