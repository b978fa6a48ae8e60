import assert from 'node:assert/strict'
import { describe, it, test } from 'node:test'
import { fingerprintOf } from '../../lib/access/used-codes.ts'
import {
  NotEverywhereError,
  ReloadError,
  RouteRefusedError,
  RoutesUnsavedError,
  type Command,
} from '../../lib/control/commands.ts'
import { nextState, withRoute, type DesiredState } from '../../lib/control/desired-state.ts'
import type { LocalStateStore, StateStore } from '../../lib/control/state-store.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { makeChanges } from './changes-support.ts'

const a = { name: 'a', url: '/a', action: 'a.mjs' }
const files = { 'a.mjs': "export default () => 'a'", 'routes/f.json': [{ name: 'f', url: '/f', action: 'a.mjs' }] }
const add = (record: unknown, persist = false): Command<'routes.add'> => ({ type: 'routes.add', record, persist })
const remove = (name: string): Command<'routes.delete'> => ({ type: 'routes.delete', name })
const reload: Command<'routes.reload'> = { type: 'routes.reload' }

function refusal(name: string, reserved: boolean, message: RegExp) {
  return (error: unknown) =>
    error instanceof RouteRefusedError
    && error.routeName === name
    && error.reserved === reserved
    && message.test(error.message)
}

/** A store whose functions the test overrides. */
function around(local: LocalStateStore, over: Partial<StateStore>): StateStore {
  return {
    isShared: false,
    nowMs: () => local.nowMs(),
    read: () => local.read(),
    write: (next, file) => local.write(next, file),
    missing: () => [],
    ...over,
  }
}

describe('a route that is added', () => {
  it('is registered, and written to a file only if it is persisted', async (t) => {
    const made = await makeChanges(t, files)
    assert.deepEqual(await made.control.apply(add({ ...a, middleware: 'SVC_MwSession' })), { name: 'a', warnings: [] })
    assert.deepEqual([made.find('/a'), made.kept()], ['a', undefined])
  })

  it('is written in the normal form of a record', async (t) => {
    const made = await makeChanges(t, files)
    const { url, ...rest } = a
    await made.control.apply(add({ ...rest, pattern: url, method: 'get , post', middleware: ' SVC_MwSession ', odd: 1 }, true))
    assert.deepEqual(made.kept(), [{ ...a, method: 'GET,POST', middleware: 'SVC_MwSession', scope: '' }])
  })

  it('is answered with everything that is missing', async (t) => {
    const { control } = await makeChanges(t, files)
    const { warnings } = await control.apply(add({ ...a, url: '/f', action: 'soon.html', odd: 1 }))
    assert.equal(warnings.length, 3)
    assert.equal(warnings[0], 'field "odd" is not known and is ignored')
    assert.match(warnings[1] ?? '', /soon\.html/)
    assert.equal(warnings[2], 'route "f" answers this method and pattern already')
  })

  it('is refused with every problem, and nothing has changed', async (t) => {
    const made = await makeChanges(t, files)
    const { control } = made
    await control.apply(add(a))
    const rows: readonly (readonly [command: Command<'routes.add'>, is: (error: unknown) => boolean])[] = [
      [add(null), refusal('', false, /^a route record is a JSON object/)],
      [add({}), refusal('', false, /^name is missing; url is missing; action is missing$/)],
      [add({ ...a, name: 'svc.a' }), refusal('svc.a', true, /system routes/)],
      [add({ ...a, name: 'b', middleware: 'SVC_MwSesion' }, true), refusal('b', false, /did you mean "SVC_MwSession"\?/)],
      [add({ ...a, url: '/b' }, true), refusal('a', false, /the name is taken/)],
      [add({ ...a, name: 'f' }, true), refusal('f', false, /the name is taken/)],
    ]
    for (const [command, is] of rows) await assert.rejects(control.apply(command), is)
    assert.deepEqual([made.names(), made.kept()], [['f', 'a'], undefined])
  })

  it('is not persisted under a name that another route file has by now; admin.json itself may have it', async (t) => {
    const made = await makeChanges(t, files)
    made.write({ 'routes/b.json': [a] })
    const has = /^Cannot keep route "a": b\.json has that name too/
    await assert.rejects(made.control.apply(add(a, true)), refusal('a', false, has))
    await made.control.apply(add(a))
    made.write({ 'routes/b.json': [], 'routes/admin.json': [{ ...a, name: 'c', url: '/old' }] })
    await made.control.apply(add({ ...a, name: 'c' }, true))
    assert.deepEqual(made.kept(), [{ ...a, name: 'c', method: '*', middleware: '', scope: '' }])
  })

  it('is not registered when it cannot be written', async (t) => {
    const made = await makeChanges(t, files)
    made.write({ 'routes/admin.json': '{}' })
    await assert.rejects(made.control.apply(add(a, true)), RoutesUnsavedError)
    assert.deepEqual(made.names(), ['f'])
  })
})

