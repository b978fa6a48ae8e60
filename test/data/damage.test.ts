import assert from 'node:assert/strict'
import { closeSync, existsSync, openSync, readFileSync, readdirSync, truncateSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { Database } from '../../lib/data/database.ts'
import { inspectDatabase } from '../../lib/data/inspect.ts'
import { DataError } from '../../lib/data/sqlite.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import { Seeded } from '../support/seeded.ts'
import { hasSqlite, withDatabase } from '../support/sqlite.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { addJob, jobNames, modeOf, openTest } from './support.ts'

const pageBytes = 4096

/** A folder with a database of a hundred pages, not in use. */
async function filled(t: TestContext): Promise<string> {
  const { database, folder } = openTest(t)
  await Promise.all(Array.from({ length: 400 }, (_, at) => database.write(() => addJob(database, `${at}`, 'x'.repeat(1000)))))
  database.close()
  return folder
}

function overwrite(file: string, at: number, bytes: Uint8Array): void {
  const descriptor = openSync(file, 'r+')
  writeSync(descriptor, bytes, 0, bytes.length, at)
  closeSync(descriptor)
}

const randomBytes = (seed: number, length: number): Buffer => new Seeded(seed).bytes(length)

const damages: readonly (readonly [what: string, damage: (file: string) => void])[] = [
  ['text', (file) => writeFileSync(file, 'not a database, but a text of some length\n'.repeat(300))],
  ['two bytes', (file) => writeFileSync(file, 'xy')],
  ['zeros', (file) => writeFileSync(file, new Uint8Array(20 * pageBytes))],
  ['a half', (file) => truncateSync(file, 50 * pageBytes)],
  ['a part of a page', (file) => truncateSync(file, 50 * pageBytes + 1000)],
  ['its header alone', (file) => truncateSync(file, 100)],
  ['its first page alone', (file) => truncateSync(file, pageBytes)],
  ['a random page in the middle', (file) => overwrite(file, 50 * pageBytes, randomBytes(1, pageBytes))],
  ['random bytes over the head of a page', (file) => overwrite(file, 30 * pageBytes, randomBytes(2, 100))],
  ['random bytes over many pages', (file) => overwrite(file, 10 * pageBytes + 77, randomBytes(3, 40 * pageBytes))],
  ['a zero page in the middle', (file) => overwrite(file, 50 * pageBytes, new Uint8Array(pageBytes))],
  ['random bytes over the schema', (file) => overwrite(file, 100, randomBytes(4, 3000))],
  ['a random schema text', (file) => overwrite(file, pageBytes - 500, randomBytes(5, 400))],
  ['a negative version', (file) => withDatabase(file, (database) => database.exec('PRAGMA user_version = -5'))],
  ['nothing, beside a log', (file) => {
    truncateSync(file, 0)
    writeFileSync(`${file}-wal`, 'x'.repeat(5000))
  }],
]

describe('a damaged database', () => {
  if (!hasSqlite) return
  for (const [what, damage] of damages) {
    it(`is set aside: ${what}`, async (t) => {
      const folder = await filled(t)
      const file = join(folder, 'svc.db')
      damage(file)
      const bytes = readFileSync(file)
      const { database, lines } = openTest(t, folder)
      const names = readdirSync(folder).filter((name) => /^svc\.db\.damaged-\d{8}T\d{9}Z$/.test(name))
      assert.equal(names.length, 1, lines.join())
      assert.ok(readFileSync(join(folder, names[0] ?? '')).equals(bytes))
      assert.equal(lines.length, 1)
      assert.match(lines[0] ?? '', /^ERROR \S+\/svc\.db is damaged \(.+\): it is now /)
      assert.ok(lines[0]?.endsWith(`: it is now ${folder}/${names[0]}, what was in it is not served, and a new file begins`))
      await database.write(() => addJob(database, 'new'))
      assert.deepEqual([jobNames(database), modeOf(folder, 'svc.db')], [['new'], '600'])
      database.close()
      const again = openTest(t, folder)
      assert.deepEqual([jobNames(again.database), again.lines], [['new'], []])
    })
  }

  it('is set aside with its log, which stays as it was', async (t) => {
    const folder = await filled(t)
    const log = randomBytes(6, 9000)
    const file = join(folder, 'svc.db')
    overwrite(file, 0, randomBytes(7, 100))
    writeFileSync(`${file}-wal`, log)
    openTest(t, folder)
    const aside = readdirSync(folder).find((name) => name.endsWith('Z-wal')) ?? ''
    assert.ok(readFileSync(join(folder, aside)).equals(log))
  })

  it('is not set aside while a server uses it, nor one of a newer version', async (t) => {
    const { database, folder } = openTest(t)
    const before = readdirSync(folder)
    assert.throws(() => Database.open({ folder, sync: 'normal', log: silentLogger }), DataError)
    assert.deepEqual(readdirSync(folder), before)
    database.close()
    const file = join(folder, 'svc.db')
    withDatabase(file, (other) => other.exec('PRAGMA user_version = 99'))
    overwrite(file, 3 * pageBytes, randomBytes(8, pageBytes))
    assert.throws(() => Database.open({ folder, sync: 'normal', log: silentLogger }), /has version 99, of a newer svc/)
    assert.ok(existsSync(file))
  })

  it('is none when a first start was killed: its journal is rolled back', (t) => {
    const folder = temporaryFolder()
    const file = join(folder, 'svc.db')
    const interrupted = withDatabase(file, (database) => {
      database.exec('CREATE TABLE other (a); PRAGMA cache_size = 1; BEGIN; CREATE TABLE jobs (a)')
      for (let at = 0; at < 50; at += 1) database.exec(`INSERT INTO jobs VALUES ('${'x'.repeat(3000)}')`)
      return { '': readFileSync(file), '-journal': readFileSync(`${file}-journal`) }
    })
    for (const [suffix, bytes] of Object.entries(interrupted)) writeFileSync(file + suffix, bytes)
    const { database, lines } = openTest(t, folder)
    assert.deepEqual([jobNames(database), lines], [[], []])
    assert.deepEqual(database.prepare('SELECT * FROM other').all(), [])
  })

  it('is opened as new when it is empty', async (t) => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'svc.db'), '')
    const { lines } = openTest(t, folder)
    assert.deepEqual(lines, [])
  })

  for (const [what, damage] of damages) {
    it(`is reported by inspectDatabase, and left as it is: ${what}`, async (t) => {
      const folder = await filled(t)
      const file = join(folder, 'svc.db')
      damage(file)
      const bytes = readFileSync(file)
      const found = inspectDatabase(folder)
      assert.match(found?.problem ?? '', /^\S+\/svc\.db is damaged \(.+\): the next start of the server sets it aside$/)
      assert.equal(found?.jobsByState.size, 0)
      assert.ok(readFileSync(file).equals(bytes))
    })
  }
})

describe('damage on a Node without SQLite', () => {
  if (hasSqlite) return
  it('is left as it is', () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'svc.db'), 'damaged')
    for (const use of [() => inspectDatabase(folder), () => Database.open({ folder, sync: 'normal', log: silentLogger })]) {
      assert.throws(use, /^DataError: paths\.data needs node:sqlite, which Node 20/)
    }
    assert.deepEqual(readdirSync(folder), ['svc.db'])
  })
})
