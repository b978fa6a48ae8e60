import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Database } from '../../lib/data/database.ts'
import { DataError } from '../../lib/data/sqlite.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import { hasSqlite, rowsOf, withDatabase } from '../support/sqlite.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { addJob, jobNames, limitPages, modeOf, openTest, stopClock } from './support.ts'

const open = (folder: string): Database => Database.open({ folder, sync: 'normal', log: silentLogger })

/** Blocks the event loop for some milliseconds, as slow writes do. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

describe('a database on a Node without SQLite', () => {
  if (hasSqlite) return
  it('is refused, and creates nothing', () => {
    const folder = join(temporaryFolder(), 'data')
    assert.throws(() => open(folder), (error) => {
      assert.ok(error instanceof DataError)
      const { node } = process.versions
      assert.equal(error.message, `paths.data needs node:sqlite, which Node ${node} does not have: run Node 22.13 or later`)
      return true
    })
    assert.deepEqual(readdirSync(join(folder, '..')), [])
  })
})

describe('Database.open', () => {
  if (!hasSqlite) return
  it('creates the folder and files that only their owner can read', async (t) => {
    const folder = join(temporaryFolder(), 'a/data')
    const { database, lines } = openTest(t, folder)
    await database.write(() => addJob(database, 'a'))
    assert.deepEqual(readdirSync(folder).sort(), ['svc.db', 'svc.db-lock', 'svc.db-shm', 'svc.db-wal'])
    assert.equal(modeOf(folder), '700')
    for (const name of readdirSync(folder)) assert.equal(modeOf(folder, name), '600', name)
    assert.deepEqual(lines, [])
  })

  for (const [sync, level] of [['normal', 1], ['full', 2]] as const) {
    it(`uses a write-ahead log, with sync ${sync}`, (t) => {
      const { database } = openTest(t, undefined, sync)
      const value = (pragma: string): unknown => Object.values(database.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]
      const pragmas = ['journal_mode', 'synchronous', 'journal_size_limit', 'wal_autocheckpoint', 'user_version']
      assert.deepEqual(pragmas.map(value), ['wal', level, 4_194_304, 1000, 1])
      assert.ok(Number(value('busy_timeout')) > 0)
    })
  }

  it('keeps what an earlier one wrote', async (t) => {
    const { database, folder } = openTest(t)
    await database.write(() => addJob(database, 'a'))
    database.close()
    const again = openTest(t, folder)
    assert.deepEqual([jobNames(again.database), again.lines], [['a'], []])
  })

  it('refuses a second one at once, and disturbs neither the first nor its lock', async (t) => {
    const { database, folder } = openTest(t)
    for (let round = 0; round < 3; round += 1) {
      assert.throws(() => open(folder), {
        name: 'DataError',
        message: `${folder}/svc.db is in use by another server: stop that server, or name another paths.data`,
      })
    }
    await database.write(() => addJob(database, 'a'))
    assert.deepEqual(rowsOf(join(folder, 'svc.db'), 'SELECT name FROM jobs'), [{ name: 'a' }], 'others may read')
    database.close()
    openTest(t, folder)
  })

  it('frees the lock when it throws', (t) => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'svc.db'))
    for (let round = 0; round < 2; round += 1) assert.throws(() => open(folder), /svc\.db is not a file: remove it, or name/)
    openTest(t, temporaryFolder())
  })

  it('refuses a file of a newer version, and leaves it as it is', (t) => {
    const folder = temporaryFolder()
    const file = join(folder, 'svc.db')
    withDatabase(file, (database) => database.exec('PRAGMA user_version = 2; CREATE TABLE other (a)'))
    const before = rowsOf(file, 'SELECT * FROM sqlite_schema')
    assert.throws(() => openTest(t, folder), {
      name: 'DataError',
      message: `${file} has version 2, of a newer svc; this one knows versions up to 1: run the newer svc, or name another paths.data`,
    })
    assert.deepEqual(readdirSync(folder).sort(), ['svc.db', 'svc.db-lock'])
    assert.deepEqual(rowsOf(file, 'SELECT * FROM sqlite_schema'), before)
  })

  it('makes all tables or none', () => {
    const folder = temporaryFolder()
    const file = join(folder, 'svc.db')
    withDatabase(file, (database) => database.exec('CREATE TABLE schedules (a)'))
    assert.throws(() => open(folder), /^DataError: Cannot open \S+\/svc\.db: table schedules already exists/)
    assert.deepEqual(rowsOf(file, 'SELECT name FROM sqlite_schema'), [{ name: 'schedules' }])
  })

  const obstacles: readonly (readonly [what: string, make: (folder: string) => void, message: RegExp])[] = [
    ['a file in place of its folder', (folder) => writeFileSync(folder, ''), /^Cannot create \S+\/data: EEXIST: .*: name a folder in paths\.data that the user/],
    ['a file in place of the folder above', (folder) => writeFileSync(join(folder, '..'), ''), /^Cannot create \S+\/data: ENOTDIR: .*: name a folder/],
    ['a folder in place of the file', (folder) => mkdirSync(join(folder, 'svc.db'), { recursive: true }), /^\S+\/svc\.db is not a file: remove it/],
    ['a folder in place of the lock', (folder) => mkdirSync(join(folder, 'svc.db-lock'), { recursive: true }), /^\S+\/svc\.db-lock is not a file: remove it/],
    ['a lock that is another file', (folder) => {
      mkdirSync(folder)
      writeFileSync(join(folder, 'svc.db-lock'), 'x'.repeat(5000))
    }, /^\S+\/svc\.db-lock is not empty, as a lock is: remove it$/],
  ]
  for (const [what, make, message] of obstacles) {
    it(`reports ${what}`, () => {
      const above = join(temporaryFolder(), 'above')
      if (!what.endsWith('above')) mkdirSync(above)
      make(join(above, 'data'))
      assert.throws(() => open(join(above, 'data')), { name: 'DataError', message })
    })
  }

  it('reports a folder that cannot be written', () => {
    const folder = temporaryFolder()
    const isRoot = process.getuid?.() === 0 // Modes do not stop root, but /proc does.
    if (!isRoot) chmodSync(folder, 0o500)
    assert.throws(() => open(isRoot ? '/proc' : folder), /^DataError: Cannot create \S+\/svc\.db-lock: E\w+: .*: name a folder in paths\.data/)
  })
})

describe('write', () => {
  if (!hasSqlite) return
  it('commits the writes of a turn together, in their order', async (t) => {
    stopClock(t)
    const { database, folder } = openTest(t)
    const others = (): number => rowsOf(join(folder, 'svc.db'), 'SELECT * FROM jobs').length
    const seen: number[] = []
    const resolved: number[] = []
    const writes = Array.from({ length: 5 }, (_, at) => {
      const write = database.write(() => {
        seen.push(others())
        return addJob(database, `job ${at}`)
      })
      return write.then((id) => resolved.push(id))
    })
    assert.deepEqual(jobNames(database), [], 'nothing runs in the turn itself')
    await Promise.all(writes)
    assert.deepEqual(seen, [0, 0, 0, 0, 0])
    assert.deepEqual([others(), resolved], [5, [1, 2, 3, 4, 5]])
    assert.deepEqual(jobNames(database), ['job 0', 'job 1', 'job 2', 'job 3', 'job 4'])
  })

  it('rejects a write that throws, alone, and undoes it', async (t) => {
    const { database, lines } = openTest(t)
    let rollbacks = 0
    database.onRollback(() => (rollbacks += 1))
    const failure = new Error('no')
    const settled = await Promise.allSettled([
      database.write(() => addJob(database, 'a')),
      database.write(() => {
        addJob(database, 'half')
        throw failure
      }),
      database.write(() => {
        addJob(database, 'half')
        database.prepare('INSERT INTO schedules VALUES (NULL, NULL, NULL)').run()
      }),
      database.write(() => addJob(database, 'b')),
    ])
    assert.deepEqual(settled.map(({ status }) => status), ['fulfilled', 'rejected', 'rejected', 'fulfilled'])
    assert.equal((settled[1] as PromiseRejectedResult).reason, failure)
    assert.match(String((settled[2] as PromiseRejectedResult).reason), /NOT NULL constraint failed: schedules/)
    assert.deepEqual([jobNames(database), rollbacks, lines], [['a', 'b'], 0, []])
  })

  it('takes writes of writes, and of many turns', async (t) => {
    const { database } = openTest(t)
    const writes: Promise<unknown>[] = []
    for (let turn = 0; turn < 50; turn += 1) {
      for (let at = 0; at < turn % 4; at += 1) writes.push(database.write(() => addJob(database, `${turn}`)))
      await nextTurn()
    }
    let inner: Promise<unknown> | undefined
    writes.push(database.write(() => {
      inner = database.write(() => addJob(database, 'inner'))
      addJob(database, 'outer')
    }))
    await Promise.all(writes)
    await inner
    const expected = Array.from({ length: 50 }, (_, turn) => Array.from({ length: turn % 4 }, () => `${turn}`)).flat()
    assert.deepEqual(jobNames(database), [...expected, 'outer', 'inner'])
  })

  it('lets other work of the event loop run between slow writes, which keep their order', async (t) => {
    const { database } = openTest(t)
    const events: string[] = []
    const slow = (name: string): Promise<unknown> =>
      database.write(() => {
        block(15)
        addJob(database, name)
        events.push(name)
      })
    const writes = ['a', 'b', 'c'].map(slow)
    const turns = (async () => {
      while (events.filter((name) => name !== 'turn').length < 3) {
        await nextTurn()
        events.push('turn')
      }
    })()
    await Promise.all([...writes, turns])
    assert.match(events.join(' '), /a (?:turn )+b (?:turn )+c/)
    assert.deepEqual(jobNames(database), ['a', 'b', 'c'])
  })

  it('rejects all writes of a turn on a full disk, calls the listeners first, and works again after it', async (t) => {
    stopClock(t)
    const { database, folder, lines } = openTest(t)
    const events: string[] = []
    database.onRollback(() => events.push(`rollback: ${jobNames(database).join()}`))
    await database.write(() => addJob(database, 'before'))
    limitPages(database, 10)
    const big = 'x'.repeat(100_000)
    const add = (name: string, data?: string): Promise<unknown> =>
      database.write(() => addJob(database, name, data)).catch((error: unknown) => events.push(String(error)))
    await Promise.all([add('small'), add('big', big), add('after')])
    await add('big again', big)
    const full = `DataError: Cannot write ${folder}/svc.db: the disk is full: free some space`
    assert.deepEqual(events, ['rollback: before', full, full, full, 'rollback: before', full])
    assert.deepEqual(lines, [`ERROR ${full.slice(11)}`], 'one line for both groups')
    limitPages(database, 1000)
    await add('big', big)
    assert.deepEqual(jobNames(database), ['before', 'big'])
    assert.deepEqual(lines.slice(1), [`INFO ${folder}/svc.db can be written again`])
  })

  it('rejects all writes of a transaction that a statement ends', async (t) => {
    stopClock(t)
    const { database, folder } = openTest(t)
    let rollbacks = 0
    database.onRollback(() => (rollbacks += 1))
    await database.write(() => database.prepare("INSERT INTO schedules VALUES ('a', '', 0)").run())
    const settled = await Promise.allSettled([
      database.write(() => addJob(database, 'one')),
      database.write(() => database.prepare("INSERT OR ROLLBACK INTO schedules VALUES ('a', '', 0)").run()),
    ])
    for (const { reason } of settled as PromiseRejectedResult[]) {
      assert.match(String(reason), new RegExp(`^DataError: Cannot write ${folder}/svc\\.db: UNIQUE constraint failed: schedules\\.name`))
    }
    assert.deepEqual([jobNames(database), rollbacks], [[], 1])
    await database.write(() => addJob(database, 'next'))
    assert.deepEqual(jobNames(database), ['next'])
  })

  it('rejects when a transaction cannot begin, and works again after it', async (t) => {
    const { database, folder } = openTest(t)
    database.prepare('PRAGMA busy_timeout = 0').get()
    let rollbacks = 0
    database.onRollback(() => (rollbacks += 1))
    await withBlocked(folder, async () => {
      const settled = await Promise.allSettled(['c', 'd'].map((name) => database.write(() => addJob(database, name))))
      for (const { reason } of settled as PromiseRejectedResult[]) {
        assert.match(String(reason), /^DataError: Cannot write \S+\/svc\.db: another program has locked it: end that program/)
      }
    })
    assert.equal(rollbacks, 1)
    await database.write(() => addJob(database, 'e'))
    assert.deepEqual(jobNames(database), ['e'])
  })

  it('returns what the work returns, and prepares a statement once', async (t) => {
    const { database } = openTest(t)
    assert.equal(await database.write(() => 7), 7)
    assert.equal(database.prepare('SELECT 1'), database.prepare('SELECT 1'))
  })
})

describe('close', () => {
  if (!hasSqlite) return
  it('runs the waiting writes, leaves no log, and refuses later ones', async (t) => {
    const { database, folder } = openTest(t)
    const writes = Array.from({ length: 100 }, (_, at) => database.write(() => addJob(database, `${at}`)))
    const bad = database.write(() => {
      throw new Error('no')
    })
    const slow = database.write(() => block(15))
    const last = database.write(() => addJob(database, 'last'))
    database.close()
    database.close()
    assert.deepEqual(readdirSync(folder).sort(), ['svc.db', 'svc.db-lock'])
    await assert.rejects(bad, /no/)
    await Promise.all([...writes, slow, last])
    assert.equal(rowsOf(join(folder, 'svc.db'), 'SELECT name FROM jobs').length, 101)
    const closed = { name: 'DataError', message: `Cannot use ${folder}/svc.db: it is closed` }
    await assert.rejects(database.write(() => 1), closed)
    assert.throws(() => database.prepare('SELECT 1'), closed)
  })
})

/** Runs work while another connection holds the lock of a writer. */
async function withBlocked(folder: string, work: () => Promise<void>): Promise<void> {
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite') as { DatabaseSync: new (file: string) => { exec(sql: string): void; close(): void } }
  const other = new DatabaseSync(join(folder, 'svc.db'))
  try {
    other.exec('BEGIN IMMEDIATE')
    await work()
  } finally {
    other.close()
  }
}
