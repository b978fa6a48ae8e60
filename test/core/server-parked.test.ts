import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import { HttpError } from '../../lib/http/errors.ts'
import { StreamReply, type ReadyReply } from '../../lib/http/reply.ts'
import { ParkedReply } from '../../lib/http/parked.ts'
import { Connection, requestText } from '../support/connection.ts'
import { parseAnswer, type RawAnswer } from '../support/raw.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'
import { beginStream, bodies, checkManyPolls, checkStopWithPolls } from './server-parked-support.ts'
import { serveParked, TestPoll, text } from './server-parked-support.ts'

const oneWorker = { 'pool_rest.workers_longpoll': 1, 'pool_rest.workers_sse': 1, 'pool_rest.queue_size': 1 }
const debugLines = (lines: string[]): string[] =>
  lines
    .filter((line) => line.includes('[worker_otros]'))
    .map((line) => line.replace(/^.*\[worker_otros\] /, '').replace(/\d+ ms/, 'N ms'))

describe('a waiting reply', () => {
  it('is answered by its event, and holds no HTTP worker meanwhile', async (t) => {
    const oneHttpWorker = { 'pool_http.workers': 1, 'pool_http.queue_size': 0 }
    const { source, polls, url, lines, app } = await serveParked(t, oneHttpWorker)
    const [connection] = (await polls('a')) as [Connection]
    assert.equal((await request(`${url}/plain`)).text, 'plain')
    assert.equal(lines('access.log').length, 1)
    source.give('event')
    const [answer] = (await connection.answers(1)) as [RawAnswer]
    assert.deepEqual([answer.status, answer.body], [200, 'event'])
    await until(() => lines('access.log').length === 2)
    assert.match(lines('access.log')[1] ?? '', /"GET \/poll\/a HTTP\/1\.1" 200$/)
    assert.deepEqual(debugLines(lines()), [
      'GET /poll/a (r0): parked (longpoll, working)',
      'GET /poll/a (r0): answered after N ms',
    ])
    assert.deepEqual(source.log, ['waiting a', 'started a'])
    connection.socket.destroy()
    await app.stop()
  })

  it('needs no worker if its answer is available, even as a promise', async (t) => {
    const { source, polls, url } = await serveParked(t, { ...oneWorker, 'pool_rest.queue_size': 0 })
    await polls('held')
    assert.equal((await request(`${url}/poll/refused`)).status, 503)
    source.ready = () => text('there')
    assert.equal((await request(`${url}/poll/b`)).text, 'there')
    source.ready = () => Promise.resolve(text('there soon'))
    assert.equal((await request(`${url}/poll/c`)).text, 'there soon')
    source.ready = () => Promise.resolve(undefined)
    assert.equal((await request(`${url}/poll/d`)).status, 503)
    assert.deepEqual(source.log, ['waiting held', 'started held'])
  })

  it('waits in the queue without a worker, is answered there, and gets 503 if the queue is full', async (t) => {
    const { source, polls, url, lines } = await serveParked(t, oneWorker)
    const [first, second] = (await polls('first', 'second')) as [Connection, Connection]
    const refused = await request(`${url}/poll/third`, { headers: { accept: 'application/json' } })
    assert.deepEqual([refused.status, refused.headers['retry-after']], [503, '1'])
    assert.deepEqual(refused.json(), { error: 'overloaded' })
    const warning = 'refused GET /poll/third (r0): 1 long polls held, 1 of the REST pool waiting'
    assert.ok(lines().some((line) => line.includes(`[WARN ] [pool] ${warning}`)))
    for (const poll of [...source.waiters].reverse()) assert.equal(poll.take(text(`for ${poll.name}`)), true)
    assert.deepEqual(bodies([...(await first.answers(1)), ...(await second.answers(1))]), ['for first', 'for second'])
    assert.deepEqual(source.log, ['waiting first', 'started first', 'waiting second'])
    source.waiters.clear()
    await polls('fourth')
    assert.equal(source.log.at(-1), 'started fourth')
  })

  it('gets a worker when one is free, in order of arrival', async (t) => {
    const { source, polls, lines } = await serveParked(t, { ...oneWorker, 'pool_rest.queue_size': 2 })
    await polls('first', 'second', 'third')
    source.give('event')
    assert.deepEqual(source.log.slice(-2), ['waiting third', 'started second'])
    source.give('event')
    assert.equal(source.log.at(-1), 'started third')
    assert.ok(debugLines(lines()).includes('GET /poll/third (r0): parked (longpoll, queued)'))
  })

  it('uses separate workers for streams and long polls, with a common queue', async (t) => {
    const { polls, url } = await serveParked(t, oneWorker)
    await polls('poll', 'stream?sse', 'queued?sse')
    assert.equal((await request(`${url}/poll/other`)).status, 503)
  })

  it('is refused if its kind has no workers', async (t) => {
    const { url } = await serveParked(t, { 'pool_rest.workers_sse': 0, 'app.env': 'dev' })
    assert.equal((await request(`${url}/poll/a?sse`)).status, 503)
    const status = (await request(`${url}/svc-status`)).json() as { pool_rest: { refused: number } }
    assert.equal(status.pool_rest.refused, 1)
  })

  it('is answered empty when its time is over, in the queue as well', async (t) => {
    const { source, url, lines } = await serveParked(t, oneWorker)
    const answers = await Promise.all([request(`${url}/poll/a?ms=30`), request(`${url}/poll/b?ms=20`)])
    assert.deepEqual(answers.map((answer) => answer.text), ['empty (deadline)', 'empty (deadline)'])
    assert.equal(source.waiters.size, 0)
    assert.ok(debugLines(lines()).includes('GET /poll/a (r0): timed out after N ms'))
  })

  it('with a time-out of 0 takes no worker', async (t) => {
    const { source, polls, url } = await serveParked(t, { ...oneWorker, 'pool_rest.queue_size': 0 })
    await polls('held')
    assert.equal((await request(`${url}/poll/zero?ms=0`)).text, 'empty (deadline)')
    assert.deepEqual(source.log, ['waiting held', 'started held', 'deadline zero'])
  })

  it('is counted separately, and is not an error, if its client disconnects', async (t) => {
    const { url, port, app } = await serveParked(t, { 'app.env': 'dev' })
    const client = connect({ port, host: '127.0.0.1' })
    client.write('GET /poll/a HTTP/1.1\r\nHost: h\r\n\r\n')
    const status = async () =>
      (await request(`${url}/svc-status`)).json() as {
        requests: { total: number; errors: number; left: number; by_class: Record<string, number> }
        pool_rest: { longpoll: number }
      }
    await until(async () => (await status()).pool_rest.longpoll === 1)
    client.destroy()
    await until(async () => (await status()).requests.left === 1)
    const { requests } = await status()
    const total = Object.values(requests.by_class).reduce((sum, count) => sum + count)
    assert.deepEqual([requests.errors, requests.by_class['4xx'], requests.total], [0, 0, total + 1])
    assert.match((await request(`${url}/svc-metrics`)).text, /svc_http_requests_total\{route="r0",code="left"\} 1\n/)
    await app.stop()
  })

  it('is counted, but not in the latencies', async (t) => {
    const { source, url, app } = await serveParked(t, { 'app.env': 'dev' })
    assert.equal((await request(`${url}/plain`)).text, 'plain')
    assert.equal((await request(`${url}/poll/a?ms=500`)).text, 'empty (deadline)')
    source.ready = () => text('there')
    assert.equal((await request(`${url}/poll/b`)).text, 'there')
    const status = (await request(`${url}/svc-status`)).json() as {
      requests: { total: number; bytes_out: number }
      latency_ms: { max: number }
      routes: { name: string; count: number; max_ms: number }[]
    }
    const route = status.routes.find(({ name }) => name === 'r0')
    assert.equal(route?.count, 2)
    assert.ok(status.requests.total >= 3)
    assert.ok(Math.max(route?.max_ms ?? Infinity, status.latency_ms.max) < 500, JSON.stringify(status.latency_ms))
    const metrics = (await request(`${url}/svc-metrics`)).text
    assert.match(metrics, /svc_http_requests_total\{route="r0",code="2xx"\} 2\n/)
    assert.match(metrics, /svc_http_request_duration_seconds_count\{route="r0"\} 1\n/)
    await app.stop()
  })

  it('answers a HEAD empty, and takes no event', async (t) => {
    const { source, port } = await serveParked(t)
    source.ready = () => assert.fail('an event was requested')
    const connection = new Connection(t, port)
    await connection.send(requestText('HEAD /poll/a', ['Connection: close']))
    const { status, headers } = parseAnswer(await connection.closed())
    assert.deepEqual([status, headers['content-length'], source.log], [200, '12', ['head a']])
  })

  it('keeps status, fields and cookies of its context', async (t) => {
    const { source, polls } = await serveParked(t, {}, (ctx, waits) => {
      ctx.status = 202
      ctx.setHeader('X-Own', 'yes')
      ctx.setCookie('c', 'v')
      return new TestPoll(ctx, waits)
    })
    const [connection] = (await polls('a')) as [Connection]
    source.give('event')
    const [{ status, headers }] = (await connection.answers(1)) as [RawAnswer]
    assert.deepEqual([status, headers['x-own']], [202, 'yes'])
    assert.equal(headers['set-cookie'], 'c=v; Path=/; HttpOnly; SameSite=Lax')
  })
})

