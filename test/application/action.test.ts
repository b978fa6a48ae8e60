import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { HttpError } from '../../lib/http/errors.ts'
import { resolveAction } from '../../lib/application/action.ts'
import { actionPath, parseAction } from '../../lib/routing/action.ts'
import { Modules } from '../../lib/modules/modules.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const references: readonly (readonly [action: string, file: string, kind: string, exportName: string])[] = [
  ['notes.js', 'notes.js', 'module', 'default'],
  ['a/b.mjs', 'a/b.mjs', 'module', 'default'],
  ['a/b.cjs@add', 'a/b.cjs', 'module', 'add'],
  ['a.js@$_é1', 'a.js', 'module', '$_é1'],
  ['a.js@default', 'a.js', 'module', 'default'],
  ['./a/../b.js', 'b.js', 'module', 'default'],
  ['a//b.js', 'a/b.js', 'module', 'default'],
  ['../b.js', '../b.js', 'module', 'default'],
  ['@scope/a@2.js', '@scope/a@2.js', 'module', 'default'],
  ['a.js@b.js', 'a.js@b.js', 'module', 'default'],
  ['a.html', 'a.html', 'view', 'default'],
  ['a.html@x', 'a.html@x', 'unknown', 'default'],
  ['a.js@', 'a.js@', 'unknown', 'default'],
  ['a.js@1', 'a.js@1', 'unknown', 'default'],
  ['a.prg', 'a.prg', 'unknown', 'default'],
  ['a.JS', 'a.JS', 'unknown', 'default'],
  ['a', 'a', 'unknown', 'default'],
  ['', '.', 'unknown', 'default'],
]

for (const [action, file, kind, exportName] of references) {
  test(`reads the action ${JSON.stringify(action)}`, () => {
    assert.deepEqual(parseAction(action), { file, kind, exportName })
  })
}

test('reads a TypeScript action as a module if Node runs TypeScript', () => {
  // The compiled server runs TypeScript only if Node does so by default.
  if (process.env['SVC_TEST_TARGET'] === 'dist' && !Reflect.get(process.features, 'typescript')) {
    assert.deepEqual(parseAction('a.mts'), { file: 'a.mts', kind: 'unknown', exportName: 'default' })
  } else {
    assert.deepEqual(parseAction('a.ts'), { file: 'a.ts', kind: 'module', exportName: 'default' })
    assert.deepEqual(parseAction('a.mts@x'), { file: 'a.mts', kind: 'module', exportName: 'x' })
  }
})

test('an action lies below the root', () => {
  const path = (action: string): string => actionPath('/app', parseAction(action))
  assert.equal(path('a/b.js@x'), '/app/a/b.js')
  assert.equal(path('..a.js'), '/app/..a.js')
  for (const action of ['../a.js', '/etc/a.js', '/app/a.js', 'a/../../b.js', '', '.', '..', 'a\0.js', '../app2/a.js']) {
    assert.throws(() => path(action), { name: 'RangeError', message: /^An action must be a file below paths\.root/ })
  }
})

function application(files: Readonly<Record<string, string>>) {
  const root = temporaryFolder()
  const write = (changed: Readonly<Record<string, string>>): void => {
    for (const [name, content] of Object.entries(changed)) writeFileSync(join(root, name), content)
  }
  write({ 'package.json': '{"type": "module"}', ...files })
  const modules = new Modules(root)
  const sources = { root, modules, view: (file: string) => (context: string) => `${file} for ${context}`, description: async () => (context: string) => `routes for ${context}` }
  return { root, write, modules, resolve: (action: string) => resolveAction(action, sources) }
}

test('runs the description of the routes', async () => {
  const { resolve } = application({})
  assert.equal((await resolve('svc:openapi')).run('x'), 'routes for x')
})

test('runs the function of the module itself', async () => {
  const app = application({ 'a.js': 'export default (ctx) => ctx + 1\nexport const add = async (ctx) => ctx + 2\n' })
  const action = await app.resolve('a.js')
  assert.equal(action.state, 'ready')
  assert.equal(action.error, undefined)
  assert.equal(action.run, action.namespace?.['default'])
  assert.equal(action.run('x'), 'x1')
  assert.equal(await (await app.resolve('a.js@add')).run('x'), 'x2')
})

test('runs a CommonJS module', async () => {
  const app = application({ 'a.cjs': 'module.exports = (ctx) => ctx + 1\nmodule.exports.add = (ctx) => ctx + 2\n' })
  assert.equal((await app.resolve('a.cjs')).run('x'), 'x1')
  assert.equal((await app.resolve('a.cjs@add')).run('x'), 'x2')
})

