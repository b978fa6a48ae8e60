import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Peer } from '../../lib/cluster/peer.ts'
import { createClusterSessionStore, hostSessions } from '../../lib/cluster/sessions.ts'
import { openFileStore } from '../session-stores/file-store-support.ts'
import { testSessionStore } from '../session-stores/store-conformance.ts'
import { changes, contents, fields, id } from '../session-stores/store-values.ts'
import { memoryPorts } from './memory-ports.ts'
import { asOne, connect, memory } from './session-workers.ts'

const minute = 60_000

testSessionStore('two workers\' memory (by channels in memory)', (t) => {
  let nowMs = 5000
  const host = hostSessions({ onProblem: assert.fail, open: memory(() => nowMs) })
  t.after(() => host.close())
  const stores = [connect(host).open(1000), connect(host).open(1000)]
  return { store: asOne(stores, host), advance: (ms) => void (nowMs += ms) }
})

testSessionStore('two workers\' files (by channels in memory)', (t) => {
  const { store, advance } = openFileStore(t)
  const host = hostSessions({ onProblem: assert.fail, open: () => store })
  const stores = [1, 2].map(() => {
    const [primaryPort, workerPort] = memoryPorts()
    host.attach(new Peer(primaryPort))
    return createClusterSessionStore(new Peer(workerPort), { store: 'file', folder: '/nowhere' })
  })
  return { store: asOne(stores, host), advance }
})

describe('the sessions of workers', () => {
  it('need one call per read and one per save', async () => {
    const host = hostSessions({ onProblem: assert.fail })
    const { open, sent } = connect(host)
    const store = open(10)
    await store.create(id(1), fields({ a: '1' }), minute)
    await store.read(id(1))
    await store.merge(id(1), changes({ a: '2' }, ['b']), minute)
    assert.deepEqual(sent.map((text) => (JSON.parse(text) as unknown[]).length - 1), [1, 1, 1])
    host.close()
  })

  it('share one limit: the primary counts evictions and warns once', async () => {
    const problems: string[] = []
    const host = hostSessions({ onProblem: (message) => problems.push(message) })
    const [a, b] = [connect(host), connect(host)]
    assert.equal(host.stored, undefined)
    const [storeOfA, storeOfB] = [a.open(2), b.open(2)]
    await storeOfA.create(id(1), fields({}), minute)
    await storeOfB.create(id(2), fields({}), minute)
    assert.deepEqual([storeOfA.stored, host.stored], [undefined, 2])
    assert.deepEqual(problems, [])
    await storeOfB.create(id(3), fields({}), minute)
    await storeOfA.create(id(4), fields({}), minute)
    await storeOfA.create(id(5), fields({}), minute)
    assert.deepEqual([storeOfA.counts.evicted, storeOfB.counts.evicted, host.counts.evicted], [0, 0, 3])
    const full = 'the session store is full (setup.session.max is 2): from now on the least recently used session is dropped'
    assert.deepEqual(problems, [full])
    host.close()
    assert.equal(host.counts.evicted, 3)
  })

  it('are separate for different settings', async () => {
    const host = hostSessions({ onProblem: assert.fail })
    const [a, b] = [connect(host), connect(host)]
    const [before, beforeOfB] = [a.open(10), b.open(10)]
    await before.create(id(1), fields({ a: '1' }), minute)
    assert.deepEqual(await contents(beforeOfB, id(1)), { a: '1' })
    const [now, nowOfB] = [a.open(20), b.open(20)]
    await now.create(id(2), fields({ a: '2' }), minute)
    assert.deepEqual(await contents(beforeOfB, id(1)), { a: '1' })
    assert.equal(await nowOfB.read(id(1)), undefined)
    assert.deepEqual(await contents(nowOfB, id(2)), { a: '2' })
    host.close()
  })

  it('outlive all workers', async () => {
    const host = hostSessions({ onProblem: assert.fail })
    const first = connect(host)
    await first.open(10).create(id(1), fields({ a: '1' }), minute)
    first.die()
    const second = connect(host)
    const store = second.open(10)
    assert.deepEqual(await contents(store, id(1)), { a: '1' })
    await store.close()
    assert.deepEqual(await contents(connect(host).open(10), id(1)), { a: '1' })
    host.close()
  })

  it('expire even when their store is unused', async () => {
    let nowMs = 0
    const host = hostSessions({ onProblem: assert.fail, open: memory(() => nowMs) })
    const first = connect(host)
    const store = first.open(10)
    for (const number of [1, 2, 3]) await store.create(id(number), fields({}), minute)
    await store.close()
    nowMs += minute
    host.sweep()
    assert.equal(await connect(host).open(10).sweep(), 0, 'nothing was left')
    host.close()
  })
})
