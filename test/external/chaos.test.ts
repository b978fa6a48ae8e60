import { test } from 'node:test'
import { runChaos } from '../chaos/world.ts'

// `npm run kill -- chaos` does the same for longer.
test('nothing acknowledged is lost or doubled while nodes and Redis come and go', async (t) => {
  const report = await runChaos(t, { events: 2000, clients: 40, troubles: 8, pauses: 1, failovers: 1, seed: 1, say: (line) => t.diagnostic(line) })
  t.diagnostic(JSON.stringify({ ...report, outcomes: Object.fromEntries(report.outcomes) }))
})
