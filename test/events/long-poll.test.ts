import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { LocalBroker } from '../../lib/events/local-broker.ts'
import type { LongPollOptions } from 'svc'
import type { FullContext } from '../support/context.ts'
import { Connection, requestText } from '../support/connection.ts'
import { request, type Answer } from '../support/request.ts'
import { until } from '../support/until.ts'
import { DelayedBroker, turns } from './delayed-broker.ts'
import { eventServer, type EventServerOptions } from './event-server.ts'

const poll = (options?: LongPollOptions) => (ctx: FullContext) => ctx.longPoll(ctx.channel('c'), options)
const ask = (options?: LongPollOptions) => (ctx: FullContext) => ctx.longPoll(ctx.queue('q'), options)
const actions = {
  '/poll': poll(),
  '/short': poll({ timeout_s: 0.01 }),
  '/now': poll({ timeout_s: 0, form: 'cursor' }),
  '/queue': ask(),
  '/queue-now': ask({ timeout_s: 0 }),
  '/typed': ask({ form: 'typed' }),
  '/typed-now': ask({ form: 'typed', timeout_s: 0 }),
  '/leased': ask({ lease_s: 60 }),
  '/leased-briefly': ask({ form: 'typed', lease_s: 0.1 }),
}

async function begin(t: TestContext, options: EventServerOptions = {}) {
  const server = await eventServer(t, actions, options)
  const { requests, url } = server
  const held = (count: number) => until(() => requests.restPool.longpoll.busy === count)
  const get = (path: string): Promise<Answer> => request(url + path)
  return { ...server, held, get, channel: server.events.channel('c'), queue: server.events.queue('q') }
}

/** The same with both brokers. */
function withEachBroker(what: string, test: (t: TestContext, options: EventServerOptions) => Promise<void>): void {
  it(what, (t) => test(t, {}))
  it(`${what}, with a remote broker`, (t) => test(t, { broker: new DelayedBroker(new LocalBroker()) }))
}

