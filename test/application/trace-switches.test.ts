import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTraceSwitches } from '../../lib/application/trace-switches.ts'
import { Trace } from '../../lib/log/trace.ts'

test('a switch that a state does not name is as the configuration sets it', () => {
  const trace = new Trace()
  trace.set('pool', false)
  const setSwitches = createTraceSwitches(trace)
  const { pool, app, metrics } = (setSwitches({ pool: true, app: false }), trace.state())
  assert.deepEqual([pool, app, metrics], [true, false, true])
  setSwitches({})
  assert.deepEqual([trace.state()['pool'], trace.state()['app']], [false, true])
})
