import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import cluster from 'node:cluster'
import { once } from 'node:events'
import { describe, it, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Peer, portOf, DisconnectedError } from '../../lib/cluster/peer.ts'
import { request } from '../support/request.ts'

const childFile = fileURLToPath(new URL('./peer-child.ts', import.meta.url))

describe('peers of two processes', () => {
  it('call each other', async (t) => {
    const { peer } = start(t)
    peer.on('here', (taken) => `${String(taken)} here`)
    assert.equal(await peer.call('and back', 'to and fro'), 'to and fro here there')
  })

  it('carry a megabyte each way', async (t) => {
    const { peer } = start(t)
    const text = 'é"\n'.repeat(2 ** 18)
    assert.equal(Buffer.byteLength(text), 2 ** 20)
    assert.equal(await peer.call('same', text), text)
  })

  it('answer 10,000 calls at once, in order', async (t) => {
    const { peer } = start(t)
    const order: unknown[] = []
    const numbers = Array.from({ length: 10_000 }, (_, number) => number)
    await Promise.all(numbers.map((number) => peer.call('same', number).then((answer) => order.push(answer))))
    assert.deepEqual(order, numbers)
  })

  it('keep notifications and calls of many turns in order', async (t) => {
    const { peer } = start(t)
    for (let turn = 0; turn < 50; turn++) {
      for (let count = 0; count < 20; count++) peer.notify('note', turn * 20 + count)
      await new Promise((resolve) => setImmediate(resolve))
    }
    assert.deepEqual(await peer.call('notes'), Array.from({ length: 1000 }, (_, number) => number))
  })

  it('detect that the other process is killed', async (t) => {
    const { child, peer } = start(t)
    await peer.call('same', 1)
    const waiting = Promise.allSettled(Array.from({ length: 100 }, () => peer.call('never')))
    await peer.call('same', 1)
    child.kill('SIGKILL')
    await peer.closed
    for (const outcome of await waiting) {
      assert.ok(outcome.status === 'rejected' && outcome.reason instanceof DisconnectedError)
    }
    await assert.rejects(peer.call('same'), DisconnectedError)
  })

  it('receive all answers before they detect that the other process has ended', async (t) => {
    const { child, peer } = start(t)
    const answers = Array.from({ length: 100 }, (_, number) => peer.call('same', number))
    peer.notify('leave')
    assert.deepEqual(await Promise.all(answers), Array.from({ length: 100 }, (_, number) => number))
    await peer.closed
    if (child.exitCode === null) await once(child, 'exit')
    assert.equal(child.exitCode, 0)
    const late = new Peer(portOf(child))
    await late.closed
    await assert.rejects(late.call('same'), DisconnectedError)
  })

  it('share the channel of node:cluster with its own messages', async (t) => {
    cluster.setupPrimary({ exec: childFile })
    const worker = cluster.fork()
    t.after(() => worker.process.kill('SIGKILL'))
    const peer = new Peer(portOf(worker.process))
    const port = await peer.call('listen')
    assert.equal((await request(`http://127.0.0.1:${String(port)}/`)).text, 'there')
    assert.equal(await peer.call('same', 1), 1)
    worker.disconnect()
    await peer.closed
  })
})

/** Starts the process on the other side. */
function start(t: Pick<TestContext, 'after'>): { child: ReturnType<typeof fork>; peer: Peer } {
  const child = fork(childFile)
  t.after(() => child.kill('SIGKILL'))
  return { child, peer: new Peer(portOf(child)) }
}
