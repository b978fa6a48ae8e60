import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ModuleLoadError, moduleLoadError } from '../../lib/modules/module-load-error.ts'
import { Modules } from '../../lib/modules/modules.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

interface Row {
  readonly what: string
  readonly files: Readonly<Record<string, string>>
  readonly message: RegExp
}

const thrower = `\nfunction f() {\n  throw new TypeError('boom\\nand more')\n}\nexport default f\n`

const rows: readonly Row[] = [
  {
    what: 'a syntax error',
    files: { 'a.js': 'let a\nlet x = ;\n' },
    message: /^Cannot load a\.js: a\.js:2: SyntaxError: Unexpected token ';'$/,
  },
  {
    what: 'a syntax error in what it imports',
    files: { 'a.js': `import './b.js'\n`, 'b.js': `import './c.js'\n`, 'c.js': '\n\n}\n' },
    message: /^Cannot load a\.js: c\.js:3: SyntaxError: Unexpected token '}'$/,
  },
  {
    what: 'a syntax error in CommonJS',
    files: { 'a.cjs': `require('./b.cjs')\n`, 'b.cjs': 'let a\nlet x = ;\n' },
    message: /^Cannot load a\.cjs: b\.cjs:2: SyntaxError: Unexpected token ';'$/,
  },
  {
    what: 'a syntax error in TypeScript',
    files: { 'a.ts': 'const a: number = 1\nlet x: = ;\n' },
    message: /^Cannot load a\.ts: a\.ts:2: SyntaxError: Unexpected /,
  },
  {
    what: 'a throw at the top level',
    files: { 'a.js': `\nimport f from './lib/f.js'\nf()\n`, 'lib/f.js': thrower },
    message: /^Cannot load a\.js: lib\/f\.js:3: TypeError: boom$/,
  },
  {
    what: 'something thrown that is no error',
    files: { 'a.js': `throw 'text'\n` },
    message: /^Cannot load a\.js: it threw text$/,
  },
  {
    what: 'an export that is not there',
    files: { 'a.js': `\nimport { x } from './b.js'\n`, 'b.js': '' },
    message: /^Cannot load a\.js: a\.js:2: SyntaxError: .*does not provide an export named 'x'$/,
  },
  {
    what: 'a file that is not there',
    files: { 'a.js': `import './b.js'\n`, 'b.js': `\n\nimport './lib/none.js'\n` },
    message: /^Cannot load a\.js: b\.js:3: Error: Cannot find module '.*none\.js' imported from .*b\.js$/,
  },
  {
    what: 'a package that is not there',
    files: { 'a.js': `\nawait import('no-such-package')\n` },
    message: /^Cannot load a\.js: a\.js:2: Error: Cannot find package 'no-such-package' imported from .*a\.js$/,
  },
  {
    what: 'JSON with a syntax error',
    files: { 'a.js': `import a from './a.json' with { type: 'json' }\n`, 'a.json': '{"a": }' },
    message: /^Cannot load a\.js: a\.json(?::1)?: SyntaxError: /,
  },
]

for (const { what, files, message } of rows) {
  test(`names file, line and reason of ${what}`, async () => {
    const root = temporaryFolder()
    mkdirSync(join(root, 'lib'))
    for (const [name, content] of Object.entries({ 'package.json': '{"type": "module"}', ...files })) {
      writeFileSync(join(root, name), content)
    }
    const file = join(root, Object.keys(files)[0] ?? '')
    const modules = new Modules(root)
    for (const _round of ['at first', 'renewed']) {
      const error = await modules.load(file).catch((error: unknown) => error)
      assert.ok(error instanceof ModuleLoadError)
      assert.match(error.message, message)
      assert.equal(error.missing, false)
      assert.notEqual(error.cause, undefined)
      await modules.refresh()
    }
  })
}

test('a location outside the root is named by its full path, and an unknown one not at all', async () => {
  const attempt = { file: '/elsewhere/a.js', root: '/app', files: ['/elsewhere/a.js'] }
  const message = async (cause: unknown): Promise<string> => (await moduleLoadError(cause, attempt)).message
  const error = new SyntaxError('Unknown')
  assert.equal(await message(error), 'Cannot load /elsewhere/a.js: SyntaxError: Unknown')
  error.stack = 'file://host/a.js:1\n\nSyntaxError: Unknown'
  assert.equal(await message(error), 'Cannot load /elsewhere/a.js: SyntaxError: Unknown')
  error.stack = 'file:///app/b%20c.js?svc=1-2:7\n\nSyntaxError: Unknown'
  assert.equal(await message(error), 'Cannot load /elsewhere/a.js: b c.js:7: SyntaxError: Unknown')
  const frames = ['SyntaxError: Unknown', 'at f (node:fs:1:1)', 'at /app/node_modules/x.js:1:1', 'at g (/app/d.js:5:1)']
  error.stack = frames.join('\n    ')
  assert.equal(await message(error), 'Cannot load /elsewhere/a.js: d.js:5: SyntaxError: Unknown')
  error.message = '/elsewhere/a.js: bad'
  assert.equal(await message(error), 'Cannot load /elsewhere/a.js: d.js:5: SyntaxError: /elsewhere/a.js: bad')
  error.stack = ''
  assert.equal(await message(error), 'Cannot load /elsewhere/a.js: /elsewhere/a.js: SyntaxError: /elsewhere/a.js: bad')
  error.message = 'Unknown'
  Reflect.deleteProperty(error, 'stack')
  assert.equal(await message(error), 'Cannot load /elsewhere/a.js: SyntaxError: Unknown')
})

test('an importer that is missing or not a file has no line', async () => {
  const message = async (text: string): Promise<string> => {
    const cause = Object.assign(new Error(text), { stack: '' })
    return (await moduleLoadError(cause, { file: '/app/a.js', root: '/app', files: [] })).message
  }
  const text = `Cannot find package 'x' imported from `
  assert.equal(await message(`${text}/app/none.js`), `Cannot load a.js: none.js: Error: ${text}/app/none.js`)
  assert.equal(await message(`${text}data:,x`), `Cannot load a.js: Error: ${text}data:,x`)
})
