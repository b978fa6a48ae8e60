import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { StreamReply } from '../../lib/http/reply.ts'
import { Connection, requestText } from '../support/connection.ts'
import { parseAnswer, type RawAnswer } from '../support/raw.ts'
import { until } from '../support/until.ts'
import { bodies, checkManyPolls, checkStopWithPolls, serveParked } from './server-parked-support.ts'

describe('a stream', () => {
  it('is cut when its time is over and its client does not read', async (t) => {
    const { source, port, lines } = await serveParked(t)
    source.onStarted = () => new StreamReply(200, [], 0, (response) => void response.write(Buffer.alloc(30_000_000)))
    const connection = new Connection(t, port)
    connection.socket.pause()
    await connection.send(requestText('GET /poll/a?sse&ms=20'))
    await until(() => lines('access.log').length === 1)
    assert.deepEqual(source.log, ['waiting a', 'started a', 'deadline a'])
  })
})

describe('a waiting client', () => {
  it('may send 10,000 polls: one per connection waits, and all capacity is freed afterwards', (t) =>
    checkManyPolls(t, 1000))
})

describe('the stop', () => {
  it('answers 2,000 polls empty and ends streams', (t) => checkStopWithPolls(t, 2000, 100))

  it('lets polls continue during the drain delay, and answers later ones at once', async (t) => {
    const { source, polls, app, port } = await serveParked(t, { 'server.drain_delay_s': 1 })
    const [held] = (await polls('held')) as [Connection]
    const late = new Connection(t, port)
    await late.send(requestText('GET /plain'))
    await late.answers(1)
    const stopped = app.stop()
    const [second] = (await polls('second')) as [Connection]
    source.give('event')
    assert.deepEqual(bodies(await held.answers(1)), ['event'])
    assert.equal(parseAnswer(await second.closed()).body, 'empty (stop)')
    await late.send(requestText('GET /poll/late'))
    const [, { body, headers }] = (await late.answers(2)) as [RawAnswer, RawAnswer]
    assert.deepEqual([body, headers['connection']], ['empty (stop)', 'close'])
    assert.equal(source.log.includes('waiting late'), false)
    await stopped
  })

  it('waits neither for a pending source nor for a client that does not read', async (t) => {
    const { source, polls, port, app } = await serveParked(t)
    source.onStarted = () => new StreamReply(200, [], 0, (response) => void response.write(Buffer.alloc(30_000_000)))
    const [stream] = (await polls('stream?sse')) as [Connection]
    stream.socket.pause()
    let asked = false
    source.ready = () => {
      asked = true
      return new Promise(() => {})
    }
    const asking = new Connection(t, port)
    await asking.send(requestText('GET /poll/asking'))
    await until(() => asked)
    const before = performance.now()
    await app.stop()
    const took = performance.now() - before
    assert.ok(took < 10_000, `${took} ms`) // A third of the maximum duration of a stop.
    assert.equal(parseAnswer(await asking.closed()).body, 'empty (stop)')
  })
})
