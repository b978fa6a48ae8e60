import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { Claim, JobQuery, JobStore, ListedJob, NewJob, Outcome } from '../../lib/jobs/job-store.ts'
import { Seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'
import { MemoryJobs } from './memory-jobs.ts'

/** An empty store under test. */
export interface StoreUnderTest {
  /** The calls may go to several processes, in turn. */
  readonly store: JobStore
  /** Kills every process of the store as it is now. Resolves with a store that begins with what they left. */
  readonly crash: () => Promise<StoreUnderTest>
}

/** The clock of a store, in milliseconds since 1970. */
export interface Clock {
  ms: number
}

type Open = (t: TestContext, now: () => number) => Promise<StoreUnderTest>

const hourMs = 3_600_000
const dayMs = 24 * hourMs
/** Noon, local time. */
const startMs = new Date(2026, 10, 28, 12).getTime()
const all: JobQuery = { name: null, state: null, offset: 0, count: -1 }
const tooOften = 'its process ended 3 times while the job ran'

/** What a test does with a store. */
class Begun {
  readonly clock: Clock
  under: StoreUnderTest

  constructor(clock: Clock, under: StoreUnderTest) {
    this.clock = clock
    this.under = under
  }

  get store(): JobStore {
    return this.under.store
  }

  async add(fields: Partial<NewJob> = {}): Promise<string> {
    return this.store.enqueue({ name: 'a', data: null, key: null, at: null, ...fields })
  }

  async claim(owner = 'o', names: readonly string[] = ['a'], count = 100): Promise<Claim> {
    return this.store.claim(owner, names, count)
  }

  /** Claims, and returns the ids. */
  async ids(owner = 'o', names: readonly string[] = ['a'], count = 100): Promise<string[]> {
    return (await this.claim(owner, names, count)).jobs.map(({ id }) => id)
  }

  async list(query: Partial<JobQuery> = {}): Promise<readonly ListedJob[]> {
    return this.store.list({ ...all, ...query })
  }

  /** The only job. */
  async only(): Promise<ListedJob> {
    const jobs = await this.list()
    assert.equal(jobs.length, 1)
    return jobs[0] as ListedJob // It has one.
  }

  async end(outcome: Outcome, owner = 'o'): Promise<void> {
    await this.store.settle(owner, [outcome])
  }

  async done(name = 'a'): Promise<number> {
    return (await this.store.counts()).find((each) => each.name === name)?.done ?? 0
  }

  async crash(): Promise<void> {
    this.under = await this.under.crash()
  }
}

/** Tests the contract of every job store. @param open returns an empty one, which is closed when the test ends */
export function describeJobStore(name: string, open: Open): void {
  const begin = async (t: TestContext): Promise<Begun> => {
    const clock = { ms: startMs }
    return new Begun(clock, await open(t, () => clock.ms))
  }
  describeClaims(name, begin)
  describeKeys(name, begin)
  describeEnds(name, begin)
  describeDead(name, begin)
  describeSchedules(name, begin)
  describePanel(name, begin)
  describeCrashes(name, begin)
  describeRandom(name, begin)
}

type Begin = (t: TestContext) => Promise<Begun>

function describeClaims(name: string, begin: Begin): void {
  describe(`${name}: claim`, () => {
    it('returns nothing from an empty store', async (t) => {
      const jobs = await begin(t)
      assert.deepEqual(await jobs.claim(), { jobs: [], nextAt: null })
      assert.deepEqual([await jobs.list(), await jobs.store.counts()], [[], []])
    })

    it('gives a job with its data, as its first try, once', async (t) => {
      const jobs = await begin(t)
      const id = await jobs.add({ data: '{"to":"é€😀\\u0000"}' })
      assert.equal(typeof id, 'string')
      assert.deepEqual(await jobs.claim(), { jobs: [{ id, name: 'a', data: '{"to":"é€😀\\u0000"}', attempt: 1 }], nextAt: null })
      assert.deepEqual(await jobs.claim(), { jobs: [], nextAt: null })
      assert.deepEqual(await jobs.claim('p'), { jobs: [], nextAt: null })
    })

    it('gives those that became due first, and of the same time those that were added first', async (t) => {
      const jobs = await begin(t)
      const { ms } = jobs.clock
      const ids: string[] = []
      for (const [name, ago] of [['a', 0], ['b', 5], ['a', 9], ['b', 5], ['a', 5], ['c', 7]] as const) {
        ids.push(await jobs.add({ name, at: ms - ago }))
      }
      const sorted = [2, 5, 1, 3, 4, 0].map((index) => ids[index])
      const taken = [...(await jobs.ids('o', ['a', 'b', 'c'], 4)), ...(await jobs.ids('p', ['c', 'a', 'b'], 1)), ...(await jobs.ids('o', ['a', 'b', 'c'], 1))]
      assert.deepEqual(taken, sorted)
    })

    it('gives at most the count', async (t) => {
      const jobs = await begin(t)
      for (let at = 0; at < 10; at += 1) await jobs.add({ name: at % 2 === 0 ? 'a' : 'b' })
      const counts: number[] = []
      for (const count of [1, 3, 5, 5]) counts.push((await jobs.ids('o', ['a', 'b'], count)).length)
      assert.deepEqual(counts, [1, 3, 5, 1])
    })

    it('leaves the names that the owner does not know', async (t) => {
      const jobs = await begin(t)
      await jobs.add({ name: 'other' })
      const id = await jobs.add()
      assert.deepEqual(await jobs.ids('o', ['a', 'none']), [id])
      assert.deepEqual(await jobs.claim('o', []), { jobs: [], nextAt: null })
      assert.deepEqual(await jobs.claim(), { jobs: [], nextAt: null })
      assert.equal((await jobs.list({ state: 'waiting' }))[0]?.name, 'other')
      assert.equal((await jobs.ids('o', ['other'])).length, 1)
    })

    it('leaves a job until its time, and says when that is', async (t) => {
      const jobs = await begin(t)
      const { ms } = jobs.clock
      const later = await jobs.add({ at: ms + 2000 })
      const sooner = await jobs.add({ name: 'b', at: ms + 1000 })
      assert.deepEqual(await jobs.claim('o', ['a']), { jobs: [], nextAt: ms + 2000 })
      assert.deepEqual(await jobs.claim('o', ['a', 'b']), { jobs: [], nextAt: ms + 1000 })
      jobs.clock.ms += 999
      assert.deepEqual(await jobs.ids('o', ['a', 'b']), [])
      jobs.clock.ms += 1
      const { jobs: [first], nextAt } = await jobs.claim('o', ['a', 'b'])
      assert.deepEqual([first?.id, nextAt], [sooner, ms + 2000])
      jobs.clock.ms += 1000
      assert.deepEqual(await jobs.ids('o', ['a', 'b']), [later])
    })

    it('says that more are due when there are more than the count', async (t) => {
      const jobs = await begin(t)
      for (let at = 0; at < 3; at += 1) await jobs.add({ at: jobs.clock.ms - 10 + at })
      assert.equal((await jobs.claim('o', ['a'], 1)).nextAt, jobs.clock.ms - 9)
      assert.equal((await jobs.claim('o', ['a'], 1)).nextAt, jobs.clock.ms - 8)
      assert.equal((await jobs.claim('o', ['a'], 1)).nextAt, null)
    })

    it('gives each job to one of many owners', async (t) => {
      const jobs = await begin(t)
      const added = await Promise.all(Array.from({ length: 200 }, () => jobs.add()))
      assert.equal(new Set(added).size, 200)
      const taken = await Promise.all(Array.from({ length: 50 }, (_, at) => jobs.ids(`owner ${at}`, ['a'], 5)))
      assert.equal(taken.filter((ids) => ids.length === 5).length, 40)
      assert.deepEqual(taken.flat().sort(), added.sort())
    })

    it('reports a job that is due, and one that is due earlier than the others', async (t) => {
      const jobs = await begin(t)
      let calls = 0
      jobs.store.onDue(() => (calls += 1))
      jobs.store.onDue(() => (calls += 1)) // With several processes, one for each.
      for (const at of [jobs.clock.ms + 5000, jobs.clock.ms + 4000, null]) {
        await jobs.claim()
        await jobs.claim()
        calls = 0
        await jobs.add({ at })
        await until(() => calls > 0)
      }
    })
  })

  describe(`${name}: a clock that is set`, () => {
    it('back an hour loses no job: each is due at its time', async (t) => {
      const jobs = await begin(t)
      const id = await jobs.add()
      jobs.clock.ms -= hourMs
      const now = await jobs.add()
      assert.deepEqual(await jobs.claim(), { jobs: [{ id: now, name: 'a', data: null, attempt: 1 }], nextAt: startMs })
      jobs.clock.ms += hourMs
      assert.deepEqual(await jobs.ids(), [id])
    })

    it('back an hour after a claim of all leaves no job behind', async (t) => {
      const jobs = await begin(t)
      const id = await jobs.add()
      assert.deepEqual(await jobs.ids(), [id])
      jobs.clock.ms -= hourMs
      await jobs.end({ id, end: 'retry', at: jobs.clock.ms + 1000, error: 'x' })
      assert.equal((await jobs.claim()).nextAt, jobs.clock.ms + 1000)
      jobs.clock.ms += 1000
      assert.deepEqual(await jobs.ids(), [id])
    })

    it('ahead a day makes what waits for that time due, and nothing is lost when it is set back', async (t) => {
      const jobs = await begin(t)
      const id = await jobs.add({ at: startMs + hourMs })
      const later = await jobs.add({ at: startMs + 2 * dayMs })
      jobs.clock.ms += dayMs
      assert.deepEqual(await jobs.ids(), [id])
      jobs.clock.ms -= dayMs
      await jobs.end({ id, end: 'back' })
      assert.equal((await jobs.claim()).nextAt, startMs + hourMs)
      jobs.clock.ms = startMs + 2 * dayMs
      assert.deepEqual(await jobs.ids(), [id, later])
    })
  })
}

function describeKeys(name: string, begin: Begin): void {
  describe(`${name}: a key`, () => {
    it('gives the id of the job of this name and key that waits, which stays as it is', async (t) => {
      const jobs = await begin(t)
      const id = await jobs.add({ key: 'k', data: '1', at: jobs.clock.ms + 50 })
      assert.equal(await jobs.add({ key: 'k', data: '2', at: null }), id)
      const others = [await jobs.add({ key: 'l' }), await jobs.add({ key: 'K' }), await jobs.add({ key: 'k', name: 'b' }), await jobs.add()]
      assert.equal(new Set([id, ...others]).size, 5)
      jobs.clock.ms += 50
      assert.equal((await jobs.claim()).jobs.find((job) => job.id === id)?.data, '1')
    })

    it('does not hold while the job runs, and does again when that waits for its next try', async (t) => {
      const jobs = await begin(t)
      const id = await jobs.add({ key: 'k' })
      await jobs.ids()
      const second = await jobs.add({ key: 'k' })
      assert.notEqual(second, id)
      assert.equal(await jobs.add({ key: 'k' }), second)
      assert.deepEqual(await jobs.ids('p'), [second])
      await jobs.end({ id, end: 'retry', at: jobs.clock.ms + 1000, error: 'x' })
      assert.equal(await jobs.add({ key: 'k' }), id)
    })

    for (const end of ['done', 'dead'] as const) {
      it(`is free when the job is ${end}`, async (t) => {
        const jobs = await begin(t)
        const id = await jobs.add({ key: 'k' })
        await jobs.ids()
        await jobs.end({ id, end, error: 'x' })
        assert.notEqual(await jobs.add({ key: 'k' }), id)
      })
    }

    it('adds one job for many that are enqueued at once', async (t) => {
      const jobs = await begin(t)
      const ids = await Promise.all(Array.from({ length: 50 }, () => jobs.add({ key: 'k' })))
      assert.equal(new Set(ids).size, 1)
      assert.equal((await jobs.only()).key, 'k')
    })
  })
}

function describeEnds(name: string, begin: Begin): void {
  describe(`${name}: settle`, () => {
    it('removes a job that is done, and counts it', async (t) => {
      const jobs = await begin(t)
      const id = await jobs.add()
      await jobs.ids()
      await jobs.end({ id, end: 'done' })
      assert.deepEqual(await jobs.list(), [])
      assert.deepEqual(await jobs.store.counts(), [{ name: 'a', waiting: 0, running: 0, dead: 0, done: 1 }])
    })

    it('lets a job wait for its next try', async (t) => {
      const jobs = await begin(t)
      const id = await jobs.add({ data: '5', key: 'k' })
      await jobs.ids()
      const at = jobs.clock.ms + 1000
      await jobs.end({ id, end: 'retry', at, error: 'no\nline 2' })
      assert.deepEqual(await jobs.only(), { id, name: 'a', state: 'waiting', attempt: 2, at, key: 'k', error: 'no\nline 2' })
      assert.deepEqual(await jobs.claim(), { jobs: [], nextAt: at })
      jobs.clock.ms = at
      assert.deepEqual((await jobs.claim()).jobs, [{ id, name: 'a', data: '5', attempt: 2 }])
      assert.equal((await jobs.only()).error, 'no\nline 2')
    })

    it('keeps a dead job with its error, its last try and its time', async (t) => {
      const jobs = await begin(t)
      const id = await jobs.add()
      await jobs.ids()
      await jobs.end({ id, end: 'retry', at: jobs.clock.ms, error: 'first' })
      await jobs.ids()
      jobs.clock.ms += 7
      await jobs.end({ id, end: 'dead', error: 'second' })
      const dead: ListedJob = { id, name: 'a', state: 'dead', attempt: 2, at: jobs.clock.ms, key: null, error: 'second' }
      assert.deepEqual(await jobs.only(), dead)
      assert.deepEqual(await jobs.ids(), [])
    })

    it('gives back a job that was interrupted, at its place and without counting the try, as often as it is', async (t) => {
      const jobs = await begin(t)
      const id = await jobs.add()
      jobs.clock.ms += 1
      const next = await jobs.add()
      for (let times = 0; times < 5; times += 1) {
        assert.deepEqual((await jobs.claim('o', ['a'], 1)).jobs, [{ id, name: 'a', data: null, attempt: 1 }])
        await jobs.end({ id, end: 'back' })
      }
      assert.deepEqual(await jobs.ids(), [id, next])
    })

    it('ends several at once', async (t) => {
      const jobs = await begin(t)
      const [a, b, c, d] = [await jobs.add(), await jobs.add(), await jobs.add(), await jobs.add()]
      await jobs.ids()
      await jobs.store.settle('o', [{ id: a, end: 'done' }, { id: b, end: 'back' }, { id: c, end: 'dead', error: 'x' }])
      assert.deepEqual((await jobs.list()).map(({ id, state }) => [id, state]), [[c, 'dead'], [d, 'running'], [b, 'waiting']])
      await jobs.store.settle('o', [])
    })

    const ends: readonly Outcome['end'][] = ['done', 'back', 'retry', 'dead']
    for (const end of ends) {
      it(`does nothing with a job that the owner no longer has: ${end}`, async (t) => {
        const jobs = await begin(t)
        const id = await jobs.add()
        const outcome: Outcome = { id, end, at: 0, error: 'late' }
        await jobs.end(outcome)
        assert.equal((await jobs.only()).state, 'waiting', 'it waits')
        await jobs.ids()
        await jobs.end(outcome, 'p')
        assert.equal((await jobs.only()).state, 'running', 'another has it')
        await jobs.store.release('o')
        await jobs.ids('p')
        await jobs.end(outcome)
        assert.equal((await jobs.only()).state, 'running', 'it was given to another')
        await jobs.end({ id, end: 'dead', error: 'x' }, 'p')
        const before = await jobs.only()
        await jobs.end(outcome, 'p')
        assert.deepEqual(await jobs.only(), before, 'it is dead')
        await jobs.end({ ...outcome, id: '999' })
        await jobs.end({ ...outcome, id: 'x' })
      })
    }
  })

  describe(`${name}: an owner that has gone`, () => {
    it('loses its jobs, and no other does', async (t) => {
      const jobs = await begin(t)
      for (let at = 0; at < 3; at += 1) await jobs.add()
      const [first] = await jobs.ids('gone', ['a'], 1)
      const [second] = await jobs.ids('o', ['a'], 1)
      await jobs.store.release('gone')
      await jobs.store.release('unknown')
      assert.deepEqual((await jobs.list({ state: 'running' })).map(({ id }) => id), [second])
      assert.deepEqual((await jobs.claim('p', ['a'], 1)).jobs, [{ id: first, name: 'a', data: null, attempt: 1 }])
    })

    it('is the end of a job that it happens to three times', async (t) => {
      const jobs = await begin(t)
      const id = await jobs.add()
      for (const owner of ['x', 'y', 'z']) {
        assert.deepEqual(await jobs.ids(owner), [id])
        await jobs.end({ id, end: 'back' }, owner)
        assert.deepEqual(await jobs.ids(owner), [id], 'an interruption by a stop is not counted')
        await jobs.store.release(owner)
      }
      const dead: ListedJob = { id, name: 'a', state: 'dead', attempt: 1, at: startMs, key: null, error: tooOften }
      assert.deepEqual(await jobs.only(), dead)
      assert.equal(await jobs.store.retry(id), true)
      assert.deepEqual(await jobs.ids('x'), [id])
      await jobs.store.release('x')
      assert.equal((await jobs.only()).state, 'waiting', 'it has all its tries again')
    })
  })

  describe(`${name}: the jobs that were done`, () => {
    it('are counted by name and local day', async (t) => {
      const jobs = await begin(t)
      const finish = async (name: string): Promise<void> => jobs.end({ id: await jobs.add({ name }).then(async (id) => (await jobs.ids('o', [name]), id)), end: 'done' })
      await finish('a')
      await finish('a')
      await finish('b')
      assert.deepEqual([await jobs.done('a'), await jobs.done('b'), await jobs.done('c')], [2, 1, 0])
      jobs.clock.ms = new Date(2026, 10, 28, 23, 59, 59, 999).getTime()
      assert.equal(await jobs.done('a'), 2)
      jobs.clock.ms += 1
      assert.deepEqual([await jobs.done('a'), await jobs.store.counts()], [0, []])
      await finish('a')
      assert.equal(await jobs.done('a'), 1)
      jobs.clock.ms -= hourMs
      assert.equal(await jobs.done('a'), 2, 'those of yesterday are kept for a clock that is set back')
    })
  })
}

function describeDead(name: string, begin: Begin): void {
  describe(`${name}: dead jobs`, () => {
    /** Makes jobs of a name die, a millisecond apart. Returns their ids. */
    const die = async (jobs: Begun, name: string, count: number): Promise<string[]> => {
      await Promise.all(Array.from({ length: count }, () => jobs.add({ name })))
      const ids = await jobs.ids('o', [name], count)
      for (let at = 0; at < count; at += 100) {
        jobs.clock.ms += 1
        await jobs.store.settle('o', ids.slice(at, at + 100).map((id) => ({ id, end: 'dead', error: 'x' })))
      }
      return ids
    }

    it('are kept up to 1,000 of a name, the latest of them', async (t) => {
      const jobs = await begin(t)
      const other = await die(jobs, 'b', 2)
      const ids = await die(jobs, 'a', 1003)
      assert.deepEqual((await jobs.list({ name: 'a' })).map(({ id }) => id), ids.slice(3).reverse())
      assert.deepEqual((await jobs.list({ name: 'b' })).map(({ id }) => id), other.reverse())
    })

    it('are kept 7 days', async (t) => {
      const jobs = await begin(t)
      await die(jobs, 'a', 1)
      await jobs.add({ name: 'b' })
      jobs.clock.ms += 7 * dayMs
      await jobs.crash()
      assert.deepEqual((await jobs.list()).map(({ name }) => name), ['a', 'b'])
      jobs.clock.ms += 1
      await jobs.crash()
      assert.deepEqual((await jobs.list()).map(({ name }) => name), ['b'])
    })
  })
}

function describeSchedules(name: string, begin: Begin): void {
  describe(`${name}: a schedule`, () => {
    it('keeps its first time until its spec changes', async (t) => {
      const { store } = await begin(t)
      assert.equal(await store.plan('a', 'every 1000', 5), 5)
      assert.equal(await store.plan('a', 'every 1000', 9), 5)
      assert.equal(await store.plan('b', 'every 1000', 7), 7)
      assert.equal(await store.plan('a', 'every 2000', 9), 9)
      assert.equal(await store.plan('a', 'every 1000', 11), 11)
      assert.equal(await store.plan('b', 'every 1000', 8), 7)
    })

    it('moves on from its time only, and adds a job only if it is to run', async (t) => {
      const jobs = await begin(t)
      const { store } = jobs
      assert.equal(await store.advance({ name: 'a', from: 5, to: 6, runs: true }), false, 'it is not known')
      await store.plan('a', 's', 5)
      assert.equal(await store.advance({ name: 'a', from: 4, to: 6, runs: true }), false)
      assert.deepEqual([await jobs.list(), await store.plan('a', 's', 0)], [[], 5])
      assert.equal(await store.advance({ name: 'a', from: 5, to: 6, runs: false }), true)
      assert.deepEqual([await jobs.list(), await store.plan('a', 's', 0)], [[], 6])
      assert.equal(await store.advance({ name: 'a', from: 6, to: 3, runs: true }), true, 'also back')
      assert.equal(await store.plan('a', 's', 0), 3)
      const { jobs: [job] } = await jobs.claim()
      assert.deepEqual([job?.name, job?.data, job?.attempt], ['a', null, 1])
    })

    it('moves on for one of many', async (t) => {
      const jobs = await begin(t)
      await jobs.store.plan('a', 's', 5)
      const all = await Promise.all(Array.from({ length: 20 }, () => jobs.store.advance({ name: 'a', from: 5, to: 6, runs: true })))
      assert.equal(all.filter(Boolean).length, 1)
      assert.equal((await jobs.only()).at, startMs)
    })

    it('adds no job while one of it waits, and adds one while one runs or others wait', async (t) => {
      const jobs = await begin(t)
      const step = (from: number) => jobs.store.advance({ name: 'a', from, to: from + 1, runs: true })
      await jobs.store.plan('a', 's', 1)
      const other = await jobs.add({ key: 'k' })
      assert.deepEqual([await step(1), await step(2)], [true, true])
      assert.equal((await jobs.list()).length, 2)
      assert.equal((await jobs.ids()).length, 2)
      assert.deepEqual([await step(3), await step(4)], [true, true])
      assert.equal((await jobs.list({ state: 'waiting' })).length, 1)
      assert.equal((await jobs.list({ state: 'running' })).filter(({ id }) => id !== other).length, 1)
    })
  })
}

function describePanel(name: string, begin: Begin): void {
  describe(`${name}: the panel`, () => {
    it('retries a dead job at once, with all its tries', async (t) => {
      const jobs = await begin(t)
      const id = await jobs.add({ data: '1', key: 'k' })
      for (let tries = 0; tries < 3; tries += 1) {
        await jobs.ids()
        await jobs.end(tries < 2 ? { id, end: 'retry', at: jobs.clock.ms, error: 'x' } : { id, end: 'dead', error: 'x' })
      }
      jobs.clock.ms += dayMs
      assert.equal(await jobs.store.retry(id), true)
      const waiting: ListedJob = { id, name: 'a', state: 'waiting', attempt: 1, at: jobs.clock.ms, key: 'k', error: '' }
      assert.deepEqual(await jobs.only(), waiting)
      assert.deepEqual((await jobs.claim()).jobs, [{ id, name: 'a', data: '1', attempt: 1 }])
    })

    it('runs a waiting job now, whose tries count on', async (t) => {
      const jobs = await begin(t)
      const id = await jobs.add()
      await jobs.ids()
      await jobs.end({ id, end: 'retry', at: jobs.clock.ms + dayMs, error: 'x' })
      assert.deepEqual(await jobs.ids(), [])
      assert.equal(await jobs.store.retry(id), true)
      assert.equal((await jobs.only()).error, 'x')
      assert.deepEqual((await jobs.claim()).jobs, [{ id, name: 'a', data: null, attempt: 2 }])
    })

    it('discards a job that waits or is dead', async (t) => {
      const jobs = await begin(t)
      const [dead, waiting] = [await jobs.add(), await jobs.add({ at: jobs.clock.ms + 9, key: 'k' })]
      await jobs.ids()
      await jobs.end({ id: dead, end: 'dead', error: 'x' })
      assert.deepEqual([await jobs.store.discard(dead), await jobs.store.discard(waiting)], [true, true])
      assert.deepEqual([await jobs.store.discard(dead), await jobs.store.retry(waiting)], [false, false])
      jobs.clock.ms += 9
      assert.deepEqual([await jobs.list(), await jobs.claim()], [[], { jobs: [], nextAt: null }])
      const again = await jobs.add({ key: 'k' })
      assert.ok(![dead, waiting].includes(again), 'no id is given twice')
    })

    it('neither retries nor discards a running job, nor one that is not there', async (t) => {
      const jobs = await begin(t)
      const id = await jobs.add()
      await jobs.ids()
      for (const other of [id, '999', '0', '-1', '', 'x', 'NaN']) {
        assert.deepEqual([await jobs.store.retry(other), await jobs.store.discard(other)], [false, false], other)
      }
      assert.equal((await jobs.only()).state, 'running')
    })

    it('lists the dead, then those that run, then those that wait, by name and the newest first, in pages', async (t) => {
      const jobs = await begin(t)
      const ids: string[] = []
      for (const name of ['b', 'a', 'b', 'a', 'b', 'a', 'c']) ids.push(await jobs.add({ name }))
      await jobs.claim('o', ['a', 'b'], 4)
      await jobs.store.settle('o', [{ id: ids[0] ?? '', end: 'dead', error: 'x' }, { id: ids[1] ?? '', end: 'dead', error: 'x' }])
      const sorted = [1, 0, 3, 2, 5, 4, 6].map((at) => ids[at])
      const listed = async (query: Partial<JobQuery>) => (await jobs.list(query)).map(({ id }) => id)
      assert.deepEqual(await listed({}), sorted)
      const pages: string[][] = []
      for (const offset of [0, 3, 6, 9]) pages.push(await listed({ offset, count: 3 }))
      assert.deepEqual(pages, [sorted.slice(0, 3), sorted.slice(3, 6), sorted.slice(6), []])
      assert.deepEqual(await listed({ count: 0 }), [])
      assert.deepEqual(await listed({ offset: 5 }), sorted.slice(5))
      assert.deepEqual(await listed({ name: 'b' }), [ids[0], ids[2], ids[4]])
      assert.deepEqual(await listed({ name: 'b', state: 'waiting' }), [ids[4]])
      assert.deepEqual(await listed({ state: 'dead' }), [ids[1], ids[0]])
      assert.deepEqual(await listed({ name: 'none' }), [])
      assert.deepEqual(await jobs.store.counts(), [
        { name: 'a', waiting: 1, running: 1, dead: 1, done: 0 },
        { name: 'b', waiting: 1, running: 1, dead: 1, done: 0 },
        { name: 'c', waiting: 1, running: 0, dead: 0, done: 0 },
      ])
    })
  })
}

function describeCrashes(name: string, begin: Begin): void {
  describe(`${name}: a crash`, () => {
    const left: readonly (readonly [what: string, make: (jobs: Begun) => Promise<unknown>])[] = [
      ['nothing', async () => {}],
      ['a job that waits', (jobs) => jobs.add({ data: '[1]' })],
      ['a job that is due later, with a key', (jobs) => jobs.add({ at: startMs + hourMs, key: 'k' })],
      ['a job that waits for its next try', async (jobs) => {
        const id = await jobs.add()
        await jobs.ids()
        await jobs.end({ id, end: 'retry', at: startMs + 5, error: 'x' })
      }],
      ['a dead job', async (jobs) => {
        const id = await jobs.add()
        await jobs.ids()
        await jobs.end({ id, end: 'dead', error: 'x' })
      }],
      ['jobs that were done', async (jobs) => {
        const id = await jobs.add()
        await jobs.ids()
        await jobs.end({ id, end: 'done' })
      }],
    ]
    for (const [what, make] of left) {
      it(`leaves ${what}`, async (t) => {
        const jobs = await begin(t)
        await make(jobs)
        const before = [await jobs.list(), await jobs.store.counts(), (await jobs.claim('o', ['none'])).nextAt]
        await jobs.crash()
        assert.deepEqual([await jobs.list(), await jobs.store.counts(), (await jobs.claim('o', ['none'])).nextAt], before)
        const id = await jobs.add({ name: 'new' })
        assert.deepEqual(await jobs.ids('o', ['new']), [id])
      })
    }

    it('leaves the time of a schedule', async (t) => {
      const jobs = await begin(t)
      await jobs.store.plan('a', 's', 5)
      await jobs.store.advance({ name: 'a', from: 5, to: 9, runs: true })
      await jobs.crash()
      assert.equal(await jobs.store.plan('a', 's', 7), 9)
      assert.equal((await jobs.only()).state, 'waiting')
    })

    it('gives back the jobs that ran, and is the end of one at the third time', async (t) => {
      const jobs = await begin(t)
      const id = await jobs.add({ data: '1' })
      for (let times = 0; times < 3; times += 1) {
        assert.deepEqual((await jobs.claim()).jobs, [{ id, name: 'a', data: '1', attempt: 1 }])
        await jobs.crash()
        await jobs.end({ id, end: 'done' })
      }
      const dead: ListedJob = { id, name: 'a', state: 'dead', attempt: 1, at: startMs, key: null, error: tooOften }
      assert.deepEqual(await jobs.only(), dead)
    })
  })
}

function describeRandom(name: string, begin: Begin): void {
  describe(`${name}: random operations`, () => {
    for (const seed of [1, 2, 3, 4]) {
      it(`do what a simple model does (seed ${seed})`, async (t) => {
        const jobs = await begin(t)
        const random = new Seeded(seed)
        let model = new MemoryJobs(() => jobs.clock.ms)
        for (let step = 0; step < 400; step += 1) {
          if (random.integer(60) === 0) {
            model = new MemoryJobs(() => jobs.clock.ms, model)
            await jobs.crash()
          }
          await doBoth(random, jobs, model, `step ${step}`)
          if (step % 10 > 0) continue
          assert.deepEqual(await jobs.list(), model.list(all), `step ${step}`)
          assert.deepEqual(await jobs.store.counts(), model.counts(), `step ${step}`)
        }
      })
    }
  })
}

const names = ['a', 'b', 'c']
const owners = ['o', 'p', 'q']

/** Does something at random with the store and with the model, and compares the results. */
async function doBoth(random: Seeded, { store, clock }: Begun, model: MemoryJobs, step: string): Promise<void> {
  const [owner, name] = [random.pick(owners), random.pick(names)]
  const anyId = (): string => String(1 + random.integer(120))
  const time = (): number => clock.ms + random.integer(4000) - 1000
  const same = async <T>(run: (of: JobStore) => T): Promise<Awaited<T>> => {
    const [found, expected] = [await run(store), await run(model)]
    assert.deepEqual(found ?? undefined, expected, step)
    return expected
  }
  switch (random.integer(10)) {
    case 0:
    case 1: {
      const job: NewJob = { name, data: random.pick([null, '1']), key: random.pick([null, null, 'k', 'l']), at: random.pick([null, time()]) }
      return void (await same((of) => of.enqueue(job)))
    }
    case 2:
    case 3:
    case 4: {
      const [known, count] = [names.filter(() => random.integer(3) > 0), 1 + random.integer(4)]
      const [found, expected] = [await store.claim(owner, known, count), model.claim(owner, known, count)]
      assert.deepEqual(found.jobs, expected.jobs, step)
      // A job may have been discarded since: the next one may be due later than the store has said, but not earlier.
      assert.ok((found.nextAt ?? Infinity) <= (expected.nextAt ?? Infinity), `${step}: ${found.nextAt}, ${expected.nextAt}`)
      return
    }
    case 5:
    case 6: {
      const running = model.list({ ...all, state: 'running' }).map(({ id }) => id)
      const outcomes = [...running, anyId()].filter(() => random.integer(2) > 0).map((id): Outcome =>
        ({ id, end: random.pick(['done', 'back', 'retry', 'dead']), at: time(), error: random.pick(['x', 'y']) }))
      return void (await same((of) => of.settle(owner, outcomes)))
    }
    case 7: {
      if (random.integer(4) === 0) return void (await same((of) => of.release(owner)))
      const id = anyId()
      return void (await same((of) => of.retry(id)))
    }
    case 8: {
      const id = anyId()
      if (random.integer(2) === 0) return void (await same((of) => of.discard(id)))
      const next = await same((of) => of.plan(name, 's', 1))
      const schedule = { name, from: next - random.integer(2), to: next + 1, runs: random.integer(2) === 0 }
      return void (await same((of) => of.advance(schedule)))
    }
    default:
      clock.ms += random.integer(20) === 0 ? -hourMs / 2 : random.integer(2000)
  }
}
