import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { describe, it, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createClusterBroker } from '../../lib/cluster/broker.ts'
import { createPeer, portOf } from '../../lib/cluster/peer.ts'
import type { Broker } from '../../lib/events/broker.ts'
import { deliverByChannel, deliverByQueue } from '../events/delivery.ts'
import { splitPort } from './split-port.ts'

describe('10,000 events of a primary, over two workers, to 60 clients that leave at random', () => {
  it('arrive once and in order at each client of a channel, whichever worker it asks', async (t) => {
    const { left, lost } = await deliverByChannel(t, { events: 10_000, clients: 60, seed: 3, brokers: twoWorkers(t) })
    t.diagnostic(`${left} times a client left, ${lost} events were answered and asked for again`)
    assert.ok(left > 10, 'clients left')
  })

  it('arrive at one client of a queue each, but for those on the wire when their client left', async (t) => {
    const { left, lost } = await deliverByQueue(t, { events: 10_000, clients: 60, seed: 4, brokers: twoWorkers(t) })
    t.diagnostic(`${left} times a client left, ${lost} events were on the wire`)
    assert.ok(left > 10, 'clients left')
    assert.ok(lost <= left)
  })
})

/** The brokers of two workers in this process, whose primary is another. */
function twoWorkers(t: Pick<TestContext, 'after'>): Broker[] {
  const primary = fork(fileURLToPath(new URL('./primary-child.ts', import.meta.url)))
  t.after(() => primary.kill('SIGKILL'))
  const open = splitPort(portOf(primary))
  return ['a', 'b'].map((name) => createClusterBroker(createPeer(open(name))))
}
