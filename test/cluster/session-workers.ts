// Workers with their sessions in a primary in this process, for tests of the shared store.
import assert from 'node:assert/strict'
import { Peer } from '../../lib/cluster/peer.ts'
import type { hostSessions } from '../../lib/cluster/sessions.ts'
import { createClusterSessionStore } from '../../lib/cluster/sessions.ts'
import type { StoreSettings } from '../../lib/session/store.ts'
import { createMemoryStore } from '../../lib/session-stores/memory-store.ts'
import type { SessionStore } from '../../lib/session/store.ts'
import { inTurn } from './in-turn.ts'
import { memoryPorts } from './memory-ports.ts'

/** The stores of several workers as one. The host counts. */
export function asOne(stores: readonly SessionStore[], host: ReturnType<typeof hostSessions>): SessionStore {
  return inTurn(stores, {
    get counts() {
      return host.counts
    },
  })
}

/** A worker with an in-memory channel. */
export function connect(host: ReturnType<typeof hostSessions>) {
  const [primaryPort, workerPort] = memoryPorts()
  host.attach(new Peer(primaryPort))
  const peer: Peer = new Peer(workerPort)
  const open = (max: number): SessionStore => createClusterSessionStore(peer, { store: 'memory', max })
  return { open, die: () => workerPort.close(), sent: workerPort.sent }
}

/** Opens in-memory stores with the clock of a test. */
export function memory(now: () => number) {
  return (settings: StoreSettings): SessionStore => {
    return settings.store === 'memory' ? createMemoryStore({ max: settings.max, onFull: assert.fail, now }) : assert.fail()
  }
}
