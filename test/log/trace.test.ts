import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Trace, traceModules } from '../../lib/log/trace.ts'
import { readPage, tableBelow } from '../support/markdown.ts'

const specModules =
  'app server worker_http worker_ws worker_otros pool pool_detector metrics config socket monitor response logger error'

test('has the switches of the specification, all on at first', () => {
  assert.deepEqual(traceModules, specModules.split(' '))
  assert.deepEqual(tableBelow(readPage('docs/logging.md'), '### Modules and trace switches').map(([cell = '']) => cell.slice(1, -1)), traceModules)
  assert.deepEqual(new Trace().state(), Object.fromEntries(traceModules.map((module) => [module, true])))
})

test('switches one module, or with all every module', () => {
  const trace = new Trace({ all: false, pool: true })
  const held = trace.switchOf('server')
  assert.deepEqual([trace.switchOf('pool').on, trace.switchOf('server').on, held.on], [true, false, false])
  trace.set('server', true)
  assert.deepEqual([trace.switchOf('server').on, trace.switchOf('app').on, held.on], [true, false, true])
  trace.set('all', true)
  assert.ok(Object.values(trace.state()).every((on) => on))
})

test('the state is a copy', () => {
  const trace = new Trace()
  trace.state().app = false
  assert.equal(trace.switchOf('app').on, true)
})

test('a module outside the list always passes', () => {
  const trace = new Trace({ all: false })
  for (const module of ['billing', 'constructor', '__proto__', 'all', '']) assert.equal(trace.switchOf(module).on, true)
})

test('refuses to switch an unknown module and names the known ones', () => {
  const trace = new Trace()
  for (const module of ['billing', '', 'App', '__proto__']) {
    const expected = { name: 'RangeError', message: /must be all or one of app, server, .*error: it is/ }
    assert.throws(() => trace.set(module, false), expected)
  }
  assert.throws(() => new Trace({ nowhere: true }), { name: 'RangeError', message: /: it is nowhere$/ })
})
