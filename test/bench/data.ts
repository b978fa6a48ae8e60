/**
 * `npm run bench -- data`: jobs and durable events a second, in the SQLite file of a server and in Redis, beside BullMQ with
 * the same Redis. Needs Node 22.13 or later and Debian's package `redis-server`.
 *
 * Surprise: a job that is enqueued must also be done, or the store grows from round to round. So what is measured is a
 * job from `enqueue` to `settle`, and that of BullMQ from `add` to the event `completed`. What only `enqueue` takes is
 * measured as well, and its jobs are removed between the rounds.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseRedisUrl } from '../../lib/config/redis-url.ts'
import { Database } from '../../lib/data/database.ts'
import { SqliteBroker } from '../../lib/data/sqlite-broker.ts'
import { openJobs } from '../../lib/data/sqlite-jobs.ts'
import type { Broker } from '../../lib/events/broker.ts'
import type { JobStore } from '../../lib/jobs/job-store.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import { createRedisBroker } from '../../lib/redis/broker.ts'
import { Redis } from '../../lib/redis/client.ts'
import { RedisJobs } from '../../lib/redis/jobs.ts'
import { startRedis } from '../support/redis-server.ts'
import { installPeers, requirePeer, versionOf } from './support/peers.ts'
import { median } from './support/statistics.ts'

/** What is used of BullMQ. */
interface Bull {
  readonly Queue: new (name: string, options: object) => {
    add(name: string, data: unknown, options?: object): Promise<unknown>
    obliterate(options: object): Promise<unknown>
    close(): Promise<void>
  }
  readonly Worker: new (name: string, run: () => Promise<unknown>, options: object) => {
    on(event: 'completed', listener: () => void): void
    waitUntilReady(): Promise<unknown>
    close(): Promise<void>
  }
}

interface Row {
  readonly name: string
  readonly width: number
  /** Does it so many times, and returns when all are done. */
  readonly run: (count: number) => Promise<void>
  /** Called after each round, untimed. */
  readonly clear?: () => Promise<void>
}

const rounds = 5
const count = 5000
const workers = 4
const data = JSON.stringify({ to: 'ann@example.com', order: 1234, text: 'x'.repeat(60) })
const endings: (() => unknown)[] = []

const folder = mkdtempSync(join(tmpdir(), 'svc-bench-'))
endings.push(() => rmSync(folder, { recursive: true, force: true }))
const database = Database.open({ folder, sync: 'normal', log: silentLogger })
const t = { after: (ending: () => unknown) => void endings.push(ending) }
const server = await startRedis(t, { args: ['--appendonly', 'yes'], tcp: true })
const redis = new Redis({ target: parseRedisUrl(server.url), name: 'bench' })
const shared = { redis, prefix: 'svc:', channelPrefix: 'svc:0:', onProblem: console.error }
installPeers('bullmq', 'ioredis')
const { Queue, Worker } = requirePeer('bullmq') as Bull
const connection = { host: '127.0.0.1', port: server.port }
const queue = new Queue('idle', { connection })
const busyQueue = new Queue('busy', { connection })
let whenCompleted = (): void => {}
const worker = new Worker('busy', async () => {}, { connection, concurrency: workers })
worker.on('completed', () => whenCompleted())
await worker.waitUntilReady()

/** Does something so many times, always so many at once. */
async function repeat(times: number, width: number, once: () => Promise<unknown> | unknown): Promise<void> {
  let left = times
  const loop = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      await once()
    }
  }
  await Promise.all(Array.from({ length: width }, loop))
}

/** Claims and settles jobs as the runner does, until so many are done. */
async function work(store: JobStore, times: number): Promise<void> {
  for (let done = 0; done < times; ) {
    const { jobs } = await store.claim('bench', ['busy'], workers)
    await store.settle('bench', jobs.map(({ id }) => ({ id, end: 'done' })))
    done += jobs.length
  }
}

function jobRows(name: string, store: JobStore): Row[] {
  const enqueue = (of: string) => store.enqueue({ name: of, data, key: null, at: null })
  const clear = async (): Promise<void> => {
    for (const { id } of await store.list({ name: 'idle', state: null, offset: 0, count: -1 })) await store.discard(id)
  }
  return [
    ...[1, 50].map((width) => {
      return { name: `${name}: enqueue`, width, run: (times: number) => repeat(times, width, () => enqueue('idle')), clear }
    }),
    {
      name: `${name}: from enqueue to done`,
      width: 50,
      run: async (times) => void (await Promise.all([repeat(times, 50, () => enqueue('busy')), work(store, times)])),
    },
  ]
}

function eventRows(name: string, broker: Broker): Row[] {
  const limits = { maxEvents: 1000, maxAgeMs: 3_600_000 }
  return [1, 50].map((width) => {
    return { name: `${name}: publish`, width, run: (times) => repeat(times, width, () => broker.publish('c', data, limits)) }
  })
}

const inBull: Row[] = [
  ...[1, 50].map((width) => {
    return {
      name: 'BullMQ: add',
      width,
      run: (times: number) => repeat(times, width, () => queue.add('a', { data })),
      clear: async () => void (await queue.obliterate({ force: true })),
    }
  }),
  {
    name: 'BullMQ: from add to completed',
    width: 50,
    run: async (times) => {
      let left = times
      const completed = new Promise<void>((resolve) => {
        whenCompleted = () => (left -= 1) === 0 && resolve()
      })
      await repeat(times, 50, () => busyQueue.add('a', { data }, { removeOnComplete: true }))
      await completed
    },
  },
]

const sqliteBroker = new SqliteBroker({ database })
await sqliteBroker.open()
const sqliteJobs = await openJobs(database, silentLogger, Date.now)
const redisJobs = new RedisJobs({ ...shared, log: silentLogger, now: Date.now })
const redisBroker = createRedisBroker(shared)
const rows = [
  ...jobRows('SQLite', sqliteJobs),
  ...jobRows('Redis', redisJobs),
  ...inBull,
  ...eventRows('SQLite', sqliteBroker),
  ...eventRows('Redis', redisBroker),
]

const rates = rows.map(() => [] as number[])
for (let round = 0; round < rounds; round += 1) {
  for (const [at, { run, width, clear }] of rows.entries()) {
    const times = width === 1 ? count / 5 : count
    const begunMs = performance.now()
    await run(times)
    rates[at]?.push((times / (performance.now() - begunMs)) * 1000)
    await clear?.()
  }
}
console.log(`Node ${process.versions.node}, BullMQ ${versionOf('bullmq')}, Redis with appendonly, medians of ${rounds} rounds\n`)
console.log('| | at once | a second |\n| --- | --- | --- |')
for (const [at, { name, width }] of rows.entries()) {
  console.log(`| ${name} | ${width} | ${Math.round(median(rates[at] ?? [])).toLocaleString('en')} |`)
}
for (const each of [worker, queue, busyQueue, redisJobs, redisBroker]) await each.close()
await redis.close()
sqliteJobs.close()
await database.close()
for (const end of endings) await end()
