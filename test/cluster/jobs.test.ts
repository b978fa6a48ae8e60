import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { hostJobs, openClusterJobs } from '../../lib/cluster/jobs.ts'
import { Peer } from '../../lib/cluster/peer.ts'
import type { JobQuery, JobStore, NewJob } from '../../lib/jobs/job-store.ts'
import { openTestJobs } from '../data/jobs-support.ts'
import { MemoryJobs } from '../jobs/memory-jobs.ts'
import { describeJobStore, type StoreUnderTest } from '../jobs/store-conformance.ts'
import { hasSqlite } from '../support/sqlite.ts'
import { until } from '../support/until.ts'
import { inTurn } from './in-turn.ts'
import { memoryPorts } from './memory-ports.ts'

type Host = ReturnType<typeof hostJobs>

const all: JobQuery = { name: null, state: null, offset: 0, count: -1 }
const job: NewJob = { name: 'a', data: null, key: null, at: null }

/** A worker with an in-memory channel. */
async function connect(host: Host): Promise<{ store: JobStore; die: () => void; sent: readonly string[]; heard: readonly string[] }> {
  const [primaryPort, workerPort] = memoryPorts()
  host.attach(new Peer(primaryPort))
  const store = await openClusterJobs(new Peer(workerPort))
  return { store, die: () => workerPort.close(), sent: workerPort.sent, heard: primaryPort.sent }
}

/** Two workers as one, whose primary has a store. */
async function workersOf(t: TestContext, primary: StoreUnderTest): Promise<StoreUnderTest> {
  const host = hostJobs(async () => primary.store)
  t.after(() => host.close())
  const stores = [(await connect(host)).store, (await connect(host)).store]
  return { store: inTurn(stores, {}), crash: async () => workersOf(t, await primary.crash()) }
}

function memory(store: MemoryJobs, now: () => number): StoreUnderTest {
  return { store, crash: async () => memory(new MemoryJobs(now, store), now) }
}

/** A primary with jobs in memory. */
function begin(store = new MemoryJobs(() => 1000)): { host: Host; store: MemoryJobs } {
  return { host: hostJobs(async () => store), store }
}

describeJobStore('two workers\' jobs in memory', (t, now) => workersOf(t, memory(new MemoryJobs(now), now)))
if (hasSqlite) {
  describeJobStore('two workers\' jobs in SQLite', async (t, now) => workersOf(t, await openTestJobs(t, now)))
}

