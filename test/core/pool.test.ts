import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Pool } from '../../lib/core/pool.ts'
import { Seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'

interface Alerts {
  alertPercent?: number
  onAlert?: (on: boolean) => void
}

function makePool(workers: number, queueSize: number, options: Alerts = {}) {
  const started: string[] = []
  return { started, pool: new Pool<string>({ workers, queueSize, start: (item) => started.push(item), ...options }) }
}

describe('a pool', () => {
  it('starts items while workers are free, queues more, and refuses the rest', () => {
    const { pool, started } = makePool(2, 1)
    assert.deepEqual(['a', 'b', 'c', 'd'].map((item) => pool.enter(item)), ['started', 'started', 'queued', 'refused'])
    assert.deepEqual([started, pool.busy, pool.waiting, pool.refused], [['a', 'b'], 2, 1, 1])
  })

  it('gives a worker to the item that has waited longest', () => {
    const { pool, started } = makePool(1, 3)
    for (const item of ['a', 'b', 'c', 'd']) pool.enter(item)
    pool.leave()
    pool.leave()
    assert.deepEqual([started, pool.busy, pool.waiting], [['a', 'b', 'c'], 1, 1])
    pool.leave()
    pool.leave()
    assert.deepEqual([started, pool.busy, pool.waiting], [['a', 'b', 'c', 'd'], 0, 0])
  })

  it('removes only the given item from the queue', () => {
    const { pool, started } = makePool(1, 3)
    for (const item of ['a', 'b', 'c']) pool.enter(item)
    assert.deepEqual([pool.forget('b'), pool.forget('b'), pool.forget('a')], [true, false, false])
    pool.leave()
    assert.deepEqual(started, ['a', 'c'])
  })

  it('starts nothing without workers', () => {
    const { pool, started } = makePool(0, 1)
    assert.deepEqual([pool.enter('a'), pool.enter('b'), pool.forget('a')], ['queued', 'refused', true])
    assert.deepEqual([started, pool.waiting, pool.alert], [[], 0, false])
  })

  it('gives a worker back to an item that released it, ahead of the queue', () => {
    const { pool, started } = makePool(1, 3)
    for (const item of ['a', 'b', 'c']) pool.enter(item)
    const resumed: string[] = []
    pool.leave() // a waits for its client
    assert.deepEqual([started, pool.resume(() => resumed.push('a')), pool.busy], [['a', 'b'], false, 1])
    assert.equal(pool.enter('d'), 'queued')
    pool.leave()
    assert.deepEqual([started, resumed, pool.busy], [['a', 'b'], ['a'], 1])
    pool.leave()
    assert.deepEqual([started, pool.waiting], [['a', 'b', 'c'], 1])
    pool.leave()
    pool.leave()
    assert.deepEqual([pool.resume(() => resumed.push('never')), pool.busy, resumed], [true, 1, ['a']])
  })

  it('refuses items that have waited too long, oldest first, but not later ones', async () => {
    const expired: [string, number][] = []
    const started: string[] = []
    const pool = new Pool<string>({
      workers: 1,
      queueSize: 10,
      start: (item) => started.push(item),
      maxWaitMs: 50,
      onExpired: (item, waitedMs) => expired.push([item, waitedMs]),
    })
    for (const item of ['a', 'b', 'c']) pool.enter(item)
    await until(() => expired.length === 2)
    assert.deepEqual(expired.map(([item]) => item), ['b', 'c'])
    assert.ok(expired.every(([, waitedMs]) => waitedMs >= 50))
    assert.deepEqual([pool.refused, pool.waiting, pool.enter('d')], [2, 0, 'queued'])
    busyFor(60) // Its time is over before the pool has checked: the freed worker is not for it.
    pool.leave()
    assert.deepEqual([started, expired.at(-1)?.[0], pool.busy], [['a'], 'd', 0])
  })

  it('is saturated by a full queue and by a long wait, although workers are free', async () => {
    const alerts: boolean[] = []
    const options = { workers: 4, queueSize: 4, turnMs: 1, alertPercent: 75, maxWaitMs: 1000, onAlert: (on: boolean) => alerts.push(on) }
    const pool: Pool<string> = new Pool<string>({ ...options, start: () => (busyFor(3), pool.leave()) })
    for (const item of ['a', 'b', 'c']) pool.enter(item)
    assert.deepEqual([pool.busy, pool.waiting, pool.alert], [0, 2, false])
    pool.enter('d')
    assert.deepEqual([pool.alert, alerts], [true, [true]])
    while (pool.waiting > 0) await turn()
    assert.deepEqual([pool.alert, alerts], [false, [true, false]])
    const places = { size: 4, taken: 0 }
    const slow = new Pool<string>({ workers: 0, queueSize: places, start: () => {}, maxWaitMs: 200 })
    slow.enter('a')
    assert.equal(slow.alert, false)
    await until(() => {
      if (slow.waiting === 0) slow.enter('a') // This process was suspended from before half of its time until its end.
      return slow.alert
    })
    assert.equal(slow.waiting, 1)
    await until(() => slow.waiting === 0)
    assert.equal(slow.alert, false)
  })

  it('shares only its queue limit with other pools', () => {
    const places = { size: 2, taken: 0 }
    const started: string[] = []
    const make = () => new Pool<string>({ workers: 1, queueSize: places, start: (item) => started.push(item) })
    const [first, second] = [make(), make()]
    for (const pool of [first, second]) pool.enter('worker')
    assert.deepEqual([first.enter('a'), second.enter('b')], ['queued', 'queued'])
    assert.deepEqual([first.enter('c'), second.enter('d')], ['refused', 'refused'])
    assert.deepEqual([first.waiting, second.waiting, places.taken, first.queueSize, second.refused], [1, 1, 2, 2, 1])
    first.leave()
    assert.deepEqual([started, places.taken, first.busy], [['worker', 'worker', 'a'], 1, 1])
    assert.deepEqual([second.forget('a'), second.forget('b'), places.taken], [false, true, 0])
    assert.equal(first.enter('e'), 'queued')
  })

  it('yields to the event loop when its time is over, and continues in order of arrival', async () => {
    const started: number[] = []
    const waits: number[] = []
    const pool: Pool<number> = new Pool<number>({
      workers: 2,
      queueSize: 100,
      turnMs: 20,
      start: (item) => {
        started.push(item)
        busyFor(5)
        pool.leave()
      },
      onWaited: (waitedMs) => waits.push(waitedMs),
    })
    const entries = Array.from({ length: 40 }, (_, item) => pool.enter(item))
    const first = started.length
    assert.ok(first >= 1 && first <= 4, `${first} items of 5 ms were started in a turn of 20 ms`)
    assert.deepEqual([pool.busy, pool.waiting, pool.refused], [0, 40 - first, 0])
    assert.deepEqual(entries, Array.from({ length: 40 }, (_, item) => (item < first ? 'started' : 'queued')))
    assert.ok(pool.forget(first + 1))
    await turn()
    assert.equal(started.length, first + 1, 'a turn processes a millisecond of the queue')
    assert.equal(pool.enter(99), 'queued')
    while (pool.waiting > 0) await turn()
    const expected = Array.from({ length: 40 }, (_, item) => item).filter((item) => item !== first + 1)
    assert.deepEqual(started, [...expected, 99])
    assert.ok(waits.length === 40 - first && (waits.at(-1) as number) > 100)
    await turn()
    assert.equal(pool.enter(100), 'started')
  })

  it("accepts a burst beyond its queue, and refuses once the first item has waited for a turn's time", async () => {
    const pool: Pool<number> = new Pool<number>({
      workers: 1,
      queueSize: 2,
      turnMs: 100,
      start: () => {
        busyFor(105)
        pool.leave()
      },
    })
    assert.equal(pool.enter(0), 'started')
    for (let item = 1; item <= 100; item += 1) assert.equal(pool.enter(item), 'queued')
    busyFor(105)
    assert.equal(pool.enter(101), 'refused')
    await turn()
    assert.equal(pool.waiting, 99)
    assert.equal(pool.enter(102), 'refused')
    for (let item = 2; item <= 99; item += 1) pool.forget(item)
    assert.equal(pool.enter(103), 'queued')
    while (pool.waiting > 0) await turn()
  })

  it('refuses nothing because of processor time if it has no queue', () => {
    const pool: Pool<number> = new Pool<number>({
      workers: 2,
      queueSize: 0,
      turnMs: 10,
      start: () => {
        busyFor(15)
        pool.leave()
      },
    })
    assert.deepEqual([pool.enter(1), pool.enter(2)], ['started', 'queued'])
  })

  it('reports saturation caused by the queue', async () => {
    const alerts: boolean[] = []
    const pool = new Pool<string>({
      workers: 2,
      queueSize: 3,
      turnMs: 10,
      start: (item) => item === 'long' && busyFor(15),
      onAlert: (on) => alerts.push(on),
    })
    pool.enter('long')
    pool.leave()
    for (const item of ['a', 'b']) assert.equal(pool.enter(item), 'queued')
    while (pool.waiting > 0) await turn()
    assert.deepEqual([pool.busy, pool.alert, alerts], [2, true, [true]])
    pool.leave()
    assert.deepEqual(alerts, [true, false])
  })

  it('still waits for workers with a time per turn, and is idle meanwhile', async (t) => {
    const started: string[] = []
    const pool = new Pool<string>({ workers: 1, queueSize: 2, turnMs: 1000, start: (item) => started.push(item) })
    const immediates = t.mock.method(globalThis, 'setImmediate')
    for (const item of ['a', 'b', 'c']) pool.enter(item)
    for (let count = 0; count < 5; count += 1) await turn()
    assert.deepEqual([started, pool.waiting], [['a'], 2])
    assert.equal(immediates.mock.callCount(), 1, 'the event loop is kept busy while every worker is busy')
    pool.leave()
    pool.leave()
    assert.deepEqual(started, ['a', 'b', 'c'])
  })

  it('works through a long queue of items that end at once', () => {
    const count = 200_000
    let ended = 0
    const pool: Pool<number> = new Pool<number>({
      workers: 1,
      queueSize: count,
      start: (item) => {
        if (item === 0) return
        ended += 1
        pool.leave()
      },
    })
    for (let item = 0; item <= count; item++) pool.enter(item)
    assert.equal(pool.waiting, count)
    pool.leave()
    assert.deepEqual([ended, pool.busy, pool.waiting], [count, 0, 0])
  })

  it('reports once when saturation begins and once when it ends', () => {
    const alerts: boolean[] = []
    const { pool } = makePool(4, 0, { alertPercent: 75, onAlert: (on) => alerts.push(on) })
    for (const item of ['a', 'b']) pool.enter(item)
    assert.deepEqual([alerts, pool.alert], [[], false])
    for (const item of ['c', 'd']) pool.enter(item)
    assert.deepEqual([alerts, pool.alert], [[true], true])
    pool.leave()
    assert.deepEqual(alerts, [true])
    pool.leave()
    assert.deepEqual([alerts, pool.alert], [[true, false], false])
  })

  it('rounds a share of workers up, and defaults to 100 percent', () => {
    const { pool } = makePool(3, 0, { alertPercent: 34 })
    pool.enter('a')
    assert.equal(pool.alert, false)
    pool.enter('b')
    assert.equal(pool.alert, true)
    const small = makePool(1, 0, { alertPercent: 1 }).pool
    assert.equal(small.alert, false)
    const whole = makePool(2, 0).pool
    whole.enter('a')
    assert.equal(whole.alert, false)
    whole.enter('b')
    assert.equal(whole.alert, true)
  })

  it('never exceeds its limits of running and waiting items, under any sequence', () => {
    const random = new Seeded(7)
    const running = new Set<number>()
    const waiting = new Set<number>()
    const pool = new Pool<number>({
      workers: 3,
      queueSize: 5,
      start: (item) => {
        waiting.delete(item)
        running.add(item)
      },
    })
    for (let item = 0; item < 5000; item++) {
      const act = random.integer(3)
      if (act === 0 && running.size > 0) {
        running.delete(random.pick([...running]))
        pool.leave()
      } else if (act === 1 && waiting.size > 0) {
        const gone = random.pick([...waiting])
        waiting.delete(gone)
        assert.equal(pool.forget(gone), true)
      } else if (pool.enter(item) === 'queued') {
        waiting.add(item)
      }
      assert.deepEqual([pool.busy, pool.waiting], [running.size, waiting.size])
      assert.ok(running.size <= 3 && waiting.size <= 5 && (waiting.size === 0 || running.size === 3))
    }
  })
})

function busyFor(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until);
}
