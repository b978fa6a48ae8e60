import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { version } from '../../lib/base/version.ts'
import { root } from '../support/launch.ts'
import { tokenize } from '../support/lexer.ts'

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<string, unknown> & {
  readonly version: string
  readonly engines: { readonly node: string }
  readonly devDependencies: Readonly<Record<string, string>>
}

test('every import in bin, lib and routes is relative or of Node itself', () => {
  const files = ['bin', 'lib', 'routes'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.[cm]?[jt]s$/.test(file))
      .map((file) => join(folder, file)),
  )
  const foreign = files.flatMap((file) => {
    // The server imports its public types, which are erased at run time.
    const code = readFileSync(join(root, file), 'utf8').replace(/^import type \{[^}]*\} from 'svc'$/gm, '')
    return importsOf(code)
      .filter((specifier) => !/^(?:\.\.?\/|node:)/.test(specifier) && specifier !== '/svc-live.js') // In browsers.
      .map((specifier) => `${file}: ${specifier}`)
  })
  assert.ok(files.includes('bin/svc.js') && files.includes('lib/app.ts') && files.includes('routes/board/home.js'))
  assert.deepEqual(foreign, [])
})

test('package.json has no run-time dependency', () => {
  for (const key of ['dependencies', 'peerDependencies', 'optionalDependencies', 'bundleDependencies']) {
    assert.ok(!(key in manifest), key)
  }
  assert.deepEqual(Object.keys(manifest.devDependencies).sort(), ['@types/node', 'c8', 'tsx', 'typescript'])
  assert.equal(manifest.engines.node, '>=20.19')
})

test('the version is that of package.json, and the newest of the change log', () => {
  assert.equal(version, manifest.version)
  const changes = readFileSync(join(root, 'CHANGELOG.md'), 'utf8')
  assert.equal(/^## \[?(\d+\.\d+\.\d+)/m.exec(changes)?.[1], manifest.version)
})

test('only the folders of the layout are tracked', (t) => {
  const { status, stdout } = spawnSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' })
  if (status !== 0) {
    t.diagnostic('this is no git checkout: looking at the folders instead')
  }
  const paths = status === 0 ? stdout.split('\n').filter((path) => path.includes('/')) : foldersHere().map((name) => `${name}/`)
  const folders = new Set(paths.map((path) => path.slice(0, path.indexOf('/'))).filter((name) => !name.startsWith('.')))
  assert.deepEqual([...folders].sort(), ['bin', 'docs', 'lib', 'routes', 'test'])
})

test('the exports of package.json exist, with their types', () => {
  const { '.': main } = manifest['exports'] as { '.': { types: string; default: string } }
  for (const file of [main.types, main.default]) assert.ok(existsSync(join(root, file)), `${file}: run npm run build`)
})

function foldersHere(): string[] {
  return readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !['node_modules', 'dist', 'coverage'].includes(entry.name))
    .map(({ name }) => name)
}

/** Returns the imports of a source: the literals after `import` and `from`, and those passed to `import` and `require`. */
function importsOf(source: string): string[] {
  const tokens = [...tokenize(source)].filter(({ kind }) => kind !== 'comment')
  const isImported = (at: number): boolean => {
    const [beforeLast = '', last = ''] = [tokens[at - 2]?.text, tokens[at - 1]?.text]
    if (last === '(') return beforeLast === 'import' || beforeLast === 'require'
    return last === 'import' || last === 'from'
  }
  const literals = tokens.filter(({ text }, at) => /^(["'`])[^]*\1$/.test(text) && isImported(at))
  return literals.map(({ text }) => text.slice(1, -1))
}
