import assert from 'node:assert/strict'
import { after, describe, it, type TestContext } from 'node:test'
import { hostBroker } from '../../lib/cluster/events.ts'
import { LocalBroker } from '../../lib/events/local-broker.ts'
import { describeBroker, textOf } from '../events/broker-conformance.ts'
import { until } from '../support/until.ts'
import { asOne } from './broker-workers.ts'
import { watched } from './watched-broker.ts'
import { startWorkerProcess } from './worker-process.ts'

const limits = { maxEvents: 1000, maxAgeMs: 3_600_000 }
const processes = [startWorkerProcess(), startWorkerProcess()]
after(() => Promise.all(processes.map((process) => process.kill())))

describeBroker('the broker of two workers, by processes', (clocks) => {
  const host = hostBroker(new LocalBroker(clocks))
  const workers = processes.map((process) => process.begin())
  for (const { peer } of workers) host.attach(peer)
  return asOne(workers.map(({ broker }) => broker), host)
})

describe('a worker that dies', () => {
  it('loses its subscriptions and the events it took, nothing else', async (t) => {
    const { broker, listening } = watched(new LocalBroker())
    const host = hostBroker(broker)
    const { dying, worker } = startTwo(t)
    for (const { peer } of [dying.worker, worker]) host.attach(peer)
    const heard: string[] = []
    await worker.broker.subscribe('c', (one) => heard.push(textOf(one)))
    await dying.worker.broker.subscribe('c', () => {})
    await dying.worker.broker.onAvailable('q', () => {})
    for (const text of ['1', '2', '3']) await dying.worker.broker.push('q', text, limits)
    const id = await dying.worker.broker.publish('c', '1', limits)
    assert.equal((await dying.worker.broker.take('q'))?.text, '1')
    assert.deepEqual(listening, ['c', 'c', 'q'])
    const underWay = Promise.allSettled(
      Array.from({ length: 1000 }, (_, count) => dying.worker.broker.publish('other', String(count), limits)),
    )
    await dying.process.kill()
    await dying.worker.peer.closed
    await underWay
    assert.deepEqual(listening, ['c'])
    assert.deepEqual([(await worker.broker.take('q'))?.text, (await worker.broker.take('q'))?.text], ['2', '3'])
    assert.equal(await worker.broker.publish('c', '2', limits), id + 1)
    await until(() => heard.length === 2)
    const { events } = await worker.broker.read('c', id - 1)
    assert.deepEqual([events.map(({ text }) => text), heard], [['1', '2'], ['1', '2']])
    host.close()
  })
})

/** A process to kill, and a worker in a process that survives. */
function startTwo(t: Pick<TestContext, 'after'>) {
  const process = startWorkerProcess()
  t.after(() => process.kill())
  const worker = (processes[0] as (typeof processes)[number]).begin() // There are two.
  return { dying: { process, worker: process.begin() }, worker }
}
