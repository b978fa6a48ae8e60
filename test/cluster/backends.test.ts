import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { ApplicationParts } from '../../lib/composition/application-parts.ts'
import { ClusterBroker, hostBroker } from '../../lib/cluster/events.ts'
import { Peer } from '../../lib/cluster/peer.ts'
import { createClusterSessionStore, hostSessions } from '../../lib/cluster/sessions.ts'
import { parseConfig } from '../../lib/config/load.ts'
import { LocalBroker } from '../../lib/events/local-broker.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import type { TestAction } from '../support/context.ts'
import { visit, type Visitor } from '../session/session-server.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { memoryPorts } from './memory-ports.ts'

/** Two applications, as two workers build them, connected to one primary, and their warnings. */
function twoApplications(t: Pick<TestContext, 'after'>) {
  const folder = temporaryFolder()
  const events = hostBroker(new LocalBroker())
  const warnings: string[] = []
  const sessions = hostSessions({ onProblem: (message) => void warnings.push(message) })
  const log = () => Object.assign(() => {}, silentLogger, { warn: assert.fail })
  const applications = [1, 2].map(() => {
    const [primaryPort, workerPort] = memoryPorts()
    const primaryPeer = new Peer(primaryPort)
    events.attach(primaryPeer)
    sessions.attach(primaryPeer)
    const peer = new Peer(workerPort)
    return new ApplicationParts(parseConfig({}, folder), 'a key', log, {
      backends: {
        broker: new ClusterBroker(peer),
        openStoreHere: (settings) => createClusterSessionStore(peer, settings),
      },
    })
  })
  t.after(async () => {
    for (const { events, builtIn } of applications) await Promise.all([events.close(), builtIn.sessions.close()])
    events.close()
    sessions.close()
  })
  const [a, b] = applications as [(typeof applications)[0], (typeof applications)[0]]
  return { a, b, sessions, warnings }
}

describe('two applications with one primary', () => {
  it('receive each other\'s events', async (t) => {
    const { a, b } = twoApplications(t)
    const before = await b.events.channel('c').last_id
    const heard = new Promise((resolve) => b.events.channel('c').subscribe(resolve))
    await b.events.channel('c').listen()
    const id = await a.events.channel('c').publish({ n: 1 })
    assert.deepEqual(await heard, { id, data: { n: 1 } })
    assert.deepEqual((await b.events.channel('c').read(before)).events, [{ id, text: '{"n":1}' }])
  })

  it('share sessions, and drop them when their settings change', async (t) => {
    const { a, b, sessions, warnings } = twoApplications(t)
    const actions: Readonly<Record<string, TestAction>> = {
      write: ({ session }) => session.set('a', 'written'),
      read: ({ session }) => session.get('a', 'none'),
      leave: ({ session }) => session.destroy(),
    }
    const read = async (visitor: Visitor): Promise<string> => (await visitor.ask('read')).text
    const { visitor: atA } = await visit(t, actions, { group: a.builtIn.sessions })
    const { visitor: atB } = await visit(t, actions, { group: b.builtIn.sessions })
    await atA.ask('write')
    atB.id = atA.id
    assert.equal(await read(atB), 'written')
    await atB.ask('leave')
    assert.equal(await read(atA), 'none')

    await atA.ask('write')
    atB.id = atA.id
    for (const { builtIn } of [a, b]) builtIn.sessions.prepare({ max: 1 }).commit()
    assert.equal(await read(atB), 'none')
    for (const at of [atA, atB]) {
      at.id = undefined
      await at.ask('write')
    }
    assert.equal(await read(atA), 'none', 'one is allowed, and the other worker made a later one')
    assert.equal(await read(atB), 'written')
    assert.deepEqual([a.builtIn.sessions.counts.evicted, b.builtIn.sessions.counts.evicted, sessions.counts.evicted], [0, 0, 1])
    assert.match(String(warnings), /^the session store is full \(setup\.session\.max is 1\)/)
  })
})