describe('a waiting client', () => {
  it('frees its worker when it disconnects, and the event goes to the next', async (t) => {
    const signals: AbortSignal[] = []
    const { source, polls, lines } = await serveParked(t, oneWorker, (ctx, waits) => {
      signals.push(ctx.signal)
      return new TestPoll(ctx, waits)
    })
    const [first, second] = (await polls('first', 'second')) as [Connection, Connection]
    first.socket.destroy()
    await until(() => source.log.includes('started second'))
    assert.deepEqual(source.log.slice(-2), ['left first', 'started second'])
    assert.deepEqual(signals.map(({ aborted }) => aborted), [true, false])
    assert.equal(source.give('event'), 1)
    assert.deepEqual(bodies(await second.answers(1)), ['event'])
    assert.equal(signals[1]?.aborted, false)
    await until(() => lines('access.log').length === 2)
    assert.match(lines('access.log')[0] ?? '', /"GET \/poll\/first HTTP\/1\.1" 499$/)
    assert.ok(debugLines(lines()).includes('GET /poll/first (r0): client disconnected after N ms'))
  })

  it('is forgotten when it disconnects in the queue', async (t) => {
    const { source, polls, url } = await serveParked(t, oneWorker)
    const [first, queued] = (await polls('first', 'queued')) as [Connection, Connection]
    await queued.reset()
    await until(() => source.log.includes('left queued'))
    const [next] = (await polls('next')) as [Connection]
    assert.equal((await request(`${url}/poll/fourth`)).status, 503)
    for (const event of ['one', 'two']) assert.equal(source.give(event), 1)
    assert.deepEqual(bodies([...(await first.answers(1)), ...(await next.answers(1))]), ['one', 'two'])
  })

  it('gets no event once its disconnect is known, before the wait is notified', async (t) => {
    const { source, polls } = await serveParked(t)
    const [, second] = (await polls('first', 'second')) as [Connection, Connection]
    const [poll] = [...source.waiters] as [TestPoll]
    poll.ctx.request.socket.destroy() // Its close is reported in a later turn.
    assert.equal(poll.isOver, true)
    assert.equal(source.give('event'), 2)
    assert.deepEqual(bodies(await second.answers(1)), ['event'])
    await until(() => source.log.includes('left first'))
  })

  it('is not waited for if it disconnects before its reply waits', async (t) => {
    const { source, port } = await serveParked(t, {}, async (ctx, waits) => {
      waits.log.push('asked')
      await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve))
      return new TestPoll(ctx, waits)
    })
    source.ready = () => assert.fail('an event was requested')
    const connection = new Connection(t, port)
    await connection.send(requestText('GET /poll/a'))
    await until(() => source.log.length > 0)
    await connection.reset()
    await until(() => source.log.length > 1)
    assert.deepEqual(source.log, ['asked', 'left a'])
  })

  it('may disconnect while its source is pending', async (t) => {
    const { source, port } = await serveParked(t, oneWorker)
    const asked: ((reply: ReadyReply | undefined) => void)[] = []
    source.ready = () => new Promise((resolve) => asked.push(resolve))
    for (const [name, late] of [['a', text('lost')], ['b', undefined]] as const) {
      const connection = new Connection(t, port)
      await connection.send(requestText(`GET /poll/${name}`))
      await until(() => asked.length > 0)
      await connection.reset()
      await until(() => source.log.includes(`left ${name}`))
      asked.pop()?.(late)
    }
    assert.deepEqual(source.log, ['left a', 'left b'])
  })

  it('may send bytes meanwhile, and a request behind it gets its response after it', async (t) => {
    const { source, polls } = await serveParked(t)
    const [connection] = (await polls('a')) as [Connection]
    await connection.send(requestText('GET /plain'))
    await connection.send('GET /pl')
    source.give('event')
    await connection.send('ain HTTP/1.1\r\nHost: h\r\n\r\n')
    assert.deepEqual(bodies(await connection.answers(3)), ['event', 'plain', 'plain'])
  })

  it('gets its response although it then sends an invalid request, which is refused after it', async (t) => {
    const { source, polls } = await serveParked(t)
    const [connection] = (await polls('a')) as [Connection]
    await connection.send('no request\r\n\r\n')
    source.give('event')
    const [event, refused] = (await connection.answers(2)) as [RawAnswer, RawAnswer]
    assert.deepEqual([event.body, refused.status], ['event', 400])
  })

  it('may send another request, which waits for the response to the first', async (t) => {
    const { source, port } = await serveParked(t)
    const connection = new Connection(t, port)
    await connection.send(requestText('GET /poll/first') + requestText('GET /poll/second'))
    for (const name of ['first', 'second']) {
      await until(() => [...source.waiters].map((poll) => poll.name).join() === name)
      source.give(name)
    }
    assert.deepEqual(bodies(await connection.answers(2)), ['first', 'second'])
  })

  it('may disconnect with several pipelined requests', async (t) => {
    const { source, port } = await serveParked(t, oneWorker)
    const connection = new Connection(t, port)
    await connection.send(requestText('GET /poll/first') + requestText('GET /poll/second'))
    await until(() => source.waiters.size === 1)
    connection.socket.destroy()
    await until(() => source.waiters.size === 0)
    assert.deepEqual(source.log.filter((line) => line.startsWith('left')), ['left first'])
  })

  it('may send 200 polls: one per connection waits, and all capacity is freed afterwards', (t) =>
    checkManyPolls(t, 20))
})

