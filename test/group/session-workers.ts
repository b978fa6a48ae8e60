// Workers that have their sessions in a primary in this process, for tests of the store that is shared by channels.
import assert from 'node:assert/strict'
import { createPeer, type Peer } from '../../lib/group/peer.ts'
import type { SessionHost } from '../../lib/group/sessions.ts'
import { createClusterSessionStore } from '../../lib/group/sessions.ts'
import type { StorePlace, StoreReports } from '../../lib/session/store.ts'
import { createMemoryStore } from '../../lib/stores/memory-store.ts'
import type { SessionStore } from '../../lib/session/store.ts'
import { inTurn } from './in-turn.ts'
import { memoryPorts } from './memory-ports.ts'

/** The stores of several workers as one. */
export function asOne(stores: readonly SessionStore[]): SessionStore {
  return inTurn(stores, {
    get counts() {
      return {
        evicted: stores.reduce((sum, { counts }) => sum + counts.evicted, 0),
        damaged: stores.reduce((sum, { counts }) => sum + counts.damaged, 0),
      }
    },
  })
}

/** A worker whose channel lies in memory. */
export function connect(host: SessionHost) {
  const [primaryPort, workerPort] = memoryPorts()
  host.attach(createPeer(primaryPort))
  const peer: Peer = createPeer(workerPort)
  const full: number[] = []
  const open = (max: number): SessionStore => createClusterSessionStore(peer, { store: 'memory', max }, () => full.push(max))
  return { open, full, die: () => workerPort.close(), sent: workerPort.sent }
}

/** Opens stores in memory with a clock of a test's own. */
export function memory(now: () => number) {
  return (place: StorePlace, { onFull }: StoreReports): SessionStore => {
    return place.store === 'memory' ? createMemoryStore({ max: place.max, onFull, now }) : assert.fail()
  }
}