describe('a route that is deleted', () => {
  it('is removed from the table and from admin.json, and the answer says whether it existed', async (t) => {
    const made = await makeChanges(t, files)
    await made.control.apply(add(a, true))
    assert.deepEqual(await made.control.apply(remove('a')), { deleted: true })
    assert.deepEqual([made.names(), made.kept()], [['f'], []])
    assert.deepEqual(await made.control.apply(remove('a')), { deleted: false })
    made.write({ 'routes/admin.json': [a] })
    assert.deepEqual(await made.control.apply(remove('a')), { deleted: true }, 'one that was left out at the start, say')
    assert.deepEqual(await made.control.apply(remove('f')), { deleted: true })
    assert.deepEqual(made.names(), [])
  })

  it('stays when it cannot be removed from admin.json', async (t) => {
    const made = await makeChanges(t, files)
    await made.control.apply(add(a, true))
    made.write({ 'routes/admin.json': '{}' })
    await assert.rejects(made.control.apply(remove('a')), RoutesUnsavedError)
    assert.deepEqual(made.names(), ['f', 'a'])
  })

  it('must not be a system route', async (t) => {
    const { control } = await makeChanges(t, files)
    assert.deepEqual(await control.apply(remove('svc.ping')), { deleted: false }, 'there is no panel here')
  })
})

