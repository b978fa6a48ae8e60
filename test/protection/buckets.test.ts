import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Buckets, nextTokenMs, tokensIn } from '../../lib/protection/buckets.ts'
import { Seeded } from '../support/seeded.ts'

/** Buckets of 3 tokens that gain one per second, with a clock. */
function makeBuckets(most?: number) {
  const clock = { ms: 1000 }
  const size = { burst: 3, intervalMs: 1000 }
  return { buckets: new Buckets(size, most, () => clock.ms), clock, size }
}

/** Takes up to this many tokens from a bucket. Returns how many it had. */
function taken(buckets: Buckets, key: string, times: number): number {
  let granted = 0
  for (let turn = 0; turn < times; turn += 1) if (buckets.take(key).isGranted) granted += 1
  return granted
}

describe('a bucket', () => {
  it('has a burst of tokens, then one per interval, and never more than the burst', () => {
    const { buckets, clock } = makeBuckets()
    const granted = (): number => taken(buckets, 'a', 1)
    assert.deepEqual([granted(), granted(), granted(), granted()], [1, 1, 1, 0])
    clock.ms += 999
    assert.equal(granted(), 0)
    clock.ms += 1
    assert.deepEqual([granted(), granted()], [1, 0])
    clock.ms += 1_000_000
    assert.deepEqual([granted(), granted(), granted(), granted()], [1, 1, 1, 0])
  })

  it('reports when it has the next token and when it is full', () => {
    const { buckets, clock, size } = makeBuckets()
    assert.deepEqual(buckets.take('a'), { isGranted: true, fullInMs: 1000 })
    assert.deepEqual(buckets.take('a'), { isGranted: true, fullInMs: 2000 })
    assert.deepEqual(buckets.take('a'), { isGranted: true, fullInMs: 3000 })
    clock.ms += 400
    const empty = buckets.take('a')
    assert.deepEqual(empty, { isGranted: false, fullInMs: 2600 })
    assert.equal(nextTokenMs(size, empty.fullInMs), 600)
    assert.equal(tokensIn(size, empty.fullInMs), 0)
    assert.equal(tokensIn(size, 0), 3)
    assert.equal(nextTokenMs(size, 2000), 0)
  })

  it('is full exactly after its intervals, whatever the clock', () => {
    const buckets = new Buckets({ burst: 2, intervalMs: 30_000 }, 10, () => 1234.5678)
    assert.equal(buckets.take('a').fullInMs, 30_000)
    assert.equal(buckets.take('a').fullInMs, 60_000)
  })

  it('belongs to one key', () => {
    const { buckets } = makeBuckets()
    assert.equal(taken(buckets, 'a', 3), 3)
    assert.equal(taken(buckets, 'b', 3), 3)
    assert.equal(taken(buckets, '__proto__', 3), 3)
  })

  it('has a token when it is due, whatever the interval', () => {
    for (const intervalMs of [1000 / 3, 60_000 / 7, 1000 / 999_999]) {
      const clock = { ms: 12_345.678 }
      const buckets = new Buckets({ burst: 1, intervalMs }, undefined, () => clock.ms)
      for (let turn = 0; turn < 1000; turn += 1) {
        assert.equal(taken(buckets, 'a', 1), 1, `${intervalMs} ms, turn ${turn}`)
        clock.ms += intervalMs
      }
    }
  })
})

describe('many buckets', () => {
  it('stay below the limit: the one that is full soonest is dropped', () => {
    const { buckets } = makeBuckets(2)
    taken(buckets, 'late', 3)
    taken(buckets, 'soon', 1)
    taken(buckets, 'new', 2)
    assert.equal(buckets.count, 2)
    assert.equal(taken(buckets, 'late', 1), 0)
    assert.equal(taken(buckets, 'soon', 3), 3)
  })

  it('are ordered by when a bucket is full now, not by when it was new', () => {
    const { buckets } = makeBuckets(2)
    taken(buckets, 'first', 1)
    taken(buckets, 'second', 2)
    taken(buckets, 'first', 2)
    taken(buckets, 'third', 3)
    assert.equal(taken(buckets, 'first', 1), 0)
  })

  it('are freed once they are full, when others are added', () => {
    const { buckets, clock } = makeBuckets()
    for (let key = 0; key < 1000; key += 1) buckets.take(`old ${key}`)
    clock.ms += 1000
    for (let key = 0; key < 1000; key += 1) buckets.take(`new ${key}`)
    assert.equal(buckets.count, 1000)
  })

  it('for a million addresses are a hundred thousand', () => {
    const { buckets } = makeBuckets()
    for (let key = 0; key < 1_000_000; key += 1) buckets.take(String(key))
    assert.equal(buckets.count, 100_000)
  })

  it('match a simple model in any order of calls (seeded)', () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const random = new Seeded(seed)
      const { buckets, clock, size } = makeBuckets(10)
      const model = new Map<string, number>()
      for (let step = 0; step < 2000; step += 1) {
        clock.ms += random.next() * 300
        const key = `k${random.integer(31)}`
        const most = 1 + random.integer(4)
        const fullInMs = Math.max(0, (model.get(key) ?? 0) - clock.ms)
        const granted = Math.min(most, tokensIn(size, fullInMs))
        assert.equal(taken(buckets, key, most), granted, `seed ${seed}, step ${step}`)
        if (granted === 0) continue
        for (const [other, at] of model) if (at <= clock.ms) model.delete(other)
        if (!model.has(key) && model.size >= 10) {
          const [soonest] = [...model].sort(([, a], [, b]) => a - b)
          model.delete(soonest?.[0] ?? '')
        }
        model.set(key, clock.ms + fullInMs + granted * size.intervalMs)
      }
    }
  })
})
