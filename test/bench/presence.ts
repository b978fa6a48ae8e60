/**
 * `npm run bench -- presence [MEMBERS]`: so many members, 5,000 unless told otherwise, come to a server of two processes and
 * to three nodes with one Redis, and go: how soon everybody knows, how many messages that takes, and the processor time of
 * all processes together, Redis apart: for a member that comes, beyond what its stream takes, and for a second in which
 * nobody comes or goes, beyond one with streams alone. Needs Debian's `redis-server`.
 */
import { readFileSync } from 'node:fs'
import { Agent, get, type ClientRequest } from 'node:http'
import { cpus } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { startSeveral, type Several } from '../cluster/several.ts'
import { presenceFiles, runPresence } from '../live/presence-world.ts'
import { startRedis } from '../support/redis-server.ts'
import { cpuMs } from './http/process-figures.ts'

const members = Number(process.argv[2] ?? 5000)
if (!(members > 0)) throw new TypeError('Cannot begin: MEMBERS is a number over 0')
/** How long nobody comes or goes: several of the messages by which processes say that they are there. */
const quietMs = 15_000
const endings: (() => unknown)[] = []
const t = { after: (work: () => unknown) => void endings.push(work) }
const rest = { 'pool_rest.workers_sse': 2 * members }
console.log(`${members} members, Node ${process.versions.node}, ${cpus()[0]?.model ?? ''}`)
try {
  const server = await startSeveral(t, 2, presenceFiles, rest)
  await measure('two processes', [server.url, server.url], [server])
  const redis = await startRedis(t)
  const nodes: Several[] = []
  while (nodes.length < 3) nodes.push(await startSeveral(t, 1, presenceFiles, { ...rest, 'shared.url': redis.url }))
  await measure('three nodes', nodes.map(({ url }) => url), nodes)
} finally {
  for (const end of endings.reverse()) await end()
}

async function measure(where: string, urls: readonly string[], servers: readonly Several[]): Promise<void> {
  const cpu = (): number => servers.flatMap(({ child }) => family(child.pid as number)).reduce((sum, pid) => sum + cpuMs(pid), 0)
  const quiet = async (): Promise<number> => {
    const before = cpu()
    await delay(quietMs)
    return ((cpu() - before) * 1000) / quietMs
  }
  ;(await openStreams(urls, 500))() // What a stream needs is compiled.
  const beforeStreams = cpu()
  const close = await openStreams(urls, members)
  const ofStreams = cpu() - beforeStreams
  const quietWithStreams = await quiet()
  close()
  await delay(2000)

  const beforeMembers = cpu()
  let ofMembers = 0
  let quietWithMembers = 0
  const { comingMs, oneMoreMs, goingMs, messages } = await runPresence(t, urls, members, async () => {
    ofMembers = cpu() - beforeMembers
    quietWithMembers = await quiet()
  })
  const going = `they were gone ${(goingMs / 1000).toFixed(1)} s after they left`
  const coming = `known everywhere ${(comingMs / 1000).toFixed(1)} s after the first came, one more after ${oneMoreMs.toFixed()} ms`
  console.log(`${where}: ${coming}; ${going}; messages to each: ${messages.join(', ')}`)
  const [join, stream] = [ofMembers, ofStreams].map((ms) => ((ms * 1000) / members).toFixed())
  console.log(`  processor: a member that comes ${join} us, a stream alone ${stream} us`)
  console.log(`  a second at rest: with members ${quietWithMembers.toFixed(1)} ms, with streams alone ${quietWithStreams.toFixed(1)} ms`)
}

/** A process and its children. */
function family(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  return [pid, ...(children === '' ? [] : children.split(' ').map(Number))]
}

/** Opens streams that are no members; resolves when all of them have begun. Returns a function that ends them. */
async function openStreams(urls: readonly string[], count: number): Promise<() => void> {
  const agent = new Agent({ keepAlive: true, maxSockets: Infinity })
  const open: Promise<ClientRequest>[] = Array.from({ length: count }, (_, at) => new Promise((resolve, reject) => {
    const options = { agent, headers: { accept: 'text/event-stream' } }
    const sent = get(`${urls[at % urls.length]}/alone/${at}`, options, (response) => {
      response.on('error', () => {}).once('data', () => resolve(sent))
    }).on('error', reject)
  }))
  await Promise.all(open)
  return () => agent.destroy()
}
