import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Command } from '../../lib/control/commands.ts'
import type { Change } from '../../lib/control/relay.ts'
import { traceModules } from '../../lib/log/trace.ts'
import { differencesOf } from '../../lib/nodes/differences.ts'
import { editsOf } from '../../lib/nodes/edits.ts'
import { DamagedStateError, edited, routesOf, type State } from '../../lib/nodes/state.ts'
import { Seeded } from '../support/seeded.ts'

const options = { nowMs: 1000, trace: { pool: true, server: false } }
const add = (name: string, persist = false): Change => ({ command: { type: 'routes.add', record: { name, url: '/a' }, persist } })
const remove = (name: string): Change => ({ command: { type: 'routes.delete', name } })
const reload = (...added: string[]): Change => ({ command: { type: 'routes.reload' }, added })
const trace = (module: string, enabled: boolean, ttlSeconds?: number): Change => {
  const ttl = ttlSeconds === undefined ? {} : { ttlSeconds }
  return { command: { type: 'trace.set', module, enabled, ...ttl } as Command<'trace.set'> }
}
const admin = { user: 'root', password: 'hash', secret: 's' }
const signed: Change = { command: { type: 'admin.secret' }, admin: { ...admin, keySaved: true } }

const otherSecret: Change = { command: { type: 'admin.secret' }, admin: { ...admin, secret: 't' } }
const otherName: Change = { command: { type: 'admin.secret' }, admin: { ...admin, user: 'other' } }

/** The state after changes, the first of which is number 1. */
function after(changes: readonly Change[], from: State = new Map(), first = 1): State {
  return changes.reduce((state, change, at) => edited(state, editsOf(state, change, { seq: first + at, nowMs: 1000 })), from)
}

/** The steps in short. */
function stepsOf(from: State, to: State, nowMs = 1000): string[] {
  return differencesOf(from, to, { ...options, nowMs }).map(({ change: { command, admin: credentials, lasts } }) => {
    if (credentials !== undefined) return `admin ${credentials.user}`
    if (command.type === 'routes.add') return `${lasts === true ? 'keep' : 'add'} ${nameIn((command as Command<'routes.add'>).record)}`
    if (command.type === 'routes.delete') return `delete ${(command as Command<'routes.delete'>).name}`
    const { module, enabled } = command as Command<'trace.set'>
    return command.type === 'trace.set' ? `${module} ${enabled ? 'on' : 'off'}` : 'reload'
  })
}

function nameIn(record: unknown): string {
  return (record as { readonly name: string }).name
}

