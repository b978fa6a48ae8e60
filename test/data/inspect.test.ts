import assert from 'node:assert/strict'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { backUp, inspectDatabase } from '../../lib/data/inspect.ts'
import { hasSqlite, rowsOf, withDatabase } from '../support/sqlite.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { addJob, jobNames, modeOf, openTest, stopClock } from './support.ts'

describe('inspectDatabase', () => {
  it('returns nothing where no database is', () => {
    const folder = temporaryFolder()
    assert.equal(inspectDatabase(folder), undefined)
    assert.equal(inspectDatabase(join(folder, 'missing')), undefined)
    assert.deepEqual(readdirSync(folder), [])
  })

  if (!hasSqlite) return
  it('counts the jobs by state while a server uses the file, and afterwards', async (t) => {
    const { database, folder } = openTest(t)
    const expected = { path: join(folder, 'svc.db'), version: 1, problem: undefined, jobsByState: new Map([[0, 3], [2, 1]]) }
    assert.deepEqual(inspectDatabase(folder)?.jobsByState, new Map())
    await Promise.all(['a', 'b', 'c', 'd'].map((name) => database.write(() => addJob(database, name))))
    await database.write(() => database.prepare("UPDATE jobs SET state = 2 WHERE name = 'b'").run())
    assert.deepEqual(inspectDatabase(folder), expected)
    await database.write(() => addJob(database, 'e'))
    assert.deepEqual(jobNames(database), ['a', 'b', 'c', 'd', 'e'])
    await database.write(() => database.prepare("DELETE FROM jobs WHERE name = 'e'").run())
    database.close()
    const bytes = readFileSync(join(folder, 'svc.db'))
    assert.deepEqual(inspectDatabase(folder), expected)
    assert.ok(readFileSync(join(folder, 'svc.db')).equals(bytes))
    openTest(t, folder)
  })

  const files: readonly (readonly [what: string, sql: string, version: number, problem: RegExp | undefined])[] = [
    ['a file without tables', '', 0, undefined],
    ['a newer version', 'PRAGMA user_version = 7', 7, /^\S+\/svc\.db has version 7, of a newer svc; this one knows versions up to 1: run the newer svc/],
  ]
  for (const [what, sql, version, problem] of files) {
    it(`reports ${what}`, () => {
      const folder = temporaryFolder()
      withDatabase(join(folder, 'svc.db'), (database) => database.exec(`CREATE TABLE other (a); ${sql}`))
      const found = inspectDatabase(folder)
      assert.deepEqual([found?.version, found?.jobsByState], [version, new Map()])
      if (problem === undefined) assert.equal(found?.problem, undefined)
      else assert.match(found?.problem ?? '', problem)
    })
  }

  it('reports a file that lacks its tables', () => {
    const folder = temporaryFolder()
    withDatabase(join(folder, 'svc.db'), (database) => database.exec('PRAGMA user_version = 1'))
    assert.match(inspectDatabase(folder)?.problem ?? '', /^Cannot read \S+\/svc\.db: no such table: jobs/)
  })
})

describe('backUp', () => {
  it('refuses a folder without a database', () => {
    const folder = temporaryFolder()
    assert.throws(() => backUp(folder, join(folder, 'copy')), /^DataError: Cannot back up \S+\/svc\.db to \S+\/copy: there is no such database: the first job, session of the store "data" or durable event makes it; or check paths\.data$/)
    assert.deepEqual(readdirSync(folder), [])
  })

  if (!hasSqlite) return
  it('copies a consistent state while a server writes, which a server can open', async (t) => {
    stopClock(t)
    const { database, folder } = openTest(t)
    const target = temporaryFolder()
    const pair = (at: number): Promise<unknown> =>
      database.write(() => {
        addJob(database, `left ${at}`, 'x'.repeat(2000))
        database.prepare('INSERT INTO schedules VALUES (?, ?, 0)').run(`right ${at}`, '')
      })
    for (let at = 0; at < 20; at += 1) {
      const writes = Array.from({ length: 20 }, (_, index) => pair(at * 20 + index))
      if (at === 15) {
        await database.write(() => {
          addJob(database, 'half')
          backUp(folder, join(target, 'svc.db')) // In the middle of a transaction.
          database.prepare("DELETE FROM jobs WHERE name = 'half'").run()
        })
      }
      await Promise.all(writes)
    }
    assert.equal(modeOf(target, 'svc.db'), '600')
    assert.deepEqual(readdirSync(target), ['svc.db'])
    const copy = openTest(t, target)
    const names = jobNames(copy.database)
    assert.deepEqual([copy.lines, names], [[], Array.from({ length: 300 }, (_, at) => `left ${at}`)])
    assert.equal(copy.database.prepare('SELECT * FROM schedules').all().length, 300)
    assert.equal(rowsOf(join(folder, 'svc.db'), 'SELECT * FROM jobs').length, 400)
  })

  it('copies the database of a server that does not run', async (t) => {
    const { database, folder } = openTest(t)
    await database.write(() => addJob(database, 'a'))
    database.close()
    backUp(folder, join(folder, 'copy'))
    assert.deepEqual(rowsOf(join(folder, 'copy'), 'SELECT name FROM jobs'), [{ name: 'a' }])
  })

  it('refuses an existing target, and leaves it as it is', async (t) => {
    const { folder } = openTest(t)
    for (const text of ['', 'mine']) {
      const target = join(temporaryFolder(), 'copy')
      writeFileSync(target, text)
      assert.throws(() => backUp(folder, target), /^DataError: Cannot back up \S+ to \S+\/copy: EEXIST: .*: name a new file in a folder that exists$/)
      assert.equal(readFileSync(target, 'utf8'), text)
    }
    assert.throws(() => backUp(folder, join(folder, 'missing/copy')), /^DataError: Cannot back up .*: ENOENT: .*: name a new file/)
    assert.throws(() => backUp(folder, join(folder, 'svc.db')), /EEXIST/)
    await assert.doesNotReject(async () => openTest(t))
  })

  it('removes a target that it could not complete', () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'svc.db'), 'no database, but text that is as long as a header of one needs to be\n'.repeat(20))
    assert.throws(() => backUp(folder, join(folder, 'copy')), /^DataError: Cannot back up \S+\/svc\.db to \S+\/copy: it is damaged: restart the server/)
    assert.deepEqual(readdirSync(folder), ['svc.db'])
  })
})

describe('on a Node without SQLite', () => {
  if (hasSqlite) return
  it('nothing is inspected or copied', () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'svc.db'), '')
    for (const use of [() => inspectDatabase(folder), () => backUp(folder, join(folder, 'copy'))]) {
      assert.throws(use, /^DataError: paths\.data needs node:sqlite, which Node 20\S+ does not have: run Node 22\.13 or later$/)
    }
    assert.deepEqual(readdirSync(folder), ['svc.db'])
  })
})
