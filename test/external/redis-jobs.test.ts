// The job store over a Redis of the test's own.
import assert from 'node:assert/strict'
import { after, describe, it, type TestContext } from 'node:test'
import { HttpError } from '../../lib/http/errors.ts'
import type { Claim, JobQuery, JobStore, NewJob } from '../../lib/jobs/job-store.ts'
import { RedisJobs } from '../../lib/redis/jobs.ts'
import { inTurn } from '../cluster/in-turn.ts'
import { describeJobStore, type StoreUnderTest } from '../jobs/store-conformance.ts'
import { readPage } from '../support/markdown.ts'
import { withClock } from '../support/redis-clock.ts'
import { openJobs, type TestJobs } from '../support/redis-jobs.ts'
import { openRedis, startRedis, type RedisServer } from '../support/redis-server.ts'
import { until } from '../support/until.ts'

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

const startMs = new Date(2026, 10, 28, 12).getTime()
const all: JobQuery = { name: null, state: null, offset: 0, count: -1 }
const job: NewJob = { name: 'a', data: null, key: null, at: null }

const isAway = (error: unknown): boolean => error instanceof HttpError && error.code === 'shared_away'

/** A server of the test's own, and two stores with a clock. */
async function startTwo(t: TestContext, args: readonly string[] = []) {
  const server = await startRedis(t, { args })
  const clock = { ms: startMs }
  const [one, two] = [openJobs(t, server.url, { now: () => clock.ms }), openJobs(t, server.url, { now: () => clock.ms })]
  return { server, clock, one, two, a: one.store, b: two.store }
}

const idsOf = ({ jobs }: Claim): string[] => jobs.map(({ id }) => id)
const take = async (store: JobStore, owner: string): Promise<string[]> => idsOf(await store.claim(owner, ['a'], 10))
const endsOf = (server: RedisServer, id: string): Promise<string> => server.ask('HGET', `svc:jobs:job:${id.padStart(16, '0')}`, 'ends')
const statesOf = async (store: JobStore): Promise<string[]> => (await store.list(all)).map(({ state }) => state)

