import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { hostSessions } from '../../lib/cluster/sessions.ts'
import { testSessionStore } from '../session-stores/store-conformance.ts'
import { changes, contents, fields, id } from '../session-stores/store-values.ts'
import { until } from '../support/until.ts'
import { asOne, connect, memory } from './session-workers.ts'
import { startWorkerProcess } from './worker-process.ts'

const minute = 60_000
const processes = [startWorkerProcess(), startWorkerProcess()]
after(() => Promise.all(processes.map((process) => process.kill())))

testSessionStore('two workers\' memory (by processes)', (t) => {
  let nowMs = 5000
  const host = hostSessions({ onProblem: assert.fail, open: memory(() => nowMs) })
  t.after(() => host.close())
  const workers = processes.map((process) => process.begin())
  for (const { peer } of workers) host.attach(peer)
  return { store: asOne(workers.map((worker) => worker.openStore(1000)), host), advance: (ms) => void (nowMs += ms) }
})

describe('the sessions of workers', () => {
  it('survive a worker killed during requests: a change applies completely or not at all', async (t) => {
    const host = hostSessions({ onProblem: assert.fail })
    t.after(() => host.close())
    const process = startWorkerProcess()
    t.after(() => process.kill())
    const dying = process.begin()
    host.attach(dying.peer)
    const store = connect(host).open(1000)
    await store.create(id(0), fields({ kept: '1' }), minute)
    const storeThere = dying.openStore(1000)
    await storeThere.create(id(1), fields({}), minute)
    const underWay = Promise.allSettled(
      Array.from({ length: 1000 }, (_, number) => {
        return storeThere.merge(id(1), changes({ [`a${number}`]: 'x', [`b${number}`]: 'x' }), minute)
      }),
    )
    await until(async () => ((await store.read(id(1)))?.fields.size ?? 0) > 0)
    await process.kill()
    await dying.peer.closed
    await underWay
    const found = (await contents(store, id(1))) ?? {}
    for (const name of Object.keys(found)) assert.ok(`${name.startsWith('a') ? 'b' : 'a'}${name.slice(1)}` in found)
    assert.deepEqual(await contents(store, id(0)), { kept: '1' })
    await assert.rejects(Promise.resolve(storeThere.read(id(1))), { name: 'DisconnectedError' })
  })
})
