import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type BuiltInGroup, readSettings, settingsTable } from '../../lib/chain/settings.ts'
import type { MiddlewareConfig, MiddlewareError } from '../../lib/modules/middleware-config.ts'
import { MiddlewareHost } from '../../lib/modules/middleware-host.ts'
import { Modules } from '../../lib/modules/modules.ts'
import { writeFiles, type Files } from '../support/application.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** A host for the files; modules record what they do with `app.push`. */
function makeHost(files: Files, teardownTimeoutMs = 10_000) {
  const folder = temporaryFolder()
  writeFiles(folder, files)
  const modules = new Modules(folder)
  const steps: string[] = []
  const problems: string[] = []
  const own = fakeGroup('own', 'SVC_MwOwn')
  const other = fakeGroup('other', 'SVC_MwOther', 'SVC_MwOwn')
  const host = new MiddlewareHost<string[]>({
    folder,
    modules,
    builtIn: [own.group, other.group],
    app: () => steps,
    readSettings: () => ({ settings: {}, errors: [] }),
    teardownTimeoutMs,
    onProblem: (message, error) => problems.push(`${message}: ${String(error)}`),
  })
  return { host, modules, steps, problems, own, other, write: (more: Files) => writeFiles(folder, more) }
}

/** A group with one setting that records what happens to its settings. */
function fakeGroup(name: string, middlewareName: string, required?: string) {
  const table = settingsTable({ limit: { kind: 'integer', min: 1, max: 9, default: 5, meaning: 'A limit.' } })
  const events: string[] = []
  const group: BuiltInGroup = {
    name,
    table,
    middleware: new Map([[middlewareName, (_ctx, next) => next()]]),
    ...(required === undefined ? {} : { requires: new Map([[middlewareName, required]]) }),
    prepare: (given) => {
      const { settings, warnings } = readSettings(name, table, given)
      return {
        warnings,
        unready: settings.limit === 9 ? 'nine is too much' : undefined,
        commit: () => events.push(`commit ${settings.limit}`),
        abandon: () => events.push(`abandon ${settings.limit}`),
      }
    },
  }
  return { group, events }
}

/** The middleware configuration as read from the file. */
function configOf(load: readonly string[], setup: Readonly<Record<string, unknown>> = {}): MiddlewareConfig {
  const file = '/app/config.json'
  return { file, load, setup, warnings: [], locate: (message) => ({ file, message }) }
}

/** A module that records its setup and teardown. */
function recording(name: string): string {
  return `export default (ctx, next) => next()
    export const setup = (steps) => { steps.push('${name} up'); return () => { steps.push('${name} down') } }`
}

/** Performs all steps, or abandons them as a reload does. */
async function take(host: ReturnType<typeof makeHost>['host'], files: readonly string[]): Promise<void> {
  const prepared = await host.prepare(configOf(files))
  try {
    await prepared.setUp()
    await prepared.commit()
  } catch (error) {
    await prepared.abandon()
    throw error
  }
}

