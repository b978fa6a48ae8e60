/**
 * `npm run bench:presence [-- MEMBERS]`: so many members, 5,000 unless told otherwise, come to a server of two processes and
 * to three nodes with one Redis, and go: how soon everybody knows, and how many messages that takes. Needs Debian's
 * `redis-server`.
 */
import { cpus } from 'node:os'
import { startSeveral } from '../group/several.ts'
import { presenceFiles, runPresence } from '../live/presence-world.ts'
import { startRedis } from '../support/redis-server.ts'

const members = Number(process.argv[2] ?? 5000)
const endings: (() => unknown)[] = []
const t = { after: (work: () => unknown) => void endings.push(work) }
const rest = { 'pool_rest.workers_sse': 2 * members }
console.log(`${members} members, Node ${process.versions.node}, ${cpus()[0]?.model ?? ''}`)
try {
  const { url } = await startSeveral(t, 2, presenceFiles, rest)
  tell('two processes', await runPresence(t, [url, url], members))
  const redis = await startRedis(t)
  const nodes: string[] = []
  while (nodes.length < 3) nodes.push((await startSeveral(t, 1, presenceFiles, { ...rest, 'shared.url': redis.url })).url)
  tell('three nodes', await runPresence(t, nodes, members))
} finally {
  for (const end of endings.reverse()) await end()
}

function tell(where: string, { comingMs, goingMs, messages }: Awaited<ReturnType<typeof runPresence>>): void {
  const going = `they were gone ${(goingMs / 1000).toFixed(1)} s after they left`
  console.log(`${where}: known everywhere ${(comingMs / 1000).toFixed(1)} s after the first came; ${going}; messages to each: ${messages.join(', ')}`)
}
