/**
 * `npm run kill -- chaos [EVENTS SEED]`: 50,000 events to 300 clients with cursors, through nginx and three nodes with one
 * Redis, while nodes are killed, stopped and started and Redis is paused, killed and replaced by its replica. Needs
 * Debian's packages `nginx-light` and `redis-server`. It ends with 1 and says what is wrong when anything acknowledged is
 * lost, doubled or out of order.
 */
import { runChaos } from './world.ts'

const [events = 50_000, seed = 1] = process.argv.slice(2).map(Number)
if (!Number.isInteger(events) || !Number.isInteger(seed)) throw new TypeError('Cannot begin: EVENTS and SEED are integers')
const clients = 300
const endings: (() => unknown)[] = []
const begun = performance.now()
const seconds = (): string => `${((performance.now() - begun) / 1000).toFixed()} s`
try {
  const report = await runChaos(
    { after: (ending: () => unknown) => void endings.push(ending) },
    { events, clients, troubles: 60, pauses: 4, failovers: 5, seed, say: (line) => console.log(`${seconds()}: ${line}`) },
  )
  const { acknowledged, unacknowledged, kills, stops, pushed, lostOfQueue, counted, outcomes } = report
  console.log(`\nseed ${seed}, ${seconds()}, Node ${process.versions.node}: ${kills} kills and ${stops} stops of nodes`)
  console.log(`${acknowledged} events acknowledged: each of ${clients} clients got every one once, in order, and no gap`)
  console.log(`${unacknowledged} more were published though their publishers had no answer: the same holds for them`)
  console.log(`${pushed} pushes acknowledged: none came twice, ${lostOfQueue} were on the way to a client or in a node that was killed`)
  console.log(`${counted} steps in sessions, none undone`)
  for (const [outcome, count] of [...outcomes].sort()) console.log(`  ${outcome}: ${count}`)
} catch (error) {
  console.error(`After ${seconds()}:`, error)
  process.exitCode = 1
} finally {
  for (const end of endings.reverse()) await end()
}