describe('an owner in Redis', () => {
  it('that is not renewed for 20 seconds loses its jobs to others, and what it says of them later changes nothing', async (t) => {
    const { server, clock, a, b } = await startTwo(t)
    const id = await a.enqueue(job)
    assert.deepEqual(await take(a, 'gone'), [id])
    for (const ms of [5000, 5000, 5000, 4999]) {
      clock.ms += ms
      assert.deepEqual(await take(b, 'o'), [])
    }
    clock.ms += 1
    assert.deepEqual(await take(b, 'o'), [id])
    assert.equal(await endsOf(server, id), '1')
    await a.settle('gone', [{ id, end: 'done' }])
    assert.deepEqual(await statesOf(a), ['running'])
  })

  it('that is renewed keeps them', async (t) => {
    const { clock, a, b } = await startTwo(t)
    await a.enqueue(job)
    await take(a, 'o')
    for (let count = 0; count < 10; count++) {
      clock.ms += 5000
      await a.beat()
      assert.deepEqual(await take(b, 'p'), [])
    }
  })

  it('that is gone loses a job when the time for its try is over, if that is sooner', async (t) => {
    const { server, clock, a, b } = await startTwo(t)
    const id = await a.enqueue(job)
    assert.deepEqual(idsOf(await a.claim('gone', ['a'], 10, [3000])), [id])
    assert.deepEqual(await b.claim('o', ['b', 'a'], 10, [1000]), { jobs: [], nextAt: clock.ms + 4000 })
    clock.ms += 3999
    assert.deepEqual(await take(b, 'o'), [])
    clock.ms += 1
    assert.deepEqual(await take(b, 'o'), [id])
    assert.equal(await endsOf(server, id), '1')
    await a.settle('gone', [{ id, end: 'done' }])
    clock.ms += 3000
    assert.deepEqual(await take(a, 'gone'), [])
    assert.deepEqual(await statesOf(a), ['running'])
  })

  it('that has settled a job in time loses nothing when that time comes', async (t) => {
    const { server, clock, a, b } = await startTwo(t)
    const id = await a.enqueue(job)
    await a.claim('o', ['a'], 10, [3000])
    await a.settle('o', [{ id, end: 'retry', at: clock.ms, error: 'no' }])
    assert.deepEqual(idsOf(await a.claim('o', ['a'], 10, [9000])), [id])
    clock.ms += 4000
    assert.deepEqual(await take(b, 'p'), [])
    assert.equal(await endsOf(server, id), '0')
  })

  it('has another term for its tries after nobody could check', async (t) => {
    const { server, clock, a, b } = await startTwo(t)
    const id = await a.enqueue(job)
    await a.claim('o', ['a'], 10, [3000])
    clock.ms += 15_000
    assert.deepEqual(await take(b, 'p'), [])
    clock.ms += 5000
    assert.deepEqual(await take(b, 'p'), [])
    await a.settle('o', [{ id, end: 'done' }])
    assert.deepEqual([await statesOf(a), await server.ask('EXISTS', 'svc:jobs:until')], [[], '0'])
  })

  it('that is gone ends a job for the third time, with a line in the log of whoever sees it', async (t) => {
    const { clock, a, two, b } = await startTwo(t)
    const id = await a.enqueue(job)
    for (const owner of ['x', 'y', 'z']) {
      assert.deepEqual(await take(a, owner), [id])
      for (const ms of [9000, 9000, 2000]) {
        clock.ms += ms
        await b.claim('o', ['none'], 1)
      }
    }
    assert.deepEqual(await statesOf(a), ['dead'])
    assert.deepEqual(two.errors, [`job ${id} (a) is dead: its process ended 3 times while the job ran`])
  })

  it('loses nothing while Redis is away for all', async (t) => {
    const { server, clock, one, a, b } = await startTwo(t, ['--appendonly', 'yes', '--appendfsync', 'always'])
    const id = await a.enqueue(job)
    await take(a, 'o')
    await server.kill()
    clock.ms += 60_000
    await assert.rejects(take(b, 'p'), isAway)
    await server.start()
    await until(() => one.redis.state === 'ready')
    await until(async () => (await take(b, 'p').catch(() => undefined)) !== undefined)
    await a.beat()
    clock.ms += 5000
    assert.deepEqual(await take(b, 'p'), [])
    assert.equal(await endsOf(server, id), '0')
    await a.settle('o', [{ id, end: 'done' }])
    assert.deepEqual(await statesOf(b), [])
  })

  it('that was gone before Redis was away loses its jobs 20 seconds after that', async (t) => {
    const { clock, a, b } = await startTwo(t)
    const id = await a.enqueue(job)
    await take(a, 'gone')
    clock.ms += 3_600_000
    for (const ms of [0, 9000, 9000, 1999]) {
      clock.ms += ms
      assert.deepEqual(await take(b, 'o'), [])
    }
    clock.ms += 1
    assert.deepEqual(await take(b, 'o'), [id])
  })

  it('gives back the jobs of a claim whose reply was lost, without counting an end', async (t) => {
    const server = await startRedis(t)
    const { store: a } = openJobs(t, server.url, { commandTimeoutMs: 300 })
    const { store: b } = openJobs(t, server.url)
    const kept = await a.enqueue(job)
    assert.deepEqual(await take(a, 'o'), [kept])
    const id = await a.enqueue(job)
    server.pause()
    await assert.rejects(take(a, 'o'), isAway)
    server.resume()
    // The server may carry out the claim after the first beat of the new connection.
    await until(async () => {
      await a.beat()
      return (await take(b, 'p')).includes(id)
    })
    assert.deepEqual([await endsOf(server, id), await endsOf(server, kept)], ['0', '0'])
    assert.deepEqual((await b.list(all)).map((each) => [each.id, each.state]), [[id, 'running'], [kept, 'running']])
  })

  it('gives back what it has when its store closes, without counting an end', async (t) => {
    const { server, a, b } = await startTwo(t)
    const id = await a.enqueue(job)
    await take(a, 'o')
    await a.close()
    assert.deepEqual([await take(b, 'p'), await endsOf(server, id)], [[id], '0'])
    assert.equal(await server.ask('ZRANGE', 'svc:jobs:owners', '0', '-1'), 'p')
  })
})

