import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ChannelLedger, QueueLedger } from './ledger.ts'

/** A ledger of two clients in which `a` to `d` were sent, and the first three acknowledged. */
function begin(): ChannelLedger {
  const ledger = new ChannelLedger(2)
  for (const name of ['a', 'b', 'c', 'd']) ledger.send(name)
  for (const [at, name] of ['a', 'b', 'c'].entries()) ledger.acknowledge((at + 1) * 10, name)
  return ledger
}

const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((data, at) => ({ data, id: (at + 1) * 10 })) as [Event, Event, Event, Event]
type Event = { readonly id: number; readonly data: string }

describe('the ledger of a channel', () => {
  it('takes what every client got once and in order, acknowledged or not', () => {
    const ledger = begin()
    ledger.arrive(0, [a, b])
    ledger.arrive(1, [a])
    assert.deepEqual(ledger.arrived, { most: 2, least: 1 })
    ledger.arrive(1, [b, c, d])
    assert.deepEqual([ledger.hasAll(0), ledger.hasAll(1)], [false, true])
    ledger.arrive(0, [c, d])
    assert.deepEqual([ledger.acknowledged, ledger.unacknowledged], [3, 1])
    ledger.settle()
  })

  const rows: readonly (readonly [what: string, first: readonly Event[], second: readonly Event[], error: RegExp])[] = [
    ['is missing for one', [a, b, c], [a, c], /got c as 30 where others got b as 20/],
    ['is missing for all', [a, c], [a, c], /b was acknowledged as 20: nobody got it/],
    ['came twice to one', [a, b, c], [a, a], /got a as 10 where others got b/],
    ['came twice to all', [a, b, { id: 25, data: 'b' }], [], /got b, which nobody published, or which came before/],
    ['came in another order', [b, a], [], /got id 10 behind 20/],
    ['has another id than its publisher was told', [a, { id: 21, data: 'b' }, c], [a, { id: 21, data: 'b' }, c], /b was acknowledged as 20/],
    ['was never sent', [a, { id: 20, data: 'x' }], [], /got x, which nobody published/],
  ]
  for (const [what, first, second, error] of rows) {
    it(`refuses an event that ${what}`, () => {
      const ledger = begin()
      assert.throws(() => {
        ledger.arrive(0, first)
        ledger.arrive(1, second)
        ledger.settle()
      }, error)
    })
  }

  it('refuses an id that was given twice', () => {
    assert.throws(() => begin().acknowledge(10, 'd'), /The id 10 was given to a and to d/)
  })
})

describe('the ledger of a queue', () => {
  it('counts what is missing, and refuses what came twice or was never pushed', () => {
    const ledger = new QueueLedger()
    for (const name of ['a', 'b', 'c']) ledger.send(name)
    for (const name of ['a', 'b']) ledger.acknowledge(name)
    ledger.take('a')
    ledger.take('c')
    assert.deepEqual([ledger.acknowledged, ledger.missing], [2, 1])
    assert.throws(() => ledger.take('a'), /a was taken twice/)
    assert.throws(() => ledger.take('x'), /x was taken, and nobody pushed it/)
  })
})
