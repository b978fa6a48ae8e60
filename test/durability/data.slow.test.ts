// Jobs and durable events of a server that is killed: `npm run kill -- data` does it more often.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { applicationFolder } from '../support/application-folder.ts'
import { launch } from '../support/launch.ts'
import { hasSqlite } from '../support/sqlite.ts'
import { until } from '../support/until.ts'
import { eventFiles, killWhileEventsPass } from './events-world.ts'
import { killWhileJobsRun } from './jobs-world.ts'

describe('a server that is killed', () => {
  it('refuses durable events on a Node without SQLite, and names the Nodes that have it', async (t) => {
    const server = launch(t, ['start'], { cwd: applicationFolder(eventFiles, { 'app.env': 'dev', 'dev.watch': false }) })
    const base = await server.listening()
    const { status } = await fetch(`${base}/publish?first=0`)
    assert.equal(status, hasSqlite ? 200 : 500)
    const reason = /paths\.data needs node:sqlite, which Node .*: run Node 22\.13 or later/
    if (!hasSqlite) await until(() => reason.test(server.stdout())) // The line may arrive after the response.
  })

  if (!hasSqlite) return
  for (const processes of [1, 3]) {
    it(`does each job at least once, with ${processes} processes`, async (t) => {
      const seen = await killWhileJobsRun(t, { kills: 10, jobs: 2000, processes, nodes: 0, seed: 41 })
      t.diagnostic(JSON.stringify(seen))
      assert.ok(seen.acknowledged > 500, String(seen.acknowledged))
      assert.equal(seen.lost, 0)
    })

    it(`delivers each durable event once and in order, with ${processes} processes`, async (t) => {
      const seen = await killWhileEventsPass(t, { kills: 10, events: 2000, processes, nodes: 0, seed: 41 })
      t.diagnostic(JSON.stringify(seen))
      assert.ok(seen.acknowledged > 500, String(seen.acknowledged))
      assert.deepEqual([seen.lost, seen.twice, seen.outOfOrder, seen.gaps], [0, 0, 0, 0])
    })
  }
})
