import assert from 'node:assert/strict'
import { get as httpGet, type IncomingMessage } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { whenOpen } from '../../lib/events/reply-sender.ts'
import { LocalBroker } from '../../lib/events/local-broker.ts'
import type { SseOptions } from 'svc'
import type { FullContext } from '../support/context.ts'
import { Connection, requestText } from '../support/connection.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'
import { DelayedBroker } from './delayed-broker.ts'
import { eventServer, type EventServerOptions } from './event-server.ts'

const stream = (options?: SseOptions) => (ctx: FullContext) => ctx.sse(ctx.channel('c'), options)
const actions = {
  '/sse': stream(),
  '/brief': stream({ timeout_s: 0.05, retry_ms: 0 }),
  '/ended': stream({ timeout_s: 0 }),
  '/renewed': (ctx: FullContext) => {
    whenOpen(ctx, ({ renew }) => setImmediate(() => renew?.()))
    return ctx.sse(ctx.channel('c'))
  },
}

/** A stream as its client sees it. */
class Client {
  readonly response: IncomingMessage
  /** The text received so far. */
  text = ''
  ended = false

  constructor(response: IncomingMessage) {
    this.response = response
    response.setEncoding('utf8')
    response.on('data', (text: string) => (this.text += text))
    response.on('close', () => (this.ended = true))
    response.on('error', () => {}) // A cut shows in `ended`.
  }

  /** Resolves when something has been received. */
  has(text: string): Promise<void> {
    return until(() => this.text.includes(text))
  }

  /** The ids of the received events. */
  get ids(): number[] {
    return [...this.text.matchAll(/^id: (\d+)\ndata: /gm)].map((match) => Number(match[1]))
  }
}

async function begin(t: TestContext, options: EventServerOptions = {}) {
  const server = await eventServer(t, actions, options)
  const open = (path: string, headers: Record<string, string> = {}): Promise<Client> =>
    new Promise((resolve, reject) => {
      const sent = httpGet(server.url + path, { headers, agent: false })
      t.after(() => sent.destroy())
      sent.on('error', reject).on('response', (response) => resolve(new Client(response)))
    })
  return { ...server, open, channel: server.events.channel('c') }
}

/** The same with both brokers. */
function withEachBroker(what: string, test: (t: TestContext, options: EventServerOptions) => Promise<void>): void {
  it(what, (t) => test(t, {}))
  it(`${what}, with a remote broker`, (t) => test(t, { broker: new DelayedBroker(new LocalBroker()) }))
}