describe('the jobs of workers', () => {
  it('are opened once, when the first worker needs them', async () => {
    let opened = 0
    const host = hostJobs(async () => {
      opened += 1
      return new MemoryJobs(() => 0)
    })
    await host.close()
    assert.equal(opened, 0)
    await Promise.all([connect(host), connect(host)])
    await connect(host)
    assert.equal(opened, 1)
  })

  it('are opened again after the store could not be opened', async () => {
    let opened = 0
    const host = hostJobs(async () => {
      opened += 1
      if (opened === 1) throw new Error('the disk is full')
      return new MemoryJobs(() => 0)
    })
    await assert.rejects(connect(host), /the disk is full/)
    await host.close()
    const { store } = await connect(host)
    assert.equal(await store.enqueue(job), '1')
  })

  it('are given back when their worker goes, and only they', async () => {
    const { host, store } = begin()
    const [a, b] = [await connect(host), await connect(host)]
    for (let count = 0; count < 3; count += 1) await a.store.enqueue(job)
    await a.store.claim('a', ['a'], 1)
    await a.store.claim('a again', ['a'], 1)
    await b.store.claim('b', ['a'], 1)
    a.die()
    await until(() => store.list({ ...all, state: 'running' }).length === 1)
    assert.deepEqual((await b.store.claim('b', ['a'], 9)).jobs.map(({ id }) => id), ['1', '2'])
  })

  it('are given back when their worker goes before it has the answer to its claim', async (t) => {
    const { host, store } = begin()
    const a = await connect(host)
    await a.store.enqueue(job)
    const claim = store.claim.bind(store)
    t.mock.method(store, 'claim', (...args: Parameters<typeof claim>) => {
      const claimed = claim(...args)
      assert.equal(claimed.jobs.length, 1)
      a.die()
      return claimed
    })
    await assert.rejects(async () => a.store.claim('a', ['a'], 1), { name: 'DisconnectedError' })
    await until(() => store.list({ ...all, state: 'waiting' }).length === 1)
  })

  it('are given back later when the store fails as their worker goes', async (t) => {
    const { host, store } = begin()
    const [a, b] = [await connect(host), await connect(host)]
    await a.store.enqueue(job)
    await a.store.claim('a', ['a'], 1)
    const release = t.mock.method(store, 'release', () => {
      throw new Error('the disk is full')
    })
    a.die()
    await until(() => release.mock.callCount() === 1)
    assert.deepEqual((await b.store.claim('b', ['a'], 1)).jobs, [])
    release.mock.restore()
    await until(async () => (await b.store.claim('b', ['a'], 1)).jobs.length === 1)
    assert.equal(store.list({ ...all, state: 'running' }).length, 1)
  })

  it('are dead when three workers went while they ran', async () => {
    const { host, store } = begin()
    await (await connect(host)).store.enqueue(job)
    for (const owner of ['x', 'y', 'z']) {
      const worker = await connect(host)
      assert.equal((await worker.store.claim(owner, ['a'], 1)).jobs.length, 1)
      worker.die()
      await until(() => store.list({ ...all, state: 'running' }).length === 0)
    }
    assert.equal(store.list(all)[0]?.state, 'dead')
  })

  it('are reported to every worker, by one message until it claims', async () => {
    const { host } = begin()
    const [a, b] = [await connect(host), await connect(host)]
    const calls = { a: 0, b: 0 }
    a.store.onDue(() => (calls.a += 1))
    b.store.onDue(() => (calls.b += 1))
    for (let count = 0; count < 5; count += 1) await a.store.enqueue(job)
    await until(() => calls.a > 0 && calls.b > 0)
    assert.deepEqual(calls, { a: 1, b: 1 })
    await b.store.claim('b', ['a'], 1)
    await a.store.enqueue(job)
    await until(() => calls.b > 1)
    assert.deepEqual(calls, { a: 1, b: 2 })
  })

  it('are no longer reported to a worker that has gone', async (t) => {
    const { host, store } = begin()
    const onDue = t.mock.method(store, 'onDue')
    for (let count = 0; count < 3; count += 1) (await connect(host)).die()
    const last = await connect(host)
    let calls = 0
    last.store.onDue(() => (calls += 1))
    await last.store.enqueue(job)
    await until(() => calls > 0)
    assert.equal(onDue.mock.callCount(), 1, 'a worker that is started again and again leaves nothing behind')
  })

  it('reject with the error of the primary', async (t) => {
    const { host, store } = begin()
    const { store: worker } = await connect(host)
    t.mock.method(store, 'enqueue', () => {
      throw new Error('Cannot write /data/svc.db: the disk is full')
    })
    await assert.rejects(async () => worker.enqueue(job), /^RemoteError: Cannot write \/data\/svc\.db: the disk is full$/)
  })

  it('stay when a worker closes its store, and end with the primary', async (t) => {
    const { host, store } = begin()
    const close = t.mock.method(store, 'close')
    const worker = await connect(host)
    await worker.store.close()
    assert.equal(close.mock.callCount(), 0)
    await host.close()
    assert.equal(close.mock.callCount(), 1)
  })

  it('are left as they are by a worker that goes after the primary has closed them', async (t) => {
    const { host, store } = begin()
    const worker = await connect(host)
    await worker.store.claim('a', ['a'], 1)
    await host.close()
    const release = t.mock.method(store, 'release', () => {
      throw new Error('it is closed')
    })
    worker.die()
    await until(() => release.mock.callCount() === 1)
  })
})
