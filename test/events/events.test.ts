import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { createEvents } from '../../lib/events/events.ts'
import { LocalBroker } from '../../lib/events/local-broker.ts'
import type { SourceOptions } from 'svc'
import { keepingLogger } from '../support/log-lines.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'
import { DelayedBroker, turns } from './delayed-broker.ts'
import { eventServer } from './event-server.ts'

function begin(t: TestContext) {
  const clock = { time: 0 }
  const errors: string[] = []
  const log = () => keepingLogger((line) => errors.push(line.replace('ERROR ', '')), 'error')
  const events = createEvents({ log, now: () => clock.time })
  t.after(() => events.close())
  return { clock, errors, events }
}

describe('channels and queues', () => {
  it('are found by name, separately for each kind', (t) => {
    const { events } = begin(t)
    assert.equal(events.channel('a'), events.channel('a'))
    assert.notEqual(events.channel('a'), events.channel('b'))
    assert.notEqual(events.queue('a') as unknown, events.channel('a'))
    assert.equal(events.queue('__proto__').name, '__proto__')
  })

  it('are not shared by two servers in one process', (t) => {
    const [one, other] = [begin(t).events, begin(t).events]
    one.channel('a').publish(1)
    assert.equal(other.status().published, 0)
  })

  it('refuse invalid names and options', (t) => {
    const { events } = begin(t)
    const wrong: readonly (readonly [unknown, unknown, RegExp])[] = [
      ['', undefined, /Cannot open (channel|queue) "": its name must be a string that is not empty/],
      [undefined, undefined, /its name must be a string/],
      [5, { events: 5 }, /its name must be a string/],
      ['a', null, /Cannot open (channel|queue) "a": the options must be an object: they are null/],
      ['a', { events: 0 }, /events must be an integer from 1 to 1000000: it is 0/],
      ['a', { events: 1.5 }, /it is 1\.5/],
      ['a', { events: 1_000_001 }, /it is 1000001/],
      ['a', { events: '5' }, /events must be an integer/],
      ['a', { age_s: 0 }, /age_s must be a number above 0: it is 0/],
      ['a', { age_s: NaN }, /it is NaN/],
      ['a', { age_s: '5' }, /age_s must be a number above 0/],
      ['a', { age: 5 }, /there is no option "age": there are events, age_s/],
    ]
    for (const open of [events.channel, events.queue]) {
      for (const [name, options, message] of wrong) {
        assert.throws(() => open(name as string, options as SourceOptions), { name: 'TypeError', message })
      }
    }
  })

  it('keep the options of their first use', (t) => {
    const { events } = begin(t)
    for (const open of [events.channel, events.queue]) {
      const source = open('a', { events: 2, age_s: 0.5 })
      assert.equal(open('a'), source as unknown)
      assert.equal(open('a', { age_s: 0.5, events: 2 }), source as unknown)
      assert.throws(() => open('a', { events: 3, age_s: 0.5 }), {
        message: /"a" with other options: it has events 2 and age_s 0\.5 from its first use: set them there/,
      })
      open('b')
      assert.equal(open('b', { events: 1000 }).name, 'b')
      assert.throws(() => open('b', { age_s: 1 }), /with other options/)
    }
  })

  it('refuse values that JSON cannot hold', (t) => {
    const { events } = begin(t)
    const circle: unknown[] = []
    circle.push(circle)
    for (const value of [undefined, () => {}, Symbol('s'), 5n, circle, new Map(), { at: NaN }, [undefined], Promise.resolve(1)]) {
      assert.throws(() => events.channel('a').publish(value), TypeError)
      assert.throws(() => events.queue('a').push(value), TypeError)
    }
    assert.equal(events.status().published, 0)
    assert.throws(() => events.channel('a').publish(undefined), {
      message: 'Cannot publish in channel "a": an event is a JSON value: it is of type undefined',
    })
    assert.throws(() => events.queue('a').push({ rows: [{ at: NaN }] }), {
      message: 'Cannot publish in queue "a": an event is a JSON value: rows.0.at is NaN',
    })
  })

  it('keep as much as their options allow', (t) => {
    const { events, clock } = begin(t)
    const channel = events.channel('a', { events: 2, age_s: 10 })
    const ids = [1, 2, 3].map((value) => channel.publish(value) as number)
    const first = ids[0] as number
    const read = (since: number) => channel.read(since) as { events: readonly unknown[]; gap: boolean }
    assert.deepEqual([read(first).events.length, read(first).gap], [2, false])
    assert.equal(read(first - 1).gap, true)
    clock.time += 10_000
    assert.deepEqual([read(first).events.length, read(first).gap], [0, true])
    const queue = events.queue('a', { events: 2, age_s: 10 })
    for (const value of [1, 2, 3]) queue.push(value)
    assert.equal(events.status().dropped, 1)
  })

  it('are dropped when unused for long, and can still be used', async (t) => {
    const { events, clock } = begin(t)
    const unused = events.channel('unused')
    const published = unused.publish(1) as number
    const heard: unknown[] = []
    events.channel('heard').subscribe((event) => heard.push(event.data))
    const [channel, queue] = [events.channel('heard'), events.queue('unused')]
    const long = events.channel('long', { age_s: 86_400 })
    clock.time += 3_599_999
    events.sweep()
    assert.equal(events.channel('unused'), unused)
    clock.time += 3_600_000
    events.sweep()
    assert.equal(events.channel('heard'), channel)
    assert.equal(events.channel('long'), long)
    const anew = events.channel('unused')
    assert.notEqual(anew, unused)
    assert.notEqual(events.queue('unused'), queue)
    assert.ok((unused.publish(2) as number) > published)
    anew.subscribe((event) => heard.push(event.data))
    await turns()
    unused.publish(3)
    channel.publish(4)
    await until(() => heard.length === 2)
    assert.deepEqual(heard, [3, 4])
  })
})

