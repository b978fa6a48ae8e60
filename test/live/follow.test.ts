// What a WebSocket is sent of a channel, and who is there, over real connections.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startApplication } from '../support/application.ts'
import { Connection, cutAtEnd, requestText } from '../support/connection.ts'
import { until } from '../support/until.ts'
import { openWebSocket, type WebSocketClient } from '../support/websocket.ts'

const files = {
  'routes/a.json': [
    { name: 'socket', url: '/socket', method: 'GET', action: 'a.mjs' },
    { name: 'stream', url: '/stream/:id', method: 'GET', action: 'a.mjs@stream' },
    { name: 'wrong', url: '/wrong', method: 'GET', action: 'wrong.mjs' },
  ],
  'a.mjs': `
    export const websocket = {
      open(ws, { channel, query, presence }) {
        if (query.has('id')) presence(channel('news'), { id: query.get('id') })
        if (!query.has('quiet')) ws.follow(channel('news'), { since: query.get('since') ?? undefined })
      },
    }
    export const stream = (ctx) => {
      ctx.presence(ctx.channel('news'), { id: ctx.params.id })
      return ctx.live(ctx.channel('news'))
    }`,
  'wrong.mjs': `export const websocket = { open(ws, { queue }) { ws.follow(queue('jobs')) } }`,
}

async function hearAll(client: WebSocketClient, count: number): Promise<unknown[]> {
  const heard: unknown[] = []
  while (heard.length < count) heard.push(JSON.parse(await client.hear()))
  return heard
}

describe('ws.follow', () => {
  it('sends new events, or those since an id, and then each new one', async (t) => {
    cutAtEnd(t)
    const { app, port } = await startApplication(t, files)
    const news = app.channel('news')
    const fresh = await openWebSocket(t, port, '/socket')
    const id = Number(news.publish('one'))
    news.publish('two')
    const behind = await openWebSocket(t, port, `/socket?since=${id}`)
    await hearAll(behind, 1)
    news.publish('three')
    assert.deepEqual(await hearAll(fresh, 3), [{ id, data: 'one' }, { id: id + 1, data: 'two' }, { id: id + 2, data: 'three' }])
    assert.deepEqual(await hearAll(behind, 1), [{ id: id + 2, data: 'three' }])
  })

  it('tells of a gap: an old cursor, one that is ahead, and one that is none', async (t) => {
    cutAtEnd(t)
    const { app, port } = await startApplication(t, files)
    const id = Number(app.channel('news').publish('one'))
    const old = await openWebSocket(t, port, '/socket?since=0')
    assert.deepEqual(await hearAll(old, 2), [{ gap: true, last_id: id }, { id, data: 'one' }])
    for (const since of [String(id + 7), 'x', '-1', '']) {
      const other = await openWebSocket(t, port, `/socket?since=${since}`)
      assert.deepEqual((await hearAll(other, 1))[0], { gap: true, last_id: id }, since)
      other.socket.destroy()
    }
  })

  it('catches up as fast as the client reads, and goes on', async (t) => {
    cutAtEnd(t)
    const { app, port } = await startApplication(t, files)
    const news = app.channel('news')
    const first = Number(news.publish(0))
    for (let number = 1; number < 200; number += 1) news.publish(`${number} ${'x'.repeat(10_000)}`)
    const slow = await openWebSocket(t, port, `/socket?since=${first - 1}`)
    slow.socket.pause()
    await new Promise((resolve) => setTimeout(resolve, 200)) // The client is away for a while.
    slow.socket.resume()
    news.publish('last')
    const heard = (await hearAll(slow, 201)) as { id: number }[]
    assert.deepEqual(heard.map((event) => event.id), heard.map((_, at) => first + at))
  })

  it('closes with 1011 when the source is no channel', async (t) => {
    cutAtEnd(t)
    const { port, lines } = await startApplication(t, files)
    const client = await openWebSocket(t, port, '/wrong')
    assert.equal((await client.closing())[0], 1011)
    await until(() => lines().some((line) => line.includes('Cannot follow: the source must be a channel')))
  })
})

describe('ctx.presence', () => {
  it('tells streams and WebSockets of each other, and nobody else', async (t) => {
    cutAtEnd(t)
    const { app, port } = await startApplication(t, files)
    const stream = new Connection(t, port)
    stream.socket.write(requestText('GET /stream/ann', ['Accept: text/event-stream']))
    await until(() => stream.received.includes('event: presence\ndata: {"type":"list","members":[{"id":"ann"}]}\n\n'))
    const quiet = await openWebSocket(t, port, '/socket?quiet')
    const client = await openWebSocket(t, port, '/socket?id=bob&quiet')
    assert.deepEqual(await hearAll(client, 1), [{ type: 'list', members: [{ id: 'ann' }, { id: 'bob' }] }])
    await until(() => /event: presence\ndata: {"type":"join","members":\[.*{"id":"bob"}\]}/.test(stream.received))
    app.channel('news').publish('one')
    const poll = new Connection(t, port)
    poll.socket.write(requestText('GET /stream/carl?since=0'))
    await until(() => poll.received.includes('"one"'))
    assert.doesNotMatch(stream.received, /carl/)
    assert.equal(quiet.received.split('\r\n\r\n')[1], '')
  })
})
