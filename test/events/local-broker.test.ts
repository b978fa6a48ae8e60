import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { LocalBroker } from '../../lib/events/local-broker.ts'
import { describeBroker } from './broker-conformance.ts'
import { DelayedBroker } from './delayed-broker.ts'

const limits = { maxEvents: 1000, maxAgeMs: 3_600_000 }

describeBroker('the local broker', (clocks) => new LocalBroker(clocks))
describeBroker('a broker elsewhere', (clocks) => new DelayedBroker(new LocalBroker(clocks)))

describe('the local broker', () => {
  it('answers synchronously, and begins a channel with the time in microseconds', () => {
    const broker = new LocalBroker({ wallNow: () => 1_700_000_000_123 })
    assert.equal(broker.read('c', undefined).lastId, 1_700_000_000_123_000 - 1)
    assert.equal(broker.publish('c', '1', limits), 1_700_000_000_123_000)
    assert.equal(broker.publish('c', '1', limits), 1_700_000_000_123_001)
  })

  it('reuses no id after a restart, and reports a gap to old clients', () => {
    const first = new LocalBroker({ wallNow: () => 1_700_000_000_000 })
    let last = 0
    for (let count = 0; count < 900; count++) last = first.publish('c', '1', limits)
    const second = new LocalBroker({ wallNow: () => 1_700_000_000_001 })
    assert.deepEqual(second.read('c', last), { events: [], lastId: 1_700_000_000_001_000 - 1, gap: true })
    assert.ok(second.publish('c', '2', limits) > last)
  })

  it('reuses no id when a channel was dropped, even if the wall clock stands still', () => {
    let time = 0
    const broker = new LocalBroker({ now: () => time, wallNow: () => 1_700_000_000_000 })
    let last = 0
    for (let count = 0; count < 5000; count++) last = broker.publish('c', '1', limits)
    time += 3_600_000
    broker.sweep()
    assert.deepEqual(broker.read('c', last), { events: [], lastId: last, gap: false }, 'cannot tell itself from new')
    assert.equal(broker.publish('c', '2', limits), last + 1)
  })

  it('assigns ids that double precision can hold until the year 2255', () => {
    const broker = new LocalBroker({ wallNow: () => Date.UTC(2255, 0, 1) })
    assert.ok(Number.isSafeInteger(broker.publish('c', '1', limits)))
  })

  it('keeps within the limits, whatever is published', () => {
    let time = 0
    const broker = new LocalBroker({ now: () => time })
    const bounds = { maxEvents: 10, maxAgeMs: 5 }
    for (let count = 0; count < 1000; count++) {
      time += 1
      broker.publish('c', String(count), bounds)
    }
    assert.deepEqual(
      broker.read('c', 0).events.map((event) => event.text),
      ['995', '996', '997', '998', '999'],
    )
  })

  it('drops everything when it is closed', () => {
    const broker = new LocalBroker()
    broker.push('q', '1', limits)
    broker.close()
    assert.equal(broker.take('q'), undefined)
  })
})
