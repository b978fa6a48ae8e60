import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { runLauncher } from '../support/launch.ts'
import { applicationFolder } from './application-folder.ts'

const record = (name: string, more: object): object => ({ name, url: `/${name}`, action: 'home.mjs', ...more })

test('names each kind of problem with its file and place, with status 78', async (t) => {
  const cwd = applicationFolder({
    'routes/z.json': [
      { name: 'fields' },
      record('svc.own', {}),
      record('home', {}),
      record('pattern', { url: '/:id/:id' }),
      record('middleware', { middleware: 'nobody' }),
      record('outside', { action: '../home.mjs' }),
      record('absent', { action: 'absent.mjs' }),
      record('export', { action: 'home.mjs@absent' }),
      record('syntax', { action: 'syntax.mjs' }),
      record('throws', { action: 'throws.mjs' }),
      record('view', { action: 'view.html' }),
      record('noview', { action: 'noview.html' }),
      record('include', { action: 'include.html' }),
      record('kind', { action: 'kind.txt' }),
      record('csrf', { middleware: 'SVC_MwCsrf' }),
      record('auth', { middleware: 'SVC_MwIsAuth, SVC_MwSession' }),
    ],
    'routes/zc.json': '[{"name": 1,]',
    'routes/zd.json': { name: 'no list' },
    'syntax.mjs': '\nexport default (',
    'throws.mjs': "throw new Error('at load')",
    'view.html': '<p>\n@if one\n',
    'include.html': "@view 'parts/absent.html'",
    'kind.txt': '',
  })
  const { status, stdout, stderr } = await runLauncher(t, ['check'], { cwd })
  assert.deepEqual([status, stdout], [78, ''])
  const expected = [
    /z\.json:\d+:\d+: route "fields": url is missing/,
    /z\.json:\d+:\d+: route "fields": action is missing/,
    /z\.json:\d+:\d+: route "svc\.own": name must not begin with "svc\."/,
    /z\.json:\d+:\d+: route "home": .*taken by home\.json/,
    /z\.json:\d+:\d+: route "pattern": bad pattern "\/:id\/:id"/,
    /z\.json:\d+:\d+: route "middleware": .*"nobody"/,
    /z\.json:\d+:\d+: route "outside": .*"\.\.\/home\.mjs"/,
    /z\.json:\d+:\d+: route "absent": .*absent\.mjs: there is no such file/,
    /z\.json:\d+:\d+: route "export": .*home\.mjs.*"absent"/,
    /z\.json:\d+:\d+: route "syntax": .*syntax\.mjs:2: SyntaxError/,
    /z\.json:\d+:\d+: route "throws": .*throws\.mjs.*at load/,
    /view\.html:2: @if has no @endif/,
    /z\.json:\d+:\d+: route "noview": .*noview\.html: there is no such file/,
    /include\.html:1: .*parts\/absent\.html/,
    /z\.json:\d+:\d+: route "kind": .*kind\.txt/,
    /z\.json:\d+:\d+: route "csrf": middleware SVC_MwCsrf cannot work: SVC_MwSession must stand before it/,
    /z\.json:\d+:\d+: route "auth": middleware SVC_MwIsAuth cannot work: SVC_MwSession must stand before it/,
    /zc\.json: .*line 1, column 13/,
    /zd\.json: /,
  ]
  const lines = stderr.split('\n').slice(0, -1)
  for (const pattern of expected) {
    assert.ok(lines.some((line) => line.startsWith('problem: ') && pattern.test(line)), `${pattern}\n${stderr}`)
  }
  assert.equal(lines.length, expected.length, stderr)
})

test('names problems of the middleware, and what is wrong with the route files besides', async (t) => {
  const routes = { 'routes/b.json': [{ name: 'b', url: '/b' }, record('guarded', { middleware: 'guard' })] }
  const rows: [files: Record<string, unknown>, reason: RegExp][] = [
    [{ 'routes/middleware/config.json': '{"load": [}' }, /middleware\/config\.json: .*line 1, column 11/],
    [{ 'routes/middleware/config.json': { load: ['guard.mjs'] } }, /guard\.mjs: there is no such file/],
    [
      { 'routes/middleware/config.json': { load: ['guard.mjs'] }, 'routes/middleware/guard.mjs': '\nimport {} from "nowhere"' },
      /guard\.mjs.*nowhere/,
    ],
  ]
  for (const [files, reason] of rows) {
    const cwd = applicationFolder({ ...routes, ...files })
    const { status, stderr } = await runLauncher(t, ['check'], { cwd })
    assert.equal(status, 78)
    const [first, second, ...more] = stderr.split('\n')
    assert.match(first ?? '', reason)
    assert.equal(second, 'problem: b.json:1:2: route "b": action is missing')
    assert.deepEqual(more, [''])
  }
})

