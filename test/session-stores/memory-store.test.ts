import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createMemoryStore } from '../../lib/session-stores/memory-store.ts'
import { Seeded } from '../support/seeded.ts'
import { testSessionStore } from './store-conformance.ts'
import { changes, contents, fields, id } from './store-values.ts'

const minute = 60_000

testSessionStore('memory', (t) => {
  let nowMs = 5000
  const store = createMemoryStore({ max: 1000, onFull: () => {}, now: () => nowMs })
  t.after(() => store.close())
  return { store, advance: (ms) => void (nowMs += ms) }
})

describe('the limit of the memory store', () => {
  function make(max: number) {
    let nowMs = 0
    let timesFull = 0
    const store = createMemoryStore({ max, onFull: () => (timesFull += 1), now: () => nowMs })
    return { store, timesFull: () => timesFull, advance: (ms: number) => (nowMs += ms) }
  }

  it('drops the least recently used session, and reports it once', async () => {
    const { store, timesFull, advance } = make(3)
    for (const number of [1, 2, 3]) store.create(id(number), fields({}), minute)
    advance(1000)
    store.read(id(1))
    store.merge(id(2), changes({}), minute)
    assert.equal(timesFull(), 0)
    store.create(id(4), fields({}), minute)
    assert.equal(store.read(id(3)), undefined)
    store.create(id(5), fields({}), minute)
    assert.equal(store.read(id(1)), undefined)
    assert.deepEqual({ timesFull: timesFull(), ...store.counts }, { timesFull: 1, evicted: 2, damaged: 0 })
    assert.equal(store.merge(id(1), changes({ a: '1' }), minute), false)
    assert.deepEqual(await contents(store, id(2)), {})
  })

  it('does not count sessions that had expired anyway', () => {
    const { store, timesFull, advance } = make(1)
    store.create(id(1), fields({}), minute)
    advance(minute)
    store.create(id(2), fields({}), minute)
    assert.deepEqual({ timesFull: timesFull(), ...store.counts }, { timesFull: 0, evicted: 0, damaged: 0 })
  })

  it('is not reached by a session that gets a new id', () => {
    const { store } = make(1)
    store.create(id(1), fields({}), minute)
    assert.equal(store.rename(id(1), id(2), changes({}), minute), true)
    assert.equal(store.counts.evicted, 0)
  })

  it('drops sessions in order of use, whatever operations happen in between, a second apart', () => {
    const random = new Seeded(3)
    const { store, advance } = make(20)
    let model: number[] = [] // the ids, from the least to the most recently used
    let last = 0
    for (let step = 0; step < 5000; step++) {
      const used = random.integer(3) === 0 ? undefined : random.pick(model.length === 0 ? [0] : model)
      const known = model.filter((number) => number !== used)
      advance(1000)
      if (used === undefined || used === 0) {
        store.create(id((last += 1)), fields({}), 10_000_000)
        model = [...model, last].slice(-20)
      } else if (step % 100 === 0) {
        store.destroy(id(used))
        model = known
      } else {
        if (step % 2 === 0) store.read(id(used))
        else store.merge(id(used), changes({}), 10_000_000)
        model = [...known, used]
      }
      const gone = last - 20 > 0 ? random.integer(last) + 1 : 0
      if (gone > 0 && !model.includes(gone)) assert.equal(store.read(id(gone)), undefined)
    }
    for (const number of model) assert.notEqual(store.read(id(number)), undefined)
  })

  it('sweeps all expired sessions, over several sweeps', () => {
    const { store, advance } = make(10_000)
    for (let number = 0; number < 2000; number++) store.create(id(number), fields({}), 2 * minute)
    for (let number = 2000; number < 4000; number++) store.create(id(number), fields({}), minute)
    advance(minute)
    assert.equal(store.sweep(), 0) // 1000 live sessions are in front
    advance(minute)
    assert.equal(store.sweep(), 4000)
  })

  it('uses a monotonic clock, whatever the wall clock does', (t) => {
    const store = createMemoryStore({ max: 10, onFull: () => {} })
    t.mock.timers.enable({ apis: ['Date'], now: 0 })
    store.create(id(1), fields({ a: '1' }), minute)
    t.mock.timers.setTime(365 * 86_400_000)
    assert.deepEqual(store.read(id(1))?.fields, fields({ a: '1' }))
    t.mock.timers.setTime(1)
    assert.equal(store.merge(id(1), changes({}), minute), true)
    store.close()
    assert.equal(store.read(id(1)), undefined)
  })
})
