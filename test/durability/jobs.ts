/**
 * `npm run crash-jobs [kills] [jobs] [processes] [seed]`: kills a server, 200 times unless told otherwise, while 50,000
 * jobs pass, and counts those that were lost or done twice.
 */
import { killWhileJobsRun } from './jobs-world.ts'

const [kills = 200, jobs = 50_000, processes = 1, seed = 1] = process.argv.slice(2).map(Number)
const endings: (() => unknown)[] = []
try {
  const seen = await killWhileJobsRun({ after: (work: () => unknown) => void endings.push(work) }, { kills, jobs, processes, seed })
  console.log(`seed ${seed}, ${kills} kills, ${processes} processes: ${JSON.stringify(seen)}`)
  if (seen.lost > 0) process.exitCode = 1
} finally {
  for (const end of endings) await end()
}
