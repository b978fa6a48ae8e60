import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { describe, it, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { ClusterBroker } from '../../lib/cluster/events.ts'
import { Peer, portOf } from '../../lib/cluster/peer.ts'
import type { Broker } from '../../lib/events/broker.ts'
import { deliverByChannel, deliverByQueue } from '../events/delivery.ts'
import { splitPort } from './split-port.ts'

/** A small limit, so that clients must poll often even on a slow machine. */
const run = { events: 3000, clients: 40, kept: 300 }

describe('events of a primary, over two workers, to 40 clients that leave at random', () => {
  it('reach each client of a channel once and in order, through any worker', async (t) => {
    const { left, lost } = await deliverByChannel(t, { ...run, seed: 3, brokers: twoWorkers(t) })
    t.diagnostic(`${left} times a client left, ${lost} events were answered and asked for again`)
    assert.ok(left > 0, 'clients left')
  })

  it('reach one client of a queue each, except those on the wire when their client left', async (t) => {
    const { left, lost } = await deliverByQueue(t, { ...run, events: 1000, seed: 4, brokers: twoWorkers(t) })
    t.diagnostic(`${left} times a client left, ${lost} events were on the wire`)
    assert.ok(left > 0, 'clients left')
    assert.ok(lost <= left)
  })
})

/** The brokers of two workers in this process, with the primary in another. */
function twoWorkers(t: Pick<TestContext, 'after'>): Broker[] {
  const primary = fork(fileURLToPath(new URL('./primary-child.ts', import.meta.url)))
  t.after(() => primary.kill('SIGKILL'))
  const open = splitPort(portOf(primary))
  return ['a', 'b'].map((name) => new ClusterBroker(new Peer(open(name))))
}
