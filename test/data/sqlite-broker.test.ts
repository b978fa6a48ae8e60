import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, it, type TestContext } from 'node:test'
import { Database } from '../../lib/data/database.ts'
import { SqliteBroker } from '../../lib/data/sqlite-broker.ts'
import type { QueueEvent } from '../../lib/events/broker.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import { describeBroker, textOf } from '../events/broker-conformance.ts'
import { hasSqlite, rowsOf, withDatabase } from '../support/sqlite.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'
import { limitPages, stopClock } from './support.ts'

const hourMs = 3_600_000
const limits = { maxEvents: 5000, maxAgeMs: hourMs }
const startMs = Date.UTC(2026, 0, 1)

interface Opened {
  readonly broker: SqliteBroker
  readonly database: Database
  readonly clock: { ms: number }
  readonly folder: string
  /** Ends this run as a stop does, and opens the next one. */
  restart(): Promise<Opened>
  /** Opens a copy of the files as a crash leaves them now. */
  crash(): Promise<Opened>
  publish(text: string): Promise<number>
  push(text: string): Promise<void>
  taken(): Promise<QueueEvent>
  /** Takes all events. Returns their texts. */
  drain(): Promise<string[]>
  textsSince(since: number): Promise<string>
}

async function begin(t: Pick<TestContext, 'after'>, folder = temporaryFolder(), clock = { ms: startMs }): Promise<Opened> {
  const database = Database.open({ folder, sync: 'normal', log: silentLogger })
  t.after(() => database.close())
  const broker = new SqliteBroker({ database, now: () => clock.ms })
  await broker.open()
  const restart = async (): Promise<Opened> => {
    await broker.close()
    database.close()
    return begin(t, folder, clock)
  }
  const crash = (): Promise<Opened> => {
    const copy = temporaryFolder()
    const files = ['svc.db', 'svc.db-wal'].map((name) => join(folder, name)).filter((path) => existsSync(path))
    // By another process: one that closes the files by `node:fs` frees the locks of SQLite.
    execFileSync('cp', [...files, copy])
    return begin(t, copy, clock)
  }
  const taken = async (): Promise<QueueEvent> => {
    const event = await broker.take('q')
    assert.ok(event !== undefined)
    return event
  }
  const drain = async (): Promise<string[]> => {
    const texts: string[] = []
    for (let event = await broker.take('q'); event !== undefined; event = await broker.take('q')) texts.push(event.text)
    return texts
  }
  const textsSince = async (since: number): Promise<string> => {
    const { events, gap } = await broker.read('c', since)
    return (gap ? 'gap' : '') + events.map(({ text }) => text).join('')
  }
  const publish = (text: string): Promise<number> => broker.publish('c', text, limits)
  const push = (text: string): Promise<void> => broker.push('q', text, limits)
  return { broker, database, clock, folder, restart, crash, publish, push, taken, drain, textsSince }
}

/** The number of rows of a table. */
function count(database: Database, table: string): unknown {
  return database.prepare(`SELECT count(*) AS count FROM ${table}`).get()?.['count']
}

if (hasSqlite) {
  describeBroker('the broker in SQLite', async ({ wallNow }) => {
    const database = Database.open({ folder: temporaryFolder(), sync: 'normal', log: silentLogger })
    after(() => database.close())
    const broker = new SqliteBroker({ database, now: wallNow })
    await broker.open()
    return broker
  })
}