describe('a listener of the server on a channel', () => {
  it('gets each event from then on, in order, at the end of the turn', async (t) => {
    const { events } = begin(t)
    const channel = events.channel('a')
    const heard: unknown[] = []
    const others: unknown[] = []
    const unsubscribe = channel.subscribe((event) => heard.push(event))
    await turns()
    const ids = [channel.publish({ a: 1 }), channel.publish('2')]
    channel.subscribe((event) => others.push(event.data))
    assert.deepEqual(heard, [])
    ids.push(channel.publish(3))
    await turns()
    assert.deepEqual(heard, [{ id: ids[0], data: { a: 1 } }, { id: ids[1], data: '2' }, { id: ids[2], data: 3 }])
    assert.deepEqual(others, [3], 'nothing from before it listened')
    channel.publish(4)
    unsubscribe()
    unsubscribe()
    await turns()
    assert.deepEqual([heard.length, others], [3, [3, 4]])
  })

  it('does not affect other listeners when it fails', async (t) => {
    const { events, errors } = begin(t)
    const channel = events.channel('a')
    const heard: unknown[] = []
    channel.subscribe(() => {
      throw new Error('listener')
    })
    channel.subscribe(async () => {
      throw new Error('listener')
    })
    channel.subscribe((event) => heard.push(event.data))
    await turns()
    channel.publish(1)
    channel.publish(2)
    await turns()
    assert.deepEqual(heard, [1, 2])
    assert.deepEqual(errors, Array(4).fill('channel "a": a listener failed: listener'))
  })

  it('must be a function', (t) => {
    const { events } = begin(t)
    assert.throws(() => events.channel('a').subscribe('x' as never), {
      name: 'TypeError',
      message: 'Cannot subscribe to channel "a": the listener must be a function: it is of type string',
    })
  })
})

describe('a remote broker', () => {
  it('returns promises of ids', async (t) => {
    const events = createEvents({ log: () => silentLogger, broker: new DelayedBroker(new LocalBroker()) })
    t.after(() => events.close())
    const [channel, queue] = [events.channel('a'), events.queue('a')]
    const before = await channel.last_id
    const publishing = channel.publish(1)
    assert.ok(publishing instanceof Promise)
    assert.equal(await publishing, before + 1)
    await queue.push(1)
    assert.deepEqual(events.status(), { published: 2, delivered: 0, dropped: 0, slow: 0 })
  })

  it('that fails does not count events that it did not store', async (t) => {
    const broker = new DelayedBroker(new LocalBroker())
    const events = createEvents({ log: () => silentLogger, broker })
    t.after(() => events.close())
    broker.broken = true
    await assert.rejects(async () => events.channel('a').publish(1), /the broker is not there/)
    await assert.rejects(async () => events.queue('a').push(1), /the broker is not there/)
    assert.equal(events.status().published, 0)
  })
})

describe('a waiter that cannot be woken', () => {
  it('does not keep events from others', async (t) => {
    const { url, events, requests, logged } = await eventServer(t, {
      '/odd': (ctx) => {
        const poll = ctx.longPoll(ctx.channel('a'))
        Object.assign(poll, {
          send: () => {
            throw new Error('odd')
          },
        })
        return poll
      },
      '/poll': (ctx) => ctx.longPoll(ctx.channel('a')),
    })
    void request(`${url}/odd`).catch(() => {})
    await until(() => requests.restPool.longpoll.busy === 1)
    const waiting = request(`${url}/poll`)
    await until(() => requests.restPool.longpoll.busy === 2)
    events.channel('a').publish(1)
    assert.equal((await waiting).status, 200)
    assert.deepEqual(logged, ['error: channel "a": an event could not be delivered to a client: odd'])
  })
})