describe('jobs in Redis', () => {
  it('are reported to every store when they are due, and after a connection was cut', async (t) => {
    const { server, one, a, b } = await startTwo(t)
    let calls = 0
    await b.sweep() // It is connected.
    b.onDue(() => (calls += 1))
    await until(() => calls === 1) // It is subscribed.
    await a.enqueue(job)
    await until(() => calls === 2)
    await Promise.all([one.redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub'), a.enqueue({ ...job, name: 'b' })])
    await until(() => calls > 2)
    await server.ask('CONFIG', 'RESETSTAT')
    for (let count = 0; count < 100; count++) await a.enqueue(job)
    assert.doesNotMatch(await server.ask('INFO', 'commandstats'), /cmdstat_publish:/, 'the first that waits has been reported')
  })

  it('are given in several claims when their data are large', async (t) => {
    const { clock, a } = await startTwo(t)
    const data = JSON.stringify('x'.repeat(262_142))
    for (let count = 0; count < 10; count++) await a.enqueue({ ...job, data })
    const sizes: number[] = []
    for (let count = 0; count < 3; count++) {
      const { jobs, nextAt } = await a.claim('o', ['a'], 10)
      assert.ok(jobs.every((each) => each.data === data))
      assert.equal(nextAt, count < 2 ? clock.ms : null)
      sizes.push(jobs.length)
    }
    assert.deepEqual(sizes, [4, 4, 2])
  })

  it('are listed in full, however many wait', async (t) => {
    const { a, b } = await startTwo(t)
    const ids = await Promise.all(Array.from({ length: 1001 }, () => a.enqueue(job)))
    assert.deepEqual((await b.list(all)).map(({ id }) => id), ids.reverse())
    assert.deepEqual((await b.list({ ...all, offset: 300, count: 500 })).map(({ id }) => id), ids.slice(300, 800))
  })

  it('are due by the clock of Redis, whatever that of a process is', async (t) => {
    const { server, clock, a } = await startTwo(t)
    const redis = openRedis(t, server.url)
    const options = { prefix: 'svc:', channelPrefix: 'svc:0:', log: { error: () => {} }, onProblem: () => {} }
    const ahead = new RedisJobs({ ...options, redis: withClock(redis, 'svc:', () => clock.ms), now: () => clock.ms + 3_600_000 })
    t.after(() => ahead.close())
    const id = await a.enqueue({ ...job, at: clock.ms + 1000 })
    assert.deepEqual(await ahead.claim('o', ['a'], 1), { jobs: [], nextAt: clock.ms + 3_601_000 })
    clock.ms += 1000
    assert.deepEqual(await take(ahead, 'o'), [id])
    await ahead.settle('o', [{ id, end: 'retry', at: clock.ms + 3_600_500, error: 'x' }])
    assert.equal((await a.list(all))[0]?.at, clock.ms + 500)
  })

  it('are refused when Redis is out of memory, and those that it has still run', async (t) => {
    const { server, one, a } = await startTwo(t)
    const [first, second, third] = [await a.enqueue(job), await a.enqueue(job), await a.enqueue(job)]
    assert.equal(await a.plan('a', 's', 5), 5)
    await a.sweep()
    const contents = async (): Promise<unknown[]> => {
      const keys = (await server.ask('KEYS', '*')).split('\n').filter((key) => !key.startsWith('svc:clock')).sort()
      return Promise.all(keys.map(async (key) => [key, await server.ask('DUMP', key)]))
    }
    const before = await contents()
    await server.ask('CONFIG', 'SET', 'maxmemory', '1')
    // The clock of the test needs memory: these stores use that of Redis.
    const { store, problems } = openJobs(t, server.url)
    for (const refused of [
      () => store.enqueue(job),
      () => store.enqueue({ ...job, key: 'k', data: '1' }),
      () => store.plan('b', 's', 1),
      () => store.advance({ name: 'a', from: 5, to: 6, runs: true }),
    ]) await assert.rejects(refused, isAway)
    assert.match(problems[0] ?? '', /^the shared engine refuses a job: OOM .*maxmemory/)
    assert.deepEqual(await contents(), before)
    for (const id of [first, second, third]) assert.equal(await store.retry(id), true)
    assert.deepEqual(await take(store, 'o'), [first, second, third])
    await store.beat()
    await store.settle('o', [{ id: first, end: 'done' }, { id: second, end: 'dead', error: 'x' }, { id: third, end: 'back' }])
    assert.deepEqual(await statesOf(store), ['dead', 'waiting'])
    assert.deepEqual([await store.retry(second), await store.discard(third)], [true, true])
    assert.deepEqual(await statesOf(store), ['waiting'])
    assert.equal(one.problems.length, 0)
  })

  it('need no more rights than docs/security.md grants', async (t) => {
    const server = await startRedis(t)
    const rights = /`(~svc:\*[^`]+)`/.exec(readPage('docs/security.md').prose)?.[1] ?? ''
    await server.ask('ACL', 'SETUSER', 'svc', 'on', '>secret', ...rights.split(' '))
    const { store, problems } = openJobs(t, server.url.replace('redis+unix://', 'redis+unix://svc:secret@'))
    let calls = 0
    await store.sweep()
    store.onDue(() => (calls += 1))
    await until(() => calls === 1)
    const [first, second] = [await store.enqueue({ ...job, key: 'k' }), await store.enqueue(job)]
    await until(() => calls === 2)
    await take(store, 'o')
    await store.settle('o', [{ id: first, end: 'done' }, { id: second, end: 'dead', error: 'x' }])
    await store.plan('a', 's', 1)
    await store.advance({ name: 'a', from: 1, to: 2, runs: true })
    await store.beat()
    await store.sweep()
    assert.deepEqual(await statesOf(store), ['dead', 'waiting'])
    assert.deepEqual(problems, [])
  })
})

describe('a damaged job in Redis', () => {
  const key = 'svc:jobs:job:0000000000000001'
  const damages: readonly (readonly [what: string, ...command: string[]])[] = [
    ['that is missing', 'DEL', key],
    ['of another type', 'SET', key, 'x'],
    ['without a name', 'HDEL', key, 'name'],
    ['of another name', 'HSET', key, 'name', 'b'],
    ['without a time', 'HDEL', key, 'due'],
    ['whose number of tries is none', 'HSET', key, 'tries', 'nan'],
    ['whose number of tries is not whole', 'HSET', key, 'tries', '1.5'],
    ['of an unknown state', 'HSET', key, 'state', 'gone'],
    ['whose data are not JSON', 'HSET', key, 'data', '{'],
    ['whose data are wrongly encoded', 'HSET', key, 'data', '\uffff{'],
  ]
  for (const [what, ...command] of damages) {
    it(`${what} is removed and reported, and the others run`, async (t) => {
      const { server, one, a } = await startTwo(t)
      await a.enqueue(job)
      if (command[0] === 'SET') await server.ask('DEL', key)
      await server.ask(...command)
      const other = await a.enqueue(job)
      assert.deepEqual(await take(a, 'o'), [other])
      assert.deepEqual(one.problems, ['job 1 in the shared engine is damaged and was removed'])
      assert.deepEqual((await a.list(all)).map(({ id }) => id), [other])
      assert.equal((await server.ask('KEYS', `${key}*`)), '')
    })
  }

  it('is removed by a list, and when its owner is gone', async (t) => {
    const { server, one, two, a, b } = await startTwo(t)
    const [first, second] = [await a.enqueue(job), await a.enqueue(job)]
    await server.ask('DEL', key)
    assert.deepEqual((await b.list(all)).map(({ id }) => id), [second])
    assert.deepEqual(two.problems, [`job ${first} in the shared engine is damaged and was removed`])
    await take(a, 'o')
    await server.ask('DEL', key.replace(/1$/, '2'))
    await a.release('o')
    assert.deepEqual(one.problems, [`job ${second} in the shared engine is damaged and was removed`])
    assert.deepEqual([await a.list(all), await a.counts()], [[], []])
  })

  it('is removed where its name is missing too, and a damaged schedule begins anew', async (t) => {
    const { server, one, a } = await startTwo(t)
    await a.enqueue(job)
    await server.ask('DEL', key, 'svc:jobs:names')
    assert.deepEqual(await a.claim('o', ['a'], 1), { jobs: [], nextAt: null })
    assert.equal(one.problems.length, 1)
    for (const damaged of ['x', '5', ' s', `${'9'.repeat(30)} s`, '1e3 s']) {
      await server.ask('HSET', 'svc:jobs:schedules', 'a', damaged)
      assert.equal(await a.plan('a', 's', 7), 7, damaged)
      assert.equal(await a.plan('a', 's', 8), 7)
    }
  })

  it('does not keep its key from others', async (t) => {
    const { server, a } = await startTwo(t)
    await a.enqueue({ ...job, key: 'k' })
    await server.ask('DEL', key)
    assert.equal(await a.enqueue({ ...job, key: 'k' }), '2')
    assert.equal(await a.enqueue({ ...job, key: 'k' }), '2')
  })
})