describe('channels in SQLite', () => {
  if (!hasSqlite) return

  for (const end of ['restart', 'crash'] as const) {
    it(`continue after a ${end}: no cursor has a gap, and ids go on`, async (t) => {
      const first = await begin(t)
      const { lastId: before } = await first.broker.read('empty', undefined)
      const ids = [await first.publish('1'), await first.publish('2'), await first.publish('3')]
      assert.deepEqual(ids, [0, 1, 2].map((n) => startMs * 1000 + n))
      const second = await first[end]()
      assert.equal(await second.textsSince((ids[0] ?? 0) - 1), '123')
      assert.equal(await second.textsSince(ids[1] ?? 0), '3')
      assert.deepEqual(await second.broker.read('c', ids[2]), { events: [], lastId: ids[2], gap: false })
      assert.deepEqual(await second.broker.read('empty', before), { events: [], lastId: before, gap: false })
      assert.equal(await second.publish('4'), (ids[2] ?? 0) + 1)
      assert.equal(await second.textsSince(ids[0] ?? 0), '234')
    })
  }

  it('keep their limits after a restart, forever without an age', async (t) => {
    const first = await begin(t)
    const since = (await first.broker.read('c', undefined)).lastId
    for (const text of ['1', '2', '3']) await first.broker.publish('c', text, { maxEvents: Infinity, maxAgeMs: Infinity })
    for (const text of ['1', '2', '3']) await first.broker.publish('d', text, { maxEvents: 2, maxAgeMs: 1000 })
    const second = await first.restart()
    second.clock.ms += 1000
    assert.deepEqual((await second.broker.read('d', 0)).events, [])
    second.clock.ms += 1e11
    await second.broker.sweep()
    assert.equal(await second.textsSince(since), '123')
    assert.equal(count(second.database, 'channel_events'), 3)
  })

  it('reuse no id when they were forgotten, even if the clock was set back and the server restarted', async (t) => {
    const first = await begin(t)
    let last = 0
    for (let n = 0; n < 5; n += 1) last = await first.publish(String(n))
    await first.broker.publish('other', '1', limits)
    first.clock.ms += 3 * hourMs
    await first.broker.sweep()
    assert.equal(count(first.database, 'channels'), 0)
    first.clock.ms = startMs - hourMs
    const second = await first.restart()
    assert.equal(await second.publish('5'), last + 1)
    assert.equal(count(second.database, 'channels_forgotten'), 1)
  })

  it('are not forgotten while they are read or listened to', async (t) => {
    const { broker, clock } = await begin(t)
    broker.subscribe('heard', () => {})
    const heard = await broker.read('heard', undefined)
    const polled = await broker.read('polled', undefined)
    for (let n = 0; n < 10; n += 1) {
      clock.ms += hourMs
      await broker.read('polled', undefined)
      await broker.sweep()
    }
    assert.deepEqual(await broker.read('polled', undefined), polled)
    assert.deepEqual(await broker.read('heard', undefined), heard)
  })

  it('call a listener once, in order, with what is published after it subscribed, after the commit', async (t) => {
    stopClock(t)
    const { broker, folder, publish } = await begin(t)
    const heard: string[] = []
    const late: string[] = []
    broker.subscribe('c', (event) => {
      heard.push(textOf(event))
      assert.equal(rowsOf(join(folder, 'svc.db'), 'SELECT * FROM channel_events').length, 3, 'others can read all')
    })
    const first = publish('1').then(() => broker.subscribe('c', (event) => late.push(textOf(event))))
    await Promise.all([first, publish('2'), publish('3')])
    await broker.publish('other', '4', limits)
    assert.deepEqual([heard, late], [['1', '2', '3'], []], 'all three were committed when it subscribed')
  })

  it('lose nothing when the clock is set back, and never reuse an id', async (t) => {
    const { broker, clock, publish, textsSince } = await begin(t)
    const ids = [await publish('1')]
    clock.ms -= hourMs
    for (const text of ['2', '3']) ids.push(await publish(text))
    assert.deepEqual(ids, [0, 1, 2].map((n) => startMs * 1000 + n))
    await broker.sweep()
    assert.equal(await textsSince(startMs * 1000 - 1), '123')
    clock.ms += hourMs
    await broker.sweep()
    assert.equal(await textsSince(startMs * 1000 - 1), 'gap', 'an event of the future counts as published then')
  })

  it('drop what has expired by a clock that is set ahead, and keep the rest', async (t) => {
    const { broker, clock, publish, textsSince } = await begin(t)
    await publish('1')
    clock.ms += hourMs
    const id = await publish('2')
    assert.equal(id, startMs * 1000 + 1)
    clock.ms -= hourMs
    await publish('3')
    await broker.sweep()
    assert.equal(await textsSince(startMs * 1000), '23')
  })

  it('are swept in parts', async (t) => {
    const { broker, database, clock } = await begin(t)
    await Promise.all(Array.from({ length: 2500 }, (_, n) => broker.publish('a', String(n), limits)))
    await Promise.all(Array.from({ length: 250 }, (_, n) => broker.publish(`b${n}`, '1', limits)))
    clock.ms += 3 * hourMs
    const left: unknown[] = []
    const write = database.write.bind(database)
    t.mock.method(database, 'write', async (work: () => unknown) => {
      const result = await write(work)
      left.push(count(database, 'channel_events'))
      return result
    })
    await Promise.all([broker.sweep(), broker.sweep()])
    assert.deepEqual(left, [1750, 750, 151, 51, 0, 0], 'parts of 1,000 events or 100 channels, and one for queues')
    assert.equal(count(database, 'channels'), 0)
  })

  it('have a gap where an event is damaged', async (t) => {
    const first = await begin(t)
    for (const text of ['1', '2', '3']) await first.publish(text)
    await first.restart().then(({ database }) => database.close())
    const spoil = "UPDATE channel_events SET text = '{' WHERE text = '2'"
    withDatabase(join(first.folder, 'svc.db'), (database) => database.exec(spoil))
    const second = await begin(t, first.folder, first.clock)
    assert.equal(await second.textsSince(startMs * 1000 - 1), 'gap3')
    assert.equal(await second.textsSince(startMs * 1000 + 1), '3')
  })
})

