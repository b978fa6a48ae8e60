// The commands `types` and `openapi`.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { applicationFolder } from '../support/application-folder.ts'
import { writeFiles } from '../support/application.ts'
import { runLauncher } from '../support/launch.ts'

test('types writes the types, and with --check only says whether they are old', async (t) => {
  const cwd = applicationFolder()
  const file = join(cwd, 'svc.routes.d.ts')
  const rows: readonly (readonly [args: string, status: number, stdout: string, stderr: string])[] = [
    ['types --check', 1, '', `${file} does not exist: run svc types\n`],
    ['types', 0, `${file}: written\n`, ''],
    ['types --check', 0, `${file}: is up to date\n`, ''],
    ['types', 0, `${file}: is up to date\n`, ''],
  ]
  for (const [args, ...wanted] of rows) {
    const { status, stdout, stderr } = await runLauncher(t, args.split(' '), { cwd })
    assert.deepEqual([status, stdout, stderr], wanted, args)
  }
  writeFiles(cwd, { 'routes/more.json': [{ name: 'more', url: '/more', action: 'home.mjs' }] })
  const old = await runLauncher(t, ['types', '--check'], { cwd })
  assert.deepEqual([old.status, old.stderr], [1, `${file} is old: run svc types\n`])
  const checked = await runLauncher(t, ['check'], { cwd })
  assert.equal(checked.status, 0)
  assert.match(checked.stdout, /^warning: .*svc\.routes\.d\.ts does not have the types of the present routes: run svc types$/m)
})

test('types leaves the file as it is when a route file is wrong', async (t) => {
  const cwd = applicationFolder({ 'svc.routes.d.ts': '// old\n', 'routes/b.json': [{ name: 'b', url: 'b', action: 'home.mjs' }] })
  const { status, stderr } = await runLauncher(t, ['types'], { cwd })
  assert.equal(status, 78)
  assert.match(stderr, /^problem: b\.json:1:14: route "b": bad pattern "b"/)
  assert.equal(readFileSync(join(cwd, 'svc.routes.d.ts'), 'utf8'), '// old\n')
})

test('openapi describes what can be loaded, and names what cannot', async (t) => {
  const action = "import { action } from 'svc'\nexport default action({ summary: 'Greets' }, () => 'hello')"
  const cwd = applicationFolder({
    'routes/a.json': [
      { name: 'good', url: '/good', action: 'good.mjs' },
      { name: 'broken', url: '/broken', action: 'broken.mjs' },
    ],
    'good.mjs': action,
    'broken.mjs': "throw new Error('at load')",
  })
  const { status, stdout, stderr } = await runLauncher(t, ['openapi'], { cwd })
  assert.equal(status, 78)
  assert.match(stderr, /^problem: a\.json:1:\d+: route "broken": Cannot load broken\.mjs: .*at load\n$/)
  const { openapi, paths } = JSON.parse(stdout) as { openapi: string; paths: Record<string, { get: { summary?: string } }> }
  assert.deepEqual([openapi, Object.keys(paths), paths['/good']?.get.summary], ['3.1.1', ['/good', '/broken', '/'], 'Greets'])
})

test('openapi writes a file, and says why it cannot', async (t) => {
  const cwd = applicationFolder()
  const written = await runLauncher(t, ['openapi', '--out', 'openapi.json'], { cwd })
  assert.deepEqual(written, { status: 0, stdout: '', stderr: '' })
  assert.match(readFileSync(join(cwd, 'openapi.json'), 'utf8'), /^\{\n  "openapi": "3\.1\.1",\n[^]*\}\n$/)
  const { status, stderr } = await runLauncher(t, ['openapi', '--out', 'missing/openapi.json'], { cwd })
  assert.deepEqual([status, stderr.startsWith('openapi.json cannot be written: ENOENT')], [1, true])
})
