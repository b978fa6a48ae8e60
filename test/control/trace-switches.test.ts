import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { initialState, nextState, withSwitch } from '../../lib/control/desired-state.ts'
import { TraceSwitches } from '../../lib/control/trace-switches.ts'
import { Trace } from '../../lib/log/trace.ts'

/** Switches with a clock that stands still until `tick`, and the reported reverts. */
function make(t: TestContext, initial: Readonly<Record<string, boolean>> = {}) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const trace = new Trace(initial)
  const returned: string[] = []
  let nowMs = 1_000_000
  const switches = new TraceSwitches({ trace, nowMs: () => nowMs, onReturn: (module, on) => returned.push(`${module} ${on}`) })
  t.after(() => switches.close())
  let state = initialState
  return {
    trace,
    switches,
    returned,
    set: (module: string, on: boolean, ttlSeconds?: number): void => {
      state = nextState(state, withSwitch(state, { module, on, ttlSeconds }, nowMs))
      switches.apply(state.trace)
    },
    tick: (seconds: number): void => {
      nowMs += seconds * 1000
      t.mock.timers.tick(seconds * 1000)
    },
  }
}

test('a switch without a duration stays', (t) => {
  const { trace, set, returned, tick } = make(t)
  set('pool', false)
  assert.deepEqual(trace.state(), { ...new Trace().state(), pool: false })
  tick(1_000_000)
  assert.deepEqual([trace.switchOf('pool').on, returned], [false, []])
})

test('a switch with a duration reverts to its previous setting, exactly on time', (t) => {
  for (const before of [true, false]) {
    const { trace, set, returned, tick } = make(t, { pool: before })
    set('pool', !before, 60)
    assert.equal(trace.switchOf('pool').on, !before)
    tick(59.999)
    assert.deepEqual([trace.switchOf('pool').on, returned], [!before, []])
    tick(0.001)
    assert.deepEqual([trace.switchOf('pool').on, returned], [before, [`pool ${before}`]])
    t.mock.timers.reset()
  }
})

test('a day is not too long for a timer', (t) => {
  const { trace, set, tick } = make(t)
  set('pool', false, 86_400)
  tick(86_399)
  assert.equal(trace.switchOf('pool').on, false)
  tick(1)
  assert.equal(trace.switchOf('pool').on, true)
})

test('a second setting with a duration reverts to the setting before the first, at its own time', (t) => {
  const { trace, set, returned, tick } = make(t, { pool: false })
  set('pool', true, 10)
  tick(9)
  set('pool', true, 10)
  tick(9)
  assert.deepEqual([trace.switchOf('pool').on, returned], [true, []])
  tick(1)
  assert.deepEqual([trace.switchOf('pool').on, returned], [false, ['pool false']])
})

test('a setting without a duration is permanent, also after one with a duration', (t) => {
  const { trace, set, returned, tick } = make(t)
  set('pool', false, 10)
  set('pool', false)
  tick(100)
  assert.deepEqual([trace.switchOf('pool').on, returned], [false, []])
})

test('all with a duration reverts each switch to its own state', (t) => {
  const initial = { pool: false, app: false }
  const { trace, set, returned, tick } = make(t, initial)
  set('all', true, 5)
  assert.ok(Object.values(trace.state()).every((on) => on))
  tick(5)
  assert.deepEqual(trace.state(), new Trace(initial).state())
  assert.deepEqual(returned, ['app false', 'pool false'])
})

test('a switch that is set permanently stays when the others revert', (t) => {
  const { trace, set, tick } = make(t)
  set('all', false, 5)
  set('pool', false)
  tick(5)
  assert.deepEqual(trace.state(), { ...new Trace().state(), pool: false })
  set('all', false)
  tick(100)
  assert.ok(Object.values(trace.state()).every((on) => !on))
})

test('an earlier state applies as of now, and a state without a switch reverts it', (t) => {
  const { trace, switches, returned, tick } = make(t, { app: false })
  const over = { on: false, until: 999_999 }
  const timed = { until: 1_002_000, back: false }
  const entries = { metrics: { on: true, ...timed }, socket: { on: false, ...timed } }
  switches.apply({ ...entries, pool: over, app: { on: true }, unknown: { on: true } })
  const set = ['pool', 'metrics', 'socket', 'app'].map((module) => trace.switchOf(module).on)
  assert.deepEqual(set, [true, true, false, true])
  tick(2)
  assert.deepEqual(returned, ['metrics false'], 'the other one was off before')
  switches.apply({})
  assert.deepEqual([trace.switchOf('metrics').on, trace.switchOf('app').on], [true, false])
})

test('after close nothing reverts', (t) => {
  const { trace, set, switches, returned, tick } = make(t)
  set('all', false, 5)
  switches.close()
  tick(100)
  assert.deepEqual([trace.switchOf('app').on, returned], [false, []])
})
