/**
 * `npm run kill -- data [jobs|events] [kills] [count] [processes] [nodes] [seed]`: kills a server, 200 times unless told
 * otherwise, while 50,000 jobs or events of a durable channel pass, and counts those that were lost or came twice. With
 * nodes, these and their Redis are killed in turn.
 */
import { killWhileEventsPass } from './events-world.ts'
import { killWhileJobsRun } from './jobs-world.ts'

const [what = 'jobs', ...numbers] = process.argv.slice(2)
const [kills = 200, count = 50_000, processes = 1, nodes = 0, seed = 1] = numbers.map(Number)
const endings: (() => unknown)[] = []
const t = { after: (work: () => unknown) => void endings.push(work) }
try {
  const seen =
    what === 'events'
      ? await killWhileEventsPass(t, { kills, events: count, processes, nodes, seed })
      : await killWhileJobsRun(t, { kills, jobs: count, processes, nodes, seed })
  console.log(`${what}, seed ${seed}, ${kills} kills, ${processes} processes, ${nodes} nodes: ${JSON.stringify(seen)}`)
  if (seen.lost > 0) process.exitCode = 1
} finally {
  for (const end of endings) await end()
}
