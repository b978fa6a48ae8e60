// Waiting requests while the broker cannot reach the other processes, and calls that fail.
import assert from 'node:assert/strict'
import { get as httpGet } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import type { ChannelListener, QueueEvent } from '../../lib/events/broker.ts'
import { LocalBroker } from '../../lib/events/local-broker.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'
import { DelayedBroker, turns, type Gate } from './delayed-broker.ts'
import { eventServer, type EventServerOptions } from './event-server.ts'

const away = new HttpError(503, 'shared_away', 'the engine is away', { headers: { 'Retry-After': '1' } })

/** A broker that records its takes, and can report gaps. */
class WatchedBroker extends DelayedBroker {
  takes = 0
  hasHole = false
  /** The number of the take whose answer is held back. */
  gateAt = 0
  gate: Gate | undefined = undefined

  override take(queue: string): Promise<QueueEvent | undefined> {
    this.takes += 1
    if (this.takes === this.gateAt) this.gate = this.hold('take')
    return super.take(queue)
  }

  override subscribe(channel: string, listener: ChannelListener) {
    return super.subscribe(channel, (heard) => {
      listener(this.hasHole ? { id: heard.id, gap: true } : heard)
      this.hasHole = false
    })
  }
}

async function begin(t: TestContext, options: EventServerOptions = {}) {
  const broker = new WatchedBroker(new LocalBroker())
  const server = await eventServer(
    t,
    {
      '/poll': (ctx) => ctx.longPoll(ctx.channel('c')),
      '/queue': (ctx) => ctx.longPoll(ctx.queue('q')),
      '/typed': (ctx) => ctx.longPoll(ctx.queue('q'), { form: 'typed' }),
      '/sse': (ctx) => ctx.sse(ctx.channel('c')),
      '/careless': (ctx) => {
        void ctx.channel('c').publish(1)
        void ctx.queue('q').push(1)
        return 'done'
      },
      '/careful': async (ctx) => {
        await ctx.channel('c').publish(1)
        return 'done'
      },
    },
    { broker, ...options },
  )
  const { requests, url, events } = server
  const held = (count: number) => until(() => requests.restPool.longpoll.busy === count)
  const get = (path: string) => request(url + path)
  const open = (path: string): Promise<{ text: string; ended: boolean; status: number | undefined }> =>
    new Promise((resolve, reject) => {
      const sent = httpGet(url + path, { agent: false }, (response) => {
        const stream = { text: '', ended: false, status: response.statusCode }
        response.setEncoding('utf8').on('data', (text: string) => (stream.text += text))
        response.on('end', () => (stream.ended = true))
        resolve(stream)
      })
      t.after(() => sent.destroy())
      sent.on('error', reject)
    })
  return { ...server, broker, held, get, open, channel: events.channel('c'), queue: events.queue('q') }
}

describe('a broker that is cut off', () => {
  it('ends every wait with its empty response, and later ones fail with the reason', async (t) => {
    const { broker, get, open, held, channel, requests, logged } = await begin(t, { restPool: { workersLongPoll: 3, workersSse: 1 } })
    const id = await channel.publish('before')
    const stream = await open('/sse')
    await until(() => stream.text !== '')
    const waiting = ['/poll', `/poll?since=${id}`, '/queue'].map(get)
    await held(3)
    waiting.push(get('/typed'))
    await until(() => requests.restPool.queue === 1)
    const queued = open('/sse')
    await until(() => requests.restPool.queue === 2)
    broker.cutOff(away)
    const texts = (await Promise.all(waiting)).map(({ status, text }) => `${status} ${text}`)
    const empty = `200 {"events":[],"last_id":${id}}`
    assert.deepEqual(texts, [empty, empty, '200 {"ok":true,"event":null}', '200 {"type":"idle"}'])
    await until(() => stream.ended)
    assert.equal((await queued).status, 503, 'it had no worker, so it had not begun')
    for (const path of ['/poll', `/poll?since=${id}`, '/queue', '/typed', '/sse', `/sse?since=${id}`]) {
      const { status, headers } = await get(path)
      assert.deepEqual([path, status, headers['retry-after']], [path, 503, '1'])
    }
    assert.deepEqual(logged, [])
    broker.cutOff(undefined)
    const again = get(`/poll?since=${id}`)
    await held(1)
    const next = await channel.publish('after')
    assert.deepEqual((await again).json(), { events: [{ id: next, data: 'after' }], last_id: next })
    assert.equal(requests.restPool.queue, 0)
  })

  it('keeps listeners of the server subscribed', async (t) => {
    const { broker, channel } = await begin(t)
    const heard: unknown[] = []
    channel.subscribe(({ data }) => heard.push(data))
    await channel.listen()
    broker.cutOff(away)
    broker.cutOff(undefined)
    await channel.publish(1)
    await until(() => heard.length === 1)
  })

  it('also ends a request that was about to wait', async (t) => {
    const { broker, get } = await begin(t)
    for (const [path, call] of [['/poll', 'read'], ['/poll', 'subscribe'], ['/queue', 'take']] as const) {
      const gate = broker.hold(call)
      const waiting = get(path)
      await gate.reached
      broker.cutOff(away)
      gate.open()
      assert.equal((await waiting).status, 200, call)
      broker.cutOff(undefined)
      await turns()
    }
  })
})

