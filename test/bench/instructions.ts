/**
 * `npm run bench -- instructions`: how many instructions a request takes outside of the kernel, in the thread that serves it,
 * counted by Valgrind's callgrind. A machine that is slow or busy counts the same as one that is fast and free.
 *
 * Surprise: what collects memory and what compiles JavaScript is left out. Both run when they like, in threads of their own
 * as well, and an interval has one collection more than the next.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { begin, checkAnswer, requestTo } from './http/answers.ts'
import { findNode, ownNode, type NodeProgram } from './http/nodes.ts'
import { serverNames } from './http/options.ts'
import { startServer } from './http/server-process.ts'
import { workloads, type Workload } from './http/workloads.ts'
import type { LoadRequest } from './http/wrk.ts'
import { installPeers } from './support/peers.ts'
import { RawClient } from './support/raw-client.ts'
import { median } from './support/statistics.ts'

/** Few: under callgrind a turn with many would be so long that the pool lets what comes wait. */
const connections = 4
/** Until all that a request needs is compiled. */
const warmingRequests = 100_000
const intervals = 9
const requestsInInterval = 1600
/** Those of each new connection that are not counted. */
const requestsOfNewConnection = 100
/** Those that are counted unless others are named. */
const ordinary = ['bare', 'svc', 'svc, session', 'fastify', 'fastify, logger']
/** Functions of V8 that collect memory or compile. */
const housekeeping =
  /v8::internal::(?:compiler|maglev|baseline|interpreter|turboshaft)::|Scaveng|IterateObjectCache|BodyDescriptor|Evacuat|MarkCompact|Marking|Sweep|Pretenuring|RootVisitor|SizeFromMap|ShouldBePromoted/

const usage = `npm run bench -- instructions [WORKLOAD ...] [--nodes N,N] [--servers A,B]

Workloads: ${workloads.map(({ name }) => name).join(' ')}; json unless named
Servers: ${ordinary.join('; ')}, beside bare. A minute or two each; needs Debian's valgrind.
`

process.once('SIGINT', () => process.exit(1))
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { nodes: { type: 'string' }, servers: { type: 'string' }, help: { type: 'boolean', default: false } },
})
const asked = workloads.filter(({ name }) => (positionals.length === 0 ? name === 'json' : positionals.includes(name)))
if (values.help || asked.length < positionals.length) {
  console.log(usage)
  process.exit(values.help ? 0 : 2)
}
const chosen = chosenServers(values.servers)
if (spawnSync('valgrind', ['--version']).error !== undefined) {
  console.error('valgrind is missing: apt-get install valgrind')
  process.exit(1)
}
installPeers('fastify', '@fastify/cookie', '@fastify/session', '@fastify/formbody', '@fastify/csrf-protection', '@fastify/view', 'ejs', 'pino')
const root = mkdtempSync(join(tmpdir(), 'svc-bench-'))
process.once('exit', () => rmSync(root, { recursive: true, force: true }))
const nodes = values.nodes === undefined ? [ownNode] : values.nodes.split(',').map((major) => findNode(Number(major)))

console.log('| workload | Node | server | instructions [lowest, highest] | bare takes |\n| --- | --- | --- | --- | --- |')
for (const workload of asked) {
  for (const node of nodes) await countAll(workload, node)
}

