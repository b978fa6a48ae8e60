import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Buckets, type BucketStore, type Taken } from '../../lib/kit/buckets.ts'
import { Leases } from '../../lib/kit/leases.ts'

const size = { burst: 32, intervalMs: 60_000 }

/** A store in another place: it answers later, and counts its calls. */
class Elsewhere implements BucketStore {
  readonly buckets = new Buckets(size)
  readonly asked: number[] = []
  problem: Error | undefined

  async take(key: string, most: number): Promise<Taken> {
    this.asked.push(most)
    await new Promise((resolve) => setImmediate(resolve))
    if (this.problem !== undefined) throw this.problem
    return this.buckets.take(key, most)
  }
}

function makeLeases() {
  const store = new Elsewhere()
  const reached: unknown[] = []
  return { store, reached, leases: new Leases(size, store, (error) => reached.push(error)) }
}

async function grantedOf(leases: Leases, times: number, key = 'a'): Promise<number> {
  let granted = 0
  for (let turn = 0; turn < times; turn += 1) granted += (await leases.take(key)).granted
  return granted
}

describe('leases', () => {
  it('take a sixteenth of a bucket at a time, and need no call for the requests between', async () => {
    const { store, leases } = makeLeases()
    assert.equal(await grantedOf(leases, 10), 10)
    assert.deepEqual(store.asked, [2, 2, 2, 2, 2])
  })

  it('pass as many requests as the bucket has, and ask no more until the next token is due', async () => {
    const { store, leases } = makeLeases()
    assert.equal(await grantedOf(leases, 1000), 32)
    assert.equal(store.asked.length, 17)
  })

  it('are shared by requests that come at the same time', async () => {
    const { store, leases } = makeLeases()
    const taken = await Promise.all(Array.from({ length: 100 }, () => leases.take('a')))
    assert.equal(taken.filter(({ granted }) => granted === 1).length, 32)
    assert.equal(store.asked.length, 17)
  })

  it('tell how many requests are left, those of the lease included', async () => {
    const { leases } = makeLeases()
    const fullIn = async (): Promise<number> => Math.round((await leases.take('a')).fullInMs / size.intervalMs)
    assert.deepEqual([await fullIn(), await fullIn(), await fullIn()], [1, 2, 3])
  })

  it('of several processes pass what the bucket has together', async () => {
    const { store, leases } = makeLeases()
    const other = new Leases(size, store, () => {})
    const both = await Promise.all([grantedOf(leases, 100), grantedOf(other, 100)])
    assert.equal(both[0] + both[1], 32)
  })

  it('of a small bucket are one token', async () => {
    const small = { burst: 3, intervalMs: 60_000 }
    const buckets = new Buckets(small)
    const leases = new Leases(small, buckets, () => {})
    assert.equal(await grantedOf(leases, 2), 2)
    assert.equal(buckets.take('a', 3).granted, 1)
  })

  it('are counted here alone while the store is away, which is told, and there again afterwards', async () => {
    const { store, reached, leases } = makeLeases()
    store.problem = new Error('away')
    assert.equal(await grantedOf(leases, 100), 32)
    assert.ok(reached.every((error) => error === store.problem))
    store.problem = undefined
    assert.equal(await grantedOf(leases, 100), 32)
    assert.equal(reached.at(-1), undefined)
  })

  it('of a failing call are for nobody who waited for it', async () => {
    const { store, leases } = makeLeases()
    store.problem = new Error('away')
    const taken = await Promise.all(Array.from({ length: 50 }, () => leases.take('a')))
    assert.equal(taken.filter(({ granted }) => granted === 1).length, 32)
    assert.equal(store.asked.length, 1)
  })
})