test('names a certificate that cannot be read and a public folder that is not there', async (t) => {
  const cwd = applicationFolder({}, { 'server.tls.cert': 'a.pem', 'server.tls.key': 'b.pem', 'paths.public': 'public' })
  const { status, stdout, stderr } = await runLauncher(t, ['check'], { cwd })
  assert.deepEqual([status, stdout], [78, ''])
  assert.match(stderr, /^problem: Cannot load .*: server\.tls\.cert cannot be read[^\n]*\(line \d+\)\nproblem: Cannot load .*: paths\.public[^\n]*\(line \d+\)\n$/)
  assert.equal((await runLauncher(t, [], { cwd })).status, 78)
})

test('compiles every view below the root, and leaves out what is not the application\'s', async (t) => {
  const wrong = '\n@if\n'
  const files = { 'parts/box.html': wrong, 'node_modules/a/a.html': wrong, '.old/a.html': wrong, 'public/a.html': wrong, '.cached/a.html': wrong }
  const { status, stderr } = await runLauncher(t, ['check'], { cwd: applicationFolder(files, { 'paths.public': 'public' }) })
  assert.equal(status, 78)
  assert.match(stderr, /^problem: [^\n]*parts\/box\.html:2: [^\n]*\n$/)
})

test('names a root that is not there', async (t) => {
  const cwd = applicationFolder({ 'routes/home.json': [] }, { 'paths.root': 'nowhere' })
  const { status, stderr } = await runLauncher(t, ['check'], { cwd })
  assert.deepEqual([status, stderr], [78, `problem: paths.root: ${join(cwd, 'nowhere')} is not there\n`])
})

test('checks the other views when a folder cannot be read, and says which', async (t) => {
  const cwd = applicationFolder({ 'z.html': '\n@if\n' })
  // The folder inside has a longer path than Linux takes, so that nobody can read it, the superuser neither.
  const [outer = '', inner = ''] = ['a', 'b'].map((letter) => Array<string>(10).fill(letter.repeat(250)).join('/'))
  for (const path of [outer, inner]) mkdirSync(join(cwd, path), { recursive: true })
  renameSync(join(cwd, 'b'.repeat(250)), join(cwd, outer, 'b'))
  t.after(() => execFileSync('rm', ['-r', join(cwd, 'a'.repeat(250))]))
  const { status, stdout, stderr } = await runLauncher(t, ['check'], { cwd })
  assert.equal(status, 78)
  assert.match(stderr, /^problem: z\.html:2: [^\n]*\n$/)
  assert.match(stdout, /^warning: views: this user cannot read \/[^\n]*: ENAMETOOLONG[^\n]*\n$/)
})

test('tells once of a module that many routes name', async (t) => {
  const routes = ['a', 'b', 'c'].map((name) => record(name, { action: 'broken.mjs' }))
  const files = { 'routes/r.json': routes, 'broken.mjs': 'export default () => {\n  await 1\n}' }
  const { stderr } = await runLauncher(t, ['check'], { cwd: applicationFolder(files) })
  assert.match(stderr, /^problem: r\.json:1:\d+, 1:\d+, 1:\d+: routes "a", "b", "c": Cannot load broken\.mjs: broken\.mjs:2: SyntaxError: [^\n]*\n$/)
})

test('says of TypeScript which Node runs it, where this one does not', async (t) => {
  const cwd = applicationFolder({ 'routes/r.json': [record('t', { action: 'typed.ts' })], 'typed.ts': 'export default (): number => 1' })
  const { status, stderr } = await runLauncher(t, ['check'], { cwd })
  const runsNone = process.env['SVC_TEST_TARGET'] === 'dist' // There Node is told to strip no types.
  const problem = `problem: r.json:1:25: route "t": Cannot run typed.ts: Node ${process.versions.node} runs no TypeScript; Node 22.18 and later do\n`
  assert.deepEqual([status, stderr], runsNone ? [78, problem] : [0, ''])
})

