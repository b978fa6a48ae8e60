/**
 * `npm run bench -- latency`: how long an answer takes at a rate that the server can serve: at 30, 60 and 80 percent of the
 * requests a second that bare `node:http` reaches with all connections busy. Server and load have a core each; rounds
 * alternate over the servers. `support/fixed-rate.ts` says how the load keeps its rate.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { begin, checkAnswer, requestTo } from './http/answers.ts'
import { findNode, type NodeProgram } from './http/nodes.ts'
import { cores, startServer, type ServerProcess } from './http/server-process.ts'
import { workloadNamed, workloads } from './http/workloads.ts'
import { load, type LoadRequest } from './http/wrk.ts'
import { FixedRate } from './support/fixed-rate.ts'
import { requireQuiet } from './support/other-load.ts'
import { installPeers } from './support/peers.ts'
import { median, percentile } from './support/statistics.ts'

const connections = 64
const warmingMs = 3000
const percents = [30, 60, 80]
const percentiles = [50, 99, 99.9]
const names = ['bare', 'svc', 'fastify']
const usage = `npm run bench -- latency [WORKLOAD ...] [--nodes N,N] [--rounds N] [--seconds N]

Workloads: ${workloads.filter(({ tls }) => !tls).map(({ name }) => name).join(' ')}; json unless named
9 rounds of 2 seconds unless said. Needs Debian's wrk, and two cores with nothing else running: else it ends.
`

interface Contestant {
  readonly name: string
  readonly rate: FixedRate
  /** By percent of bare's rate: for each round the percentiles in milliseconds. */
  readonly rounds: Map<number, number[][]>
}

process.once('SIGINT', () => process.exit(1))
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    nodes: { type: 'string', default: '24,26' },
    rounds: { type: 'string', default: '9' },
    seconds: { type: 'string', default: '2' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  console.log(usage)
  process.exit(0)
}
installPeers('fastify')
spawnSync('taskset', ['-cp', String(cores.load), String(process.pid)])
const folder = mkdtempSync(join(tmpdir(), 'svc-latency-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
const otherPercent = (await requireQuiet()).toFixed(1)
console.log(
  `${values.rounds} rounds of ${values.seconds} s, ${connections} connections; before it another process took ` +
    `${otherPercent} % of a core at most\n`,
)
const head = percentiles.map((percent) => `p${percent} ms`).join(' | ')
console.log(`| workload | Node | of bare's rate | requests/s | server | ${head} |\n|${' --- |'.repeat(5 + percentiles.length)}`)
for (const name of positionals.length === 0 ? ['json'] : positionals) {
  for (const node of values.nodes.split(',')) await measureOn(findNode(Number(node)), name)
}

async function measureOn(node: NodeProgram, workloadName: string): Promise<void> {
  const workload = workloadNamed(workloadName)
  const servers: ServerProcess[] = []
  const contestants: Contestant[] = []
  try {
    let capacity = 0
    for (const name of names) {
      const server = await startServer(name, { node: node.program, workload, folder: join(folder, `${workloadName}-${node.version}-${name}`) })
      servers.push(server)
    }
    for (const server of servers) {
      const source = server.name === 'bare' ? (servers[1] ?? server) : server
      const request = requestTo(server, workload, await begin(source, workload))
      await checkAnswer(server.name, request, workload)
      const options = { core: cores.load, connections, seconds: 3, scriptFile: join(folder, 'request.lua') }
      await load(request, options)
      if (server.name === 'bare') capacity = (await load(request, options)).requestsPerSecond
      const rate = new FixedRate(textOf(request))
      await rate.open(Number(new URL(server.origin).port), connections)
      await rate.run(capacity * 0.3, warmingMs)
      contestants.push({ name: server.name, rate, rounds: new Map(percents.map((percent) => [percent, []])) })
    }
    for (let round = 0; round < Number(values.rounds); round += 1) await playRound(contestants, capacity, round)
    for (const percent of percents) print(workloadName, node, capacity, percent, contestants)
  } finally {
    for (const { rate } of contestants) rate.close()
    for (const server of servers) await server.stop()
  }
}

async function playRound(contestants: readonly Contestant[], capacity: number, round: number): Promise<void> {
  for (const percent of percents) {
    for (const at of contestants.keys()) {
      const { rate, rounds } = contestants[(at + round) % contestants.length] as Contestant // Within the list.
      const latencies = await rate.run((capacity * percent) / 100, Number(values.seconds) * 1000)
      rounds.get(percent)?.push(percentiles.map((one) => percentile(latencies, one)))
      await delay(50)
    }
  }
}

function print(name: string, node: NodeProgram, capacity: number, percent: number, contestants: readonly Contestant[]): void {
  for (const { name: server, rounds } of contestants) {
    const found = rounds.get(percent) ?? []
    const medians = percentiles.map((_, at) => median(found.map((round) => round[at] ?? Number.NaN)).toFixed(2))
    const rate = Math.round((capacity * percent) / 100).toLocaleString('en')
    console.log(`| ${name} | ${node.version} | ${percent} % | ${rate} | ${server} | ${medians.join(' | ')} |`)
  }
}

/** A request as it goes over the connection. */
function textOf({ url, method, headers, body }: LoadRequest): string {
  const { host, pathname } = new URL(url)
  const length = body === '' ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }
  const fields = Object.entries({ Host: host, ...headers, ...length }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${pathname} HTTP/1.1\r\n${fields.join('')}\r\n${body}`
}