describe('consecutive changes', () => {
  it('result in the table of files and changes, whatever happened in between', async (t) => {
    const made = await makeChanges(t, files)
    const { control, names } = made
    for (const name of ['c', 'b']) await control.apply(add({ ...a, name }))
    await control.apply(remove('f'))
    await control.apply(add({ ...a, name: 'f' }))
    assert.deepEqual(names(), ['c', 'b', 'f'])
    await control.apply(remove('c'))
    await control.apply(add({ ...a, name: 'kept' }, true))
    assert.deepEqual(names(), ['b', 'f', 'kept'])
    const { totalDeleted, totalLoaded, added, removed } = await control.apply(reload)
    assert.deepEqual([totalDeleted, totalLoaded, added, removed], [3, 2, [], ['b']])
    assert.deepEqual(names(), ['kept', 'f'])
  })

  it('are applied in order of arrival', async (t) => {
    const { control, names } = await makeChanges(t, files)
    const asked = ['a', 'b', 'c', 'a'].map((name) => control.apply(add({ ...a, name })))
    const outcomes = await Promise.allSettled([...asked, control.apply(remove('b'))])
    assert.deepEqual(outcomes.map(({ status }) => status), ['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
    assert.deepEqual(names(), ['f', 'a', 'c'])
  })

  it('change nothing when a reload is refused', async (t) => {
    const made = await makeChanges(t, files)
    await made.control.apply(add(a))
    made.write({ 'routes/f.json': '[{"name": 1}]' })
    await assert.rejects(made.control.apply(reload), ReloadError)
    assert.deepEqual([made.names(), made.local.read().version], [['f', 'a'], 1])
  })

  it('log what a reload did, with its warnings', async (t) => {
    const made = await makeChanges(t, files)
    made.write({ 'routes/f.json': [{ name: 'f', url: '/f', action: 'a.mjs', odd: 1 }] })
    await made.control.apply(reload)
    assert.deepEqual(made.lines, [
      'info server routes reloaded: 1 removed, 1 loaded',
      'warn config f.json:1:42: route "f": field "odd" is not known and is ignored',
    ])
  })
})

describe('a change while another process makes one', () => {
  /** Another process writes a state before this one does, this many times. */
  function faster(times: number, change: (state: DesiredState) => DesiredState): (local: LocalStateStore) => StateStore {
    return (local) =>
      around(local, {
        write: (next, file) => {
          if (times > 0) {
            times -= 1
            local.write(change(local.read()))
          }
          return local.write(next, file)
        },
      })
  }
  let count = 0
  const addsB = (state: DesiredState): DesiredState => {
    const name = `b${(count += 1)}`
    return nextState(state, withRoute(state, name, { ...a, name }, false))
  }

  it('starts over from the state of the other', async (t) => {
    const made = await makeChanges(t, files, { store: faster(2, addsB) })
    await made.control.apply(add(a))
    assert.deepEqual(made.names(), ['f', `b${count - 1}`, `b${count}`, 'a'])
  })

  it('is refused if it is no longer possible, and the change of the other stays', async (t) => {
    const made = await makeChanges(t, files, { store: faster(1, (state) => nextState(state, withRoute(state, 'a', { ...a, url: '/x' }, false))) })
    await assert.rejects(made.control.apply(add(a)), refusal('a', false, /the name is taken/))
    assert.deepEqual([made.find('/x'), made.find('/a')], ['a', undefined])
  })

  it('of the first credentials yields to those of the other', async (t) => {
    const other = { user: 'other', password: 'hash', secret: 's' }
    const made = await makeChanges(t, files, { store: faster(1, (state) => nextState(state, { credentials: other })) })
    assert.deepEqual(await made.control.apply({ type: 'admin.setup', user: 'root', password: 'secret1' }), { done: false })
    assert.deepEqual(made.credentials.current, other)
  })

  it('of the first credentials stays if the other changed something else', async (t) => {
    const made = await makeChanges(t, files, { store: faster(1, addsB) })
    assert.deepEqual(await made.control.apply({ type: 'admin.setup', user: 'root', password: 'secret1' }), { done: true })
    assert.deepEqual(made.local.read().credentials, made.credentials.current)
    assert.equal(made.credentials.current.user, 'root')
  })

  it('of a used code yields to the same code of the other', async (t) => {
    const key = fingerprintOf('')
    const usesIt = (state: DesiredState): DesiredState => nextState(state, { usedCodes: { [key]: { step: 7, recovery: [] } } })
    const made = await makeChanges(t, files, { store: faster(1, usesIt) })
    assert.deepEqual(await made.control.apply({ type: 'admin.code', code: { step: 7 } }), { accepted: false, left: 0 })
    assert.equal(made.local.read().version, 1)
  })
})

describe('a code of the second factor', () => {
  it('is used once, and does not wait for the others', async (t) => {
    const missing = (): readonly string[] => assert.fail('a sign-in waits for no other process')
    const made = await makeChanges(t, files, { store: (local) => around(local, { missing }) })
    const use = (step: number) => made.control.apply({ type: 'admin.code', code: { step } })
    assert.deepEqual(await use(5), { accepted: true, left: 0 })
    assert.deepEqual(await Promise.all([use(5), use(6), use(6), use(4)]), [false, true, false, false].map((accepted) => ({ accepted, left: 0 })))
    assert.equal(made.local.read().version, 2)
  })
})

describe('a change that others must apply', () => {
  it('is answered when they have applied it, or names those that have not', async (t) => {
    const asked: unknown[] = []
    const missing = (state: DesiredState, withinMs: number): readonly string[] => {
      asked.push([state.version, withinMs])
      return asked.length === 2 ? ['process 2: no'] : []
    }
    const made = await makeChanges(t, files, { store: (local) => around(local, { missing }) })
    await made.control.apply(add(a))
    await assert.rejects(made.control.apply(reload), (error: unknown) => {
      assert.ok(error instanceof NotEverywhereError)
      assert.equal(error.message, 'routes.reload has taken effect, but not everywhere: process 2: no')
      return true
    })
    assert.deepEqual(asked, [[1, 5000], [2, 10_000]])
  })

  it('is undone if it cannot be written', async (t) => {
    const away = new HttpError(503, 'shared_away', 'gone')
    const write = (): never => {
      throw away
    }
    const made = await makeChanges(t, files, { store: (local) => around(local, { write }) })
    for (const command of [add(a), remove('f'), reload]) await assert.rejects(made.control.apply(command as Command), away)
    assert.deepEqual(made.names(), ['f'])
    assert.deepEqual(made.lines.filter((line) => line.startsWith('warn')), [
      'warn server routes.add: the change could not be shared and was undone',
      'warn server routes.delete: the change could not be shared and was undone',
      'warn server routes.reload: the change could not be shared and was undone',
    ])
  })

  it('is 503 while this process cannot apply the state of the others', async (t) => {
    const made = await makeChanges(t, files)
    const state = made.local.read()
    made.local.write(nextState(state, withRoute(state, 'f', { ...a, name: 'f', url: '/other' }, false)))
    const isBehind = (error: unknown): boolean =>
      error instanceof HttpError && error.status === 503 && /^this node is out of sync: .*the name is taken/.test(error.message)
    await assert.rejects(made.control.apply(add(a)), isBehind)
    assert.deepEqual(made.names(), ['f'])
  })
})

describe('a state of another process', () => {
  it('is applied, but an older one that arrives late is not', async (t) => {
    const made = await makeChanges(t, files)
    const one = nextState(made.local.read(), withRoute(made.local.read(), 'a', a, false))
    const two = nextState(one, { trace: { pool: { on: false } }, credentials: { user: 'u', password: 'p', secret: 's' } })
    assert.equal(await made.reconciler.follow(two), true)
    assert.equal(await made.reconciler.follow(one), false)
    assert.equal(await made.reconciler.follow(two), false)
    assert.deepEqual([made.names(), made.credentials.current.user], [['f', 'a'], 'u'])
  })

  it('changes nothing if a part of it cannot be applied', async (t) => {
    const made = await makeChanges(t, files)
    const state = made.local.read()
    const good = nextState(state, withRoute(state, 'a', a, false))
    const bad = nextState(good, withRoute(good, 'b', { name: 'b' }, false))
    await assert.rejects(made.reconciler.follow(bad), RouteRefusedError)
    assert.deepEqual(made.names(), ['f'])
    assert.equal(await made.reconciler.follow(good), true, 'which is older than the one that failed')
    assert.deepEqual(made.names(), ['f', 'a'])
  })
})

describe('a command about the machine', () => {
  const machineOf = (missing: readonly string[], asked: string[]) => ({
    everywhere: async ({ type }: Command) => {
      asked.push(type)
      return missing
    },
    applyToServer: async ({ type }: Command) => void asked.push(`whole ${type}`),
  })

  it('is carried out here and then everywhere, and is not stored', async (t) => {
    const asked: string[] = []
    const handlers = { 'cache.clear': () => ({ deleted: 1, path: 'p' }), 'certificates.reload': () => true }
    const made = await makeChanges(t, files, { machine: machineOf([], asked), handlers })
    assert.deepEqual(await made.control.apply({ type: 'cache.clear' }), { deleted: 1, path: 'p' })
    await made.control.apply({ type: 'certificates.reload' })
    assert.deepEqual(asked, ['cache.clear', 'certificates.reload'])
    assert.deepEqual([made.local.read().version, made.lines], [0, ['info server certificates reloaded']])
  })

  it('names the processes that have not carried it out', async (t) => {
    const made = await makeChanges(t, files, { machine: machineOf(['process 3: no'], []), handlers: { 'bench.start': () => {} } })
    await assert.rejects(made.control.apply({ type: 'bench.start' }), {
      name: 'NotEverywhereError',
      message: 'bench.start has taken effect, but not everywhere: process 3: no',
    })
  })

  it('for all processes together is forwarded', async (t) => {
    const asked: string[] = []
    const made = await makeChanges(t, files, { machine: machineOf([], asked) })
    await made.control.apply({ type: 'stop' })
    await made.control.apply({ type: 'logs.reopen' })
    assert.deepEqual(asked, ['whole stop', 'whole logs.reopen'])
  })

  it('does not wait for a reload that hangs', async (t) => {
    const done: string[] = []
    const handlers = { 'logs.reopen': () => void done.push('logs'), stop: () => void done.push('stop') }
    const read = (): Promise<DesiredState> => new Promise(() => {})
    let isStarted = false
    const made = await makeChanges(t, files, {
      handlers,
      store: (local) => around(local, { read: () => (isStarted ? read() : local.read()) }),
    })
    isStarted = true
    void made.control.apply(reload)
    await made.control.apply({ type: 'logs.reopen' })
    await made.control.apply({ type: 'stop' })
    assert.deepEqual(done, ['logs', 'stop'])
  })
})

test('an unknown module of the trace is refused, and nothing has changed', async (t) => {
  const made = await makeChanges(t, files)
  for (const module of ['', 'Pool', 'none', '__proto__', 'toString']) {
    await assert.rejects(made.control.apply({ type: 'trace.set', module, enabled: true }), RangeError)
  }
  assert.equal(made.local.read().version, 0)
})
