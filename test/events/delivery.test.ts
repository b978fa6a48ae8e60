import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { deliverByChannel, deliverByQueue } from './delivery.ts'

describe('hundreds of events to 10 clients that leave at random', () => {
  it('arrive once and in order at each client of a channel', async (t) => {
    const { left } = await deliverByChannel(t, { events: 1000, clients: 10, kept: 50, waitS: 0.05, seed: 1 })
    assert.ok(left > 0, 'clients left')
  })

  it('each arrive at one client of a queue, except those on the wire when their client left', async (t) => {
    const { left, lost } = await deliverByQueue(t, { events: 400, clients: 10, waitS: 0.05, seed: 2 })
    assert.ok(left > 0, 'clients left')
    assert.ok(lost <= left)
  })
})