describe('a stream', () => {
  withEachBroker('begins with its retry time and its cursor, then has each event with its id', async (t, options) => {
    const { open, channel, events } = await begin(t, options)
    const before = await channel.publish('before')
    const client = await open('/sse', { 'accept-encoding': 'gzip' })
    const { statusCode, headers } = client.response
    assert.equal(statusCode, 200)
    assert.equal(headers['content-type'], 'text/event-stream; charset=utf-8')
    assert.equal(headers['cache-control'], 'no-store, no-transform')
    assert.equal(headers['x-accel-buffering'], 'no')
    assert.equal(headers['content-encoding'], undefined)
    await client.has(`retry: 2000\nid: ${before}\n\n`)
    const first = await channel.publish({ text: 'a\nb ü' })
    const second = await channel.publish(null)
    await client.has(`id: ${second}`)
    assert.equal(
      client.text,
      `retry: 2000\nid: ${before}\n\nid: ${first}\ndata: {"text":"a\\nb ü"}\n\nid: ${second}\ndata: null\n\n`,
    )
    assert.equal(events.status().delivered, 2)
  })

  withEachBroker('continues after Last-Event-ID, else after since', async (t, options) => {
    const { open, channel } = await begin(t, options)
    const ids = [await channel.publish(1), await channel.publish(2), await channel.publish(3)]
    const byHeader = await open('/sse?since=x', { 'last-event-id': String(ids[0]) })
    const byQuery = await open(`/sse?since=${ids[1]}`)
    await Promise.all([byHeader.has('data: 3'), byQuery.has('data: 3')])
    const last = await channel.publish(4)
    await Promise.all([byHeader.has('data: 4'), byQuery.has('data: 4')])
    assert.deepEqual(byHeader.ids, [ids[1], ids[2], last])
    assert.deepEqual(byQuery.ids, [ids[2], last])
  })

  withEachBroker('reports a gap, then sends the kept events', async (t, options) => {
    const { open, channel, events } = await begin(t, options)
    const before = await channel.last_id
    const empty = await open('/sse?since=5')
    await empty.has(`id: ${before}\nevent: gap\ndata: {"last_id":${before}}\n\n`)
    const id = await channel.publish('a')
    await empty.has(`id: ${id}\ndata: "a"\n\n`)
    const ahead = await open('/sse', { 'last-event-id': '9'.repeat(400) })
    await ahead.has('event: gap')
    assert.match(ahead.text, /^retry: \d+\nid: 9007199254740991\n\n/)
    assert.match(ahead.text, new RegExp(`id: ${id}\nevent: gap\ndata: {"last_id":${id}}\n\n$`))
    assert.equal(events.status().delivered, 1)
  })

  it('ignores an invalid Last-Event-ID, and reports a gap', async (t) => {
    const { open, channel } = await begin(t)
    const [first, second] = [await channel.publish('a'), await channel.publish('b')]
    for (const value of ['-1', '1.5', 'x', '1, 2', '0x1']) {
      const client = await open('/sse', { 'last-event-id': value })
      await client.has(`id: ${second}\nevent: gap\ndata: {"last_id":${second}}\n\n`)
      assert.doesNotMatch(client.text, /data: "/, value)
    }
    const since = await open(`/sse?since=${first}`, { 'last-event-id': 'x' })
    await since.has(`id: ${first}\nevent: gap\ndata: {"last_id":${first}}\n\nid: ${second}\ndata: "b"\n\n`)
  })

  it('uses lastEventId of the query if the field is missing', async (t) => {
    const { open, channel } = await begin(t)
    const ids = [await channel.publish(1), await channel.publish(2), await channel.publish(3)]
    const byQuery = await open(`/sse?since=0&lastEventId=${ids[0]}`)
    const byField = await open(`/sse?lastEventId=${ids[0]}`, { 'last-event-id': String(ids[1]) })
    await Promise.all([byQuery.has('data: 3'), byField.has('data: 3')])
    assert.deepEqual([byQuery.ids, byField.ids], [[ids[1], ids[2]], [ids[2]]])
    const wrong = await open('/sse?lastEventId=x')
    await wrong.has(`id: ${ids[2]}\nevent: gap\ndata: {"last_id":${ids[2]}}\n\n`)
  })

  it('that a stop ends gets a random retry delay', async (t) => {
    const { open, requests } = await begin(t)
    const clients = await Promise.all(Array.from({ length: 40 }, () => open('/sse')))
    for (const client of clients) await client.has('id: ')
    requests.drain()
    const times: number[] = []
    for (const client of clients) {
      await until(() => client.ended)
      times.push(Number(/\n\nretry: (\d+)\n\n$/.exec(client.text)?.[1]))
    }
    assert.ok(times.every((time) => time >= 2000 && time <= 6000), times.join())
    assert.ok(new Set(times).size > 30 && Math.max(...times) - Math.min(...times) > 2000, times.join())
  })

  it('is renewed when another sender requests it: its client reconnects at once', async (t) => {
    const { open, requests } = await begin(t)
    const client = await open('/renewed')
    await until(() => client.ended)
    assert.match(client.text, /^retry: 2000\nid: \d+\n\nretry: 0\n\n$/)
    assert.equal(client.response.complete, true)
    assert.equal(requests.restPool.sse.busy, 0)
  })

  it('is refused with a wrong since', async (t) => {
    const { url } = await begin(t)
    for (const query of ['since=', 'since=-1', 'since=1&since=2']) {
      assert.equal((await request(`${url}/sse?${query}`)).status, 400, query)
    }
  })

  it('gets all events of one turn in one piece', async (t) => {
    const { open, channel } = await begin(t)
    const client = await open('/sse')
    await client.has('id: ')
    const pieces: string[] = []
    client.response.on('data', (piece: string) => pieces.push(piece))
    for (const value of [1, 2, 3]) channel.publish(value)
    await client.has('data: 3')
    assert.equal(pieces.length, 1)
  })

  withEachBroker('gets every event once and in order, also those published while it begins', async (t, options) => {
    const { open, channel } = await begin(t, { ...options })
    const ids: number[] = []
    const since = await channel.last_id
    const clients: Client[] = []
    for (let count = 0; count < 200; count++) {
      ids.push(await channel.publish({ count, filling: 'x'.repeat(1000) }))
      if (count % 20 === 0) clients.push(await open(`/sse?since=${since}`))
    }
    for (const client of clients) {
      await client.has(`id: ${ids[199]}\n`)
      assert.deepEqual(client.ids, ids)
    }
  })

  it('gets a comment now and then', async (t) => {
    const { open, channel } = await begin(t, { heartbeatMs: 5 })
    const clients = [await open('/sse'), await open('/sse')]
    for (const client of clients) await client.has('\n\n:\n:\n')
    const id = await channel.publish(1)
    for (const client of clients) await client.has(`\n:\nid: ${id}\ndata: 1\n\n`)
  })

  it('gets the events since its request when it gets its worker', async (t) => {
    const { open, channel, requests } = await begin(t, { restPool: { workersSse: 1 } })
    const first = await open('/sse')
    await first.has('id: ')
    const second = open('/sse')
    await until(() => requests.restPool.queue === 1)
    const ids = [await channel.publish(1), await channel.publish(2)]
    await first.has('data: 2')
    first.response.destroy()
    const client = await second
    await client.has('data: 2')
    assert.deepEqual(client.ids, ids)
  })

  it('that gets no worker ends at its timeout, with its cursor', async (t) => {
    const { open, channel, url } = await begin(t, { restPool: { workersSse: 1 } })
    const id = await channel.publish(1)
    const first = await open('/sse')
    await first.has('id: ')
    assert.equal((await request(`${url}/brief`)).text, `retry: 0\nid: ${id}\n\n`)
  })

  it('ends at its timeout and at the stop', async (t) => {
    const { open, channel, requests } = await begin(t)
    const id = await channel.publish(1)
    const brief = await open('/brief')
    await until(() => brief.ended)
    assert.deepEqual([brief.text, brief.response.complete], [`retry: 0\nid: ${id}\n\n`, true])
    const ended = await open('/ended')
    await until(() => ended.ended)
    assert.deepEqual([ended.text, ended.response.complete], [`retry: 2000\nid: ${id}\n\n`, true])
    const client = await open('/sse')
    await client.has('id: ')
    requests.drain()
    await until(() => client.ended)
    assert.equal(client.response.complete, true)
    await requests.idle()
    assert.equal(requests.restPool.sse.busy, 0)
  })

  it('has no body for HEAD', async (t) => {
    const { url, requests } = await begin(t)
    const { status, headers, text } = await request(`${url}/sse`, { method: 'HEAD' })
    assert.deepEqual([status, headers['content-type'], text], [200, 'text/event-stream; charset=utf-8', ''])
    assert.equal(requests.restPool.sse.busy, 0)
  })

  it('is dropped when its client leaves, and the heartbeat ends with the last one', async (t) => {
    const { open, channel, requests } = await begin(t)
    const clients = [await open('/sse'), await open('/sse')]
    for (const client of clients) await client.has('id: ')
    assert.equal(channel.services.heartbeat.running, true)
    for (const client of clients) client.response.destroy()
    await until(() => requests.restPool.sse.busy === 0)
    assert.deepEqual([channel.isIdle, channel.services.heartbeat.running], [true, false])
  })

  it('ends when its broker fails, which is logged', async (t) => {
    const broker = new DelayedBroker(new LocalBroker())
    const { open, logged, requests } = await begin(t, { broker })
    const gate = broker.hold('subscribe')
    const client = await open('/sse')
    await gate.reached
    broker.broken = true
    gate.open()
    await until(() => client.ended)
    assert.equal(client.response.complete, true)
    assert.deepEqual(logged, [
      'error: a stream of channel "c" was ended: its events could not be read: the broker is not there',
    ])
    assert.equal(requests.restPool.sse.busy, 0)
  })

  it('is not written to if its client leaves while its events are read', async (t) => {
    const broker = new DelayedBroker(new LocalBroker())
    const { open, channel, requests, events } = await begin(t, { broker })
    const since = (await channel.publish(1)) - 1
    const gate = broker.hold('read')
    void open(`/sse?since=${since}`).then((client) => client.response.destroy())
    await gate.reached
    await until(() => requests.active === 0)
    gate.open()
    await until(() => channel.isIdle)
    const read = broker.hold('read')
    const other = open(`/sse?since=${since}`)
    await read.reached
    ;(await other).response.destroy()
    await until(() => requests.active === 0)
    read.open()
    await until(() => channel.isIdle)
    assert.equal(events.status().delivered, 0)
  })
})

describe('a stream whose client reads slowly', () => {
  const large = 'x'.repeat(50_000)

  it('gets all older events, in pieces', async (t) => {
    const { open, channel, events } = await begin(t, { maxUnreadBytes: 100_000 })
    const ids = Array.from({ length: 300 }, () => channel.publish(large) as number)
    const client = await open(`/sse?since=${(ids[0] as number) - 1}`)
    client.response.pause()
    await until(() => events.status().delivered > 0)
    const early = events.status().delivered
    client.response.resume()
    await client.has(`id: ${ids[299]}\n`)
    assert.deepEqual(client.ids, ids)
    assert.ok(early < 300, 'the rest was not read before the client took it')
    ids.push(channel.publish('new') as number)
    await client.has('data: "new"')
    assert.deepEqual(client.ids, ids)
    assert.equal(events.status().slow, 0)
  })

  it('is cut and counted when too many new events are unread', async (t) => {
    const { port, channel, events, requests, logged } = await begin(t, { maxUnreadBytes: 200_000 })
    const connection = new Connection(t, port)
    connection.socket.pause()
    await connection.send(requestText('GET /sse'))
    await until(() => requests.restPool.sse.busy === 1)
    for (let count = 0; count < 1000 && events.status().slow === 0; count++) {
      channel.publish(large)
      await new Promise((resolve) => setImmediate(resolve))
    }
    assert.equal(events.status().slow, 1)
    await until(() => requests.restPool.sse.busy === 0)
    assert.deepEqual(logged, ['worker_otros: cut a stream of channel "c": its client has not read 200000 bytes'])
    assert.equal(channel.isIdle, true)
  })

  it('is cut by the heartbeat too', async (t) => {
    const { port, channel, events, requests } = await begin(t, { maxUnreadBytes: 200_000, heartbeatMs: 5 })
    const connection = new Connection(t, port)
    connection.socket.pause()
    await connection.send(requestText('GET /sse'))
    await until(() => requests.restPool.sse.busy === 1)
    channel.publish('x'.repeat(20_000_000))
    await until(() => requests.restPool.sse.busy === 0)
    assert.equal(events.status().slow, 1)
  })
})

describe('the options of a stream', () => {
  it('are checked', async (t) => {
    const wrong: readonly (readonly [unknown, unknown, RegExp])[] = [
      ['queue', undefined, /its source must be a channel: it is of type object/],
      [undefined, undefined, /its source must be a channel: it is of type undefined/],
      ['channel', { retry_ms: -1 }, /retry_ms must be an integer from 0: it is -1/],
      ['channel', { retry_ms: 1.5 }, /it is 1\.5/],
      ['channel', { timeout_s: 'x' }, /timeout_s must be a number of seconds from 0: it is x/],
      ['channel', { retry: 1 }, /there is no option "retry": there are retry_ms, timeout_s/],
    ]
    const { url } = await eventServer(t, {
      '/:at': (ctx) => {
        const [kind, options] = wrong[Number(ctx.params['at'])] as unknown as [string | undefined, SseOptions]
        return ctx.sse((kind === 'channel' ? ctx.channel('c') : kind && ctx.queue('q')) as never, options)
      },
    })
    for (const [at, [, , message]] of wrong.entries()) {
      const { status, text } = await request(`${url}/${at}`)
      assert.equal(status, 500)
      assert.match(text.replaceAll('&quot;', '"'), message)
    }
  })
})