function chosenServers(text: string | undefined): readonly string[] {
  if (text === undefined) return ordinary
  try {
    return ['bare', ...serverNames(text)]
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`)
    process.exit(2)
  }
}

async function countAll(workload: Workload, node: NodeProgram): Promise<void> {
  let ofBare = Number.NaN
  for (const name of workload.servers.filter((server) => chosen.includes(server))) {
    const counts = await count(workload, name, node)
    const middle = median(counts)
    if (name === 'bare') ofBare = middle
    const ends = [Math.min(...counts), Math.max(...counts)].map(thousands).join(', ')
    const cells = [workload.name, node.version, name, `${thousands(middle)} [${ends}]`, (ofBare / middle).toFixed(3)]
    console.log(`| ${cells.join(' | ')} |`)
  }
}

/** Instructions for a request, for each interval. */
async function count(workload: Workload, name: string, { program, version }: NodeProgram): Promise<number[]> {
  const folder = join(root, `${workload.name} ${version} ${name}`)
  const output = mkdtempSync(join(root, 'counts-'))
  const through = ['valgrind', '-q', '--tool=callgrind', '--instr-atstart=no', '--separate-threads=yes', `--callgrind-out-file=${output}/part`]
  const server = await startServer(name, { node: program, workload, folder, through })
  const control = (...words: string[]): void => void execFileSync('callgrind_control', [...words, String(server.pid)], { stdio: 'ignore' })
  try {
    const request = requestTo(server, workload, name === 'bare' ? { cookie: '', token: '' } : await begin(server, workload))
    await checkAnswer(name, request, workload)
    const port = Number(new URL(server.origin).port)
    const text = textOf(request)
    // New connections for each interval: under callgrind, kept ones were found closed after the counts were written.
    const play = async (times: number, count: (word: 'on' | 'off') => void): Promise<void> => {
      const clients = await Promise.all(Array.from({ length: connections }, () => RawClient.open(port)))
      const ask = (times: number): Promise<unknown> =>
        Promise.all(clients.map((client) => askAgain(client, text, request.status, times)))
      await ask(requestsOfNewConnection)
      count('on')
      await ask(times / connections)
      count('off')
      for (const client of clients) client.close()
    }
    await play(warmingRequests, () => {})
    for (let interval = 0; interval < intervals; interval += 1) {
      await play(requestsInInterval, (word) => control('-i', word))
      control('-d')
    }
  } finally {
    await server.stop()
  }
  // The first thread of each part is the one that runs JavaScript.
  return readdirSync(output)
    .filter((file) => /^part\.\d+-01$/.test(file))
    .map((file) => instructionsIn(readFileSync(join(output, file), 'utf8')) / requestsInInterval)
}

function textOf({ url, method, headers, body }: LoadRequest): string {
  const { pathname, host } = new URL(url)
  const fields = Object.entries({ Host: host, ...headers, ...(body === '' ? {} : { 'Content-Length': body.length }) })
  return [`${method} ${pathname} HTTP/1.1`, ...fields.map(([name, value]) => `${name}: ${value}`), '', body].join('\r\n')
}

/** Asks the same again and again. Rejects when an answer has another status. */
function askAgain(client: RawClient, text: string, status: number, times: number): Promise<void> {
  const right = `HTTP/1.1 ${status} `
  let left = times
  return new Promise((resolve, reject) => {
    client.answered = (answer) => {
      left -= 1
      if (!answer.startsWith(right)) reject(new Error(`Not the right answer: ${answer}`))
      else if (left === 0) resolve()
      else client.send(text)
    }
    client.send(text)
  })
}

/**
 * Sums what callgrind counted in functions themselves: lines of position and count below their function's name. The line
 * after `calls=` is what was called and stands elsewhere as well. A name is written once, then its number stands for it.
 */
function instructionsIn(profile: string): number {
  const counted = new Map<string, boolean>()
  let sum = 0
  let counts = false
  let isCall = false
  for (const line of profile.split('\n')) {
    const [, number, name] = /^c?fn=(\(\d+\)) ?(.*)$/.exec(line) ?? []
    if (number !== undefined) {
      if (name !== '') counted.set(number, !housekeeping.test(name as string))
      if (line.startsWith('fn=')) counts = counted.get(number) ?? true
    } else if (line.startsWith('calls=')) {
      isCall = true
    } else if (/^[-+*\d]/.test(line)) {
      if (counts && !isCall) sum += Number(line.split(' ')[1])
      isCall = false
    }
  }
  return sum
}

function thousands(value: number): string {
  return Math.round(value).toLocaleString('en')
}