describe('the way from one state to another', () => {
  it('is what was changed in between', () => {
    const rows: readonly (readonly [before: readonly Change[], then: readonly Change[], steps: readonly string[]])[] = [
      [[], [], []],
      [[], [add('b'), add('a')], ['add b', 'add a']],
      [[add('a')], [remove('a')], ['delete a']],
      [[add('a')], [remove('a'), add('a')], ['delete a', 'add a']],
      [[add('a'), add('b')], [remove('a'), add('c')], ['delete a', 'add c']],
      [[], [remove('file')], ['delete file']],
      [[remove('file')], [add('file')], ['add file']],
      [[remove('file'), add('file')], [remove('file')], ['delete file']],
      [[add('a')], [reload()], ['reload']],
      [[add('a')], [reload(), add('b')], ['reload', 'add b']],
      [[add('kept', true)], [reload()], ['reload']],
      [[], [add('kept', true), reload()], ['reload', 'keep kept']],
      [[add('kept', true)], [remove('kept')], ['delete kept']],
      [[add('kept', true)], [remove('kept'), reload()], ['reload', 'delete kept']],
      [[], [trace('pool', false)], ['pool off']],
      [[], [trace('pool', true)], []],
      [[], [trace('server', true)], ['server on']],
      [[trace('pool', false)], [trace('pool', true, 5)], ['pool on']],
      [[], [signed], ['admin root']],
      [[signed], [signed], []],
      [[signed], [otherSecret], ['admin root']],
      [[signed], [otherName], []],
    ]
    for (const [before, then, steps] of rows) {
      const from = after(before)
      assert.deepEqual(stepsOf(from, after(then, from, before.length + 1)), steps, JSON.stringify([before, then]))
    }
  })

  it('leads back from what could not be recorded', () => {
    const rows: readonly (readonly [before: readonly Change[], then: Change, steps: readonly string[]])[] = [
      [[], add('a'), ['delete a']],
      [[add('a')], remove('a'), ['add a']],
      [[], remove('file'), ['reload']],
      [[add('a')], reload(), ['reload', 'add a']],
      [[trace('pool', false)], trace('pool', true), ['pool off']],
      [[], trace('pool', false), ['pool on']],
      [[], signed, []],
    ]
    for (const [before, then, steps] of rows) {
      const from = after(before)
      assert.deepEqual(stepsOf(after([then], from, before.length + 1), from), steps, JSON.stringify([before, then]))
    }
  })

  it('keeps the order of the routes: what comes in between takes those behind it along', () => {
    const [from, to] = [after([add('a'), add('c')]), after([add('a')])]
    const between = edited(after([add('b')], to, 2), { set: [...after([add('c')], new Map(), 3)], removed: [] })
    assert.deepEqual(stepsOf(from, between), ['delete c', 'add b', 'add c'])
  })

  it('leads from any state to any other', () => {
    const random = new Seeded(1)
    const changes = (): Change[] =>
      Array.from({ length: random.integer(12) }, () => {
        const name = random.pick(['a', 'b', 'c', 'd'])
        const made = [add(name), add(name, true), remove(name), remove(name), reload(), trace('pool', random.next() < 0.5)]
        return random.pick(made)
      })
    for (let turn = 0; turn < 2000; turn += 1) {
      const common = after(changes())
      const [from, to] = [after(changes(), common, 20), after(changes(), common, 40)]
      const reached = differencesOf(from, to, options).reduce((state, { edits }) => edited(state, edits), from)
      const routes = (state: State): unknown => routesOf(state).map(({ field }) => [field, state.get(field)])
      assert.deepEqual(routes(reached), routes(to))
      assert.equal(reached.get('reload'), to.get('reload'))
    }
  })

  it('does not begin where the state is damaged', () => {
    for (const [field, text] of [['route:"a"', '{'], ['route:a', '{"seq":1}'], ['trace:pool', '{"on":1}'], ['admin', '[]']] as const) {
      assert.throws(() => differencesOf(new Map(), new Map([[field, text]]), options), (error: unknown) => {
        assert.ok(error instanceof DamagedStateError)
        assert.ok(error.message.includes(`the field ${field} of the shared state is damaged`), error.message)
        return true
      })
    }
  })
})

describe('the state that nodes have in common', () => {
  it('holds no more than files do not', () => {
    const rows: readonly (readonly [changes: readonly Change[], fields: readonly string[]])[] = [
      [[add('a'), remove('a')], []],
      [[remove('file')], ['route:"file"']],
      [[remove('file'), add('file'), remove('file')], ['route:"file"']],
      [[add('a'), remove('file'), reload()], ['reload']],
      [[add('kept', true), reload()], ['route:"kept"', 'reload']],
      [[add('kept', true), remove('kept'), reload()], ['route:"kept"', 'reload']],
      [[add('kept', true), remove('kept'), reload('kept')], ['reload']],
      [[{ command: { type: 'cache.clear' } }, { command: { type: 'bench.start' } }, { command: { type: 'certificates.reload' } }], []],
    ]
    for (const [changes, fields] of rows) {
      assert.deepEqual([...after(changes).keys()], fields, JSON.stringify(changes))
    }
    assert.equal(after([trace('all', false)]).size, traceModules.length)
  })

  it('has when a switch goes back, and to what', () => {
    const rows: readonly (readonly [changes: readonly Change[], entry: object])[] = [
      [[trace('pool', false)], { on: false }],
      [[trace('pool', false, 5)], { on: false, until: 6000 }],
      [[trace('pool', false), trace('pool', true, 5)], { on: true, until: 6000, back: false }],
      [[trace('pool', false), trace('pool', true, 5), trace('pool', false, 9)], { on: false, until: 10_000, back: false }],
      [[trace('pool', false, 5), trace('pool', true)], { on: true }],
    ]
    for (const [changes, entry] of rows) assert.deepEqual(JSON.parse(after(changes).get('trace:pool') ?? ''), entry)
    const over = after([trace('pool', false, 5)])
    assert.deepEqual(stepsOf(new Map(), over, 5999), ['pool off'])
    assert.deepEqual(stepsOf(new Map(), over, 6000), [])
  })

  it('takes any name', () => {
    for (const name of ['', '"', '\ud800', 'a:b', '__proto__']) {
      assert.deepEqual(routesOf(after([add(name)])).map((route) => route.name), [name])
    }
  })
})
