import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ClusterBroker, hostBroker } from '../../lib/cluster/events.ts'
import { Peer } from '../../lib/cluster/peer.ts'
import type { Broker, QueueEvent } from '../../lib/events/broker.ts'
import { LocalBroker } from '../../lib/events/local-broker.ts'
import { describeBroker, textOf } from '../events/broker-conformance.ts'
import { turns } from '../events/delayed-broker.ts'
import { Seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'
import { asOne } from './broker-workers.ts'
import { memoryPorts } from './memory-ports.ts'
import { watched } from './watched-broker.ts'

const limits = { maxEvents: 1000, maxAgeMs: 3_600_000 }

/** A worker with an in-memory channel. */
function connect(host: ReturnType<typeof hostBroker>) {
  const [primaryPort, workerPort] = memoryPorts()
  host.attach(new Peer(primaryPort))
  const broker = new ClusterBroker(new Peer(workerPort))
  const sentTo = (name: string): number => primaryPort.sent.join().split(`"${name}"`).length - 1
  return { broker, leave: () => workerPort.close(), sentTo, sentFrom: workerPort.sent }
}

/** A host with two workers. */
function begin() {
  const { broker, listening } = watched(new LocalBroker())
  const host = hostBroker(broker)
  return { host, listening, a: connect(host), b: connect(host) }
}

describeBroker('the broker of two workers, by channels in memory', (clocks) => {
  const host = hostBroker(new LocalBroker(clocks))
  return asOne([connect(host).broker, connect(host).broker], host)
})

describe('the channels of workers', () => {
  it('call listeners after the publisher has its answer, even in the same message', async () => {
    const { a } = begin()
    const order: string[] = []
    await a.broker.subscribe('c', (one) => order.push(`heard ${textOf(one)}`))
    const publish = async (text: string): Promise<void> => {
      await a.broker.publish('c', text, limits)
      for (let tick = 0; tick < 10; tick++) await Promise.resolve()
      order.push(`published ${text}`)
    }
    await Promise.all([publish('1'), publish('2')])
    await until(() => order.length === 4)
    assert.deepEqual(order, ['published 1', 'published 2', 'heard 1', 'heard 2'])
  })

  it('call listeners after the answer to their subscription, with the events published since', async () => {
    const { a, b } = begin()
    const order: string[] = []
    const published = Promise.all(['1', '2'].map((text) => b.broker.publish('c', text, limits)))
    const subscribed = Promise.resolve(a.broker.subscribe('c', (one) => order.push(`heard ${textOf(one)}`)))
    const later = b.broker.publish('c', '3', limits)
    await subscribed.then(() => order.push('subscribed'))
    await Promise.all([published, later])
    await b.broker.publish('c', '4', limits)
    await until(() => order.includes('heard 4'))
    assert.equal(order[0], 'subscribed')
    const heard = order.slice(1).map((line) => Number(line.slice(-1)))
    assert.deepEqual(heard, [1, 2, 3, 4].slice(-heard.length))
  })

  it('do not deliver earlier events to a second listener', async () => {
    const { a, b } = begin()
    const first: string[] = []
    const second: string[] = []
    await a.broker.subscribe('c', (one) => first.push(textOf(one)))
    // Both reach the primary in one turn, so the event and the answer are in one message.
    const published = b.broker.publish('c', '1', limits)
    await a.broker.subscribe('c', (one) => second.push(textOf(one)))
    assert.deepEqual(first, [], 'it was not heard yet')
    await published
    await a.broker.publish('c', '2', limits)
    await until(() => first.length === 2)
    assert.deepEqual([first, second], [['1', '2'], ['2']])
  })

  it('end with their listener and with their worker', async () => {
    const { a, b, listening } = begin()
    let heard = 0
    const ends = await Promise.all([1, 2, 3].map(() => a.broker.subscribe('c', () => (heard += 1))))
    await b.broker.subscribe('c', () => {})
    await b.broker.publish('c', '1', limits)
    await until(() => heard === 3)
    ends[0]?.()
    ends[0]?.()
    ends[1]?.()
    await b.broker.publish('c', '2', limits)
    await until(() => heard === 4)
    ends[2]?.()
    await a.broker.read('c', undefined)
    assert.deepEqual(listening, ['c'])
    b.leave()
    await turns()
    assert.deepEqual(listening, [])
  })

  it('deliver to a listener that subscribes while another unsubscribes', async () => {
    const { a, b, listening } = begin()
    const heard: string[] = []
    const end = await a.broker.subscribe('c', () => assert.fail('has unsubscribed'))
    const coming = a.broker.subscribe('c', (one) => heard.push(textOf(one)))
    end()
    const endSecond = await coming
    await b.broker.publish('c', '1', limits)
    await until(() => heard.length === 1)
    endSecond()
    await a.broker.subscribe('c', (one) => heard.push(textOf(one)))
    await b.broker.publish('c', '2', limits)
    await until(() => heard.length === 2)
    assert.deepEqual([heard, listening], [['1', '2'], ['c']])
  })

  it('deliver to all workers in the order of ids, whichever worker publishes', async () => {
    const { a, b } = begin()
    const heard: number[][] = [[], []]
    for (const [at, { broker }] of [a, b].entries()) await broker.subscribe('c', ({ id }) => heard[at]?.push(id))
    const ids: number[] = []
    for (let turn = 0; turn < 50; turn++) {
      const turnIds = [a, b, a, b].map(({ broker }) => broker.publish('c', String(turn), limits))
      if (turn % 3 === 0) await turns()
      ids.push(...(await Promise.all(turnIds)))
    }
    ids.sort((one, other) => one - other)
    await until(() => heard.every((list) => list.length === 200))
    assert.deepEqual(heard, [ids, ids])
  })

  it('deliver all events since the subscription once and in order, while listeners come and go', async () => {
    const { a, b, listening } = begin()
    const random = new Seeded(7)
    const published: number[] = []
    let checked = 0

    async function listen(broker: Broker): Promise<void> {
      const heard: number[] = []
      const unsubscribe = await broker.subscribe('c', ({ id }) => heard.push(id))
      const id = await broker.publish('c', 'own', limits)
      published.push(id)
      for (let turn = random.integer(10); turn > 0; turn--) await turns()
      await until(() => heard.includes(id))
      unsubscribe()
      const length = heard.length
      for (let turn = random.integer(3); turn > 0; turn--) await turns()
      assert.equal(heard.length, length, 'nothing more is heard')
      const first = heard[0] as number
      assert.deepEqual(heard, Array.from(heard, (_, at) => first + at), 'the ids have no holes')
      assert.ok(first <= id)
      checked += 1
    }

    async function comeAndGo(): Promise<void> {
      for (let round = 0; round < 20; round++) {
        const { broker } = random.pick([a, b])
        if (random.integer(3) === 0) published.push(await broker.publish('c', 'other', limits))
        else await listen(broker)
      }
    }

    await Promise.all(Array.from({ length: 10 }, comeAndGo))
    assert.ok(checked > 100)
    published.sort((one, other) => one - other)
    assert.deepEqual(published, Array.from(published, (_, at) => (published[0] as number) + at))
    await Promise.all([a, b].map(({ broker }) => broker.read('c', undefined)))
    assert.deepEqual(listening, [])
  })

  it('keep events forever without a maximum age', async () => {
    const { a, b } = begin()
    const forever = { maxEvents: 10, maxAgeMs: Infinity }
    const id = await a.broker.publish('c', '1', forever)
    assert.deepEqual((await b.broker.read('c', id - 1)).events, [{ id, text: '1' }])
    await a.broker.push('q', '1', forever)
    assert.equal((await b.broker.take('q'))?.text, '1')
  })
})

describe('the queues of workers', () => {
  it('notify only the workers that listen', async () => {
    const { a, b } = begin()
    let calls = 0
    const end = await a.broker.onAvailable('q', () => (calls += 1))
    await b.broker.push('q', '1', limits)
    await until(() => calls === 1)
    assert.deepEqual([a.sentTo('events.available'), b.sentTo('events.available')], [1, 0])
    await b.broker.putBack('q', (await b.broker.take('q')) as QueueEvent)
    await until(() => calls === 2)
    end()
    await b.broker.push('q', '2', limits)
    await a.broker.read('c', undefined)
    assert.deepEqual([calls, a.sentTo('events.available')], [2, 2])
  })

  it('count dropped events once, in the primary', async () => {
    const { a, b, host } = begin()
    const few = { maxEvents: 2, maxAgeMs: 3_600_000 }
    for (const { broker } of [a, a, a, b, b]) await broker.push('q', '1', few)
    assert.deepEqual([a.broker.dropped, b.broker.dropped, host.dropped], [0, 0, 3])
  })
})

describe('the broker of a worker that closes', () => {
  it('waits until the events it took are put back', async () => {
    const { a, b } = begin()
    await b.broker.push('q', '1', limits)
    let isPutBack = false
    async function takeAndPutBack(): Promise<void> {
      const event = (await a.broker.take('q')) as QueueEvent
      for (let tick = 0; tick < 10; tick++) await Promise.resolve()
      await a.broker.putBack('q', event)
      isPutBack = true
    }
    const under = takeAndPutBack()
    await a.broker.close()
    assert.equal(isPutBack, true)
    await under
    assert.equal((await b.broker.take('q'))?.text, '1')
  })
})

describe('a worker that dies', () => {
  it('learns that its primary has ended', async () => {
    const { a } = begin()
    const read = assert.rejects(Promise.resolve(a.broker.read('c', 1)), { name: 'DisconnectedError' })
    const cutOff = new Promise<Error | undefined>((resolve) => a.broker.onCutOff(resolve))
    a.leave()
    await read
    assert.equal((await cutOff)?.name, 'DisconnectedError')
    await assert.rejects(async () => a.broker.publish('c', '1', limits), { name: 'DisconnectedError' })
    await a.broker.close()
  })
})
