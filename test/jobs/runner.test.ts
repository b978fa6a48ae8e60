import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { JobFailed } from '../../lib/application/job-failed.ts'
import { readJobRecord } from '../../lib/jobs/job-record.ts'
import type { ClaimedJob, ListedJob } from '../../lib/jobs/job-store.ts'
import { Runner, type LoadedJob } from '../../lib/jobs/runner.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import { keepingLogger } from '../support/log-lines.ts'
import { MemoryJobs } from './memory-jobs.ts'

type Run = LoadedJob['run']

/** A try that runs, until the test ends it. */
interface Try {
  readonly job: ClaimedJob
  readonly signal: AbortSignal
  readonly resolve: (value?: unknown) => void
  readonly reject: (reason: unknown) => void
}

const startMs = new Date(2026, 10, 28, 12).getTime()
const all = { name: null, state: null, offset: 0, count: -1 }
const minuteMs = 60_000

/** A job of a file. @param run what its action does */
function loaded(run: Run, fields: object = {}, name = 'a'): readonly [string, LoadedJob] {
  const read = readJobRecord({ name, action: 'a.js', ...fields }, '/srv/app')
  assert.ok('record' in read, JSON.stringify(read))
  return [name, { record: read.record, run }]
}

/** A runner over a store in memory, whose timers and clock the test moves. */
function begin(t: TestContext, options: { workers?: number; random?: () => number; log?: typeof silentLogger; store?: MemoryJobs } = {}) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const clock = { ms: startMs }
  const now = (): number => clock.ms
  const lines: string[] = []
  const { workers = 10, random = () => 0, log = keepingLogger((line) => lines.push(line)), store = new MemoryJobs(now) } = options
  const runner = new Runner({ store, workers, log, now, random })
  const tries: Try[] = []
  const hold: Run = (job, signal) => new Promise((resolve, reject) => tries.push({ job, signal, resolve, reject }))
  const add = (name = 'a', at: number | null = null): string => store.enqueue({ name, data: null, key: null, at })
  const advance = async (ms: number): Promise<void> => {
    clock.ms += ms
    t.mock.timers.tick(ms)
    await nextTurn()
  }
  const use = async (...jobs: (readonly [string, LoadedJob])[]): Promise<void> => {
    runner.use(new Map(jobs))
    await nextTurn()
  }
  const only = (): ListedJob => {
    const jobs = store.list(all)
    assert.equal(jobs.length, 1)
    return jobs[0] as ListedJob // It has one.
  }
  const states = (): string[] => store.list(all).map(({ state }) => state)
  const done = (): number => store.counts().reduce((sum, each) => sum + each.done, 0)
  /** The try of this number, from 0. */
  const tried = (at: number): Try => {
    const found = tries[at]
    assert.ok(found !== undefined, `There were ${tries.length} tries`)
    return found
  }
  return { store, runner, clock, now, lines, tries, hold, add, advance, use, only, states, done, tried }
}

/** Makes a function of the store fail until `restore` is called. */
function failing(t: TestContext, store: MemoryJobs, name: 'claim' | 'settle' | 'plan' | 'advance') {
  return t.mock.method(store, name, () => {
    throw new Error('the disk is full')
  }).mock
}

