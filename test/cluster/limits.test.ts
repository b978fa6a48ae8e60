import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createClusterAddressLimit, createClusterBuckets, hostLimits } from '../../lib/cluster/limits.ts'
import { Peer } from '../../lib/cluster/peer.ts'
import { createAddressLimit, type AddressLimit } from '../../lib/core/address-limit.ts'
import { Buckets } from '../../lib/protection/buckets.ts'
import { takeTokens } from '../protection/take-tokens.ts'
import { memoryPorts } from './memory-ports.ts'

/** Two limits that share a count, and a function that removes the second. */
function pairOverProcesses(most: number): { readonly limits: readonly AddressLimit[]; readonly end: () => void } {
  const host = hostLimits(most)
  const ends: (() => void)[] = []
  const limits = [1, 2].map(() => {
    const [here, there] = memoryPorts()
    host.attach(new Peer(here))
    ends.push(() => there.close())
    return createClusterAddressLimit(new Peer(there), most)
  })
  return { limits, end: () => ends[1]?.() }
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 6; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** Tests for one limit and for two that share a count: the second entry belongs to the other process. */
const kinds = [
  ['of one process', (most: number) => [createAddressLimit(most)]],
  ['of several processes', (most: number) => pairOverProcesses(most).limits],
] as const

for (const [kind, make] of kinds) {
  describe(`the connection limit per address, ${kind}`, () => {
    it('refuses one connection too many of that address only, and accepts others after one closes', async () => {
      const limits = make(2)
      const at = (index: number): AddressLimit => limits[index % limits.length] as AddressLimit
      const refused: string[] = []
      const enter = async (index: number, address: string, name: string): Promise<() => void> => {
        const leave = at(index).enter(address, () => refused.push(name))
        await settled()
        return leave
      }
      const first = await enter(0, 'a', 'first')
      await enter(1, 'a', 'second')
      const third = await enter(0, 'a', 'third')
      await enter(1, 'b', 'other')
      assert.deepEqual(refused, ['third'])
      third() // It had no place to free.
      await enter(1, 'a', 'fourth')
      assert.deepEqual(refused, ['third', 'fourth'])
      first()
      await settled()
      await enter(1, 'a', 'fifth')
      assert.deepEqual(refused, ['third', 'fourth'])
    })
  })
}

describe('the connection limit across processes', () => {
  it('forgets the connections of a process that has ended', async () => {
    const { limits, end } = pairOverProcesses(1)
    let refused = 0
    limits[1]?.enter('a', assert.fail)
    await settled()
    end()
    await settled()
    limits[0]?.enter('a', () => (refused += 1))
    await settled()
    assert.equal(refused, 0)
  })
})

describe('the buckets of several processes', () => {
  it('are removed once full when a reload has changed their rule', async () => {
    const clock = { ms: 0 }
    const opened: number[] = []
    const host = hostLimits(1, (size) => {
      opened.push(size.burst)
      return new Buckets(size, 10, () => clock.ms)
    })
    const [here, there] = memoryPorts()
    host.attach(new Peer(here))
    const open = createClusterBuckets(new Peer(there))
    const take = async (burst: number): Promise<number> =>
      (await takeTokens(open('rule', { burst, intervalMs: 1000 }), 'a', 9)).granted
    assert.deepEqual([await take(1), await take(2), await take(1)], [1, 2, 0], 'a bucket that is not full stays')
    clock.ms = 1500
    await take(3)
    assert.deepEqual([await take(2), await take(1), opened], [1, 1, [1, 2, 3, 1]])
  })
})