describe('queues in SQLite', () => {
  if (!hasSqlite) return

  for (const end of ['restart', 'crash'] as const) {
    it(`keep their order after a ${end}, and return taken events first, but not delivered ones`, async (t) => {
      const first = await begin(t)
      for (const text of ['1', '2', '3', '4', '5']) await first.push(text)
      first.broker.handedOut('q', await first.taken())
      await first.taken()
      await first.taken()
      await first.push('6') // Its write is after that of handedOut.
      const second = await first[end]()
      const event = await second.taken()
      assert.deepEqual([event.text, event.left], ['2', 4])
      assert.deepEqual(await second.drain(), ['3', '4', '5', '6'])
      assert.equal(second.broker.dropped, 0)
    })
  }

  for (const end of ['restart', 'crash'] as const) {
    it(`keep leases over a ${end}, until they are done or over`, async (t) => {
      const first = await begin(t)
      for (const text of ['1', '2', '3']) await first.push(text)
      const lease = async (ms: number) => {
        const event = await first.broker.take('q', ms)
        assert.ok(event?.lease !== undefined)
        first.broker.handedOut('q', event)
        return event.lease
      }
      const [long, brief] = [await lease(60_000), await lease(10)]
      const second = await first[end]()
      await until(async () => {
        const event = await second.broker.take('q')
        return event?.text === '2' // It comes when its lease is over, before or after '3'.
      })
      assert.equal(await second.broker.endLease('q', brief, 'done'), false)
      assert.equal(await second.broker.endLease('q', long, 'done'), true)
      const third = await second.restart()
      assert.ok(!(await third.drain()).includes('1'))
    })
  }

  it('return an event that was put back next, whatever the order of putting back', async (t) => {
    const first = await begin(t)
    for (const text of ['1', '2', '3', '4']) await first.push(text)
    const [one, two, three] = [await first.taken(), await first.taken(), await first.taken()]
    for (const event of [one, three, two]) await first.broker.putBack('q', event)
    const event = await first.taken()
    assert.deepEqual([event.text, event.left], ['2', 3])
    const second = await first.restart()
    await second.push('5')
    assert.deepEqual(await second.drain(), ['2', '3', '1', '4', '5'])
  })

  it('do not count taken events as waiting, and drop the oldest when one is put back', async (t) => {
    const { broker, drain, taken } = await begin(t)
    const two = { maxEvents: 2, maxAgeMs: hourMs }
    for (const text of ['1', '2']) await broker.push('q', text, two)
    const event = await taken()
    await broker.push('q', '3', two)
    assert.equal(broker.dropped, 0)
    await broker.putBack('q', event)
    assert.equal(broker.dropped, 1)
    assert.deepEqual(await drain(), ['2', '3'])
  })

  it('count what concurrent calls drop', async (t) => {
    const { broker, drain } = await begin(t)
    await Promise.all(Array.from({ length: 50 }, (_, n) => broker.push('q', String(n), { maxEvents: 3, maxAgeMs: 1 })))
    assert.equal(broker.dropped, 47)
    assert.deepEqual(await drain(), ['47', '48', '49'])
  })

  it('lose nothing when the clock is set back', async (t) => {
    const { broker, clock, push, drain } = await begin(t)
    await push('1')
    clock.ms -= hourMs
    await push('2')
    await broker.sweep()
    clock.ms += hourMs - 1
    assert.deepEqual(await drain(), ['1', '2'])
    await push('3')
    clock.ms -= 2 * hourMs
    await broker.sweep()
    clock.ms += hourMs
    await broker.sweep()
    assert.deepEqual([await drain(), broker.dropped], [[], 1], 'it counted as pushed when the clock was set back')
  })

  it('are swept in parts, and skip many expired events in parts', async (t) => {
    const { broker, database, clock } = await begin(t)
    const push = (queue: string, n: number) => broker.push(queue, String(n), limits)
    for (const queue of ['a', 'b']) await Promise.all(Array.from({ length: 2500 }, (_, n) => push(queue, n)))
    clock.ms += 3 * hourMs
    const left: unknown[] = []
    const write = database.write.bind(database)
    t.mock.method(database, 'write', async (work: () => unknown) => {
      const result = await write(work)
      left.push(count(database, 'queue_events'))
      return result
    })
    await broker.push('b', '"new"', limits)
    assert.equal((await broker.take('b'))?.text, '"new"')
    assert.deepEqual(left, [4001, 3001, 2501])
    left.length = 0
    await broker.sweep()
    assert.deepEqual(left, [2501, 1501, 501, 1], 'one for channels; the taken event stays')
    assert.equal(broker.dropped, 5000)
    assert.deepEqual(database.prepare('SELECT name, waiting FROM queues').all().map((row) => ({ ...row })), [{ name: 'b', waiting: 0 }])
  })

  it('drop a damaged event, and count it', async (t) => {
    const first = await begin(t)
    for (const text of ['1', '2']) await first.push(text)
    await first.restart().then(({ database }) => database.close())
    const spoil = "UPDATE queue_events SET text = char(1) || '7' WHERE text = '1'"
    withDatabase(join(first.folder, 'svc.db'), (database) => database.exec(spoil))
    const second = await begin(t, first.folder, first.clock)
    assert.deepEqual([await second.drain(), second.broker.dropped], [['2'], 1])
  })
})