describe('a runner', () => {
  it('does nothing before it has jobs', async (t) => {
    const { store, runner, add, states } = begin(t)
    const claim = t.mock.method(store, 'claim')
    add()
    await nextTurn()
    runner.wake()
    await runner.idle()
    assert.deepEqual([claim.mock.callCount(), states()], [0, ['waiting']])
  })

  it('runs the jobs that wait, and those that are added', async (t) => {
    const { runner, add, use, states, done } = begin(t)
    const ran: unknown[] = []
    add()
    await use(loaded(async ({ id, name, attempt, data }, { aborted }) => ran.push([id, name, attempt, data, aborted])))
    add()
    add('other')
    await nextTurn()
    assert.deepEqual(ran, [['1', 'a', 1, null, false], ['2', 'a', 1, null, false]])
    assert.deepEqual([states(), done(), runner.counts, runner.running], [['waiting'], 2, { done: 2, failed: 0, dead: 0 }, 0])
  })

  it('runs as many concurrently as it has workers, in their order', async (t) => {
    const { runner, add, use, hold, tries, tried, states } = begin(t, { workers: 2 })
    for (let count = 0; count < 5; count += 1) add()
    await use(loaded(hold))
    const running = () => tries.map(({ job }) => job.id)
    assert.deepEqual([running(), runner.running], [['1', '2'], 2])
    assert.deepEqual(states(), ['running', 'running', 'waiting', 'waiting', 'waiting'], 'it claims no more than it runs')
    tried(1).resolve()
    await nextTurn()
    assert.deepEqual([running(), runner.running], [['1', '2', '3'], 2])
    tried(0).resolve()
    tried(2).resolve()
    await nextTurn()
    assert.deepEqual([running(), runner.running], [['1', '2', '3', '4', '5'], 2])
    tried(3).resolve()
    tried(4).resolve()
    await runner.idle()
    assert.deepEqual([states(), runner.running], [[], 0])
  })

  it('runs a job when it is due', async (t) => {
    const { add, use, hold, tries, advance, clock } = begin(t)
    await use(loaded(hold))
    add('a', clock.ms + 3000)
    await nextTurn()
    await advance(2999)
    assert.equal(tries.length, 0)
    await advance(1)
    assert.equal(tries.length, 1)
  })

  it('notices within five seconds that the clock was set ahead', async (t) => {
    const { add, use, hold, tries, advance, clock } = begin(t)
    await use(loaded(hold))
    add('a', clock.ms + 3_600_000)
    await nextTurn()
    clock.ms += 3_600_000
    await advance(4999)
    assert.equal(tries.length, 0)
    await advance(1)
    assert.equal(tries.length, 1)
  })

  it('says that it is idle when nothing runs and nothing is due', async (t) => {
    const { runner, add, use, hold, tried, clock } = begin(t, { workers: 1 })
    await use(loaded(hold))
    await runner.idle()
    add()
    add()
    add('a', clock.ms + 1000)
    let isIdle = false
    const idle = runner.idle().then(() => (isIdle = true))
    for (const at of [0, 1]) {
      await nextTurn()
      assert.equal(isIdle, false)
      tried(at).resolve()
    }
    await idle
  })
})

