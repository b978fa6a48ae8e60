// Channel events and presence on WebSockets, over real connections.
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
        if (!query.has('quiet')) ws.follow(channel('news'), { since: query.get('since') })
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
  it('sends new events, or those since an id, followed by new ones', async (t) => {
    cutAtEnd(t)
    const { app, port } = await startApplication(t, files)
    const news = app.channel('news')
    const fresh = await openWebSocket(t, port, '/socket')
    const id = Number(news.publish('one'))
    news.publish('two')
    const behind = await openWebSocket(t, port, `/socket?since=${id}`)
    await hearAll(behind, 1)
    news.publish('three')
    const three = ['one', 'two', 'three'].map((data, at) => ({ event: 'message', id: id + at, data }))
    assert.deepEqual(await hearAll(fresh, 3), three)
    assert.deepEqual(await hearAll(behind, 1), three.slice(2))
  })

  it('reports a gap for a cursor that is too old, ahead or invalid', async (t) => {
    cutAtEnd(t)
    const { app, port } = await startApplication(t, files)
    const id = Number(app.channel('news').publish('one'))
    const old = await openWebSocket(t, port, '/socket?since=0')
    const gap = { event: 'gap', data: { last_id: id } }
    assert.deepEqual(await hearAll(old, 2), [gap, { event: 'message', id, data: 'one' }])
    for (const since of [String(id + 7), 'x', '-1', '']) {
      const other = await openWebSocket(t, port, `/socket?since=${since}`)
      assert.deepEqual((await hearAll(other, 1))[0], gap, since)
      other.socket.destroy()
    }
  })

  it('catches up as fast as the client reads, then continues', async (t) => {
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

  it('closes with 1011 when the source is not a channel', async (t) => {
    cutAtEnd(t)
    const { port, lines } = await startApplication(t, files)
    const client = await openWebSocket(t, port, '/wrong')
    assert.equal((await client.closing())[0], 1011)
    await until(() => lines().some((line) => line.includes('Cannot follow: the source must be a channel')))
  })
})

describe('ctx.presence', () => {
  it('sends streams and WebSockets each other\'s members, and only to them', async (t) => {
    cutAtEnd(t)
    const { app, port } = await startApplication(t, files)
    const stream = new Connection(t, port)
    stream.socket.write(requestText('GET /stream/ann', ['Accept: text/event-stream']))
    await until(() => stream.received.includes('event: presence\ndata: {"type":"list","members":[{"id":"ann"}]}\n\n'))
    const quiet = await openWebSocket(t, port, '/socket?quiet')
    const client = await openWebSocket(t, port, '/socket?id=bob&quiet')
    const list = { type: 'list', members: [{ id: 'ann' }, { id: 'bob' }] }
    assert.deepEqual(await hearAll(client, 1), [{ event: 'presence', data: list }])
    await until(() => /event: presence\ndata: {"type":"join","members":\[.*{"id":"bob"}\]}/.test(stream.received))
    app.channel('news').publish('one')
    const poll = new Connection(t, port)
    poll.socket.write(requestText('GET /stream/carl?since=0'))
    await until(() => poll.received.includes('"one"'))
    assert.doesNotMatch(stream.received, /carl/)
    assert.equal(quiet.received.split('\r\n\r\n')[1], '')
  })
})
