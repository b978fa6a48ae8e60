import assert from 'node:assert/strict'
import { it } from 'node:test'
import { runRestarts } from './restarts-world.ts'

it('a planned restart under load loses and doubles no event, and tells of no gap', async (t) => {
  const report = await runRestarts(t, { events: 1500, restarts: 2, by: 'SIGTERM' })
  assert.deepEqual(report, { restarts: 2, events: 1500, gaps: Array(8).fill(0), lostJobs: 0, doubledJobs: 0 })
})

it('a server that was killed tells every cursor of a gap', async (t) => {
  const { gaps } = await runRestarts(t, { events: 600, restarts: 2, by: 'SIGKILL' })
  assert.deepEqual(gaps, Array(8).fill(2))
})