describe('a try that fails', () => {
  const nextDelays = async (t: TestContext, random: number, fields: object): Promise<number[]> => {
    const { runner, add, use, only, advance, clock } = begin(t, { random: () => random })
    add()
    await use(loaded(() => Promise.reject(new Error('no')), fields))
    const delays: number[] = []
    while (only().state === 'waiting') {
      const ms = only().at - clock.ms
      delays.push(ms / 1000)
      await advance(ms)
    }
    assert.deepEqual(runner.counts, { done: 0, failed: delays.length + 1, dead: 1 })
    assert.equal(only().attempt, delays.length + 1)
    return delays
  }

  it('is followed by others after 10 s, 20 s and so on, at most an hour', async (t) => {
    const delays = await nextDelays(t, 0, { retries: 12 })
    assert.deepEqual(delays, [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600, 3600])
  })

  it('is followed by others up to a quarter later', async (t) => {
    assert.deepEqual(await nextDelays(t, 0.5, { backoff_s: 1000, retries: 3 }), [1125, 2250, 4050])
  })

  it('is followed by another at once with backoff_s 0', async (t) => {
    const { runner, add, use, only } = begin(t)
    add()
    await use(loaded(() => Promise.reject(new Error('no')), { backoff_s: 0, retries: 3 }))
    await nextTurn()
    assert.deepEqual([only().state, only().attempt, runner.counts.failed], ['dead', 4, 4])
  })

  it('is the last one without retries', async (t) => {
    assert.deepEqual(await nextDelays(t, 0, { retries: 0 }), [])
  })

  it('may be followed by one that succeeds', async (t) => {
    const { runner, add, use, only, advance, done } = begin(t)
    add()
    await use(loaded(async ({ attempt }) => assert.equal(attempt, 2)))
    assert.match(only().error, /^AssertionError \[ERR_ASSERTION\]: .*\n[^]* at /)
    await advance(10_000)
    assert.deepEqual([done(), runner.counts], [1, { done: 1, failed: 1, dead: 0 }])
  })

  it('is logged, the last one as an error', async (t) => {
    const { add, use, advance, lines } = begin(t)
    add()
    await use(loaded(() => Promise.reject(new Error('no')), { retries: 1 }))
    await advance(10_000)
    assert.deepEqual(lines, ['WARN job 1 (a) failed at try 1 of 2: no', 'ERROR job 1 (a) failed at try 2 of 2 and is dead: no'])
  })

  it('is the last one with JobFailed', async (t) => {
    const { runner, add, use, only, lines } = begin(t)
    add()
    await use(loaded(() => Promise.reject(new JobFailed('no such address'))))
    assert.deepEqual([only().state, only().attempt, runner.counts], ['dead', 1, { done: 0, failed: 1, dead: 1 }])
    assert.match(only().error, /no such address/)
    assert.deepEqual(lines, ['ERROR job 1 (a) failed at try 1 of 6 and is dead: no such address'])
  })

  it('may throw before it returns a promise', async (t) => {
    const { add, use, only } = begin(t)
    add()
    await use(loaded(() => {
      throw new Error('at once')
    }))
    assert.match(only().error, /at once/)
  })

  const revoked = Proxy.revocable(new Error('x'), {})
  revoked.revoke()
  const thrown: readonly (readonly [what: string, value: unknown, error: RegExp])[] = [
    ['a text', 'no', /^no$/],
    ['an empty text', '', /^''$/],
    ['undefined', undefined, /^undefined$/],
    ['null', null, /^null$/],
    ['a number', 5, /^5$/],
    ['a symbol', Symbol('s'), /^Symbol\(s\)$/],
    ['an object', { code: 7 }, /^\{ code: 7 \}$/],
    ['an object without a prototype', Object.create(null), /\{\}/],
    ['a revoked proxy', revoked.proxy, /./],
    ['an error without a stack', Object.assign(new Error('x'), { stack: undefined }), /x/],
    ['an error with a number as its stack', Object.assign(new Error('x'), { stack: 5 }), /./],
    ['an error whose stack throws', Object.defineProperty(new Error('x'), 'stack', { get: () => assert.fail() }), /./],
  ]
  for (const [what, value, error] of thrown) {
    it(`may throw ${what}`, async (t) => {
      const { runner, add, use, only } = begin(t, { log: silentLogger })
      add()
      await use(loaded(() => Promise.reject(value)))
      const { state, attempt, error: text } = only()
      assert.deepEqual([state, attempt, typeof text, runner.running], ['waiting', 2, 'string', 0])
      assert.match(text, error)
    })
  }
})

describe('timeout_s', () => {
  it('aborts the signal, and the try has failed although its action never ends', async (t) => {
    const { runner, add, use, hold, tried, tries, only, advance } = begin(t, { workers: 1 })
    add()
    await use(loaded(hold, { timeout_s: 30 }))
    await advance(29_999)
    assert.equal(tried(0).signal.aborted, false)
    await advance(1)
    assert.equal(tried(0).signal.aborted, true)
    assert.match(String(tried(0).signal.reason), /^Error: it took longer than timeout_s, 30 s$/)
    assert.match(only().error, /it took longer than timeout_s, 30 s/)
    assert.deepEqual([only().state, only().attempt, runner.counts.failed, runner.running], ['waiting', 2, 1, 0])
    tried(0).reject(new Error('late'))
    await advance(10_000)
    assert.deepEqual([tries.length, only().state], [2, 'running'], 'a worker was free')
  })

  it('ends a job after its last try', async (t) => {
    const { add, use, hold, only, advance } = begin(t)
    add()
    await use(loaded(hold, { timeout_s: 1, retries: 0 }))
    await advance(1000)
    assert.deepEqual([only().state, only().attempt], ['dead', 1])
  })

  it('does not end a try that succeeds before', async (t) => {
    const { add, use, hold, tried, advance, done } = begin(t)
    add()
    await use(loaded(hold, { timeout_s: 1 }))
    await advance(999)
    tried(0).resolve()
    await nextTurn()
    await advance(5000)
    assert.deepEqual([tried(0).signal.aborted, done()], [false, 1])
  })
})