test('runs the CommonJS output of compilers', async () => {
  const app = application({
    'flagged.cjs': 'Object.defineProperty(exports, "__esModule", { value: true })\nexports.default = (ctx) => ctx + 1\n',
    'plain.cjs': 'exports.default = (ctx) => ctx + 1\nexports.add = (ctx) => ctx + 2\n',
    'built.cjs': 'const all = { default: (ctx) => ctx + 1, add: (ctx) => ctx + 2 }\nmodule.exports = all\n',
  })
  assert.equal((await app.resolve('flagged.cjs')).run('x'), 'x1')
  for (const file of ['plain.cjs', 'built.cjs']) {
    assert.equal((await app.resolve(file)).run('x'), 'x1')
    assert.equal((await app.resolve(`${file}@add`)).run('x'), 'x2')
  }
})

test('does not search the default object of an ES module', async () => {
  const app = application({ 'a.js': 'export default { default: () => 1, add: () => 2 }\n' })
  for (const action of ['a.js', 'a.js@add']) assert.equal((await app.resolve(action)).state, 'failed')
})

test('runs a view by its file, and knows whether it exists', async () => {
  const app = application({ 'a.html': '' })
  const action = await app.resolve('./a.html')
  assert.equal(action.state, 'ready')
  assert.equal(action.run('x'), 'a.html for x')
  const missing = await app.resolve('b.html')
  assert.equal(missing.state, 'missing')
  assert.equal(missing.error?.message, 'Cannot run b.html: there is no such file')
  assert.equal(missing.run('x'), 'b.html for x')
  mkdirSync(join(app.root, 'c.html'))
  assert.equal((await app.resolve('c.html')).error?.message, 'Cannot run c.html: it is not a file')
})

test('an action of an unknown kind fails with the list of kinds', async () => {
  const app = application({ 'a.prg': '' })
  const action = await app.resolve('a.prg')
  assert.equal(action.state, 'failed')
  const message = /^Cannot run a\.prg: an action is a module \(\.js, .*\) or a view/
  assert.throws(() => action.run('x'), { status: 500, message })
})

test('rethrows an error not caused by the module', async () => {
  const sources = { root: '/app', modules: { load: () => Promise.reject(false) }, view: () => () => '', description: async () => () => '' }
  await assert.rejects(resolveAction('a.js', sources), (error) => error === false)
})

test('refuses an action outside the root', async () => {
  await assert.rejects(application({}).resolve('../a.js'), RangeError)
})

const lacking: readonly (readonly [source: string, action: string, message: RegExp])[] = [
  ['export const a = 1', 'a.js', /^Cannot run a\.js: its export "default" must be a function: it is undefined$/],
  ['export const a = null', 'a.js@a', /^Cannot run a\.js: its export "a" must be a function: it is null$/],
  ['export const a = 1', 'a.js@toString', /"toString" must be a function: it is undefined$/],
  ['throw new Error("boom")', 'a.js', /^Cannot load a\.js: a\.js:1: Error: boom$/],
]

for (const [source, action, message] of lacking) {
  test(`answers 500 with the reason for ${action} of ${source}`, async () => {
    const app = application({ 'a.js': source })
    const failed = await app.resolve(action)
    assert.equal(failed.state, 'failed')
    assert.match(failed.error?.message ?? '', message)
    for (const _request of [1, 2]) {
      assert.throws(() => failed.run('x'), { name: 'HttpError', status: 500, message, cause: failed.error })
    }
    app.write({ 'a.js': 'export default () => "mended"\nexport const a = () => 1\nexport const toString = () => 1\n' })
    assert.throws(() => failed.run('x'), HttpError)
    await app.modules.refresh()
    assert.equal((await app.resolve(action)).state, 'ready')
  })
}

