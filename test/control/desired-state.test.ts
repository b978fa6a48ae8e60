import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  differences,
  initialState,
  nextState,
  withFilesRead,
  withReload,
  withRoute,
  withoutRoute,
  withSwitch,
  type DesiredState,
} from '../../lib/control/desired-state.ts'
import { traceModules } from '../../lib/log/trace.ts'

type Change = (state: DesiredState) => DesiredState

const add = (name: string, lasts = false): Change => (state) => nextState(state, withRoute(state, name, { name }, lasts))
const remove = (name: string): Change => (state) => nextState(state, withoutRoute(state, name))
const reload = (...inFiles: string[]): Change => (state) => nextState(state, withReload(state, new Set(inFiles)))
const read = (inFiles: readonly string[], persisted: readonly string[] = []): Change => (state) =>
  nextState(state, withFilesRead(state, new Set(inFiles), new Set(persisted)))
const trace = (module: string, on: boolean, ttlSeconds?: number, nowMs = 1000): Change => (state) =>
  nextState(state, withSwitch(state, { module, on, ttlSeconds }, nowMs))
const admin = (user: string): Change => (state) => nextState(state, { credentials: { user, password: 'p', secret: 's' } })
const used = (step: number): Change => (state) => nextState(state, { usedCodes: { secret: { step, recovery: [] } } })

/** The state after changes. */
const after = (changes: readonly Change[], from = initialState): DesiredState => changes.reduce((state, change) => change(state), from)

describe('the desired state', () => {
  it('drops entries that a route file already has', () => {
    const rows: readonly (readonly [changes: readonly Change[], routes: readonly string[]])[] = [
      [[add('a'), remove('a')], []],
      [[remove('file')], ['-file']],
      [[remove('file'), add('file')], ['file over a file']],
      [[remove('file'), add('file'), remove('file')], ['-file']],
      [[add('a'), remove('file'), reload()], []],
      [[add('a'), add('b'), remove('a'), add('a')], ['b', 'a']],
      [[add('kept', true), reload()], ['kept lasts']],
      [[add('kept', true), remove('kept')], ['-kept lasts']],
      [[add('kept', true), remove('kept'), reload()], ['-kept lasts']],
      [[add('kept', true), remove('kept'), reload('kept')], []],
      [[add('a'), add('b'), remove('file'), read(['file'])], ['a', 'b', '-file']],
      [[add('a'), remove('file'), read(['a'], ['a'])], []],
      [[add('kept', true), remove('file'), read(['kept'], ['kept'])], ['kept lasts']],
      [[add('kept', true), remove('kept'), read([])], ['-kept lasts']],
      [[add('kept', true), remove('kept'), add('kept')], ['kept over a file']],
      [[add('__proto__'), add(''), add('\ud800')], ['__proto__', '', '\ud800']],
    ]
    for (const [changes, routes] of rows) {
      const short = after(changes).routes.map(
        ({ name, record, lasts, hides }) =>
          `${record === undefined ? '-' : ''}${name}${lasts ? ' lasts' : ''}${hides ? ' over a file' : ''}`,
      )
      assert.deepEqual(short, routes, changes.map(String).join())
    }
  })

  it('counts its changes, and each names its ancestor', () => {
    const [one, two] = [after([add('a')]), after([add('a'), reload()])]
    assert.deepEqual([one.version, one.ancestors, two.version, two.reload], [1, [], 2, 2])
    const next = reload()(one)
    assert.equal(next.ancestors[0], one.stamp)
    assert.notEqual(next.stamp, reload()(one).stamp)
    assert.equal(one.routes[0]?.at, 1)
  })

  it('has when a switch reverts, and to what', () => {
    const rows: readonly (readonly [changes: readonly Change[], entry: object])[] = [
      [[trace('pool', false)], { on: false }],
      [[trace('pool', false, 5)], { on: false, until: 6000 }],
      [[trace('pool', false), trace('pool', true, 5)], { on: true, until: 6000, back: false }],
      [[trace('pool', false), trace('pool', true, 5), trace('pool', false, 9)], { on: false, until: 10_000, back: false }],
      [[trace('pool', false), trace('pool', true, 5), trace('pool', true, 5, 7000)], { on: true, until: 12_000, back: false }],
      [[trace('pool', false, 5), trace('pool', true)], { on: true }],
    ]
    for (const [changes, entry] of rows) assert.deepEqual(after(changes).trace['pool'], entry)
    assert.deepEqual(Object.keys(after([trace('all', false)]).trace), [...traceModules])
  })

  it('lists the differences between two states', () => {
    const rows: readonly (readonly [before: readonly Change[], then: readonly Change[], steps: readonly string[]])[] = [
      [[], [], []],
      [[], [add('b'), add('a')], ['routes.add {"name":"b"}', 'routes.add {"name":"a"}']],
      [[add('a')], [remove('a')], ['routes.delete "a"']],
      [[add('a')], [remove('a'), add('a')], ['routes.add {"name":"a"}']],
      [[], [remove('file')], ['routes.delete "file"']],
      [[add('a')], [reload()], ['routes.reload']],
      [[add('a')], [reload(), add('b')], ['routes.reload', 'routes.add {"name":"b"}']],
      [[], [trace('pool', false)], ['trace.set pool off']],
      [[trace('pool', false)], [trace('pool', true, 5)], ['trace.set pool on']],
      [[], [admin('root')], ['admin.secret']],
      [[admin('root')], [admin('root')], []],
      [[], [used(5)], ['admin.code']],
      [[used(5)], [used(5)], []],
      [[used(5)], [used(6)], ['admin.code']],
    ]
    for (const [before, then, steps] of rows) {
      const from = after(before)
      const found = differences(from, after(then, from)).map(({ type, about }) => `${type}${about === '' ? '' : ` ${about}`}`)
      assert.deepEqual(found, steps)
    }
  })
})