test('prints unknown keys and stays 0 for them alone', async (t) => {
  const cwd = applicationFolder({}, { log: { levle: 'info' } })
  const { status, stdout, stderr } = await runLauncher(t, ['check'], { cwd })
  assert.deepEqual([status, stderr], [0, ''])
  const [warning, summary] = stdout.split('\n')
  assert.match(warning ?? '', /^warning: .*svc\.json: .*log\.levle.*log\.level/)
  assert.equal(summary, `${join(cwd, 'svc.json')}: all is well, 1 routes`)
})

test('prints what is odd about the keys and stays 0 for it', async (t) => {
  const published = 'svc-published-insecure-development-key'
  const rows: [config: Record<string, unknown>, warnings: RegExp[]][] = [
    [{ app_key: '' }, [/^warning: app_key is empty: /]],
    [
      { app_key: published, app_key_previous: [published] },
      [/^warning: app_key is the published/, /^warning: app_key_previous holds the published/],
    ],
    [{ app_key: '', app_key_previous: [published], 'app.env': 'dev' }, []],
  ]
  for (const [config, warnings] of rows) {
    const { status, stdout, stderr } = await runLauncher(t, ['check'], { cwd: applicationFolder({}, config) })
    assert.deepEqual([status, stderr], [0, ''])
    const lines = stdout.split('\n').slice(0, -2)
    assert.equal(lines.length, warnings.length)
    for (const [at, warning] of warnings.entries()) assert.match(lines[at] ?? '', warning)
  }
})

test('runs no setup, writes nothing, and ends though a module left a timer', async (t) => {
  const cwd = applicationFolder({
    'routes/middleware/config.json': { load: ['feed.mjs'] },
    'routes/middleware/feed.mjs': `setInterval(() => {}, 1000)
      export const setup = () => console.log('setup ran')`,
    'routes/view.json': [record('view', { action: 'view.html' })],
    'view.html': '<p>{{ 1 + 1 }}</p>',
  })
  for (const word of ['check', 'routes']) {
    const { status, stdout, stderr } = await runLauncher(t, [word], { cwd })
    assert.deepEqual([status, stderr], [0, ''])
    assert.doesNotMatch(stdout, /setup ran/)
  }
  assert.ok(!existsSync(join(cwd, '.logs')))
  assert.ok(!existsSync(join(cwd, '.cached')))
})

test('names everything in one run: configuration, middleware, routes, modules, actions, views', async (t) => {
  const cwd = applicationFolder({
    'svc.json': '{"log": {"level": "x"}}',
    'routes/middleware/config.json': { load: ['nope.mjs'] },
    'routes/z.json': [
      { name: 'pattern', url: 'x', action: 'a.mjs' },
      { name: 'syntax', url: '/s', action: 'syntax.mjs' },
      { name: 'missing', url: '/m', action: 'missing.mjs' },
      { name: 'view', url: '/v', action: 'view.html' },
    ],
    'syntax.mjs': 'export default (',
    'view.html': '{{ a + }}',
  })
  const { status, stderr } = await runLauncher(t, ['check'], { cwd })
  assert.equal(status, 78)
  const wanted = [/log\.level/, /nope\.mjs/, /z\.json:\d+:\d+.*bad pattern/, /z\.json:\d+:\d+.*syntax\.mjs/, /z\.json:\d+:\d+.*missing\.mjs/, /view\.html:1/]
  for (const problem of wanted) assert.match(stderr, problem)
})

test('stays 0 for a field that nobody knows, and says so', async (t) => {
  const cwd = applicationFolder({
    'routes/z.json': [{ name: 'z', url: '/z', action: 'home.mjs', description: 'a note' }],
  })
  const { status, stdout, stderr } = await runLauncher(t, ['check'], { cwd })
  assert.deepEqual([status, stderr], [0, ''])
  assert.match(stdout, /^warning: z\.json:\d+:\d+: .*"description"/m)
})

test('names each folder that the server could not write, with status 78; one that can be made is well', async (t) => {
  const cwd = applicationFolder({ temp: '', cache: '' }, { paths: { temp: 'temp', cache: 'cache', log: 'new/logs' } })
  const { status, stderr } = await runLauncher(t, ['check'], { cwd })
  assert.equal(status, 78)
  assert.match(stderr, /^problem: paths\.cache: this user cannot write to .*\/cache \(.*\): [^\n]*\nproblem: paths\.temp: [^\n]*: uploads above 64 KiB are 500\n$/)
})
