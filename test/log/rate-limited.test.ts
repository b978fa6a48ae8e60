import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { StateLine } from '../../lib/log/rate-limited.ts'

describe('a line about a state', () => {
  it('tells a change at once, and at the end of the interval what has become of it', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const lines: string[] = []
    const state = new StateLine((on, changes) => void lines.push((on ? 'on' : 'off') + changes), 1000)
    const rows: readonly [change: () => void, told: readonly string[]][] = [
      [() => state.set(false), []],
      [() => state.set(true), ['on']],
      [() => state.set(true), ['on']],
      [() => state.set(false), ['on', 'off']],
      [() => [true, false, true].forEach((on) => state.set(on)), ['on', 'off']],
      [() => t.mock.timers.tick(999), ['on', 'off']],
      [() => t.mock.timers.tick(1), ['on', 'off', 'on (3 changes since the last such line)']],
      [() => [false, true, false, true].forEach((on) => state.set(on)), ['on', 'off', 'on (3 changes since the last such line)', 'off']],
      [() => t.mock.timers.tick(1000), ['on', 'off', 'on (3 changes since the last such line)', 'off', 'on (3 changes since the last such line)']],
    ]
    for (const [change, told] of rows) {
      change()
      assert.deepEqual(lines, told)
    }
    t.mock.timers.tick(5000)
    assert.equal(lines.length, 5)
  })
})
