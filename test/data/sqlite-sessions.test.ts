// The session store in the database.
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { Database } from '../../lib/data/database.ts'
import { SqliteSessions } from '../../lib/data/sqlite-sessions.ts'
import type { SessionStore } from '../../lib/session/store.ts'
import { testSessionStore, type StoreUnderTest } from '../session-stores/store-conformance.ts'
import { changes, contents, fields, id } from '../session-stores/store-values.ts'
import { hasSqlite } from '../support/sqlite.ts'
import { openTest } from './support.ts'

const minute = 60_000

interface Opened extends StoreUnderTest {
  readonly database: Database
  readonly folder: string
  readonly problems: string[]
}

function open(t: TestContext, folder?: string): Opened {
  const opened = openTest(t, folder)
  const problems: string[] = []
  let nowMs = 1_000_000
  const store = new SqliteSessions({ database: opened.database, problemOf: () => undefined, onProblem: (message) => problems.push(message), now: () => nowMs })
  return { ...opened, store, problems, advance: (ms) => void (nowMs += ms) }
}

/** What is in the table, as one text. */
const stored = (database: Database): string => JSON.stringify(database.prepare('SELECT * FROM sessions').all())

if (hasSqlite) testSessionStore('data', (t) => open(t))

describe('the sessions in the database', () => {
  if (!hasSqlite) return

  it('do not reveal their ids', async (t) => {
    const { store, database } = open(t)
    await store.create(id(1), fields({ a: '1' }), minute)
    assert.doesNotMatch(stored(database), new RegExp(id(1)))
  })

  it('are available to the next process', async (t) => {
    const { store, database, folder } = open(t)
    await store.create(id(1), fields({ a: '1' }), minute)
    database.close()
    assert.deepEqual(await contents(open(t, folder).store, id(1)), { a: '1' })
  })

  it('keep running when the clock of the system is set', async (t) => {
    const { database } = openTest(t)
    t.mock.timers.enable({ apis: ['Date'], now: 1_000_000_000 })
    const store: SessionStore = new SqliteSessions({ database, problemOf: () => undefined, onProblem: assert.fail })
    await store.create(id(1), fields({ a: '1' }), minute)
    for (const hours of [24, -48]) {
      t.mock.timers.setTime(1_000_000_000 + hours * 3_600_000)
      const { remainingMs = 0 } = (await store.read(id(1))) ?? {}
      assert.ok(remainingMs > 0 && remainingMs <= minute + 1, String(remainingMs))
    }
  })

  it('are ignored and counted when they are damaged', async (t) => {
    const { store, database, problems } = open(t)
    for (const text of ['', '{', '[]', '{"version":2,"fields":[]}', '{"version":1,"fields":[["a"]]}']) {
      await store.create(id(1), fields({ a: '1' }), minute)
      database.prepare('UPDATE sessions SET fields = ?').run(text)
      assert.equal(await store.read(id(1)), undefined, text)
      assert.equal(await store.merge(id(1), changes({ a: '2' }), minute), false)
    }
    assert.deepEqual(store.counts, { evicted: 0, damaged: 10 })
    assert.match(problems[0] ?? '', /^ignored a damaged session in .*svc\.db: it is empty$/)
  })

  it('are removed by a sweep in parts', async (t) => {
    const { store, database, advance } = open(t)
    await Promise.all(Array.from({ length: 1500 }, (_, at) => store.create(id(at), new Map(), minute)))
    await store.create(id(2000), new Map(), 2 * minute)
    await advance(minute)
    assert.deepEqual([await store.sweep(), await store.sweep(), await store.sweep()], [1000, 500, 0])
    assert.equal(database.prepare('SELECT count(*) AS count FROM sessions').get()?.['count'], 1)
  })
})