describe('a long poll of a channel', () => {
  withEachBroker('answers every client with new events', async (t, options) => {
    const { held, get, channel } = await begin(t, options)
    const waiting = [get('/poll'), get('/poll'), get('/poll')]
    await held(3)
    const id = await channel.publish({ text: 'ä' })
    for (const answer of await Promise.all(waiting)) {
      assert.deepEqual([answer.status, answer.json()], [200, { events: [{ id, data: { text: 'ä' } }], last_id: id }])
      assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
      assert.equal(answer.headers['cache-control'], 'no-store')
      assert.equal(answer.headers['content-length'], String(answer.bytes.length))
    }
  })

  withEachBroker('answers at once with the events after since', async (t, options) => {
    const { requests, get, channel } = await begin(t, options)
    const first = await channel.publish(1)
    const second = await channel.publish([2])
    const events = [{ id: first, data: 1 }, { id: second, data: [2] }]
    assert.deepEqual((await get(`/poll?since=${first - 1}`)).json(), { events, last_id: second })
    assert.deepEqual((await get(`/poll?a=1&since=${first}`)).json(), { events: [events[1]], last_id: second })
    assert.equal(requests.restPool.longpoll.busy, 0)
  })

  withEachBroker('answers empty at its timeout, with the cursor to continue from', async (t, options) => {
    const { get, channel } = await begin(t, options)
    const id = await channel.publish('before')
    for (const path of ['/short', '/now', `/short?since=${id}`, `/now?since=${id}`]) {
      const { status, text } = await get(path)
      assert.deepEqual([status, text], [200, `{"events":[],"last_id":${id}}`], path)
    }
  })

  withEachBroker('reports a gap at once', async (t, options) => {
    const { get, channel } = await begin(t, options)
    const before = await channel.last_id
    assert.deepEqual((await get('/poll?since=0')).json(), { events: [], last_id: before, gap: true })
    const id = await channel.publish('a')
    const event = { id, data: 'a' }
    for (const since of ['0', String(id - 2)]) {
      const answer = (await get(`/poll?since=${since}`)).json()
      assert.deepEqual(answer, { events: [event], last_id: id, gap: true }, since)
    }
    for (const ahead of [String(id + 1), '9007199254740993', '9'.repeat(400)]) {
      const answer = (await get(`/poll?since=${ahead}`)).json()
      assert.deepEqual(answer, { events: [], last_id: id, gap: true }, 'it may have the event')
    }
  })

  const cursors: readonly (readonly [query: string, status: number])[] = [
    ['since=', 400],
    ['since', 400],
    ['since=-1', 400],
    ['since=%2B1', 400],
    ['since=+1', 400],
    ['since=1.5', 400],
    ['since=1e3', 400],
    ['since=0x10', 400],
    ['since=1%00', 400],
    ['since=1%0A', 400],
    ['since=%D9%A1', 400],
    ['since=null', 400],
    ['since=NaN', 400],
    ['since=Infinity', 400],
    ['since=1&since=1', 400],
    ['since=1&a=2&%73ince=2', 400],
    ['since=0', 200],
    ['since=007', 200],
    ['%73ince=%30', 200],
    ['since=0&Since=x', 200],
    ['sinc=x', 200],
    ['', 200],
  ]
  it('refuses a cursor that is not a whole number from 0', async (t) => {
    const { get } = await begin(t)
    for (const [query, status] of cursors) {
      const answer = await get(`/now?${query}`)
      assert.equal(answer.status, status, query)
      if (status === 400) assert.match(answer.text, /"?since/)
    }
  })

  it('answers once per turn, with everything published in it', async (t) => {
    const { held, get, channel, events } = await begin(t)
    const waiting = [get('/poll'), get('/poll')]
    await held(2)
    const ids = [1, 2, 3].map((value) => channel.publish(value))
    for (const answer of await Promise.all(waiting)) {
      assert.deepEqual(answer.json(), { events: [1, 2, 3].map((data, at) => ({ id: ids[at], data })), last_id: ids[2] })
    }
    assert.deepEqual(events.status(), { published: 3, delivered: 6, dropped: 0, slow: 0 })
  })

  it('sends each client the events after its cursor, also within the same turn', async (t) => {
    let first = 0
    const { port, requests, url, events } = await eventServer(t, {
      ...actions,
      // Published after the first of two pipelined requests began to wait, and before the second.
      '/publish': (ctx) => {
        first = ctx.channel('c').publish('1') as number
        return 'published'
      },
    })
    const one = request(`${url}/poll`)
    await until(() => requests.restPool.longpoll.busy === 1)
    const connection = new Connection(t, port)
    await connection.send(requestText('GET /publish') + requestText('GET /poll'))
    assert.deepEqual((await one).json(), { events: [{ id: first, data: '1' }], last_id: first })
    await until(() => requests.restPool.longpoll.busy === 1)
    const second = await events.channel('c').publish('2')
    const answers = await connection.answers(2)
    assert.deepEqual(JSON.parse(answers[1]?.body ?? ''), { events: [{ id: second, data: '2' }], last_id: second })
  })

  it('sends large events uncompressed, also to clients that accept gzip', async (t) => {
    const { held, channel, url } = await begin(t)
    const waiting = request(`${url}/poll`, { headers: { 'accept-encoding': 'gzip' } })
    await held(1)
    const data = 'ü'.repeat(50_000)
    const id = await channel.publish(data)
    const answer = await waiting
    assert.deepEqual(answer.json(), { events: [{ id, data }], last_id: id })
    assert.equal(answer.headers['content-encoding'], undefined)
  })

  withEachBroker('answers HEAD without waiting', async (t, options) => {
    const { url, channel } = await begin(t, options)
    await channel.publish('a')
    const answer = await request(`${url}/poll`, { method: 'HEAD' })
    assert.deepEqual([answer.status, answer.text, answer.headers['cache-control']], [200, '', 'no-store'])
    assert.equal((await request(`${url}/poll?since=x`, { method: 'HEAD' })).status, 400)
  })

  withEachBroker('loses no event published while it is being parked', async (t, options) => {
    const { get, channel } = await begin(t, options)
    let last = await channel.last_id
    const seen: unknown[] = []
    const published: number[] = []
    const publishing = (async () => {
      for (let count = 0; count < 300; count++) {
        await channel.publish(count)
        published.push(count)
        if (count % 3 === 0) await turns()
      }
    })()
    while (seen.length < 300) {
      const { events, last_id, gap } = (await get(`/poll?since=${last}`)).json() as {
        events: { id: number; data: unknown }[]
        last_id: number
        gap?: true
      }
      assert.equal(gap, undefined)
      for (const event of events) seen.push(event.data)
      last = last_id
    }
    await publishing
    assert.deepEqual(seen, published)
  })

  withEachBroker('drops a client that has disconnected', async (t, options) => {
    const { port, held, channel, events } = await begin(t, options)
    const connection = new Connection(t, port)
    await connection.send(requestText('GET /poll'))
    await held(1)
    await connection.reset()
    await held(0)
    await until(() => channel.isIdle)
    await channel.publish('a')
    await turns()
    assert.equal(events.status().delivered, 0)
  })

  it('is answered empty when the server stops', async (t) => {
    const { held, get, channel, requests } = await begin(t)
    const id = await channel.publish('a')
    const waiting = [get('/poll'), get(`/poll?since=${id}`), get('/queue'), get('/typed')]
    await held(4)
    requests.drain()
    const answers = await Promise.all(waiting)
    assert.deepEqual(
      answers.map((answer) => [answer.text, answer.headers.connection]),
      [
        [`{"events":[],"last_id":${id}}`, 'close'],
        [`{"events":[],"last_id":${id}}`, 'close'],
        ['{"ok":true,"event":null}', 'close'],
        ['{"type":"idle"}', 'close'],
      ],
    )
  })

  it('is answered in the queue of the pool as well', async (t) => {
    const { held, get, channel, queue, requests } = await begin(t, { restPool: { workersLongPoll: 1 } })
    const waiting = [get('/poll'), get('/poll'), get('/queue')]
    await held(1)
    await until(() => requests.restPool.queue === 2)
    queue.push('b')
    assert.deepEqual((await waiting[2])?.json(), { ok: true, event: 'b' })
    const id = await channel.publish('a')
    for (const answer of await Promise.all(waiting.slice(0, 2))) {
      assert.deepEqual(answer.json(), { events: [{ id, data: 'a' }], last_id: id })
    }
    await held(0)
  })

  it('fails with its broker, and serves again when it is back', async (t) => {
    const broker = new DelayedBroker(new LocalBroker())
    const { get, held, channel, logged } = await begin(t, { broker })
    broker.broken = true
    assert.equal((await get('/poll')).status, 500)
    assert.equal((await get('/queue')).status, 500)
    channel.subscribe(() => {})
    await until(() => logged.includes('error: channel "c" could not be subscribed to: the broker is not there'))
    broker.broken = false
    const waiting = get('/poll')
    await held(1)
    const id = await channel.publish('a')
    assert.deepEqual((await waiting).json(), { events: [{ id, data: 'a' }], last_id: id })
  })

  it('fails when its broker fails while it begins to wait', async (t) => {
    const broker = new DelayedBroker(new LocalBroker())
    const { get } = await begin(t, { broker })
    const gate = broker.hold('subscribe')
    const waiting = get('/poll')
    await gate.reached
    broker.broken = true
    gate.open()
    assert.equal((await waiting).status, 500)
  })

  it('is not woken when its client leaves while it begins to wait', async (t) => {
    for (const moment of ['subscribe', 'read'] as const) {
      const broker = new DelayedBroker(new LocalBroker())
      const { port, held, requests, channel, events } = await begin(t, { broker })
      const leaving = new Connection(t, port)
      const first = broker.hold('subscribe')
      await leaving.send(requestText('GET /poll'))
      await first.reached
      await channel.publish('a') // Heard before the poll waits, so that it reads again.
      const gate = moment === 'read' ? broker.hold('read') : first
      if (moment === 'read') {
        first.open()
        await gate.reached
      }
      await leaving.reset()
      await until(() => requests.active === 0)
      gate.open()
      await until(() => channel.isIdle)
      await held(0)
      assert.equal(events.status().delivered, 0)
    }
  })
})

describe('a long poll of a queue', () => {
  withEachBroker('answers in the requested form', async (t, options) => {
    const { get, held, queue } = await begin(t, options)
    assert.deepEqual((await get('/queue-now')).text, '{"ok":true,"event":null}')
    assert.deepEqual((await get('/typed-now')).text, '{"type":"idle"}')
    await queue.push({ a: 1 })
    await queue.push(null)
    const simple = await get('/queue')
    assert.deepEqual([simple.status, simple.text], [200, '{"ok":true,"event":{"a":1}}'])
    assert.equal(simple.headers['cache-control'], 'no-store')
    assert.deepEqual((await get('/typed')).text, '{"type":"event","data":null}')
    const waiting = get('/queue')
    await held(1)
    await queue.push('late')
    assert.deepEqual((await waiting).text, '{"ok":true,"event":"late"}')
  })

  withEachBroker('gives a lease, and the event to the next client unless it is reported as done', async (t, options) => {
    const { get, held, queue } = await begin(t, options)
    await queue.push(1)
    await queue.push(2)
    const first = (await get('/leased')).json() as { lease: string }
    assert.deepEqual(first, { ok: true, event: 1, lease: first.lease })
    const waiting = get('/leased-briefly')
    const second = (await waiting).json() as { lease: string }
    assert.deepEqual(second, { type: 'event', data: 2, lease: second.lease })
    assert.deepEqual([await queue.done(first.lease), await queue.done(first.lease)], [true, false])
    const next = get('/leased') // Its event comes when the lease is over.
    const third = (await next).json() as { lease: string }
    assert.deepEqual(third, { ok: true, event: 2, lease: third.lease })
    assert.deepEqual([await queue.done(second.lease), await queue.back(second.lease)], [false, false])
    const waitsWithoutLease = get('/queue')
    await held(1)
    assert.equal(await queue.back(third.lease), true)
    assert.equal((await waitsWithoutLease).text, '{"ok":true,"event":2}')
    await assert.rejects(queue.done(5 as never), /A lease of queue "q" must be a string: it is of type number/)
  })

  withEachBroker('gives each waiting client the lease that its poll asks for', async (t, options) => {
    const { get, held, queue } = await begin(t, options)
    const waiting: Promise<Answer>[] = []
    for (const path of ['/queue', '/leased', '/queue']) {
      waiting.push(get(path))
      await held(waiting.length)
    }
    await Promise.all([queue.push(1), queue.push(2), queue.push(3)])
    const answers = (await Promise.all(waiting)).map((answer) => answer.json() as { event: number; lease?: string })
    assert.deepEqual(answers.map(({ event }) => event), [1, 2, 3])
    assert.deepEqual(answers.map(({ lease }) => lease === undefined), [true, false, true])
  })

  withEachBroker('returns available events with a timeout of 0', async (t, options) => {
    const { get, queue, channel } = await begin(t, options)
    await queue.push(1)
    const gate = options.broker instanceof DelayedBroker ? options.broker.hold('take') : undefined
    const waiting = get('/queue-now')
    await gate?.reached
    await new Promise((resolve) => setTimeout(resolve, 20)) // Longer than a timeout of 0.
    gate?.open()
    assert.equal((await waiting).text, '{"ok":true,"event":1}')
    const id = (await channel.publish('a')) as number
    assert.deepEqual((await get(`/now?since=${id - 1}`)).json(), { events: [{ id, data: 'a' }], last_id: id })
  })

  withEachBroker('delivers each event to one client, in order of arrival', async (t, options) => {
    const { get, held, queue, requests, events } = await begin(t, options)
    const waiting: Promise<Answer>[] = []
    for (let count = 1; count <= 3; count++) {
      waiting.push(get('/queue'))
      await held(count)
    }
    await Promise.all([queue.push(1), queue.push(2)])
    assert.equal((await waiting[0])?.text, '{"ok":true,"event":1}')
    assert.equal((await waiting[1])?.text, '{"ok":true,"event":2}')
    assert.equal(requests.restPool.longpoll.busy, 1)
    await queue.push(3)
    assert.equal((await waiting[2])?.text, '{"ok":true,"event":3}')
    assert.deepEqual(events.status(), { published: 3, delivered: 3, dropped: 0, slow: 0 })
  })

  withEachBroker('takes no event for HEAD', async (t, options) => {
    const { url, queue, get } = await begin(t, options)
    await queue.push(1)
    assert.equal((await request(`${url}/queue`, { method: 'HEAD' })).status, 200)
    assert.equal((await get('/queue')).text, '{"ok":true,"event":1}')
  })

  withEachBroker('keeps the event for the next client if the first has disconnected', async (t, options) => {
    const { port, held, queue, get } = await begin(t, options)
    const leaving = new Connection(t, port)
    await leaving.send(requestText('GET /queue'))
    await held(1)
    const staying = get('/queue')
    await held(2)
    await leaving.reset()
    await held(1)
    await queue.push(1)
    assert.equal((await staying).text, '{"ok":true,"event":1}')
  })

  it('puts an event back if its client disconnected during the take', async (t) => {
    const broker = new DelayedBroker(new LocalBroker())
    const { port, queue, get, requests, held, events } = await begin(t, { broker })
    await queue.push(1)
    const early = new Connection(t, port)
    const first = broker.hold('take')
    await early.send(requestText('GET /queue'))
    await first.reached
    await early.reset()
    await until(() => requests.active === 0)
    first.open()
    assert.equal((await get('/queue')).text, '{"ok":true,"event":1}', 'asked before it waited')

    const late = new Connection(t, port)
    await late.send(requestText('GET /queue'))
    await held(1)
    await until(() => !queue.isIdle)
    const second = broker.hold('take')
    await queue.push(2)
    await second.reached
    await late.reset()
    await until(() => requests.active === 0)
    second.open()
    assert.equal((await get('/queue')).text, '{"ok":true,"event":2}', 'taken for one that waited')
    assert.equal(events.status().delivered, 2)
  })

  it('keeps waiting when its broker fails, and is answered when it is back', async (t) => {
    for (const failing of ['take', 'onAvailable'] as const) {
      const broker = new DelayedBroker(new LocalBroker())
      const { get, held, logged, queue } = await begin(t, { broker })
      const gate = broker.hold(failing)
      const waiting = [get('/queue')]
      await gate.reached
      broker.broken = true
      gate.open()
      const line = 'error: queue "q": its events could not be handed out: the broker is not there'
      await until(() => logged.includes(line))
      broker.broken = false
      waiting.push(get('/queue')) // It subscribes, which the first could not.
      await held(2)
      await Promise.all([queue.push('a'), queue.push('b')])
      assert.deepEqual(
        (await Promise.all(waiting)).map((answer) => answer.text),
        ['{"ok":true,"event":"a"}', '{"ok":true,"event":"b"}'],
      )
    }
  })

  it('delivers nothing to a poll whose response would queue behind another on its connection', async (t) => {
    const { port, held, queue, get, events } = await begin(t)
    const connection = new Connection(t, port)
    await connection.send(requestText('GET /poll') + requestText('GET /queue'))
    await held(1)
    queue.push(1)
    assert.equal((await get('/queue')).text, '{"ok":true,"event":1}')
    queue.push(2)
    const id = await events.channel('c').publish('a')
    const answers = await connection.answers(2)
    assert.deepEqual(
      answers.map((answer) => answer.body),
      [`{"events":[{"id":${id},"data":"a"}],"last_id":${id}}`, '{"ok":true,"event":2}'],
    )
  })
})

describe('the options of a long poll', () => {
  it('are checked', async (t) => {
    const wrong: readonly (readonly [unknown, unknown, RegExp])[] = [
      ['name', undefined, /source must be a channel or a queue: it is of type string/],
      [undefined, undefined, /source must be a channel or a queue: it is of type undefined/],
      ['channel', { timeout_s: -1 }, /timeout_s must be a number of seconds from 0: it is -1/],
      ['channel', { timeout_s: NaN }, /it is NaN/],
      ['channel', { timeout_s: '5' }, /timeout_s must be a number of seconds from 0: it is 5/],
      ['channel', { form: 'simple' }, /for this source the form must be cursor: it is simple/],
      ['queue', { form: 'cursor' }, /for this source the form must be simple or typed: it is cursor/],
      ['queue', { timeout: 5 }, /there is no option "timeout": there are timeout_s, form, lease_s/],
      ['channel', { lease_s: 5 }, /lease_s is an option of queues: its source is a channel/],
      ['queue', { lease_s: 0 }, /lease_s must be a number of seconds above 0, at most 86400: it is 0/],
      ['queue', { lease_s: 86_401 }, /it is 86401/],
      ['queue', { lease_s: NaN }, /it is NaN/],
      ['queue', { lease_s: '5' }, /it is 5/],
      ['queue', null, /the options must be an object: they are null/],
      ['queue', 5, /the options must be an object: they are 5/],
    ]
    const { url } = await eventServer(t, {
      '/:at': (ctx) => {
        const [kind, options] = wrong[Number(ctx.params['at'])] as unknown as [string | undefined, LongPollOptions]
        const source = kind === 'channel' ? ctx.channel('c') : kind === 'queue' ? ctx.queue('q') : kind
        return ctx.longPoll(source as never, options)
      },
    })
    for (const [at, [, , message]] of wrong.entries()) {
      const { status, text } = await request(`${url}/${at}`)
      assert.equal(status, 500)
      assert.match(text.replaceAll('&quot;', '"'), message)
      assert.match(text, /TypeError/)
    }
  })

  it('also count if the reply is called without being returned', async (t) => {
    const { url } = await eventServer(t, { '/': (ctx) => void ctx.longPoll(ctx.queue('q'), { timeout_s: 0 }) })
    assert.equal((await request(url)).text, '{"ok":true,"event":null}')
  })
})
