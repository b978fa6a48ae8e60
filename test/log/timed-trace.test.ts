import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { TimedTrace } from '../../lib/log/timed-trace.ts'
import { Trace, traceModules } from '../../lib/log/trace.ts'

/** Switches over a clock that stands until `tick`, and what was told of those that went back. */
function make(t: TestContext, initial: Readonly<Record<string, boolean>> = {}) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const trace = new Trace(initial)
  const returned: string[] = []
  const timed = new TimedTrace(trace, (module, enabled) => returned.push(`${module} ${enabled}`))
  return { trace, timed, returned, tick: (seconds: number) => t.mock.timers.tick(seconds * 1000) }
}

test('a switch without a time stays', (t) => {
  const { trace, timed, returned, tick } = make(t)
  assert.deepEqual(timed.set('pool', false), { ...new Trace().state(), pool: false })
  tick(1_000_000)
  assert.deepEqual([trace.enabled('pool'), returned], [false, []])
})

test('a switch with a time goes back by itself, to what it was, and not a moment sooner', (t) => {
  for (const before of [true, false]) {
    const { trace, timed, returned, tick } = make(t, { pool: before })
    assert.equal(timed.set('pool', !before, 60)['pool'], !before)
    tick(59.999)
    assert.deepEqual([trace.enabled('pool'), returned], [!before, []])
    tick(0.001)
    assert.deepEqual([trace.enabled('pool'), returned], [before, [`pool ${before}`]])
    t.mock.timers.reset()
  }
})

test('a day is not too long for a timer', (t) => {
  const { trace, timed, tick } = make(t)
  timed.set('pool', false, 86_400)
  tick(86_399)
  assert.equal(trace.enabled('pool'), false)
  tick(1)
  assert.equal(trace.enabled('pool'), true)
})

test('a second setting with a time goes back to where it was before the first, at its own time', (t) => {
  const { trace, timed, returned, tick } = make(t, { pool: false })
  timed.set('pool', true, 10)
  tick(9)
  timed.set('pool', true, 10)
  tick(9)
  assert.deepEqual([trace.enabled('pool'), returned], [true, []])
  tick(1)
  assert.deepEqual([trace.enabled('pool'), returned], [false, ['pool false']])
})

test('a setting without a time is for good, also after one with a time', (t) => {
  const { trace, timed, returned, tick } = make(t)
  timed.set('pool', false, 10)
  timed.set('pool', false)
  tick(100)
  assert.deepEqual([trace.enabled('pool'), returned], [false, []])
})

test('all with a time brings each switch back to its own state', (t) => {
  const initial = { pool: false, app: false }
  const { trace, timed, returned, tick } = make(t, initial)
  assert.ok(Object.values(timed.set('all', true, 5)).every((on) => on))
  tick(5)
  assert.deepEqual(trace.state(), new Trace(initial).state())
  assert.equal(returned.length, traceModules.length)
})

test('one of all that is set for good is left out when the others go back', (t) => {
  const { trace, timed, tick } = make(t)
  timed.set('all', false, 5)
  timed.set('pool', false)
  tick(5)
  assert.deepEqual(trace.state(), { ...new Trace().state(), pool: false })
  timed.set('all', false)
  tick(100)
  assert.ok(Object.values(trace.state()).every((on) => !on))
})

test('an unknown module is refused, and what is to go back still does', (t) => {
  const { trace, timed, tick } = make(t)
  timed.set('pool', false, 5)
  for (const module of ['', 'Pool', 'none', '__proto__', 'toString']) {
    assert.throws(
      () => timed.set(module, true, 5),
      (error) => error instanceof RangeError && error.message.includes(traceModules.join(', ')),
    )
  }
  tick(5)
  assert.equal(trace.enabled('pool'), true)
})

test('after close nothing goes back', (t) => {
  const { trace, timed, returned, tick } = make(t)
  timed.set('all', false, 5)
  timed.close()
  tick(100)
  assert.deepEqual([trace.enabled('app'), returned], [false, []])
})