describe('a stream', () => {
  it('begins when it has its worker, continues, and ends', async (t) => {
    const { source, polls } = await serveParked(t, oneWorker)
    source.onStarted = beginStream
    const [first, queued] = (await polls('first?sse', 'queued?sse')) as [Connection, Connection]
    await until(() => first.received.includes('begin first'))
    assert.equal(queued.received, '')
    const [poll] = [...source.waiters] as [TestPoll]
    poll.ctx.response.end('last')
    assert.equal(poll.take(undefined), true)
    assert.equal(poll.take(undefined), false)
    await until(() => first.received.endsWith('0\r\n\r\n') && queued.received.includes('begin queued'))
    assert.match(first.received, /^HTTP\/1\.1 200 OK\r\nContent-Type: text\/event-stream\r\n[^]*begin first\n[^]*last/)
  })

  it('ends when its time is over, whether it has begun or not', async (t) => {
    const { source, url, polls } = await serveParked(t, oneWorker)
    source.onStarted = beginStream
    assert.equal((await request(`${url}/poll/a?sse&ms=20`)).text, 'begin a\n')
    const [holder] = (await polls('b?sse')) as [Connection]
    await until(() => holder.received.includes('begin b')) // It has the worker.
    assert.equal((await request(`${url}/poll/c?sse&ms=20`)).text, 'empty (deadline)')
  })

  it('is cut if it fails after it has begun', async (t) => {
    const { source, polls, lines } = await serveParked(t)
    source.onStarted = beginStream
    const [connection] = (await polls('a?sse')) as [Connection]
    await until(() => connection.received.includes('begin a'))
    for (const poll of source.waiters) poll.break(new Error('broken stream'))
    await connection.closed()
    assert.ok(lines().some((line) => line.includes('[ERROR] [error] GET /poll/a (r0): broken stream')))
  })

  it('is answered 500 if it cannot begin', async (t) => {
    const { source, url, lines } = await serveParked(t, oneWorker)
    source.onStarted = () => new StreamReply(99, [], 0, () => {})
    assert.equal((await request(`${url}/poll/a?sse`)).status, 500)
    source.onStarted = () => {
      throw new Error('cannot begin')
    }
    assert.equal((await request(`${url}/poll/b?sse`)).status, 500)
    assert.ok(lines().some((line) => line.includes('cannot begin')))
    source.onStarted = beginStream
    assert.equal((await request(`${url}/poll/c?sse&ms=10`)).text, 'begin c\n')
  })
})