describe('stop', () => {
  it('waits for the running jobs, which are settled as they end, and claims no more', async (t) => {
    const { runner, add, use, hold, tries, tried, states, done } = begin(t, { workers: 2 })
    for (let count = 0; count < 3; count += 1) add()
    await use(loaded(hold))
    let isStopped = false
    const stop = runner.stop(5000).then(() => (isStopped = true))
    tried(0).resolve()
    await nextTurn()
    assert.deepEqual([isStopped, done(), states(), tries.length], [false, 1, ['running', 'waiting'], 2])
    tried(1).reject(new Error('no'))
    await stop
    assert.deepEqual([states(), tries.length, runner.counts], [['waiting', 'waiting'], 2, { done: 1, failed: 1, dead: 0 }])
    add()
    runner.wake()
    await nextTurn()
    assert.equal(tries.length, 2)
  })

  it('aborts what still runs after its time, and gives it back without counting a try', async (t) => {
    const { runner, add, use, hold, tried, only, advance, lines } = begin(t)
    add()
    await use(loaded(hold))
    const stop = runner.stop(5000)
    await advance(4999)
    assert.equal(tried(0).signal.aborted, false)
    await advance(1)
    await stop
    assert.match(String(tried(0).signal.reason), /the server is being stopped/)
    assert.deepEqual([only().state, only().attempt, only().error, only().at], ['waiting', 1, '', startMs])
    assert.deepEqual([runner.counts, lines], [{ done: 0, failed: 0, dead: 0 }, []])
    tried(0).reject(new Error('late'))
    await nextTurn()
    assert.equal(only().attempt, 1)
  })

  it('gives back a job whose action rejects because of the signal', async (t) => {
    const { runner, add, use, only, advance } = begin(t)
    add()
    await use(loaded((_, signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))))
    const stop = runner.stop(0)
    await advance(0)
    await advance(1)
    await stop
    assert.deepEqual([only().state, only().attempt], ['waiting', 1])
  })

  it('gives back what it is claiming', async (t) => {
    const { store, runner, add, use, hold, tries, only } = begin(t)
    add()
    const claim = store.claim.bind(store)
    let stop: Promise<void> | undefined
    t.mock.method(store, 'claim', (...args: Parameters<typeof claim>) => {
      const claimed = claim(...args)
      stop = runner.stop(5000)
      return claimed
    })
    await use(loaded(hold))
    await stop
    assert.deepEqual([tries.length, only().state, only().attempt], [0, 'waiting', 1])
  })

  it('resolves before anything was used', async (t) => {
    await begin(t).runner.stop(5000)
  })

  it('resolves with nothing to do, also a second time', async (t) => {
    const { runner, use, hold } = begin(t)
    await use(loaded(hold))
    await runner.stop(5000)
    await runner.stop(5000)
  })

  it('does not reject when the store fails, and says so', async (t) => {
    const { store, runner, add, use, hold, tried, lines } = begin(t)
    add()
    await use(loaded(hold))
    failing(t, store, 'settle')
    const stop = runner.stop(5000)
    tried(0).resolve()
    await stop
    assert.deepEqual(lines, ['ERROR cannot reach the jobs: the disk is full'])
  })
})

describe('a store that fails for a while', () => {
  it('is told later how a try ended, which is not run again', async (t) => {
    const { store, runner, add, use, hold, tries, tried, advance, done, lines, states } = begin(t, { workers: 2 })
    add()
    add()
    await use(loaded(hold, { backoff_s: 100 }))
    const failure = failing(t, store, 'settle')
    tried(0).resolve()
    await nextTurn()
    tried(1).reject(new Error('no'))
    await advance(5000)
    await advance(5000)
    assert.deepEqual([states(), runner.running], [['running', 'running'], 0])
    assert.ok(failure.callCount() > 2)
    failure.restore()
    add()
    await advance(5000)
    assert.deepEqual([done(), states(), tries.map(({ job }) => job.id)], [1, ['running', 'waiting'], ['1', '2', '3']])
    assert.ok(lines.includes('ERROR cannot reach the jobs: the disk is full'))
    assert.deepEqual(runner.counts, { done: 1, failed: 1, dead: 0 })
  })

  for (const name of ['claim', 'plan', 'advance'] as const) {
    it(`is asked again within five seconds: ${name}`, async (t) => {
      const { store, use, hold, tries, advance, clock } = begin(t)
      store.plan('a', 'every 1000', clock.ms)
      const failure = failing(t, store, name)
      await use(loaded(hold, { every: '1s' }))
      assert.equal(tries.length, 0)
      failure.restore()
      await advance(5000)
      assert.equal(tries.length, 1)
    })
  }
})

