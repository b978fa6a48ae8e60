import assert from 'node:assert/strict'
import { after, describe, it, type TestContext } from 'node:test'
import { describeBroker } from '../events/broker-conformance.ts'
import { inTurn } from '../cluster/in-turn.ts'
import { openBroker } from '../support/redis-broker.ts'
import { startRedis } from '../support/redis-server.ts'

const endings: (() => unknown)[] = []
const file = { after: (ending: () => unknown) => void endings.unshift(ending) }
after(async () => {
  for (const ending of endings) await ending()
})
const server = await startRedis(file)
let brokers = 0

describeBroker('a broker over Redis', (clocks) => openBroker(file, server.url, { prefix: `${++brokers}:`, clocks }).broker)

describeBroker('two brokers over one Redis', (clocks) => {
  const prefix = `${++brokers}:`
  const all = [1, 2].map(() => openBroker(file, server.url, { prefix, clocks }).broker)
  return inTurn(all, {
    get dropped() {
      return all.reduce((sum, broker) => sum + broker.dropped, 0)
    },
    sweep: async () => {
      for (const broker of all) await broker.sweep()
    },
  })
})
