/**
 * `npm run bench -- redis`: commands a second of the client of the shared engine, and of sessions, channels and queues in it,
 * beside `redis-benchmark`, which is written in C and does nothing with the replies; then what an event takes of the
 * engine's memory. Needs Debian's package `redis-server`. `npm run bench -- redis events` leaves out the sessions.
 *
 * Surprise: the server takes a core of the same machine. What is compared is measured in turns, each for a moment.
 */
import { execFileSync } from 'node:child_process'
import type { QueueEvent } from '../../lib/events/broker.ts'
import { createRedisBroker } from '../../lib/redis/broker.ts'
import { Redis } from '../../lib/redis/client.ts'
import { RedisSessionStore } from '../../lib/redis/session-store.ts'
import { parseRedisUrl } from '../../lib/config/redis-url.ts'
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
const redis = new Redis({ target: parseRedisUrl(server.url), name: 'bench' })
const store = new RedisSessionStore({ redis, prefix: 'svc:', problemOf: () => undefined, onProblem: console.error })

const id = 'k3Jr0vYw9LZ_x-2bq7H1cT5nE8sDfG4uMaPiOyRtWvQ'
const hourMs = 3_600_000
const session = new Map([['key:user', '"ann"'], ['key:_csrf_token', `"${id}"`], ['key:cart', '[1,2,3]']])
const changes: FieldChanges = { set: new Map([['key:cart', '[1,2,3,4]']]), removed: new Set() }
await store.create(id, session, hourMs)
await redis.command('SET', 'key:__rand_int__', 'xxx')

const listening = new Redis({ target: parseRedisUrl(server.url), name: 'bench-listening' })
const options = { prefix: 'svc:', channelPrefix: 'svc:0:', onProblem: console.error }
const broker = createRedisBroker({ ...options, redis })
const otherBroker = createRedisBroker({ ...options, redis: listening })
const limits = { maxEvents: 1000, maxAgeMs: hourMs }
const text = JSON.stringify({ text: 'x'.repeat(89) })
let newest = await broker.publish('read', text, limits)

/** Who waits to hear of an event, by its text. */
const waiting = new Map<string, () => void>()
let texts = 0
await otherBroker.subscribe('heard', (event) => 'text' in event && waiting.get(event.text)?.())

/** Publishes, and resolves when another client has heard it. */
async function publishAndHear(): Promise<void> {
  const own = JSON.stringify({ text: `${++texts}`.padEnd(89, 'x') })
  const heard = new Promise<void>((resolve) => waiting.set(own, resolve))
  await broker.publish('heard', own, limits)
  await heard
  waiting.delete(own)
}

async function pushAndTake(): Promise<void> {
  await broker.push('q', text, limits)
  otherBroker.handedOut('q', (await otherBroker.take('q')) as QueueEvent) // Each takes one that was pushed.
}

const rows: readonly Row[] = [
  { name: 'GET', run: () => redis.command('GET', 'key:__rand_int__') },
  ...(process.argv.includes('events') ? [] : [
    { name: 'session read', run: async () => store.read(id) },
    { name: 'session write', run: async () => store.merge(id, changes, hourMs) },
  ]),
  { name: 'publish', run: async () => void (newest = await broker.publish('read', text, limits)) },
  { name: 'poll that finds nothing', run: async () => broker.read('read', newest) },
  { name: 'publish until it is heard', run: publishAndHear },
  { name: 'push, then take', run: pushAndTake },
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

const kept = 10_000
const many = { maxEvents: kept, maxAgeMs: hourMs }
await Promise.all(Array.from({ length: kept }, () => Promise.all([broker.publish('memory', text, many), broker.push('memory', text, many)])))
for (const key of ['channel', 'queue']) {
  const bytes = Number(await redis.command('MEMORY', 'USAGE', `svc:${key}:memory`, 'SAMPLES', 0))
  console.log(`${(bytes / kept).toFixed(1)} bytes of the engine's memory an event of a ${key}, of which its text has ${text.length}`)
}

await Promise.all([broker.close(), otherBroker.close()])
await Promise.all([redis.close(), listening.close()])
for (const ending of endings) ending()
