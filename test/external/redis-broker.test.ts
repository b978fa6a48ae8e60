import assert from 'node:assert/strict'
import { after, describe, it, type TestContext } from 'node:test'
import { inTurn } from '../cluster/in-turn.ts'
import type { Broker, ChannelEvent, ChannelGap, QueueEvent } from '../../lib/events/broker.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { createQueueScripts } from '../../lib/redis/queue-scripts.ts'
import { describeBroker, textOf } from '../events/broker-conformance.ts'
import { readPage } from '../support/markdown.ts'
import { openBroker } from '../support/redis-broker.ts'
import { openRedis, startRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'

const endings: (() => unknown)[] = []
const file = { after: (ending: () => unknown) => void endings.unshift(ending) }
after(async () => {
  for (const ending of endings) await ending()
})
const common = await startRedis(file)
let brokers = 0

describeBroker('a broker over Redis', (clocks) => openBroker(file, common.url, { prefix: `${++brokers}:`, clocks }).broker)

describeBroker('two brokers over one Redis', (clocks) => {
  const prefix = `${++brokers}:`
  const all = [1, 2].map(() => openBroker(file, common.url, { prefix, clocks }).broker)
  return inTurn(all, {
    get dropped() {
      return all.reduce((sum, broker) => sum + broker.dropped, 0)
    },
    sweep: async () => {
      for (const broker of all) await broker.sweep()
    },
  })
})

const limits = { maxEvents: 1000, maxAgeMs: 3_600_000 }
const few = { ...limits, maxEvents: 3 }

const isAway = (error: unknown): boolean =>
  error instanceof HttpError && error.code === 'shared_away' && error.headers['Retry-After'] === '1'

/** A server of the test's own, with two brokers. */
async function begin(t: TestContext, args: readonly string[] = [], commandTimeoutMs?: number) {
  const server = await startRedis(t, { args })
  const options = commandTimeoutMs === undefined ? {} : { commandTimeoutMs }
  const [one, two] = [openBroker(t, server.url, options), openBroker(t, server.url, options)]
  return { server, one, two, a: one.broker, b: two.broker }
}

/** A listener that notes what it hears. */
async function listen(broker: Broker, channel = 'c') {
  const heard: (ChannelEvent | ChannelGap)[] = []
  await broker.subscribe(channel, (event) => heard.push(event))
  return { heard, texts: () => heard.map(textOf).join(' ') }
}

const takeText = async (broker: Broker): Promise<string | undefined> => (await broker.take('q'))?.text

describe('a broker over Redis', () => {
  it('needs one operation for each publish, read, push and take', async (t) => {
    const { server, a } = await begin(t)
    const round = async (): Promise<void> => {
      const { lastId } = await a.read('c', undefined)
      const id = await a.publish('c', '1', limits)
      assert.equal((await a.read('c', lastId)).events.length, 1)
      assert.equal((await a.read('c', id)).events.length, 0)
    }
    const queueRound = async (): Promise<void> => {
      await a.push('q', '1', limits)
      a.handedOut('q', (await a.take('q')) as QueueEvent)
    }
    for (const [work, count] of [[round, 4], [queueRound, 2]] as const) {
      await work()
      await server.ask('CONFIG', 'RESETSTAT')
      for (let times = 0; times < 10; times++) await work()
      const statistics = await server.ask('INFO', 'commandstats')
      const calls = new Map([...statistics.matchAll(/cmdstat_(\w+)[^:]*:calls=(\d+)/g)].map(([, name, number]) => [name, Number(number)]))
      assert.deepEqual([calls.get('evalsha'), calls.get('eval')], [count * 10, undefined])
      if (work === round) assert.equal(calls.get('pexpire'), undefined, 'what is in use is not renewed each time')
    }
  })

  it('calls listeners of a channel after the publishing call is answered', async (t) => {
    const { a } = await begin(t)
    const order: string[] = []
    await a.subscribe('c', (event) => order.push(`heard ${textOf(event)}`))
    const publish = async (text: string): Promise<void> => {
      await a.publish('c', text, limits)
      for (let tick = 0; tick < 10; tick++) await Promise.resolve()
      order.push(`published ${text}`)
    }
    for (let count = 0; count < 100; count++) {
      await Promise.all([publish('1'), publish('2')])
      await until(() => order.length === 4)
      for (const text of ['1', '2']) assert.ok(order.indexOf(`published ${text}`) < order.indexOf(`heard ${text}`), order.join())
      assert.ok(order.indexOf('heard 1') < order.indexOf('heard 2'))
      order.length = 0
    }
  })

  it('delivers to all brokers in one order, whichever publishes', async (t) => {
    const { a, b } = await begin(t)
    const listeners = [await listen(a), await listen(b)]
    const ids = await Promise.all(Array.from({ length: 500 }, (_, at) => (at % 3 === 0 ? a : b).publish('c', `${at}`, limits)))
    assert.equal(new Set(ids).size, 500)
    ids.sort((one, other) => one - other)
    await until(() => listeners.every(({ heard }) => heard.length === 500))
    for (const { heard } of listeners) assert.deepEqual(heard.map(({ id }) => id), ids)
    assert.deepEqual((await a.read('c', 0)).events, listeners[0]?.heard)
  })

  it('reads more than one reply can hold, in pieces', async (t) => {
    const { server, a, b } = await begin(t)
    const large = JSON.stringify('x'.repeat(15_000_000))
    const { lastId } = await a.read('large', undefined)
    for (let count = 0; count < 5; count++) await a.publish('large', large, limits)
    const read = await b.read('large', lastId)
    assert.equal(read.gap, false)
    assert.ok(read.events.length === 5 && read.events.every(({ text }) => text === large))
    const many = { ...limits, maxEvents: 20_000 }
    const first = await a.publish('many', '0', many)
    await Promise.all(Array.from({ length: 12_000 }, (_, at) => a.publish('many', `${at + 1}`, many)))
    await server.ask('CONFIG', 'RESETSTAT')
    const texts = (await b.read('many', first - 1)).events.map(({ text }) => text)
    assert.deepEqual(texts, Array.from({ length: 12_001 }, (_, at) => `${at}`))
    assert.match(await server.ask('INFO', 'commandstats'), /cmdstat_evalsha:calls=3,/)
  })

  it('refuses an event that is too large to read back', async (t) => {
    const { a, b } = await begin(t)
    const { heard } = await listen(b)
    const text = JSON.stringify('ä'.repeat(2 ** 23))
    const message = 'A shared event has at most 16777216 bytes: it has 16777218'
    await assert.rejects(async () => a.publish('c', text, limits), { name: 'RangeError', message })
    await assert.rejects(async () => a.push('q', text, limits), { name: 'RangeError', message })
    const largest = JSON.stringify('ä'.repeat(2 ** 23 - 1))
    await a.publish('c', largest, limits)
    await a.push('q', largest, limits)
    await until(() => heard.length === 1)
    assert.ok(heard[0] !== undefined && textOf(heard[0]) === largest && (await takeText(b)) === largest)
  })

  it('leaves only keys that expire, later than their events', async (t) => {
    const { server, a } = await begin(t)
    const check = async (shortest: number, longest: number): Promise<void> => {
      const keys = (await server.ask('KEYS', '*')).split('\n')
      for (const key of keys) {
        const left = Number(await server.ask('PTTL', key))
        assert.ok(left > shortest && left <= longest, `${key}: ${left}`)
      }
      await server.ask('FLUSHALL')
    }
    const hour = 3_600_000
    await a.read('c', undefined)
    await check(hour, 3 * hour)
    for (const [ageMs, shortest, longest] of [[1000, hour, 3 * hour], [10 * hour, 10 * hour, 21 * hour]] as const) {
      await a.read('read before', undefined)
      for (const channel of ['c', 'read before']) await a.publish(channel, '1', { maxEvents: 10, maxAgeMs: ageMs })
      await a.push('q', '1', { maxEvents: 10, maxAgeMs: ageMs })
      await check(shortest, longest)
      await a.push('q', '1', { maxEvents: 10, maxAgeMs: ageMs })
      const event = (await a.take('q')) as QueueEvent
      await a.putBack('q', event)
      await check(shortest, longest)
    }
  })

  it('renews the expiry of used keys after half of their life', async (t) => {
    const { server, a } = await begin(t)
    const id = await a.publish('c', '1', limits)
    await a.push('q', '1', limits)
    const keys = (await server.ask('KEYS', '*')).split('\n')
    const left = async (): Promise<number> => Math.min(...(await Promise.all(keys.map(async (key) => Number(await server.ask('PTTL', key))))))
    for (const use of [() => a.read('c', id), () => a.publish('c', '2', limits)]) {
      for (const key of keys) await server.ask('PEXPIRE', key, '3700000')
      await use()
      await a.push('q', '2', limits)
      assert.ok((await left()) > 7_000_000)
    }
  })

  it('leaves no trace of taken events', async (t) => {
    const { server, a, b } = await begin(t)
    const taken = async (): Promise<string> => server.ask('KEYS', '*taken*')
    for (const text of ['1', '2', '3', '4']) await a.push('q', text, limits)
    for (let count = 0; count < 2; count++) b.handedOut('q', (await b.take('q')) as QueueEvent)
    await until(async () => (await taken()) === '')
    await b.take('q')
    const left = Number(await server.ask('PTTL', await taken()))
    assert.ok(left > 0 && left <= 86_400_000)
    assert.equal(await takeText(a), '4')
  })

  it('gives leased events to other processes, the first to end before all that wait, and leaves no trace of done ones', async (t) => {
    const { server, a, b } = await begin(t)
    for (const text of ['1', '2', '3', '4']) await a.push('q', text, limits)
    const [second, first] = [await a.take('q', 200), await a.take('q', 100)]
    assert.deepEqual([second?.text, first?.text], ['1', '2'])
    assert.deepEqual([await takeText(b), await takeText(b), await takeText(b)], ['3', '4', undefined])
    await a.close() // Its timers end with it: those of others remain.
    const texts: (string | undefined)[] = []
    const leases: string[] = []
    await until(async () => {
      const event = await b.take('q', 60_000)
      if (event?.lease !== undefined) leases.push(event.lease)
      if (event !== undefined) texts.push(event.text)
      return texts.length === 2
    })
    assert.deepEqual(texts, ['2', '1'])
    const left = async (): Promise<string[]> => (await server.ask('KEYS', '*lease*')).split('\n').sort()
    assert.deepEqual(await left(), ['svc:queue-leased:q', 'svc:queue-leases:q'])
    for (const key of await left()) assert.ok(Number(await server.ask('PTTL', key)) > 86_400_000)
    for (const lease of leases) assert.equal(await b.endLease('q', lease, 'done'), true)
    assert.deepEqual(await left(), [''])
  })

  it('calls the listeners of every process when a take finds leases that are over', async (t) => {
    const { server, a: idle } = await begin(t) // It takes nothing, so it has no timer.
    let ms = Date.now()
    const clocks = { now: () => ms, wallNow: () => ms }
    const { broker: taker } = openBroker(t, server.url, { clocks })
    for (const text of ['1', '2']) await taker.push('q', text, limits)
    for (let count = 0; count < 2; count += 1) {
      await taker.take('q', 60_000)
      ms += 1
    }
    let calls = 0
    await idle.onAvailable('q', () => (calls += 1))
    ms += 60_000
    assert.equal(await takeText(taker), '1')
    await until(() => calls > 0)
    assert.equal(await takeText(idle), '2')
  })

  it('calls the listeners of every process when a lease is over', async (t) => {
    const { a, b } = await begin(t)
    let calls = 0
    await b.onAvailable('q', () => (calls += 1))
    await a.push('q', '1', limits)
    await a.take('q', 300)
    assert.equal(await takeText(b), undefined)
    await a.close()
    calls = 0
    await until(() => calls > 0)
    assert.equal(await takeText(b), '1')
  })

  it('needs no more rights than docs/security.md grants', async (t) => {
    const { server, a } = await begin(t)
    const rights = /`(~svc:\*[^`]+)`/.exec(readPage('docs/security.md').prose)?.[1] ?? ''
    await server.ask('ACL', 'SETUSER', 'svc', 'on', '>secret', ...rights.split(' '))
    const { broker } = openBroker(t, server.url.replace('redis+unix://', 'redis+unix://svc:secret@'))
    const { heard } = await listen(broker)
    await broker.publish('c', '1', { maxEvents: 1, maxAgeMs: 1000 })
    await broker.publish('c', '2', { maxEvents: 1, maxAgeMs: 1000 })
    await until(() => heard.length === 2)
    assert.equal((await broker.read('c', 0)).events.length, 1)
    await broker.push('q', '1', limits)
    await broker.putBack('q', (await broker.take('q')) as QueueEvent)
    for (const end of ['back', 'done'] as const) {
      const { lease } = (await broker.take('q', 1000)) as QueueEvent
      assert.equal(await broker.endLease('q', lease ?? '', end), true)
    }
    await broker.push('q', '1', limits)
    await broker.take('q', 1)
    await until(async () => (await broker.take('q')) !== undefined)
    await broker.push('q', '1', limits)
    await broker.sweep()
    await broker.close()
    assert.equal(await takeText(a), '1')
  })

  it('does not reuse an id when Redis has lost everything', async (t) => {
    const { server, a } = await begin(t)
    const before = await a.publish('c', '1', limits)
    await server.ask('FLUSHALL')
    const { lastId, gap } = await a.read('c', before)
    assert.deepEqual([gap, lastId > before], [true, true])
    assert.ok((await a.publish('c', '2', limits)) > lastId)
  })

  it('skips no event silently when Redis has evicted one of its keys', async (t) => {
    const { server, a } = await begin(t)
    for (const key of ['svc:channel:c', 'svc:channel-state:c']) {
      for (const use of [() => a.publish('c', 'new', limits), () => a.read('c', undefined)]) {
        const first = await a.publish('c', '1', limits)
        const second = await a.publish('c', '2', limits)
        await server.ask('DEL', key)
        await use()
        assert.equal((await a.read('c', first)).gap, true, key)
        const id = await a.publish('c', '3', limits)
        assert.ok(id > second)
        assert.deepEqual((await a.read('c', id - 1)).events, [{ id, text: '3' }])
      }
    }
  })

  it('refuses events when Redis is out of memory, and still delivers stored ones', async (t) => {
    const { server, one, a, b } = await begin(t)
    await a.push('q', '1', limits)
    await a.push('q', '2', limits)
    const id = await a.publish('c', '1', limits)
    await server.ask('CONFIG', 'SET', 'maxmemory', '1')
    await assert.rejects(async () => a.publish('c', '2', limits), isAway)
    await assert.rejects(async () => a.push('q', '3', limits), isAway)
    assert.match(one.problems.join(), /^the shared engine refuses an event: OOM .*maxmemory/)
    const first = (await b.take('q')) as QueueEvent
    await b.putBack('q', first)
    assert.deepEqual([await takeText(a), await takeText(a), await takeText(a)], ['1', '2', undefined])
    await server.ask('CONFIG', 'SET', 'maxmemory', '0')
    assert.deepEqual((await a.read('c', id)).events, [])
  })
})

describe('a broker whose connection is cut', () => {
  it('delivers the events published meanwhile, once and in order', async (t) => {
    const { server, a, b } = await begin(t)
    const { heard, texts } = await listen(b)
    let expected = ''
    for (let round = 0; round < 5; round++) {
      await a.publish('c', `[${round}]`, limits)
      await Promise.all([server.ask('CLIENT', 'KILL', 'TYPE', 'pubsub'), a.publish('c', '{}', limits)])
      await a.publish('c', '0', limits)
      expected += `${expected === '' ? '' : ' '}[${round}] {} 0`
      await until(() => heard.length === (round + 1) * 3)
    }
    assert.equal(texts(), expected)
    assert.deepEqual((await a.read('c', 0)).events, heard)
  })

  it('holds back messages while it reads', async (t) => {
    const { server, a, one, b } = await begin(t)
    const { heard } = await listen(b)
    let published = 0
    const ids: number[] = []
    const publishing = (async () => {
      while (published < 2000) {
        ids.push(...(await Promise.all(Array.from({ length: 20 }, () => a.publish('c', `${published++}`, { ...limits, maxEvents: 5000 })))))
      }
    })()
    while (published < 1900) {
      await server.ask('CLIENT', 'KILL', 'TYPE', 'pubsub')
      const before = heard.length
      await until(() => heard.length > before || published === 2000)
    }
    await publishing
    await until(() => heard.length === 2000)
    assert.deepEqual(heard.map(({ id }) => id), ids)
    assert.ok(heard.every((event) => !('gap' in event)))
    assert.deepEqual(one.problems, [])
  })

  it('reports a gap at once when missed events no longer exist', async (t) => {
    const { two, a, one, b } = await begin(t)
    const { heard, texts } = await listen(b)
    await a.publish('c', '1', few)
    await until(() => heard.length === 1)
    // In one write, so that nobody is back before the last of it.
    const cut = one.redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub')
    await Promise.all([cut, ...['2', '3', '4', '5'].map((text) => a.publish('c', text, few))])
    await until(() => heard.length === 5)
    await a.publish('c', '6', few)
    await until(() => heard.length === 6)
    assert.equal(texts(), '1 gap 3 4 5 6')
    assert.deepEqual(two.problems, ['channel "c": events were lost in the shared engine, or while it was unreachable'])

    const flushed = one.redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub')
    await Promise.all([flushed, a.publish('c', '7', few), one.redis.command('FLUSHALL')])
    await until(() => two.problems.length === 2)
    await until(() => texts() === '1 gap 3 4 5 6 gap')
    await a.publish('c', '8', few)
    await until(() => texts() === '1 gap 3 4 5 6 gap 8')
  })

  it('notices a queue that received events meanwhile', async (t) => {
    const { one, a, b } = await begin(t)
    let calls = 0
    await b.onAvailable('q', () => (calls += 1))
    await Promise.all([one.redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub'), a.push('q', '1', limits)])
    await until(() => calls > 0)
    assert.equal(await takeText(b), '1')
  })

  it('reports at once when commands cannot be sent, and when they can again', async (t) => {
    const { server, a } = await begin(t)
    const said: (Error | undefined)[] = []
    a.onCutOff((reason) => said.push(reason))
    const { heard, texts } = await listen(a)
    const id = await a.publish('c', '1', limits)
    await until(() => heard.length === 1)
    await server.kill()
    await until(() => said.length === 1)
    assert.ok(isAway(said[0]))
    for (const call of [() => a.publish('c', '2', limits), () => a.read('c', id), () => a.push('q', '1', limits), () => a.take('q'),
      () => a.subscribe('d', () => {}), () => a.onAvailable('q', () => {})]) await assert.rejects(async () => call(), isAway)
    await server.start()
    await until(() => said.length === 2)
    assert.equal(said[1], undefined)
    await a.publish('c', '2', limits)
    await until(() => texts() === '1 gap 2') // The server kept nothing.
  })
})

describe('an event in transit', () => {
  it('is taken by another process when the reply to a take is lost', async (t) => {
    const { server, a, b } = await begin(t, [], 300)
    for (const text of ['1', '2', '3', '4']) await b.push('q', text, limits)
    assert.equal(await takeText(a), '1')
    server.pause()
    const lost = await Promise.allSettled([a.take('q'), a.take('q')])
    assert.ok(lost.every((outcome) => outcome.status === 'rejected' && isAway(outcome.reason)))
    server.resume()
    const texts: (string | undefined)[] = []
    await until(async () => {
      const text = await takeText(b).catch(() => undefined)
      if (text !== undefined) texts.push(text)
      return texts.length === 3
    })
    assert.deepEqual(texts.sort(), ['2', '3', '4'])
    assert.equal(await takeText(b), undefined)
  })

  it('is the next one taken, in the order of push', async (t) => {
    const { server, one, a } = await begin(t, [], 300)
    for (const text of ['1', '2', '3']) await a.push('q', text, limits)
    server.pause()
    await Promise.allSettled([a.take('q'), a.take('q')])
    server.resume()
    await until(() => one.redis.state === 'ready')
    assert.deepEqual([await takeText(a), await takeText(a), await takeText(a)], ['1', '2', '3'])
  })

  it('stays in the queue when an abandoned take arrives late', async (t) => {
    const { server, a } = await begin(t)
    await a.push('q', '1', limits)
    const { take, restore } = createQueueScripts(openRedis(t, server.url))
    const kinds = ['queue', 'queue-limits', 'queue-leased', 'queue-leases', 'queue-taken:p']
    const keys = kinds.map((kind) => `svc:${kind}:q`)
    assert.equal(await restore.run(keys, 'svc:0:queue:q', 'token'), 0)
    assert.deepEqual(await take.run(keys, 'token', 0, 'svc:0:queue:q'), [0, 0, -1])
    assert.equal(await takeText(a), '1')
  })

  it('is put back once when Redis is available again', async (t) => {
    const { server, a, b } = await begin(t, ['--appendonly', 'yes', '--appendfsync', 'always'])
    for (const text of ['1', '2']) await a.push('q', text, limits)
    const event = (await a.take('q')) as QueueEvent
    await server.kill()
    await assert.rejects(async () => a.putBack('q', event), isAway)
    await server.start()
    const texts: string[] = []
    await until(async () => {
      const text = await takeText(b).catch(() => undefined)
      if (text !== undefined) texts.push(text)
      return texts.length === 2
    })
    assert.deepEqual(texts.sort(), ['1', '2'])
    assert.deepEqual([await takeText(a), await takeText(b)], [undefined, undefined])
  })

  it('is put back before the broker closes', async (t) => {
    const { a, b } = await begin(t)
    await a.push('q', '1', limits)
    const under = (async () => {
      const event = (await a.take('q')) as QueueEvent
      for (let tick = 0; tick < 10; tick++) await Promise.resolve()
      await a.putBack('q', event)
    })()
    await a.close()
    assert.equal(await takeText(b), '1')
    await under
  })
})
