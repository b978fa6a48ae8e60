// Jobs of a server that is killed: npm run crash-jobs does it more often.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { hasSqlite } from '../support/sqlite.ts'
import { killWhileJobsRun } from './jobs-world.ts'

describe('jobs of a server that is killed', { skip: !hasSqlite && 'this Node has no SQLite' }, () => {
  for (const processes of [1, 3]) {
    it(`are all done at least once, with ${processes} processes`, async (t) => {
      const seen = await killWhileJobsRun(t, { kills: 10, jobs: 2000, processes, seed: 41 })
      t.diagnostic(JSON.stringify(seen))
      assert.ok(seen.acknowledged > 500, String(seen.acknowledged))
      assert.equal(seen.lost, 0)
    })
  }
})
