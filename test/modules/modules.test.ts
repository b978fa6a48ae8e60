import assert from 'node:assert/strict'
import { renameSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { Modules } from '../../lib/modules/modules.ts'
import { application, checkRenewal, run } from './modules-support.ts'

const importer = `import v from './v.js'\nexport default () => v\n`
const counter = 'let count = 0\nexport const next = () => ++count\n'

test('loads a module once, also for concurrent calls', async () => {
  const app = application({ 'a.js': 'export default () => 1\nexport const other = 2\n' })
  const [first, second] = await Promise.all([app.load('a.js'), app.load('a.js')])
  assert.equal(first, second)
  assert.equal(first['other'], 2)
  assert.equal(await app.load('a.js'), first)
})

test('refuses a link that leads outside the root, of the file or of a parent folder, and accepts one within', async () => {
  const outer = application({ 'secret.js': 'export default () => 1' })
  const app = application({ 'real/a.js': "export default () => 'within'" })
  symlinkSync(join(outer.root, 'secret.js'), join(app.root, 'link.js'))
  symlinkSync(outer.root, join(app.root, 'folder'))
  symlinkSync('real', join(app.root, 'inner'))
  for (const file of ['link.js', 'folder/secret.js']) {
    const message = `Cannot load ${file}: it is a link that leads outside the application's root, ${app.root}`
    await assert.rejects(app.load(file), { name: 'ModuleLoadError', message })
  }
  assert.equal(await app.value('inner/a.js'), 'within')
  const linked = join(outer.root, 'current')
  symlinkSync(app.root, linked)
  assert.equal(run(await new Modules(linked).load(join(linked, 'real/a.js'))), 'within')
})

test('gives up on a module whose top-level await never ends, names it, and loads it once it is fixed', async (t) => {
  const timeoutMs = 60_000
  const app = application({ 'a.js': "import './hang.js'", 'hang.js': 'await new Promise(() => {})' }, timeoutMs)
  const why = 'it has not loaded within 60 s: a top-level await hangs, there or in a module that it imports'
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let isOver = false
  const loaded = app.load('a.js').finally(() => {
    isOver = true
  })
  const failed = assert.rejects(loaded, { name: 'ModuleLoadError', message: `Cannot load a.js: ${why}` })
  while (!isOver) {
    t.mock.timers.tick(timeoutMs)
    await nextTurn()
  }
  await failed
  t.mock.timers.reset()
  app.write({ 'hang.js': '', 'a.js': "import './hang.js'\nexport default () => 'mended'" })
  await app.refresh()
  assert.equal(await app.value('a.js'), 'mended')
})

test('imports by the plain URL until something changes', async () => {
  const app = application({ 'a.js': 'export default () => import.meta.url\n' })
  assert.equal(await app.value('a.js'), pathToFileURL(join(app.root, 'a.js')).href)
  await app.refresh()
  assert.equal(await app.value('a.js'), pathToFileURL(join(app.root, 'a.js')).href)
  app.write({ 'a.js': 'export default () => import.meta.url // changed\n' })
  await app.refresh()
  assert.match(String(await app.value('a.js')), /a\.js\?svc=\d+-1$/)
})

test('keeps every instance when nothing changed', async () => {
  const app = application({ 'a.js': `import { next } from './s.js'\nexport default next\n`, 's.js': counter })
  const first = await app.load('a.js')
  assert.equal(run(first), 1)
  assert.deepEqual(await app.refresh(), [])
  assert.equal(await app.load('a.js'), first)
  app.write({ 's.js': counter })
  assert.deepEqual(await app.refresh(), [], 'written again with the same content')
  assert.equal(await app.value('a.js'), 2)
})

test('reloads a changed module and keeps the state of its imports', async () => {
  const app = application({
    'a.js': `import { next } from './s.js'\nexport default () => 'a' + next()\n`,
    'b.js': `import { next } from './s.js'\nexport default () => 'b' + next()\n`,
    's.js': counter,
  })
  const b = await app.load('b.js')
  assert.equal(await app.value('a.js'), 'a1')
  app.write({ 'a.js': `import { next } from './s.js'\nexport default () => 'A' + next()\n` })
  assert.deepEqual(await app.refresh(), ['a.js'])
  assert.equal(await app.value('a.js'), 'A2')
  assert.equal(await app.load('b.js'), b)
  assert.equal(run(b), 'b3')
})

test('reloads all importers of a changed module, which they share', async () => {
  const app = application({
    'actions/a.js': `import { next } from '../lib/m.js'\nexport default () => 'a' + next()\n`,
    'actions/b.js': `import { next } from '../lib/m.js'\nexport default () => 'b' + next()\n`,
    'actions/c.js': `export default () => 'c'\n`,
    'lib/m.js': `export { next } from './s.js'\n`,
    'lib/s.js': counter,
  })
  const old = await app.load('actions/a.js')
  const c = await app.load('actions/c.js')
  assert.equal(await app.value('actions/b.js'), 'b1')
  app.write({ 'lib/s.js': 'let count = 100\nexport const next = () => ++count\n' })
  assert.deepEqual([...(await app.refresh())].sort(), ['actions/a.js', 'actions/b.js'])
  assert.equal(await app.value('actions/a.js'), 'a101')
  assert.equal(await app.value('actions/b.js'), 'b102')
  assert.equal(await app.load('actions/c.js'), c)
  assert.equal(run(old), 'a2', 'a request in flight ends on the old instance')
})

test('reloads repeatedly', async () => {
  const app = application({ 'a.js': importer, 'v.js': 'export default 0\n' })
  for (let version = 1; version <= 5; version++) {
    await app.load('a.js')
    app.write({ 'v.js': `export default ${version}\n` })
    assert.deepEqual(await app.refresh(), ['a.js'])
    assert.equal(await app.value('a.js'), version)
  }
})

test('reloads importers, whatever the kind of import', async () => {
  const ways: Readonly<Record<string, string>> = {
    'static.js': importer,
    'from.js': `export { default as v } from './v.js'\nimport * as me from './from.js'\nexport default () => me.v\n`,
    'dynamic.js': `export default async () => (await import('./v.js')).default\n`,
    'template.js': 'export default async () => (await import(`./v.js`)).default\n',
    'cycle-a.js': `import { b } from './cycle-b.js'\nexport const a = 1\nexport default () => b()\n`,
    'json.js': `import v from './v.json' with { type: 'json' }\nexport default () => v.v\n`,
    'query.js': `import v from './v.js?x=1'\nexport default () => v\n`,
    'url.js': `import v from 'file://ROOT/v.js'\nexport default () => v\n`,
    'absolute.js': `import v from 'ROOT/v.js'\nexport default () => v\n`,
    'require.cjs': `const v = require('./v.cjs')\nmodule.exports = () => v\n`,
    'extensionless.cjs': `const v = require('./w')\nmodule.exports = () => v\n`,
    'index.cjs': `const v = require('./folder')\nmodule.exports = () => v\n`,
    'json.cjs': `module.exports = () => require('./v.json').v\n`,
    'import.cjs': `module.exports = async () => (await import('./v.js')).default\n`,
    'commonjs.js': `import v from './v.cjs'\nexport default () => v\n`,
    'created.js':
      `import { createRequire } from 'node:module'\nconst load = createRequire(import.meta.url)\n` +
      `export default () => load('./v.cjs')\n`,
  }
  const values = (version: number): Record<string, string> => ({
    'v.js': `export default ${version}\n`,
    'v.json': `{"v": ${version}}`,
    'v.cjs': `module.exports = ${version}\n`,
    'w.json': String(version),
    'folder/index.js': `module.exports = ${version}\n`,
    'folder/package.json': '{}',
  })
  const app = application(values(1))
  app.write({
    'cycle-b.js': `import { a } from './cycle-a.js'\nimport v from './v.js'\nexport const b = () => v + a - 1\n`,
  })
  for (const [name, source] of Object.entries(ways)) app.write({ [name]: source.replace('ROOT', app.root) })
  for (const name of Object.keys(ways)) assert.equal(await app.value(name), 1, name)
  for (const version of [2, 3]) {
    app.write(values(version))
    const renewed = new Set(await app.refresh())
    for (const name of Object.keys(ways)) {
      assert.equal(renewed.has(name), true, name)
      assert.equal(await app.value(name), version, `${name}, version ${version}`)
    }
  }
})

test('a module first loaded after a change gets the current instances', async () => {
  const app = application({
    'a.js': `import { next } from './s.js'\nexport default () => next()\n`,
    'b.js': `import { next } from './m.js'\nexport default () => next()\n`,
    'm.js': `export * from './s.js'\n`,
    's.js': counter,
  })
  assert.equal(await app.value('a.js'), 1)
  app.write({ 's.js': 'let count = 100\nexport const next = () => ++count\n' })
  assert.deepEqual(await app.refresh(), ['a.js'])
  assert.equal(await app.value('a.js'), 101)
  assert.equal(await app.value('b.js'), 102)
})

test('a module that was dropped, changed and imported again is the new version', async () => {
  const app = application({ 'a.js': importer, 'v.js': 'export default 1\n' })
  assert.equal(await app.value('a.js'), 1)
  app.write({ 'a.js': 'export default () => 0\n' })
  await app.refresh()
  assert.equal(await app.value('a.js'), 0)
  app.write({ 'v.js': 'export default 2\n' })
  await app.refresh()
  app.write({ 'a.js': importer })
  await app.refresh()
  assert.equal(await app.value('a.js'), 2)
})

test('a broken changed module rejects until it is fixed, and the old one keeps running', async () => {
  const app = application({ 'a.js': 'export default () => 1\n' })
  const old = await app.load('a.js')
  app.write({ 'a.js': 'export default () => 2\n\nlet x = ;\n' })
  assert.deepEqual(await app.refresh(), ['a.js'])
  await assert.rejects(app.load('a.js'), { message: `Cannot load a.js: a.js:3: SyntaxError: Unexpected token ';'` })
  await assert.rejects(app.load('a.js'), /SyntaxError/)
  assert.equal(run(old), 1)
  app.write({ 'a.js': 'export default () => 3\n' })
  assert.deepEqual(await app.refresh(), ['a.js'])
  assert.equal(await app.value('a.js'), 3)
})

test('retries failed modules at each refresh, changed or not', async (t) => {
  const app = application({
    'a.js': importer,
    'v.js': `if (globalThis.svcModulesTest !== true) throw new Error('not yet')\nexport default 1\n`,
    's.js': counter,
    'ok.js': `import { next } from './s.js'\nexport default next\n`,
  })
  t.after(() => Reflect.deleteProperty(globalThis, 'svcModulesTest'))
  assert.equal(await app.value('ok.js'), 1)
  await assert.rejects(app.load('a.js'), /Cannot load a\.js: v\.js:1: Error: not yet/)
  assert.deepEqual(await app.refresh(), ['a.js'])
  await assert.rejects(app.load('a.js'), /not yet/)
  Reflect.set(globalThis, 'svcModulesTest', true)
  assert.deepEqual(await app.refresh(), ['a.js'])
  assert.equal(await app.value('a.js'), 1)
  assert.deepEqual(await app.refresh(), [])
  assert.equal(await app.value('ok.js'), 2)
})

test('a retry keeps the state that other modules share', async () => {
  const app = application({
    'ok.js': `import { next } from './s.js'\nexport default () => next()\n`,
    'a.js': `import { next } from './s.js'\nimport './gone.js'\nexport default () => next()\n`,
    's.js': counter,
  })
  assert.equal(await app.value('ok.js'), 1)
  await assert.rejects(app.load('a.js'), /Cannot load a\.js: a\.js:2: Error: Cannot find module .*gone\.js/)
  app.write({ 'gone.js': '' })
  assert.deepEqual(await app.refresh(), ['a.js'])
  assert.equal(await app.value('a.js'), 2)
})

test('a missing file is retried at each load', async () => {
  const app = application({})
  const missing = await app.load('sub/a.js').catch((error: unknown) => error)
  assert.ok(missing instanceof Error)
  assert.equal(missing.message, 'Cannot load sub/a.js: there is no such file')
  assert.equal(Reflect.get(missing, 'missing'), true)
  app.write({ 'sub/a.js': 'export default () => 1\n' })
  assert.equal(await app.value('sub/a.js'), 1)
})

test('a deleted module fails after a refresh, and comes back', async () => {
  const app = application({ 'a.js': importer, 'v.js': 'export default 1\n' })
  assert.equal(await app.value('a.js'), 1)
  app.remove('v.js')
  assert.deepEqual(await app.refresh(), ['a.js'])
  await assert.rejects(app.load('a.js'), /Cannot load a\.js: a\.js:1: .*Cannot find module/)
  app.write({ 'v.js': 'export default 1\n' })
  assert.deepEqual(await app.refresh(), ['a.js'])
  assert.equal(await app.value('a.js'), 1)
  app.remove('a.js')
  assert.deepEqual(await app.refresh(), ['a.js'])
  await assert.rejects(app.load('a.js'), /no such file/)
})

test('detects that the symbolic link to a module leads elsewhere', async () => {
  const app = application({ 'v1.js': 'export default () => 1\n', 'v2.js': 'export default () => 2\n' })
  const link = (target: string): void => {
    symlinkSync(target, join(app.root, 'next'))
    renameSync(join(app.root, 'next'), join(app.root, 'link.js'))
  }
  link('v1.js')
  assert.equal(await app.value('link.js'), 1)
  link('v2.js')
  assert.deepEqual(await app.refresh(), ['link.js'])
  assert.equal(await app.value('link.js'), 2)
})

test('two concurrent refreshes have the result of one', async () => {
  const app = application({ 'a.js': 'export default () => 1\n' })
  await app.load('a.js')
  app.write({ 'a.js': 'export default () => 2\n' })
  const both = await Promise.all([app.refresh(), app.refresh()])
  assert.deepEqual(both, [['a.js'], []])
  assert.equal(await app.value('a.js'), 2)
})

test('two applications in one process do not disturb each other', async () => {
  const files = { 'a.js': `import { next } from './s.js'\nexport default () => next()\n`, 's.js': counter }
  const one = application(files)
  const two = application(files)
  assert.equal(await one.value('a.js'), 1)
  assert.equal(await two.value('a.js'), 1)
  one.write({ 's.js': 'let count = 100\nexport const next = () => ++count\n' })
  two.write({ 'a.js': `import { next } from './s.js'\nexport default () => -next()\n` })
  await Promise.all([one.refresh(), two.refresh()])
  assert.equal(await one.value('a.js'), 101)
  assert.equal(await two.value('a.js'), -2)
})

test('two applications with the same root have separate generations', async () => {
  const app = application({ 'a.js': importer, 'v.js': 'export default 1\n' })
  const other = new Modules(app.root)
  assert.equal(run(await other.load(join(app.root, 'a.js'))), 1)
  assert.equal(await app.value('a.js'), 1)
  app.write({ 'v.js': 'export default 2\n' })
  await app.refresh()
  assert.equal(await app.value('a.js'), 2)
  app.write({ 'v.js': 'export default 3\n' })
  await other.refresh()
  assert.equal(run(await other.load(join(app.root, 'a.js'))), 3)
  assert.equal(await app.value('a.js'), 2)
})

test('after any changes, modules match the disk, and unchanged ones keep their instance', () => checkRenewal(15))

test('TypeScript modules and their imports are reloaded', async () => {
  const app = application({
    'a.ts': `import { v } from './v.ts'\nimport type { V } from './types.ts'\nexport default (): V => v\n`,
    'v.ts': 'export const v: number = 1\n',
    'types.ts': 'export type V = number\n',
  })
  assert.equal(await app.value('a.ts'), 1)
  app.write({ 'v.ts': 'export const v: number = 2\n' })
  assert.deepEqual(await app.refresh(), ['a.ts'])
  assert.equal(await app.value('a.ts'), 2)
})

test('refuses a root that is not absolute', () => {
  assert.throws(() => new Modules('app'), /the root must be an absolute path: it is app/)
})

const commonJs: readonly (readonly [title: string, source: string, exported: Readonly<Record<string, unknown>>])[] = [
  ['a function with members', 'const f = () => 1\nf.a = 2\nmodule.exports = f', { default: 'function', a: 2 }],
  ['an object whose names Node does not find', 'const o = { a: 1, b: 2 }\nmodule.exports = o', { a: 1, b: 2, default: 'object' }],
  ['a compiled default', 'exports.default = 1\nexports.a = 2', { default: 1, a: 2 }],
  ['a compiled default behind a getter', 'Object.defineProperty(exports, "default", { get: () => 1 })', { default: 1 }],
  ['a function that has a default', 'module.exports = () => 1\nmodule.exports.default = 2', { default: 'function' }],
  ['a text', 'module.exports = "text"', { default: 'text' }],
  ['null', 'module.exports = null', { default: null }],
  ['nothing', '', { default: 'object' }],
]

for (const [title, source, exported] of commonJs) {
  test(`returns the exports of a CommonJS module: ${title}`, async () => {
    const app = application({ 'a.cjs': source })
    const shown = async (): Promise<object> => {
      const values = Object.entries(await app.load('a.cjs')).filter(([name]) => name !== 'module.exports')
      return Object.fromEntries(values.map(([name, value]) => [name, /^[of]/.test(typeof value) && value ? typeof value : value]))
    }
    assert.deepEqual(await shown(), exported)
    app.write({ 'a.cjs': `${source} // changed` })
    assert.deepEqual(await app.refresh(), ['a.cjs'])
    assert.deepEqual(await shown(), exported)
  })
}

test('returns an ES module unchanged, also with a default object', async () => {
  const app = application({ 'a.js': 'export default { a: 1 }\n' })
  const first = await app.load('a.js')
  assert.deepEqual(Object.keys(first), ['default'])
  assert.equal(first, await import(pathToFileURL(join(app.root, 'a.js')).href))
})