describe('the schedules of a runner', () => {
  it('run a job at every interval, and at no other time', async (t) => {
    const { use, hold, tries, tried, advance } = begin(t)
    await use(loaded(hold, { every: '10s' }))
    for (let count = 0; count < 3; count += 1) {
      await advance(5000)
      assert.equal(tries.length, count)
      await advance(4999)
      assert.equal(tries.length, count)
      await advance(1)
      assert.equal(tries.length, count + 1)
      assert.deepEqual([tried(count).job.data, tried(count).job.attempt], [null, 1])
      tried(count).resolve()
    }
  })

  it('run a job at the times of a cron expression', async (t) => {
    const { use, hold, tries, tried, advance } = begin(t)
    await use(loaded(hold, { cron: '30 12,14 * * *' }))
    await advance(30 * minuteMs - 1)
    assert.equal(tries.length, 0)
    await advance(1)
    assert.equal(tries.length, 1)
    tried(0).resolve()
    await nextTurn()
    await advance(120 * minuteMs - 1)
    assert.equal(tries.length, 1)
    await advance(1)
    assert.equal(tries.length, 2)
  })

  for (const [catchUp, count] of [[true, 1], [false, 0]] as const) {
    it(`run a missed job ${count === 1 ? 'once' : 'not'} at the start, with catch_up ${catchUp}`, async (t) => {
      const { store, use, hold, tries, tried, advance, clock } = begin(t)
      store.plan('a', 'every 600000', clock.ms - 25 * minuteMs)
      await use(loaded(hold, { every: '10m', catch_up: catchUp }))
      assert.equal(tries.length, count)
      if (count === 1) tried(0).resolve()
      await advance(5 * minuteMs - 1)
      assert.equal(tries.length, count)
      await advance(1)
      assert.equal(tries.length, count + 1, 'its later times are as before')
    })
  }

  it('run a job that was late while the server ran, also without catch_up', async (t) => {
    const { use, hold, tries, tried, advance } = begin(t)
    await use(loaded(hold, { every: '10m', catch_up: false }))
    await advance(35 * minuteMs)
    assert.equal(tries.length, 1)
    tried(0).resolve()
    await advance(5 * minuteMs)
    assert.equal(tries.length, 2)
  })

  for (const [field, text] of [['every', '10m'], ['cron', '*/10 * * * *']] as const) {
    it(`continue from the new time when the clock was set back: ${field}`, async (t) => {
      const { use, hold, tries, tried, advance, clock } = begin(t)
      await use(loaded(hold, { [field]: text }))
      await advance(10 * minuteMs)
      assert.equal(tries.length, 1)
      tried(0).resolve()
      clock.ms -= 60 * minuteMs
      await advance(5000)
      assert.equal(tries.length, 1, 'it is not run for the jump')
      await advance(10 * minuteMs)
      assert.equal(tries.length, 2)
    })
  }

  it('run a job once after the clock was set ahead by a day', async (t) => {
    const { use, hold, tries, tried, advance, clock } = begin(t)
    await use(loaded(hold, { every: '10m' }))
    clock.ms += 86_400_000
    await advance(5000)
    assert.equal(tries.length, 1)
    tried(0).resolve()
    await advance(9 * minuteMs)
    assert.equal(tries.length, 1)
    await advance(minuteMs)
    assert.equal(tries.length, 2)
  })

  it('make one job for several runners', async (t) => {
    const first = begin(t)
    const second = new Runner({ store: first.store, workers: 10, log: silentLogger, now: first.now, random: () => 0 })
    const job = loaded(first.hold, { every: '10s' })
    second.use(new Map([job]))
    await first.use(job)
    for (let count = 1; count <= 3; count += 1) {
      await first.advance(10_000)
      assert.equal(first.tries.length, count)
      first.tried(count - 1).resolve()
    }
    await second.stop(0)
  })

  it('add no job while the one before waits for a worker', async (t) => {
    const { use, hold, store, tries, advance, tried } = begin(t, { workers: 1 })
    await use(loaded(hold, { every: '10s', timeout_s: 3600 }))
    for (let count = 0; count < 5; count += 1) await advance(10_000)
    assert.deepEqual([tries.length, store.list(all).map(({ state }) => state)], [1, ['running', 'waiting']])
    tried(0).resolve()
    await nextTurn()
    assert.equal(tries.length, 2)
  })
})