describe('a failed transaction of the broker in SQLite', () => {
  if (!hasSqlite) return

  it('rejects, changes nothing, and calls no listener', async (t) => {
    const { broker, database, publish, push, drain, textsSince } = await begin(t)
    const heard: string[] = []
    broker.subscribe('c', (event) => heard.push(textOf(event)))
    broker.onAvailable('q', () => heard.push('available'))
    const last = await publish('1')
    await push('1')
    heard.length = 0
    limitPages(database, 1)
    const big = JSON.stringify('x'.repeat(100_000))
    const results = await Promise.allSettled([publish('2'), push('2'), publish(big), push(big), broker.read('new', undefined)])
    assert.deepEqual(results.map(({ status }) => status), Array(5).fill('rejected'))
    limitPages(database, 100_000)
    assert.deepEqual(heard, [])
    assert.deepEqual(await broker.read('c', undefined), { events: [], lastId: last, gap: false })
    assert.equal(await publish('3'), last + 1)
    assert.equal(await textsSince(last - 1), '13')
    assert.deepEqual([await drain(), broker.dropped], [['1'], 0])
    assert.deepEqual(heard, ['3'])
  })

  it('of a take takes nothing; the end of a take is written by a later sweep', async (t) => {
    const { broker, database, push, taken, drain } = await begin(t)
    for (const text of ['1', '2', '3', '4', '5']) await push(text)
    const given = await taken()
    const back = [await taken(), await taken()]
    const prepare = database.prepare.bind(database)
    const failing = t.mock.method(database, 'prepare', (sql: string) => {
      if (sql === 'COMMIT') throw new Error('the disk is full')
      return prepare(sql)
    })
    let calls = 0
    broker.onAvailable('q', () => (calls += 1))
    broker.handedOut('q', given)
    for (const event of back) await assert.rejects(async () => broker.putBack('q', event), /the disk is full/)
    await assert.rejects(async () => broker.take('q'), /the disk is full/)
    await broker.sweep()
    assert.equal(calls, 0)
    failing.mock.restore()
    await broker.sweep()
    assert.equal(calls, 2)
    assert.equal(count(database, 'queue_events'), 4)
    assert.deepEqual([await drain(), broker.dropped], [['2', '3', '4', '5'], 0])
  })
})

