/**
 * `npm run bench -- scaling`: what a request takes of the processor with one process and with two (`server.processes`), and
 * how many are answered: JSON with one parameter, a session in memory (with two processes: in the primary), and one in Redis.
 * Needs Debian's packages `wrk` and `redis-server`.
 *
 * Surprise: server, load and Redis share the cores of this machine, so with two processes the rate shows what is left for
 * them. How many cores each took stands beside it; the processor time of a request is what may be compared. It is that of all
 * processes of the server. Rounds alternate; a ratio is the median of those within a round.
 */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { promisify } from 'node:util'
import { applicationFolder } from '../support/application-folder.ts'
import { launch } from '../support/launch.ts'
import { startRedis } from '../support/redis-server.ts'
import { request } from '../support/request.ts'
import { cpuMs } from './http/process-figures.ts'
import { parseReport } from './http/wrk.ts'
import { median, medianRatio } from './support/statistics.ts'

/** A server that is measured. */
interface Rival {
  readonly processes: number
  readonly url: string
  readonly cookie: string
  /** The processor time of all its processes so far, in milliseconds. */
  spentMs(): number
}

/** What one round has shown of one server. */
interface Figures {
  readonly rate: number
  /** Microseconds of processor time a request. */
  readonly serverUs: number
  readonly redisUs: number
  /** Cores that were busy with it. */
  readonly serverCores: number
  readonly loadCores: number
  readonly redisCores: number
}

const rounds = Number(process.env['BENCH_ROUNDS'] ?? 7)
const seconds = 2
const connections = 64
const files = {
  'routes/home.json': [
    { name: 'user', url: '/users/:id', action: 'home.mjs@user' },
    { name: 'begin', url: '/begin', action: 'home.mjs@begin', middleware: 'SVC_MwSession' },
    { name: 'poll', url: '/poll', action: 'home.mjs@poll' },
    { name: 'session', url: '/session', action: 'home.mjs@session', middleware: 'SVC_MwSession' },
  ],
  'home.mjs': `export const user = ({ params }) => ({ id: params.id, name: 'Ada' })
    export const begin = ({ session }) => { session.set('user', 'Ada'); return 'begun' }
    export const poll = ({ channel, longPoll }) => longPoll(channel('c'), { timeout_s: 0 })
    export const session = ({ session }) => ({ user: session.get('user') })`,
}
const endings: (() => unknown)[] = []
const owner = { after: (ending: () => unknown) => void endings.push(ending) }

try {
  const redis = await startRedis(owner)
  const tables = [
    { title: 'JSON with one parameter', path: '/users/42', config: {} },
    { title: 'a session, in memory', path: '/session', config: {} },
    { title: 'a session, in Redis', path: '/session', config: { 'shared.url': redis.url } },
    { title: 'a poll, in memory', path: '/poll', config: {} },
    { title: 'a poll, in Redis', path: '/poll', config: { 'shared.url': redis.url } },
  ]
  console.log(`Node ${process.versions.node}, ${cpus()[0]?.model ?? '?'}, ${cpus().length} cores, ${rounds} rounds of ${seconds} s, ${connections} connections\n`)
  console.log('| | processes | requests/s | times | us a request | times | cores: server, wrk, Redis | us of Redis |')
  console.log('| --- | --- | --- | --- | --- | --- | --- | --- |')
  for (const { title, path, config } of tables) {
    const rivals = [await start(1, config), await start(2, config)]
    const found = rivals.map((): Figures[] => [])
    for (const rival of rivals) await measure(rival, path, redis.pid)
    for (let round = 0; round < rounds; round += 1) {
      const order = round % 2 === 0 ? [0, 1] : [1, 0]
      for (const at of order) found[at]?.push(await measure(rivals[at] as Rival, path, redis.pid)) // There are two.
    }
    for (const [at, { processes }] of rivals.entries()) console.log(row(title, processes, found[at] ?? [], found[0] ?? []))
  }
} finally {
  for (const end of endings.reverse()) await end()
}

function row(title: string, processes: number, figures: readonly Figures[], ofOne: readonly Figures[]): string {
  const of = (name: keyof Figures, list = figures): number[] => list.map((each) => each[name])
  const times = (name: keyof Figures): string => medianRatio(of(name), of(name, ofOne)).toFixed(2)
  const cores = (['serverCores', 'loadCores', 'redisCores'] as const).map((name) => median(of(name)).toFixed(2)).join(', ')
  const [rate, serverUs, redisUs] = [median(of('rate')).toFixed(), median(of('serverUs')).toFixed(1), median(of('redisUs')).toFixed(1)]
  return `| ${title} | ${processes} | ${rate} | ${times('rate')} | ${serverUs} | ${times('serverUs')} | ${cores} | ${redisUs} |`
}

/** Starts the launcher as it ships, with the configuration of production; asks for a session. */
async function start(processes: number, config: Readonly<Record<string, unknown>>): Promise<Rival> {
  const cwd = applicationFolder(files, { 'server.processes': processes, ...config })
  const launched = launch(owner, [], { cwd, nodeOptions: [], env: { NODE_ENV: 'production' } })
  const url = await launched.listening()
  const begun = await request(`${url}/begin`)
  const pid = launched.child.pid as number // It listens.
  const pids = [pid, ...childrenOf(pid)]
  return {
    processes,
    url,
    cookie: begun.headers['set-cookie']?.[0]?.split(';')[0] ?? '',
    spentMs: () => pids.reduce((sum, each) => sum + cpuMs(each), 0),
  }
}

async function measure({ url, cookie, spentMs }: Rival, path: string, redisPid: number): Promise<Figures> {
  const wrk = ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency', '--timeout', '10s', '-H', `Cookie: ${cookie}`, url + path]
  const [serverBefore, redisBefore, begun] = [spentMs(), cpuMs(redisPid), performance.now()]
  // What a child took of the processor the shell can tell, and Node cannot.
  const { stdout, stderr } = await promisify(execFile)('bash', ['-c', 'TIMEFORMAT="%U %S"; time wrk "$@"', 'bash', ...wrk])
  const wallMs = performance.now() - begun
  const [serverMs, redisMs] = [spentMs() - serverBefore, cpuMs(redisPid) - redisBefore]
  const [user = 0, system = 0] = stderr.trim().split(' ').map(Number)
  const { requests, requestsPerSecond } = parseReport(stdout, 200)
  return {
    rate: requestsPerSecond,
    serverUs: (serverMs * 1000) / requests,
    redisUs: (redisMs * 1000) / requests,
    serverCores: serverMs / wallMs,
    loadCores: ((user + system) * 1000) / wallMs,
    redisCores: redisMs / wallMs,
  }
}

function childrenOf(pid: number): number[] {
  return readdirSync('/proc').map(Number).filter((each) => {
    if (Number.isNaN(each)) return false
    try {
      // The second field behind the name is the parent.
      return Number(readFileSync(`/proc/${each}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ')[1]) === pid
    } catch {
      return false // It has ended meanwhile.
    }
  })
}
