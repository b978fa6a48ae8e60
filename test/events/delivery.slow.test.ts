import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { deliverByChannel, deliverByQueue } from './delivery.ts'

describe('100,000 events to 200 clients that leave at random', () => {
  it('arrive once and in order at each client of a channel', async (t) => {
    const { left, lost } = await deliverByChannel(t, { events: 100_000, clients: 200, seed: 1 })
    t.diagnostic(`${left} times a client left, ${lost} events were answered and asked for again`)
    assert.ok(left > 100, 'clients left')
    assert.ok(lost > 0, 'some of them while they were answered')
  })

  it('each arrive at one client of a queue, except those on the wire when their client left', async (t) => {
    const { left, lost } = await deliverByQueue(t, { events: 100_000, clients: 200, seed: 2 })
    t.diagnostic(`${left} times a client left, ${lost} events were on the wire`)
    assert.ok(left > 100, 'clients left')
    assert.ok(lost > 0, 'some of them while they were answered')
    assert.ok(lost <= left)
  })
})
