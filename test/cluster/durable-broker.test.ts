// Durable events of a server with several processes: the primary keeps them in its database.
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { ClusterBroker, hostBroker } from '../../lib/cluster/events.ts'
import { Peer } from '../../lib/cluster/peer.ts'
import { Database } from '../../lib/data/database.ts'
import { SqliteBroker } from '../../lib/data/sqlite-broker.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import { describeBroker } from '../events/broker-conformance.ts'
import { hasSqlite } from '../support/sqlite.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'
import { asOne } from './broker-workers.ts'
import { memoryPorts } from './memory-ports.ts'

const limits = { maxEvents: 1000, maxAgeMs: 3_600_000 }

async function openHost(t: { after(end: () => void): void }, now: () => number = Date.now): Promise<ReturnType<typeof hostBroker>> {
  const database = Database.open({ folder: temporaryFolder(), sync: 'normal', log: silentLogger })
  t.after(() => database.close())
  const broker = new SqliteBroker({ database, now })
  await broker.open()
  return hostBroker(broker, 'durable')
}

function connect(host: ReturnType<typeof hostBroker>) {
  const [primaryPort, workerPort] = memoryPorts()
  host.attach(new Peer(primaryPort))
  return { broker: new ClusterBroker(new Peer(workerPort), 'durable'), leave: () => workerPort.close() }
}

if (hasSqlite) {
  describeBroker('the durable broker of two workers', async ({ wallNow }) => {
    const host = await openHost({ after }, wallNow)
    return asOne([connect(host).broker, connect(host).broker], host)
  })
}

describe('the durable queues of workers', () => {
  it('need a Node with SQLite', () => {
    const open = (): unknown => Database.open({ folder: temporaryFolder(), sync: 'normal', log: silentLogger }).close()
    if (hasSqlite) open()
    else assert.throws(open, /^DataError: paths\.data needs node:sqlite/)
  })

  if (!hasSqlite) return

  it('get back the events that a worker had taken when it ended, in their order and first', async (t) => {
    const host = await openHost(t)
    const [a, b] = [connect(host), connect(host)]
    for (const text of ['1', '2', '3', '4']) await a.broker.push('q', text, limits)
    const taken = [await a.broker.take('q'), await a.broker.take('q'), await a.broker.take('q')]
    assert.deepEqual(taken.map((event) => event?.text), ['1', '2', '3'])
    assert.ok(taken[0] !== undefined)
    a.broker.handedOut('q', taken[0])
    await a.broker.read('c', undefined) // The host has received the message before this one.
    a.leave()
    const texts: string[] = []
    await until(async () => {
      const event = await b.broker.take('q')
      if (event !== undefined) texts.push(event.text)
      return texts.length === 3
    })
    assert.deepEqual(texts.sort(), ['2', '3', '4'])
  })
})
