/**
 * `npm run bench:redis`: commands a second of the client of the shared engine, and of sessions in it, beside
 * `redis-benchmark`, which is written in C and does nothing with the replies. Needs Debian's package `redis-server`.
 *
 * Surprise: the server takes a core of the same machine. What is compared is measured in turns, each for a moment.
 */
import { execFileSync } from 'node:child_process'
import { createRedis } from '../../lib/redis/client.ts'
import { createRedisSessionStore } from '../../lib/redis/session-store.ts'
import { parseRedisUrl } from '../../lib/redis/url.ts'
import type { FieldChanges } from '../../lib/session/store.ts'
import { startRedis } from '../support/redis-server.ts'
import { median } from './support/statistics.ts'

interface Row {
  readonly name: string
  /** Does it once. */
  readonly run: () => Promise<unknown>
}

const rounds = 5
const roundMs = 1000
const inFlight = [1, 10, 100]

const endings: (() => unknown)[] = []
const server = await startRedis({ after: (ending: () => unknown) => void endings.push(ending) }, { tcp: true })
const redis = createRedis({ target: parseRedisUrl(server.url), name: 'bench' })
const store = createRedisSessionStore({ redis, prefix: 'svc:', problemOf: () => undefined, onProblem: console.error })

const id = 'k3Jr0vYw9LZ_x-2bq7H1cT5nE8sDfG4uMaPiOyRtWvQ'
const hourMs = 3_600_000
const session = new Map([['key:user', '"ann"'], ['key:_csrf_token', `"${id}"`], ['key:cart', '[1,2,3]']])
const changes: FieldChanges = { set: new Map([['key:cart', '[1,2,3,4]']]), removed: new Set() }
await store.create(id, session, hourMs)
await redis.command('SET', 'key:__rand_int__', 'xxx')

const rows: readonly Row[] = [
  { name: 'GET', run: () => redis.command('GET', 'key:__rand_int__') },
  { name: 'session read', run: async () => store.read(id) },
  { name: 'session write', run: async () => store.merge(id, changes, hourMs) },
]

/** Per second, and half and 99 of 100 within microseconds. */
interface Figures {
  readonly rate: number
  readonly p50Us: number
  readonly p99Us: number
}

/** Keeps so many under way for a round. */
async function measure(run: Row['run'], width: number): Promise<Figures> {
  const times: number[] = []
  const begun = performance.now()
  const end = begun + roundMs
  const loop = async (): Promise<void> => {
    for (let before = performance.now(); before < end; ) {
      await run()
      const after = performance.now()
      times.push(after - before)
      before = after
    }
  }
  await Promise.all(Array.from({ length: width }, loop))
  times.sort((a, b) => a - b)
  const at = (part: number): number => (times[Math.floor(times.length * part)] ?? 0) * 1000
  return { rate: (times.length / (performance.now() - begun)) * 1000, p50Us: at(0.5), p99Us: at(0.99) }
}

function benchmarkInC(width: number): number {
  const count = width === 1 ? 20_000 : 200_000
  const args = ['-p', `${server.port}`, '-c', '1', '-P', `${width}`, '-n', `${count}`, '-t', 'get', '--csv']
  const line = execFileSync('redis-benchmark', args, { encoding: 'utf8' }).split('\n').find((each) => each.startsWith('"GET"'))
  return Number(line?.split(',')[1]?.replaceAll('"', ''))
}

console.log('| | under way | a second | p50 us | p99 us | cores of this process |\n| --- | --- | --- | --- | --- | --- |')
for (const width of inFlight) {
  const found = rows.map(() => [] as (Figures & { cores: number })[])
  const inC: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    inC.push(benchmarkInC(width))
    for (const [at, { run }] of rows.entries()) {
      const before = process.cpuUsage()
      const figures = await measure(run, width)
      const { user, system } = process.cpuUsage(before)
      found[at]?.push({ ...figures, cores: (user + system) / 1000 / roundMs })
    }
  }
  console.log(`| redis-benchmark GET | ${width} | ${Math.round(median(inC))} | | | |`)
  for (const [at, { name }] of rows.entries()) {
    const middle = (of: keyof (Figures & { cores: number })): number => median((found[at] ?? []).map((each) => each[of]))
    const cells = [middle('rate'), middle('p50Us'), middle('p99Us')].map((value) => `${Math.round(value)}`)
    console.log(`| ${[name, width, ...cells, middle('cores').toFixed(2)].join(' | ')} |`)
  }
}

await redis.close()
for (const ending of endings) ending()
