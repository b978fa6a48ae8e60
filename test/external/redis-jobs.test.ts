// The job store over a Redis of the test's own.
import { after } from 'node:test'
import { inTurn } from '../cluster/in-turn.ts'
import { describeJobStore, type StoreUnderTest } from '../jobs/store-conformance.ts'
import type { JobStore } from '../../lib/jobs/job-store.ts'
import { openJobs, type TestJobs } from '../support/redis-jobs.ts'
import { openRedis, startRedis } from '../support/redis-server.ts'

const endings: (() => unknown)[] = []
const file = { after: (ending: () => unknown) => void endings.unshift(ending) }
after(async () => {
  for (const ending of endings) await ending()
})
const common = await startRedis(file)
const engine = openRedis(file, common.url)
let stores = 0

/** Several stores in turn. An owner has one of them, as in a server: only that one knows what it has claimed. */
function together(all: readonly TestJobs[]): JobStore {
  const of = new Map<string, JobStore>()
  const storeOf = (owner: string): JobStore => {
    const store = of.get(owner) ?? (all[of.size % all.length] as TestJobs).store
    of.set(owner, store)
    return store
  }
  return inTurn(all.map(({ store }): JobStore => store), {
    claim: (owner, ...rest) => storeOf(owner).claim(owner, ...rest),
    settle: (owner, outcomes) => storeOf(owner).settle(owner, outcomes),
    release: (owner) => storeOf(owner).release(owner),
  })
}

/** Opens stores. A crash ends their connections, and their owners have lapsed. */
async function begin(prefix: string, count: number, now: () => number): Promise<StoreUnderTest> {
  const all = Array.from({ length: count }, () => openJobs(file, common.url, { prefix, now }))
  const crash = async (): Promise<StoreUnderTest> => {
    for (const { redis } of all) await redis.close()
    const owners = (await engine.command('ZRANGE', `${prefix}jobs:owners`, 0, -1)) as Buffer[]
    for (const owner of owners) await engine.command('ZADD', `${prefix}jobs:owners`, 0, owner.toString())
    await engine.command('SET', `${prefix}jobs:looked`, now())
    const next = await begin(prefix, count, now)
    await next.store.claim('the first to look', ['none'], 1)
    await next.store.release('the first to look')
    return next
  }
  for (const { store } of all) await store.sweep()
  return { store: together(all), crash }
}

describeJobStore('jobs in Redis', (_, now) => begin(`${++stores}:`, 1, now))
describeJobStore('jobs of two servers in one Redis', (_, now) => begin(`${++stores}:`, 2, now))
