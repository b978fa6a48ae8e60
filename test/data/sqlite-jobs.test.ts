import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { SqlValue } from '../../lib/data/sqlite.ts'
import type { JobQuery } from '../../lib/jobs/job-store.ts'
import { openFolder, openTestJobs } from './jobs-support.ts'
import { describeJobStore } from '../jobs/store-conformance.ts'
import { hasSqlite, withDatabase } from '../support/sqlite.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const all: JobQuery = { name: null, state: null, offset: 0, count: -1 }
const hourMs = 3_600_000

const job = { name: 'a', data: null, key: null, at: null }

if (hasSqlite) {
  describeJobStore('jobs in SQLite', (t, now) => openTestJobs(t, now))
}

describe('jobs in SQLite', () => {
  if (!hasSqlite) return

  it('are given back at the next start after a stop, too', async (t) => {
    const folder = temporaryFolder()
    const { store: first, database } = await openFolder(t, Date.now, folder)
    const id = await first.enqueue(job)
    await first.claim('o', ['a'], 1)
    const written = first.enqueue(job)
    await first.close()
    database.close()
    const second = await written
    const { store } = await openFolder(t, Date.now, folder)
    assert.deepEqual((await store.claim('o', ['a'], 9)).jobs.map((each) => each.id), [id, second])
  })

  it('reject when the database is closed', async (t) => {
    const { store, database } = await openFolder(t)
    database.close()
    await assert.rejects(async () => store.enqueue(job), /is closed/)
    await assert.rejects(async () => store.settle('o', []), /is closed/)
    await assert.rejects(async () => store.list(all), /is closed/)
  })

  it('are removed seven days after their death, within an hour', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    let now = Date.now()
    const { store } = await openFolder(t, () => now)
    const id = await store.enqueue(job)
    await store.claim('o', ['a'], 1)
    await store.settle('o', [{ id, end: 'dead', error: 'x' }])
    now += 7 * 24 * hourMs + 1
    t.mock.timers.tick(hourMs - 1)
    await store.settle('o', [])
    assert.equal((await store.list(all)).length, 1)
    t.mock.timers.tick(1)
    await store.settle('o', [])
    assert.equal((await store.list(all)).length, 0)
  })

  it('keep the first 4,000 characters of an error', async (t) => {
    const { store } = await openFolder(t)
    const ids = [await store.enqueue(job), await store.enqueue(job)]
    await store.claim('o', ['a'], 2)
    await store.settle('o', [
      { id: ids[0] ?? '', end: 'dead', error: 'x'.repeat(5000) },
      { id: ids[1] ?? '', end: 'retry', at: 1, error: 'y'.repeat(5000) },
    ])
    assert.deepEqual((await store.list(all)).map(({ error }) => error), ['x'.repeat(4000), 'y'.repeat(4000)])
  })

  it('change in all outcomes of a call or in none', async (t) => {
    const { store } = await openFolder(t)
    const ids = [await store.enqueue(job), await store.enqueue(job)]
    await store.claim('o', ['a'], 2)
    const wrong = store.settle('o', [{ id: ids[0] ?? '', end: 'done' }, { id: ids[1] ?? '', end: 'retry', at: 0.5, error: 'x' }])
    await assert.rejects(async () => wrong)
    assert.equal((await store.list({ ...all, state: 'running' })).length, 2)
  })

  it('are found again after a claim whose transaction failed', async (t) => {
    const { store, database } = await openFolder(t)
    const id = await store.enqueue(job)
    const later = await store.enqueue({ ...job, at: Date.now() + hourMs })
    const prepare = database.prepare.bind(database)
    const failing = t.mock.method(database, 'prepare', (sql: string) => {
      if (sql === 'COMMIT') throw new Error('the disk is full')
      return prepare(sql)
    })
    await assert.rejects(async () => store.claim('o', ['a'], 5), /the disk is full/)
    await assert.rejects(async () => store.enqueue(job), /the disk is full/)
    failing.mock.restore()
    assert.deepEqual((await store.list(all)).map((each) => [each.id, each.state]), [[later, 'waiting'], [id, 'waiting']])
    assert.deepEqual((await store.claim('o', ['a'], 5)).jobs.map((each) => each.id), [id])
  })

  it('are searched by an index, but for what the panel counts and lists', async (t) => {
    const { store, database } = await openFolder(t)
    const texts = new Set<string>()
    const prepare = database.prepare.bind(database)
    t.mock.method(database, 'prepare', (sql: string) => {
      texts.add(sql)
      return prepare(sql)
    })
    const ids = [await store.enqueue({ ...job, key: 'k' }), await store.enqueue(job), await store.enqueue(job), await store.enqueue(job)]
    await store.claim('o', ['a'], 4)
    const [a = '', b = '', c = ''] = ids
    await store.settle('o', [{ id: a, end: 'done' }, { id: b, end: 'dead', error: 'x' }, { id: c, end: 'retry', at: 0, error: 'x' }])
    await store.release('o')
    await store.retry(b)
    await store.discard(b)
    await store.plan('a', 's', 1)
    await store.advance({ name: 'a', from: 1, to: 2, runs: true })
    const written = [...texts].filter((sql) => /^(SELECT|UPDATE|DELETE)/.test(sql))
    assert.ok(written.length > 10)
    const plans = written.map((sql) => [sql, prepare(`EXPLAIN QUERY PLAN ${sql}`).all().map(({ detail }) => String(detail))] as const)
    for (const [sql, plan] of plans) {
      assert.ok(plan.length > 0 && plan.every((detail) => !detail.startsWith('SCAN')), `${sql}\n${plan.join('\n')}`)
    }
  })

  it('are claimed in their order out of 100,000', async (t) => {
    const folder = temporaryFolder()
    const empty = await openFolder(t, Date.now, folder)
    empty.database.close()
    withDatabase(join(folder, 'svc.db'), (database) => database.exec(
      'WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100000) '
        + "INSERT INTO jobs (name, state, due, tries, ends, created) SELECT 'a', 0, 100000 - n, 0, 0, 0 FROM numbers",
    ))
    const { store, database } = await openFolder(t, () => 50_000, folder)
    let read = 0
    const prepare = database.prepare.bind(database)
    t.mock.method(database, 'prepare', (sql: string) => {
      const statement = prepare(sql)
      const counting = (...values: readonly SqlValue[]) => {
        const rows = statement.all(...values)
        read += rows.length
        return rows
      }
      return { run: statement.run.bind(statement), get: statement.get.bind(statement), all: counting }
    })
    for (const [count, ids] of [[1, ['100000']], [3, ['99999', '99998', '99997']]] as const) {
      assert.deepEqual((await store.claim('o', ['a', 'b'], count)).jobs.map(({ id }) => id), ids)
    }
    assert.equal(read, 6, 'one more than it claims')
    assert.deepEqual(await store.counts(), [{ name: 'a', waiting: 99_996, running: 4, dead: 0, done: 0 }])
  })
})