describe('a listener', () => {
  it('is subscribed once the broker is back', async (t) => {
    t.after(() => t.mock.timers.reset()) // Before the server is stopped.
    const { broker, channel, logged } = await begin(t)
    const heard: unknown[] = []
    broker.broken = true
    t.mock.timers.enable({ apis: ['setTimeout'] })
    channel.subscribe(({ data }) => heard.push(data))
    await turns()
    broker.broken = false
    t.mock.timers.tick(999)
    await turns()
    await channel.publish('too early')
    await turns()
    t.mock.timers.tick(1)
    await turns()
    await channel.publish('x')
    await turns()
    assert.deepEqual(heard, ['x'])
    assert.deepEqual(logged, ['error: channel "c" could not be subscribed to: the broker is not there'])
  })

  it('of a poll or stream gets a gap when events were missed', async (t) => {
    const { broker, get, open, held, channel } = await begin(t)
    const heard: unknown[] = []
    channel.subscribe(({ data }) => heard.push(data))
    const stream = await open('/sse')
    await until(() => stream.text !== '')
    const waiting = get('/poll')
    await held(1)
    await channel.listen()
    await turns()
    broker.hasHole = true
    const lost = await channel.publish('lost')
    assert.deepEqual((await waiting).json(), { events: [], last_id: lost, gap: true })
    const id = await channel.publish('after')
    await until(() => stream.text.endsWith(`id: ${id}\ndata: "after"\n\n`))
    assert.match(stream.text, new RegExp(`id: ${lost}\nevent: gap\ndata: {"last_id":${lost}}\n\nid: ${id}\n`))
    const next = await channel.publish('next')
    await until(() => stream.text.endsWith(`id: ${next}\ndata: "next"\n\n`))
    assert.equal(stream.text.split('event: gap').length, 2)
    assert.deepEqual(heard, ['after', 'next'])
  })
})

describe('a publish and a push that fail', () => {
  it('are logged, at a limited rate, and do not crash a process that ignores them', async (t) => {
    const { broker, get, logged } = await begin(t)
    broker.broken = true
    for (let count = 0; count < 5; count++) assert.equal((await get('/careless')).text, 'done')
    await until(() => logged.length > 0)
    await turns()
    assert.equal(logged[0], 'error: channel "c": an event was not published: the broker is not there')
    assert.ok(logged.length <= 2, logged.join('\n'))
    assert.equal((await get('/careful')).status, 500)
  })
})

describe('events of a queue with many waiting clients', () => {
  it('are taken one at a time, until there are none', async (t) => {
    const { broker, get, held, queue } = await begin(t)
    const waiting = Array.from({ length: 50 }, () => get('/queue'))
    await held(50)
    await turns()
    broker.takes = 0
    await queue.push('first')
    await held(49)
    await turns()
    assert.equal(broker.takes, 1)
    await Promise.all(Array.from({ length: 49 }, (_, at) => queue.push(at)))
    const events = (await Promise.all(waiting)).map((answer) => (answer.json() as { event: unknown }).event)
    assert.deepEqual(new Set(events), new Set(['first', ...Array.from({ length: 49 }, (_, at) => at)]))
    assert.ok(broker.takes <= 52, `${broker.takes} takes for 50 events`)
  })

  it('are put back in order when all clients have disconnected', async (t) => {
    const { broker, queue, get, held, requests, url } = await begin(t)
    const staying = get('/queue')
    await held(1)
    const leaving = Array.from({ length: 3 }, () => httpGet(`${url}/queue`, { agent: false }).on('error', () => {}))
    await held(4)
    await turns()
    Object.assign(broker, { takes: 0, gateAt: 2 })
    await Promise.all([1, 2, 3, 4, 5].map((value) => queue.push(value)))
    assert.equal((await staying).text, '{"ok":true,"event":1}')
    await until(() => broker.gate !== undefined)
    await broker.gate?.reached
    assert.equal(broker.takes, 2)
    for (const sent of leaving) sent.destroy()
    await until(() => requests.active === 0)
    broker.gate?.open()
    await until(() => queue.isIdle)
    const events: unknown[] = []
    for (let count = 0; count < 4; count++) events.push(((await get('/queue')).json() as { event: unknown }).event)
    assert.deepEqual(events, [2, 3, 4, 5])
  })
})
