/**
 * `npm run bench -- costs`: what a server takes to run, and how that grows: memory for each route, session and open
 * connection, and the processor's time of a request beside them. The configuration is that of production.
 *
 * Surprise: memory is told by the server itself once it has collected its garbage, so it is what is held, not what V8 has
 * asked the system for; the resident memory stands beside it.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { findNode, type NodeProgram } from './http/nodes.ts'
import { cores, startSvc, type ServerProcess } from './http/server-process.ts'
import { FixedRate } from './support/fixed-rate.ts'
import { RawClient } from './support/raw-client.ts'

const requestsPerSecond = 15_000
const measuredMs = 2000
const connections = 64
const action = `import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
setFlagsFromString('--expose_gc')
const collect = runInNewContext('gc')
export const held = async () => {
  for (let time = 0; time < 3; time += 1) {
    collect()
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  const { heapUsed, external, rss } = process.memoryUsage()
  return { held: heapUsed + external, rss }
}
export const user = ({ params }) => ({ id: params.id, name: 'Ada' })
export const begin = ({ session, empty }) => {
  session.set('user', 'Ada')
  session.set('since', 1_700_000_000)
  session.set('theme', 'dark')
  return empty()
}
export const seen = ({ session }) => ({ id: session.get('user') ?? 'none', name: 'Ada' })
`

interface Held {
  readonly held: number
  readonly rss: number
}

/** How a thing is made more of, and what is asked while there are so many. */
interface Growth {
  readonly counts: readonly number[]
  /** Makes them so many, in a server that has as many as the count before; undefined: the server is started with them. */
  readonly grow?: (port: number, from: number, to: number) => Promise<() => void>
  readonly path: string
}

const growths: Readonly<Record<string, Growth>> = {
  routes: { counts: [1, 10, 100, 1000, 10_000], path: '/r0/users/42' },
  sessions: { counts: [1, 100, 10_000, 100_000], grow: makeSessions, path: '/seen' },
  connections: { counts: [1, 100, 1000, 10_000], grow: openConnections, path: '/r0/users/42' },
}

process.once('SIGINT', () => process.exit(1))
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { nodes: { type: 'string', default: '24,26' } },
})
spawnSync('taskset', ['-cp', String(cores.load), String(process.pid)])
const folder = mkdtempSync(join(tmpdir(), 'svc-costs-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
console.log('| what | Node | count | held MiB | bytes each more | resident MiB | CPU µs of a request |\n|' + ' --- |'.repeat(7))
for (const node of values.nodes.split(',')) {
  for (const name of positionals.length === 0 ? Object.keys(growths) : positionals) {
    const growth = growths[name]
    if (growth === undefined) throw new Error(`${name} is none of ${Object.keys(growths).join(', ')}`)
    await measure(name, growth, findNode(Number(node)))
  }
}

async function measure(name: string, { counts, grow, path }: Growth, node: NodeProgram): Promise<void> {
  let server: ServerProcess | undefined
  let last: { readonly count: number; readonly held: number } | undefined
  const endings: (() => void)[] = []
  try {
    for (const count of counts) {
      if (grow === undefined || server === undefined) {
        await server?.stop()
        server = await start(node, grow === undefined ? count : 1)
      }
      const port = Number(new URL(server.origin).port)
      if (grow !== undefined) endings.push(await grow(port, last?.count ?? 0, count))
      const cpuUs = await measureCpu(server, port, path)
      const { held, rss } = await ask(port)
      const each = last === undefined ? '' : ((held - last.held) / (count - last.count)).toFixed()
      const cells = [name, node.version, count.toLocaleString('en'), mebibytes(held), each, mebibytes(rss), cpuUs.toFixed(1)]
      console.log(`| ${cells.join(' | ')} |`)
      last = { count, held }
    }
  } finally {
    for (const end of endings) end()
    await server?.stop()
  }
}

/** Sends at a rate that every server keeps up with, after half as many requests that are not counted. */
async function measureCpu(server: ServerProcess, port: number, path: string): Promise<number> {
  const rate = new FixedRate(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  await rate.open(port, connections)
  await rate.run(requestsPerSecond, measuredMs / 2)
  const before = server.cpuMs()
  const { length } = await rate.run(requestsPerSecond, measuredMs)
  const cpuUs = ((server.cpuMs() - before) * 1000) / length
  rate.close()
  return cpuUs
}

async function ask(port: number): Promise<Held> {
  const client = await RawClient.open(port)
  const answer = await client.ask('GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n')
  client.close()
  return JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)) as Held // The action's own answer.
}

/** Each request has no cookie, so each makes a session. */
async function makeSessions(port: number, from: number, to: number): Promise<() => void> {
  const client = await RawClient.open(port)
  for (let count = from; count < to; count += 1) await client.ask('GET /begin HTTP/1.1\r\nHost: localhost\r\n\r\n')
  client.close()
  return () => {}
}

/** Each has asked once, and stays open. */
async function openConnections(port: number, from: number, to: number): Promise<() => void> {
  const clients: RawClient[] = []
  for (let count = from; count < to; count += 1) {
    const client = await RawClient.open(port)
    await client.ask('GET /r0/users/42 HTTP/1.1\r\nHost: localhost\r\n\r\n')
    clients.push(client)
  }
  return () => clients.forEach((client) => client.close())
}

function start(node: NodeProgram, routes: number): Promise<ServerProcess> {
  const own = mkdtempSync(join(folder, 'application-'))
  const route = (name: string, url: string, action: string, middleware = ''): object => {
    return { name, method: 'GET', url, action: `actions.mjs@${action}`, middleware }
  }
  const records = [route('held', '/held', 'held'), ...['begin', 'seen'].map((name) => route(name, `/${name}`, name, 'SVC_MwSession'))]
  for (let at = 0; at < routes; at += 1) records.push(route(`r${at}`, `/r${at}/users/:id`, 'user'))
  mkdirSync(join(own, 'routes'))
  writeFileSync(join(own, 'routes/all.json'), JSON.stringify(records))
  writeFileSync(join(own, 'actions.mjs'), action)
  const config = { app_key: 'benchmark', server: { port: 0, keep_alive_timeout_s: 3600 }, paths: {} }
  writeFileSync(join(own, 'svc.json'), JSON.stringify(config))
  return startSvc(node.program, join(own, 'svc.json'))
}

function mebibytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1)
}