describe('loading middleware', () => {
  it('registers the default export under the base name, and named functions under theirs, but not setup', async () => {
    const { host } = makeHost({
      'sub/audit.mjs': `export default () => {}
        export const check = () => {}, number = 5
        export function setup() {}`,
      'old.cjs': 'module.exports = () => {}',
    })
    const { byName } = await host.prepare(configOf(['sub/audit.mjs', 'old.cjs']))
    assert.deepEqual([...byName.keys()], ['SVC_MwOwn', 'SVC_MwOther', 'check', 'audit', 'old'])
  })

  it('finds the exports of a CommonJS module as compilers and people write them', async () => {
    const { host, steps } = makeHost({
      'compiled.cjs': `Object.defineProperty(exports, '__esModule', { value: true })
        exports.default = () => {}
        exports.first = () => {}`,
      'whole.cjs': `const all = { second: () => {}, setup: (steps) => { steps.push('set up') } }
        module.exports = all`,
      'esm.mjs': 'export default { third: () => {} }',
    })
    const prepared = await host.prepare(configOf(['compiled.cjs', 'whole.cjs', 'esm.mjs']))
    assert.deepEqual([...prepared.byName.keys()].sort(), ['SVC_MwOther', 'SVC_MwOwn', 'compiled', 'first', 'second'])
    await prepared.setUp()
    assert.deepEqual(steps, ['set up'])
  })

  const wrong: readonly [title: string, files: Files, message: RegExp][] = [
    ['a missing file', {}, /Cannot load a\.mjs: .*no such file/],
    ['a module that throws', { 'a.mjs': 'throw new Error("ouch")' }, /Cannot load a\.mjs.*: .*ouch/],
    ['a name of the server', { 'a.mjs': 'export const SVC_MwOwn = () => {}' }, /the name SVC_MwOwn is taken/],
    ['a setup that is not a function', { 'a.mjs': 'export const setup = 5' }, /its setup is not a function/],
    ['a setup that throws', { 'a.mjs': 'export const setup = () => { throw new Error("ouch") }' }, /set up middleware a\.mjs: ouch/],
    ['a setup that rejects', { 'a.mjs': 'export const setup = async () => { throw "text" }' }, /set up middleware a\.mjs: text/],
  ]
  for (const [title, files, message] of wrong) {
    it(`refuses ${title}, and tears down what was set up before`, async () => {
      const { host, steps } = makeHost({ 'first.mjs': recording('first'), ...files })
      await assert.rejects(take(host, ['first.mjs', 'a.mjs']), (error: Error & { file?: string }) => {
        assert.match(error.message, message)
        return error.name === 'MiddlewareError' && error.file === 'a.mjs'
      })
      assert.deepEqual(steps, title.includes('setup') ? ['first up', 'first down'] : [])
      assert.deepEqual([...host.current.byName.keys()], ['SVC_MwOwn', 'SVC_MwOther'])
    })
  }

  it('names every faulty file, and the settings', async () => {
    const { host, own } = makeHost({ 'bad.mjs': 'throw new Error("ouch")', 'good.mjs': 'export const fine = () => {}' })
    await assert.rejects(host.prepare(configOf(['gone.mjs', 'good.mjs', 'bad.mjs'], { other: { limit: 10 } })), (error: MiddlewareError) => {
      assert.deepEqual(error.all.map(({ file }) => file), ['gone.mjs', 'bad.mjs', '/app/config.json'])
      assert.equal(error.message, error.all.map(({ message }) => message).join('; '))
      return error.file === 'gone.mjs'
    })
    assert.deepEqual(own.events, ['abandon 5'])
  })

  it('warns of a module that exports no function', async () => {
    const { host } = makeHost({ 'a.mjs': 'export default 5', 'b.mjs': 'export const setup = () => {}' })
    const { warnings } = await host.prepare(configOf(['a.mjs', 'b.mjs']))
    assert.deepEqual(warnings, ['a.mjs exports no function: there is no middleware in it'])
  })

  it('runs no setup before setUp() is called', async () => {
    const { host, steps } = makeHost({ 'a.mjs': recording('a') })
    const { byName } = await host.prepare(configOf(['a.mjs']))
    assert.deepEqual([steps, byName.has('a')], [[], true])
  })
})