describe('a reload', () => {
  it('lets a running job end with its action, and settles it although no job is left', async (t) => {
    const { add, use, hold, tried, states, done } = begin(t)
    add()
    await use(loaded(hold))
    add('a', startMs + 1)
    await use()
    tried(0).resolve()
    await nextTurn()
    assert.deepEqual([states(), done()], [['waiting'], 1])
  })

  it('leaves the jobs of a removed name, and runs them when it is back', async (t) => {
    const { add, use, hold, tries, states } = begin(t)
    await use(loaded(hold, {}, 'b'))
    add()
    await nextTurn()
    assert.deepEqual([tries.length, states()], [0, ['waiting']])
    await use(loaded(hold))
    assert.equal(tries.length, 1)
  })

  it('gives back a job that is being claimed when its name is removed', async (t) => {
    const { store, runner, add, use, hold, tries, only } = begin(t)
    add()
    const claim = store.claim.bind(store)
    const claiming = t.mock.method(store, 'claim', (...args: Parameters<typeof claim>) => {
      const claimed = claim(...args)
      claiming.mock.restore()
      runner.use(new Map([loaded(hold, {}, 'b')]))
      return claimed
    })
    await use(loaded(hold))
    assert.deepEqual([tries.length, only().state, only().attempt], [0, 'waiting', 1])
  })

  it('ends the times of a job that it removes, and begins those of a changed one', async (t) => {
    const { use, hold, tries, tried, advance } = begin(t)
    await use(loaded(hold, { every: '10s' }))
    await use(loaded(hold))
    await advance(10_000)
    assert.equal(tries.length, 0)
    await use(loaded(hold, { every: '20s' }))
    await advance(19_999)
    assert.equal(tries.length, 0)
    await advance(1)
    assert.equal(tries.length, 1)
    tried(0).resolve()
    await use(loaded(hold, { every: '5s' }))
    await advance(5000)
    assert.equal(tries.length, 2)
  })

  it('begins the times of a changed schedule also while those of the old one are being read', async (t) => {
    const { store, use, hold, tries, advance, now } = begin(t)
    const plan = store.plan.bind(store)
    let answer = (): void => {}
    const planning = t.mock.method(store, 'plan', ((...args: Parameters<typeof plan>) =>
      new Promise<number>((resolve) => (answer = () => resolve(plan(...args))))) as unknown as typeof plan) // As another store may.
    await use(loaded(hold, { every: '10s' }))
    planning.mock.restore()
    await use(loaded(hold, { every: '1h' }))
    answer()
    await nextTurn()
    assert.equal(store.plan('a', 'every 3600000', 0), now() + 3_600_000)
    await advance(10_000)
    assert.equal(tries.length, 0)
  })

  it('applies new limits to the next tries', async (t) => {
    const { add, use, hold, tried, tries, only, advance } = begin(t)
    add()
    await use(loaded(hold, { retries: 5 }))
    await use(loaded(hold, { retries: 1 }))
    tried(0).reject(new Error('no'))
    await nextTurn()
    await advance(10_000)
    assert.equal(tries.length, 2)
    tried(1).reject(new Error('no'))
    await nextTurn()
    assert.equal(only().state, 'dead')
  })
})