describe('errors of waiting replies', () => {
  it('are responses, whether thrown at once or later', async (t) => {
    const { source, url } = await serveParked(t, oneWorker)
    const bad = (): never => {
      throw new HttpError(400, 'bad_request', 'No such cursor')
    }
    source.ready = bad
    assert.equal((await request(`${url}/poll/a`)).status, 400)
    source.ready = () => Promise.reject(new HttpError(409, 'bad_request', 'Not now'))
    assert.equal((await request(`${url}/poll/b`)).status, 409)
    source.ready = () => undefined
    source.onWaiting = bad
    assert.equal((await request(`${url}/poll/c`)).status, 400)
    source.onWaiting = (poll) => poll.break(new HttpError(410, 'gone', 'No more'))
    assert.equal((await request(`${url}/poll/d`)).status, 410)
    assert.equal(source.log.some((line) => line.startsWith('started')), false)
  })

  it('are responses at the end too', async (t) => {
    const { url, lines } = await serveParked(t, {}, (ctx, waits) =>
      Object.assign(new TestPoll(ctx, waits), {
        ended: () => {
          if (ctx.query.has('throws')) throw new Error('at the end')
          return Promise.reject(new Error('after the end'))
        },
      }),
    )
    assert.equal((await request(`${url}/poll/a?ms=10&throws`)).status, 500)
    assert.equal((await request(`${url}/poll/b?ms=10`)).status, 500)
    const log = lines().join('\n')
    for (const reason of ['at the end', 'after the end']) assert.ok(log.includes(reason), reason)
  })

  it('are logged when the wait is over', async (t) => {
    const { source, polls, lines } = await serveParked(t)
    const [connection] = (await polls('a')) as [Connection]
    const [poll] = [...source.waiters] as [TestPoll]
    source.give('event')
    await connection.answers(1)
    poll.break(new Error('too late'))
    assert.ok(lines().some((line) => line.includes('failed after its wait had ended')))
    assert.equal(poll.take(text('twice')), false)
  })

  it('report a reply that is returned twice, or by another request', async (t) => {
    let kept: ParkedReply | undefined
    const { source, polls, url, lines } = await serveParked(t, {}, (ctx, waits) => (kept ??= new TestPoll(ctx, waits)))
    await polls('first')
    assert.equal((await request(`${url}/poll/second`)).status, 500)
    assert.ok(lines().some((line) => line.includes('A waiting reply can be returned only once')))
    assert.equal(kept?.state, 'working')
    source.give('event')
  })

  it('have no effect before the reply is parked', async (t) => {
    const { url } = await serveParked(t, {}, (ctx, waits) => {
      const poll = new TestPoll(ctx, waits)
      poll.break(new Error('unreported'))
      return String(poll.take(text('nor this')))
    })
    assert.equal((await request(`${url}/poll/a`)).text, 'false')
  })
})

describe('the stop', () => {
  it('answers 60 polls empty', (t) => checkStopWithPolls(t, 60, 0))

  it('aborts the signals of waiting requests', async (t) => {
    const signals: AbortSignal[] = []
    const { polls, app } = await serveParked(t, {}, (ctx, waits) => {
      if (ctx.params['name'] === 'asks') signals.push(ctx.signal)
      const poll = new TestPoll(ctx, waits)
      if (ctx.params['name'] === 'asks') return poll
      return Object.assign(poll, {
        ended: () => {
          signals.push(ctx.signal)
          return text('bye')
        },
      })
    })
    await polls('asks', 'asks-late')
    await app.stop()
    assert.deepEqual(signals.map(({ aborted }) => aborted), [true, true])
  })
})
