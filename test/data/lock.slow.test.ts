import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { Database } from '../../lib/data/database.ts'
import { inspectDatabase } from '../../lib/data/inspect.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import { hasSqlite, rowsOf } from '../support/sqlite.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { openTest, startHolder } from './support.ts'

describe('the lock of a database', () => {
  if (!hasSqlite) {
    it('is not needed on a Node without SQLite, which opens none', async (t) => {
      await assert.rejects(startHolder(t, temporaryFolder()), /paths\.data needs node:sqlite, which Node 20/)
    })
    return
  }

  it('is held by another process until that is killed, which loses nothing that was committed', async (t) => {
    const folder = temporaryFolder()
    for (let round = 0; round < 3; round += 1) {
      const holder = await startHolder(t, folder)
      const files = readdirSync(folder)
      assert.throws(() => Database.open({ folder, sync: 'normal', log: silentLogger }), /svc\.db is in use by another server: stop that server/)
      assert.deepEqual(readdirSync(folder), files)
      const before = inspectDatabase(folder)?.jobsByState.get(0) ?? 0
      assert.ok(before > 0)
      holder.child.kill('SIGKILL')
      await holder.ended
      const { database, lines } = openTest(t, folder)
      const rows = rowsOf(join(folder, 'svc.db'), 'SELECT id FROM jobs ORDER BY id')
      assert.ok(rows.length >= before)
      assert.deepEqual([rows.at(-1)?.['id'], lines], [rows.length, []], 'without gaps')
      database.close()
      assert.equal(holder.stderr(), '', 'Node warns of nothing')
    }
  })

  it('refuses another process, also after a second opener in this one and after that process ended', async (t) => {
    const { folder, database } = openTest(t)
    for (let round = 0; round < 2; round += 1) {
      assert.throws(() => Database.open({ folder, sync: 'normal', log: silentLogger }), /is in use by another server/)
      await assert.rejects(startHolder(t, folder), /DataError: \S+\/svc\.db is in use by another server/)
    }
    database.close()
    await startHolder(t, folder)
    assert.equal(readFileSync(join(folder, 'svc.db-lock')).length, 0)
  })
})