describe('the broker in SQLite', () => {
  if (!hasSqlite) return

  it('rejects when the database is closed, and does not close it itself', async (t) => {
    const { broker, database, publish, push } = await begin(t)
    await publish('1')
    const pushed = push('1')
    await broker.close()
    await pushed
    assert.equal(count(database, 'queue_events'), 1)
    database.close()
    await assert.rejects(publish('2'), /is closed/)
    await assert.rejects(push('2'), /is closed/)
    await assert.rejects(broker.take('q'), /is closed/)
    assert.throws(() => broker.read('c', 0), /is closed/)
    await broker.sweep()
    await broker.close()
  })

  it('calls no listener after its close', async (t) => {
    const { broker, publish, push } = await begin(t)
    const heard: string[] = []
    const unsubscribe = broker.subscribe('c', (event) => heard.push(textOf(event)))
    broker.onAvailable('q', () => heard.push('available'))
    const calls = [publish('1'), push('1')]
    await broker.close()
    await Promise.all(calls)
    unsubscribe()
    assert.deepEqual(heard, [])
  })

  it('scans no table', async (t) => {
    const first = await begin(t)
    const statements = new Set<string>()
    const { prototype } = Database
    const prepare = prototype.prepare
    t.mock.method(prototype, 'prepare', function (this: Database, sql: string) {
      statements.add(sql)
      return Reflect.apply(prepare, this, [sql]) as ReturnType<typeof prepare>
    })
    const { broker, clock, push, publish, taken, textsSince } = first
    const few = { maxEvents: 1, maxAgeMs: 1000 }
    await broker.read('c', undefined)
    for (const text of ['1', '2', '3']) {
      await publish(text)
      await push(text)
    }
    await textsSince(startMs * 1000)
    const [one, two, three] = [await taken(), await taken(), await taken()]
    await broker.putBack('q', one)
    await broker.putBack('q', two)
    broker.handedOut('q', three)
    for (const text of ['1', '2']) {
      await broker.publish('few', text, few)
      await broker.push('few', text, few)
    }
    clock.ms -= hourMs
    await broker.sweep()
    clock.ms += 4 * hourMs
    await broker.read('c', undefined)
    await broker.sweep()
    clock.ms += 4 * hourMs
    await broker.sweep()
    await push('4')
    await taken()
    const second = await first.restart()
    const written = [...statements].filter((sql) => /^(SELECT|INSERT|UPDATE|DELETE)/.test(sql) && !sql.includes('VALUES (?, ?, ?, 0)'))
    assert.ok(written.length >= 25, String(written.length))
    for (const sql of written) {
      const plan = second.database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all().map(({ detail }) => String(detail))
      assert.ok(plan.every((detail) => !/^SCAN (?!CONSTANT)|TEMP B-TREE/.test(detail)), `${sql}\n${plan.join('\n')}`)
      assert.ok(plan.length > 0 || sql.startsWith('INSERT'), sql)
    }
  })
})
