import assert from 'node:assert/strict'
import { mkdirSync, realpathSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { ModuleGraph } from '../../lib/modules/module-graph.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

function folderWith(files: Readonly<Record<string, string>>) {
  const folder = realpathSync(temporaryFolder())
  const write = (changed: Readonly<Record<string, string>>): void => {
    for (const [name, content] of Object.entries(changed)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true })
      writeFileSync(join(folder, name), content)
    }
  }
  write(files)
  const graph = new ModuleGraph(join(folder, 'app'))
  const names = (paths: Iterable<string>): string[] => [...paths].map((path) => relative(folder, path)).sort()
  return {
    folder,
    write,
    trace: async (name: string) => names((await graph.trace(join(folder, name))).files),
    added: async (name: string) => names((await graph.trace(join(folder, name))).added),
    refresh: async () => names(await graph.refresh()),
  }
}

const source = `import './b.js'
export * from "../app/lib/c.mjs?x#y"
import 'fs'; import 'node:path'; import 'package'; import '#internal'; import 'https://example.org/x.js'
import '../outside.js'; import './no-such-file.js'; import './bad%.js'; import 'file://host/x.js'; import './nul\0.js'
import './${'long'.repeat(2000)}.js'
await import('./sp%20ace.js')
require('.'); require('./lib'); require('./lib/d'); require('./data'); require('./lib/folder.js')
`

test('follows what a module imports below the root, by the rules of import and require', async () => {
  const app = folderWith({
    'app/a.js': source,
    'app/b.js': `import './a.js'\nimport './e.ts'\n`,
    'app/e.ts': '',
    'app/sp ace.js': '',
    'app/index.js': '',
    'app/data.json': `"import './unread.js'"`,
    'app/unread.js': '',
    'app/unused.js': '',
    'app/lib/c.mjs': '',
    'app/lib/d.cjs': '',
    'app/lib/index.json': '',
    'app/lib/folder.js/index.js': '',
    'outside.js': '',
  })
  const files = ['a.js', 'b.js', 'data.json', 'e.ts', 'index.js', 'lib/c.mjs', 'lib/d.cjs', 'lib/folder.js/index.js']
  const expected = [...files, 'lib/index.json', 'sp ace.js'].map((name) => `app/${name}`)
  assert.deepEqual(await app.added('app/a.js'), expected)
  assert.deepEqual(await app.trace('app/a.js'), expected)
  assert.deepEqual(await app.added('app/b.js'), [])
  assert.deepEqual(await app.refresh(), [])
})

test('throws for a missing file', async () => {
  const app = folderWith({ 'app/a.js': '' })
  await assert.rejects(app.trace('app/b.js'), { code: 'ENOENT', syscall: 'realpath' })
})

test('returns changed files, their importers and new files', async () => {
  const app = folderWith({
    'app/a.js': `import './b.js'\n`,
    'app/b.js': `import './c.js'\n`,
    'app/c.js': '',
    'app/d.js': '',
    'app/e.js': `import './d.js'\n`,
  })
  await app.trace('app/a.js')
  await app.trace('app/e.js')
  app.write({ 'app/c.js': `import './new.js'\n`, 'app/new.js': `import './d.js'\n` })
  assert.deepEqual(await app.refresh(), ['app/a.js', 'app/b.js', 'app/c.js', 'app/new.js'])
  assert.deepEqual(await app.refresh(), [])
})

test('detects a change of content that keeps size and modification time', async () => {
  const app = folderWith({ 'app/a.js': 'export default 1' })
  const long = new Date('2020-01-01')
  utimesSync(join(app.folder, 'app/a.js'), long, long)
  await app.trace('app/a.js')
  app.write({ 'app/a.js': 'export default 2' })
  utimesSync(join(app.folder, 'app/a.js'), long, long)
  assert.deepEqual(await app.refresh(), ['app/a.js'])
})

test('touching a file, or replacing it with a copy, is not a change', async () => {
  const app = folderWith({ 'app/a.js': 'export default 1' })
  await app.trace('app/a.js')
  utimesSync(join(app.folder, 'app/a.js'), new Date(), new Date())
  assert.deepEqual(await app.refresh(), [])
  app.write({ copy: 'export default 1' })
  renameSync(join(app.folder, 'copy'), join(app.folder, 'app/a.js'))
  assert.deepEqual(await app.refresh(), [])
})

test('detects files that are added, removed and replaced', async () => {
  const app = folderWith({ 'app/a.cjs': `try { require('./b') } catch {}\n` })
  assert.deepEqual(await app.trace('app/a.cjs'), ['app/a.cjs'])
  app.write({ 'app/b/index.js': '' })
  assert.deepEqual(await app.refresh(), ['app/a.cjs', 'app/b/index.js'])
  app.write({ 'app/b.js': '' })
  assert.deepEqual(await app.refresh(), ['app/a.cjs', 'app/b.js'])
  rmSync(join(app.folder, 'app/b.js'))
  rmSync(join(app.folder, 'app/b'), { recursive: true })
  assert.deepEqual(await app.trace('app/a.cjs'), ['app/a.cjs', 'app/b.js'])
  assert.ok((await app.refresh()).includes('app/a.cjs'))
  assert.deepEqual(await app.trace('app/a.cjs'), ['app/a.cjs'])
})

test('uses real paths, also if the root is a link', async () => {
  const source = `import './link.js'\nimport './loop.js'\n`
  const app = folderWith({ 'release/a.js': source, 'release/b.js': '', 'c.js': '' })
  symlinkSync('release', join(app.folder, 'app'))
  symlinkSync('b.js', join(app.folder, 'release/link.js'))
  symlinkSync('loop.js', join(app.folder, 'release/loop.js'))
  assert.deepEqual(await app.trace('app/a.js'), ['release/a.js', 'release/b.js'])
  rmSync(join(app.folder, 'release/link.js'))
  symlinkSync('../c.js', join(app.folder, 'release/link.js'))
  assert.deepEqual(await app.refresh(), ['release/a.js'])
  assert.deepEqual(await app.trace('app/a.js'), ['release/a.js'])
})

test('reads the imports of a module with a syntax error, before and after the error', async () => {
  const source = `import './b.js'\nlet a = '\nimport './c.js'`
  const app = folderWith({ 'app/a.js': source, 'app/b.js': '', 'app/c.js': '' })
  assert.deepEqual(await app.trace('app/a.js'), ['app/a.js', 'app/b.js', 'app/c.js'])
})