const sockets: readonly (readonly [source: string, problem: RegExp | undefined])[] = [
  ['export const websocket = {}', undefined],
  ['export const websocket = { open() {}, message() {}, close() {} }', undefined],
  ['export const websocket = new (class { open() {} })()', undefined],
  ['export default () => 1\nexport const websocket = { async message() {} }', undefined],
  ['export default () => 1\nexport const websocket = () => 1', /"websocket" must be an object with the functions open, message, close$/],
  ['export const websocket = null', /"websocket" must be an object/],
  ['export const websocket = { open: true }', /"websocket" must have a function open: it is boolean$/],
  ['export const websocket = { close: null }', /"websocket" must have a function close: it is null$/],
  ['export const websocket = { onopen() {} }', /"websocket" has an unknown member onopen: it may have open, message, close, protocols$/],
  ["export const websocket = { protocols: ['chat.v2', 'chat'] }", undefined],
  ['export const websocket = { protocols: [] }', undefined],
  ['export const websocket = { protocols: undefined }', undefined],
  ["export const websocket = { protocols: 'chat' }", /^Cannot run a\.js: its export "websocket" must have a list of names as protocols: it is string$/],
  ['export const websocket = { protocols: null }', /must have a list of names as protocols: it is null$/],
  ["export const websocket = { protocols: { 0: 'chat' } }", /must have a list of names as protocols: it is object$/],
  ["export const websocket = { protocols: ['a', 'b c'] }", /must have names of letters, .* as protocols: one is "b c"$/],
  ["export const websocket = { protocols: ['a,b'] }", /one is "a,b"$/],
  ["export const websocket = { protocols: ['a\\r\\nSet-Cookie: b'] }", /one is "a\\r\\nSet-Cookie: b"$/],
  ["export const websocket = { protocols: [''] }", /one is ""$/],
  ["export const websocket = { protocols: ['caf\u00e9'] }", /one is "caf\u00e9"$/],
  ['export const websocket = { protocols: [1n] }', /one is bigint$/],
  ['export const websocket = { protocols: [undefined] }', /one is undefined$/],
  ["export const websocket = { protocols: ['chat', 'log', 'chat'] }", /must name each of its protocols once: "chat" is listed twice$/],
  ['export const websocket = new (class { get protocols() { return 1 } })()', /must have a list of names as protocols: it is number$/],
  ['export const websocket = {}\nexport default 1', /its export "default" must be a function: it is number$/],
]

for (const [source, problem] of sockets) {
  test(`${problem === undefined ? 'takes' : 'refuses'} ${JSON.stringify(source)}`, async () => {
    const app = application({ 'a.js': source })
    const action = await app.resolve('a.js')
    assert.match(action.error?.message ?? '', problem ?? /^$/)
    assert.equal(action.state, problem === undefined ? 'ready' : 'failed')
    assert.equal(action.websocket, problem === undefined ? action.namespace?.['websocket'] : undefined)
  })
}

test('a module with only WebSockets answers plain requests with 426, and provides no other export', async () => {
  const app = application({ 'a.js': 'export const websocket = {}\n', 'b.js': 'export default () => 1\nexport const websocket = {}\n' })
  const headers = { Upgrade: 'websocket', Connection: 'close, Upgrade' }
  const action = await app.resolve('a.js')
  assert.throws(() => action.run('x'), { status: 426, code: 'upgrade_required', headers })
  assert.equal((await app.resolve('a.js@feed')).state, 'failed')
  assert.equal((await app.resolve('b.js')).run('x'), 1)
})

test('retries a missing file on request', async () => {
  const app = application({})
  const [action, view] = [await app.resolve('late.js'), await app.resolve('late.html')]
  for (const each of [action, view]) {
    await each.retryMissing()
    assert.equal(each.state, 'missing')
  }
  app.write({ 'late.js': 'export const websocket = { open() {} }\n' })
  await Promise.all([action.retryMissing(), action.retryMissing()])
  assert.equal(action.state, 'ready')
  const { websocket } = action
  assert.equal(typeof websocket?.open, 'function')
  await action.retryMissing()
  assert.equal(action.websocket, websocket)
})

test('a missing module serves once it exists', async () => {
  const app = application({})
  const action = await app.resolve('late.js')
  assert.equal(action.state, 'missing')
  await assert.rejects(async () => action.run('x'), { status: 500, message: /^Cannot load late\.js: there is no such/ })
  app.write({ 'late.js': 'export default (ctx) => ctx + 1\n' })
  assert.deepEqual(await Promise.all([action.run('x'), action.run('y')]), ['x1', 'y1'])
  assert.equal(action.state, 'ready')
  assert.equal(action.error, undefined)
  assert.equal(action.run('x'), 'x1')
  rmSync(join(app.root, 'late.js'))
  assert.equal(action.run('x'), 'x1')
})

test('a missing module that is broken once it exists fails until it is resolved again', async () => {
  const app = application({})
  const action = await app.resolve('late.js')
  app.write({ 'late.js': 'let x = ;\n' })
  await assert.rejects(async () => action.run('x'), { status: 500, message: /late\.js:1: SyntaxError/ })
  assert.equal(action.state, 'failed')
  app.write({ 'late.js': 'export default () => 1\n' })
  assert.throws(() => action.run('x'), HttpError)
  await app.modules.refresh()
  assert.equal((await app.resolve('late.js')).run('x'), 1)
})
