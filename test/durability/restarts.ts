/**
 * `npm run kill -- restarts [EVENTS RESTARTS]`: restarts a server under load, 20 times during 100,000 events unless told
 * otherwise, and says whether a client was told of a gap, and which events were lost or came twice.
 */
import { runRestarts } from './restarts-world.ts'

const events = Number(process.argv[2] ?? 100_000)
const restarts = Number(process.argv[3] ?? 20)
const endings: (() => unknown)[] = []
try {
  const begun = performance.now()
  const { gaps, lostJobs, doubledJobs } = await runRestarts(
    { after: (work) => endings.push(work) },
    { events, restarts, by: 'SIGTERM' },
  )
  const toldOf = gaps.reduce((sum, count) => sum + count)
  const seconds = ((performance.now() - begun) / 1000).toFixed()
  console.log(`${restarts} restarts, ${events} events, ${seconds} s, Node ${process.versions.node}`)
  console.log(`${gaps.length} clients with cursors: each event once; ${toldOf} gaps told`)
  console.log(`the queue: ${lostJobs} events lost, ${doubledJobs} doubled`)
  if (toldOf + lostJobs + doubledJobs > 0) process.exitCode = 1
} finally {
  for (const end of endings.reverse()) await end()
}
