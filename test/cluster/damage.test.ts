// Messages between processes with one damaged byte or another shape are reported and end no process.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { LocalBroker } from '../../lib/events/local-broker.ts'
import { ClusterBroker, hostBroker } from '../../lib/cluster/events.ts'
import { createClusterAddressLimit, createClusterBuckets, createClusterThrottle, hostLimits } from '../../lib/cluster/limits.ts'
import { hostNodes, listenForNodes } from '../../lib/cluster/nodes.ts'
import { Peer, type PeerPort } from '../../lib/cluster/peer.ts'
import { createClusterSessionStore, hostSessions } from '../../lib/cluster/sessions.ts'
import { createWorkerState } from '../../lib/cluster/state-channel.ts'
import { KnownProcess } from '../../lib/cluster/known-process.ts'
import { textOf } from '../events/broker-conformance.ts'
import { changed } from '../fuzz/mutate.ts'
import { Seeded } from '../support/seeded.ts'
import { memoryPorts } from './memory-ports.ts'

/** A port that damages incoming messages while `isDamaging` returns true. */
function damaged(port: PeerPort, random: Seeded, isDamaging: () => boolean): PeerPort {
  return {
    send: (message, written) => port.send(message, written),
    onClose: (listener) => port.onClose(listener),
    onMessage: (listener) =>
      port.onMessage((message) => listener(isDamaging() && random.integer(3) === 0 ? damagedMessage(random, message) : message)),
  }
}

const odd: readonly unknown[] = [null, 0, -1, 1e300, '', 'x', true, [], {}, [null], [[]], { routes: 1 }]

/** Another message that is JSON: the channel carries nothing else. */
function damagedMessage(random: Seeded, message: unknown): unknown {
  if (random.integer(3) === 0 && Array.isArray(message)) {
    const entry = 1 + random.integer(message.length - 1)
    const parts: unknown = message[entry]
    const at = random.integer(4)
    const other = Array.isArray(parts) && random.integer(4) > 0 ? [...parts.slice(0, at), random.pick(odd), ...parts.slice(at + 1)] : random.pick(odd)
    return message.with(entry, other)
  }
  for (let tries = 0; tries < 20; tries += 1) {
    try {
      return JSON.parse(changed(random, JSON.stringify(message), 1))
    } catch {
      // Not JSON: try again.
    }
  }
  return message
}

const limits = { maxEvents: 100, maxAgeMs: 60_000 }
const nobody = { store: 'memory', max: 10 } as const

describe('damaged messages between the primary and a worker', () => {
  for (const seed of [1, 2, 3, 4, 5]) {
    it(`are ignored and reported, and later messages are received, seed ${seed}`, async (t) => {
      const random = new Seeded(seed)
      let isDamaging = true
      const errors: unknown[] = []
      const [here, there] = memoryPorts()
      const primary = new Peer(damaged(here, random, () => isDamaging), (error) => errors.push(error))
      const worker = new Peer(damaged(there, random, () => isDamaging), (error) => errors.push(error))
      const events = hostBroker(new LocalBroker())
      const sessions = hostSessions({ onProblem: (message) => errors.push(message) })
      t.after(() => {
        events.close()
        sessions.close()
      })
      const view = { isReady: true, warnings: () => [`${random.integer(1000)}`], list: async () => [], errors: async () => [], clearErrors: async () => {} }
      const nodes = hostNodes(view)
      const hosts = [events, sessions, hostLimits(3), nodes]
      for (const host of hosts) host.attach(primary)
      const broker = new ClusterBroker(worker)
      const store = createClusterSessionStore(worker, nobody)
      const limit = createClusterAddressLimit(worker, 3)
      const buckets = createClusterBuckets(worker)('rule', { burst: 3, intervalMs: 10 })
      const throttle = createClusterThrottle(worker)
      const state = createWorkerState(worker, true)
      const health = listenForNodes(worker)({ isReady: false, warnings: [] })
      const heard: string[] = []
      for (let round = 0; round < 100; round += 1) {
        const uses: unknown[] = [
          broker.publish('c', '1', limits),
          broker.read('c', 0),
          broker.push('q', '1', limits),
          broker.take('q'),
          broker.subscribe('c', (one) => heard.push(textOf(one))),
          store.create('id', new Map([['key:a', '1']]), 1000),
          store.read('id'),
          buckets.take('key'),
          throttle.begin('::1', undefined),
          state.read(),
        ]
        limit.enter('::1', () => {})()
        nodes.healthChanged()
        // A call with a damaged number is never answered, so do not await it.
        for (const use of uses) Promise.resolve(use).catch(() => {})
        await new Promise((resolve) => setImmediate(resolve))
      }
      for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve))
      isDamaging = false
      assert.ok(errors.length > 0)
      assert.equal(typeof health.isReady, 'boolean')
      assert.ok(health.warnings().every((warning) => typeof warning === 'string'))
      heard.length = 0
      await broker.subscribe('c', (one) => heard.push(`whole ${textOf(one)}`))
      await broker.publish('c', '"after"', limits)
      await new Promise((resolve) => setImmediate(resolve))
      assert.ok(heard.includes('whole "after"'))
      await store.create('other', new Map([['key:a', '2']]), 1000)
      assert.equal((await store.read('other'))?.fields.get('key:a'), '2')
    })
  }

  it('do not change the last reading', () => {
    const known = new KnownProcess({ number: 1, pid: 1, serving: true, peer: new Peer(memoryPorts()[0]) })
    for (const wrong of odd) assert.throws(() => known.take(wrong as never), { message: 'its reading is damaged' })
    assert.equal(known.read('start'), undefined)
  })
})