describe('reloading middleware', () => {
  it('keeps unchanged modules, sets up changed ones, and then tears down the replaced ones', async () => {
    const { host, modules, steps, write } = makeHost({ 'a.mjs': recording('a'), 'b.mjs': recording('b') })
    await take(host, ['a.mjs', 'b.mjs'])
    const before = host.current
    write({ 'b.mjs': `${recording('new b')} // longer` })
    await modules.refresh()
    const prepared = await host.prepare(configOf(['a.mjs', 'b.mjs']))
    assert.deepEqual(steps, ['a up', 'b up'])
    await prepared.setUp()
    assert.deepEqual(steps, ['a up', 'b up', 'new b up'])
    assert.equal(host.current, before)
    await prepared.commit()
    assert.deepEqual(steps, ['a up', 'b up', 'new b up', 'b down'])
    assert.equal(host.current.byName.get('a'), before.byName.get('a'))
    assert.notEqual(host.current.byName.get('b'), before.byName.get('b'))
    await host.stop()
    assert.deepEqual(steps.slice(4), ['new b down', 'a down'])
    await host.stop()
    assert.equal(steps.length, 6)
  })

  it('tears down only new modules when it is abandoned', async () => {
    const { host, modules, steps, write } = makeHost({ 'a.mjs': recording('a'), 'b.mjs': recording('b') })
    await take(host, ['a.mjs'])
    write({ 'b.mjs': recording('b2') })
    await modules.refresh()
    const prepared = await host.prepare(configOf(['a.mjs', 'b.mjs']))
    await prepared.setUp()
    await prepared.abandon()
    assert.deepEqual(steps, ['a up', 'b2 up', 'b2 down'])
    assert.equal(host.current.byName.has('b'), false)
  })

  it('tears down modules that are no longer loaded', async () => {
    const { host, steps } = makeHost({ 'a.mjs': recording('a') })
    await take(host, ['a.mjs'])
    await take(host, [])
    assert.deepEqual([steps, [...host.current.byName.keys()]], [['a up', 'a down'], ['SVC_MwOwn', 'SVC_MwOther']])
  })

  it('reports a teardown that throws or hangs, and continues with the others', async () => {
    const { host, steps, problems } = makeHost(
      {
        'a.mjs': recording('a'),
        'hangs.mjs': 'export const setup = () => () => new Promise(() => {})',
        'throws.mjs': 'export const setup = () => () => { throw new Error("ouch") }',
        'rejects.mjs': 'export const setup = async () => async () => { throw new Error("ouch") }',
        'none.mjs': 'export const setup = () => "no teardown"',
        'late.mjs': 'export const setup = (steps) => async () => { await null; steps.push("late down") }',
      },
      20,
    )
    await take(host, ['a.mjs', 'hangs.mjs', 'throws.mjs', 'rejects.mjs', 'none.mjs', 'late.mjs'])
    await host.stop()
    assert.deepEqual(steps, ['a up', 'late down', 'a down'])
    assert.deepEqual(problems, [
      'the teardown of middleware rejects.mjs failed: Error: ouch',
      'the teardown of middleware throws.mjs failed: Error: ouch',
      'the teardown of middleware hangs.mjs failed: Error: It did not end within 0.02 s: no longer waiting for it',
    ])
  })
})

describe('settings of built-in middleware', () => {
  it('reads every group first and activates all at the commit', async () => {
    const { host, own, other } = makeHost({})
    const prepared = await host.prepare(configOf([], { own: { limit: 3, lmit: 4 } }))
    assert.deepEqual(prepared.warnings, ['unknown key setup.own.lmit: did you mean limit?'])
    assert.deepEqual([own.events, other.events], [[], []])
    await prepared.setUp()
    await prepared.commit()
    assert.deepEqual([own.events, other.events], [['commit 3'], ['commit 5']])
  })

  it('drops the prepared settings when the set is abandoned', async () => {
    const { host, own } = makeHost({})
    await (await host.prepare(configOf([], { own: { limit: 3 } }))).abandon()
    assert.deepEqual(own.events, ['abandon 3'])
  })

  it('names the file and every wrong setting, and drops the settings of the other groups', async () => {
    const { host, own, other } = makeHost({})
    const message = 'Cannot load /app/config.json: setup.other.limit must be 1 to 9: it is 10'
    await assert.rejects(host.prepare(configOf([], { other: { limit: 10 } })), { name: 'MiddlewareError', message })
    assert.deepEqual([own.events, other.events], [['abandon 5'], []])
    const both = { own: [], other: { limit: '4' } }
    await assert.rejects(host.prepare(configOf([], both)), {
      message:
        'Cannot load /app/config.json: setup.own must be an object with limit; ' +
        'setup.other.limit must be 1 to 9: it is "4"',
    })
  })

  it('reports which middleware must come before which', async () => {
    const { host } = makeHost({})
    const requires = [['SVC_MwOther', 'SVC_MwOwn']]
    assert.deepEqual([...host.current.requires], requires)
    const prepared = await host.prepare(configOf([]))
    assert.deepEqual([...prepared.requires], requires)
    await prepared.setUp()
    await prepared.commit()
    assert.deepEqual([...host.current.requires], requires)
  })

  it('reports which middleware cannot run with the settings', async () => {
    const { host } = makeHost({})
    const prepared = await host.prepare(configOf([], { own: { limit: 9 } }))
    assert.deepEqual([...prepared.unready], [['SVC_MwOwn', 'nine is too much']])
    await prepared.setUp()
    await prepared.commit()
    assert.equal(host.current.unready.get('SVC_MwOwn'), 'nine is too much')
  })
})
