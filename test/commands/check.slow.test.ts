import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { nodeWarnings } from '../../lib/process/safe-node.ts'
import { root, runLauncher as runWhole } from '../support/launch.ts'
import { applicationFolder } from '../support/application-folder.ts'
import { printedWithoutNode } from '../support/node-warnings.ts'

/** Without the warning of the Node that runs the tests. */
const runLauncher: typeof runWhole = async (...given) => {
  const { stdout, ...ended } = await runWhole(...given)
  return { ...ended, stdout: printedWithoutNode(stdout) }
}

test('warns of a Node that is not safe', async (t) => {
  const { status, stdout } = await runWhole(t, ['check'], { cwd: applicationFolder({}) })
  assert.equal(status, 0)
  assert.deepEqual(stdout.match(/(?<=^warning: )Node .*$/gm) ?? [], nodeWarnings())
})

const record = (name: string, more: object): object => ({ name, url: `/${name}`, action: 'home.mjs', ...more })

test('reports each kind of problem with its file and position, with status 78', async (t) => {
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
    /z\.json:\d+:\d+: route "csrf": middleware SVC_MwCsrf cannot work: SVC_MwSession must come before it/,
    /z\.json:\d+:\d+: route "auth": middleware SVC_MwIsAuth cannot work: SVC_MwSession must come before it/,
    /zc\.json: .*line 1, column 13/,
    /zd\.json: /,
  ]
  const lines = stderr.split('\n').slice(0, -1)
  for (const pattern of expected) {
    assert.ok(lines.some((line) => line.startsWith('problem: ') && pattern.test(line)), `${pattern}\n${stderr}`)
  }
  assert.equal(lines.length, expected.length, stderr)
})

test('reports problems of the middleware, and those of the route files as well', async (t) => {
  const routes = { 'routes/b.json': [{ name: 'b', url: '/b' }, record('guarded', { middleware: 'guard' })] }
  const rows: [files: Record<string, unknown>, reason: RegExp][] = [
    [{ 'routes/middleware/config.json': '{"load": [}' }, /middleware\/config\.json: .*line 1, column 11/],
    [{ 'routes/middleware/config.json': { load: ['guard.mjs'] } }, /guard\.mjs: there is no such file, which config\.json names/],
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

test('reports an unreadable certificate and a missing public folder', async (t) => {
  const cwd = applicationFolder({}, { 'server.tls.cert': 'a.pem', 'server.tls.key': 'b.pem', 'paths.public': 'public' })
  const { status, stdout, stderr } = await runLauncher(t, ['check'], { cwd })
  assert.deepEqual([status, stdout], [78, ''])
  assert.match(stderr, /^problem: Cannot load .*: server\.tls\.cert cannot be read[^\n]*\(line \d+\)\nproblem: Cannot load .*: paths\.public[^\n]*\(line \d+\)\n$/)
  assert.equal((await runLauncher(t, [], { cwd })).status, 78)
})

test('compiles every view below the root, except those not of the application', async (t) => {
  const wrong = '\n@if\n'
  const files = { 'parts/box.html': wrong, 'node_modules/a/a.html': wrong, '.old/a.html': wrong, 'public/a.html': wrong, '.cached/a.html': wrong }
  const { status, stderr } = await runLauncher(t, ['check'], { cwd: applicationFolder(files, { 'paths.public': 'public' }) })
  assert.equal(status, 78)
  assert.match(stderr, /^problem: [^\n]*parts\/box\.html:2: [^\n]*\n$/)
})

test('reports a missing root', async (t) => {
  const cwd = applicationFolder({ 'routes/home.json': [] }, { 'paths.root': 'nowhere' })
  const { status, stderr } = await runLauncher(t, ['check'], { cwd })
  assert.deepEqual([status, stderr], [78, `problem: paths.root: ${join(cwd, 'nowhere')} does not exist\n`])
})

test('finds no problem in the demo, around which the server has views of its own', async (t) => {
  const { status, stderr } = await runLauncher(t, ['check', '--env', 'dev'], { cwd: root })
  assert.deepEqual([status, stderr.includes('problem')], [0, false], stderr)
})

test('checks the other views if a folder cannot be read, and names it', async (t) => {
  const cwd = applicationFolder({ 'z.html': '\n@if\n' })
  // The inner folder has a longer path than Linux allows, so that not even the superuser can read it.
  const [outer = '', inner = ''] = ['a', 'b'].map((letter) => Array<string>(10).fill(letter.repeat(250)).join('/'))
  for (const path of [outer, inner]) mkdirSync(join(cwd, path), { recursive: true })
  renameSync(join(cwd, 'b'.repeat(250)), join(cwd, outer, 'b'))
  t.after(() => execFileSync('rm', ['-r', join(cwd, 'a'.repeat(250))]))
  const { status, stdout, stderr } = await runLauncher(t, ['check'], { cwd })
  assert.equal(status, 78)
  assert.match(stderr, /^problem: z\.html:2: [^\n]*\n$/)
  assert.match(stdout, /^warning: views: this user cannot read \/[^\n]*: ENAMETOOLONG[^\n]*\n$/)
})

/** An application with two routes that others name, under these names and parameters. */
function namedRoutes(list: string, note: string, parameter: string): string {
  return applicationFolder({
    'routes/middleware/config.json': { load: ['guard.mjs'] },
    'routes/middleware/guard.mjs': "export default (ctx, next) => (ctx.user ? next() : ctx.redirect(ctx.url('note', { id: 0 })))",
    'routes/notes.json': [
      { name: list, url: '/notes', action: 'notes.mjs@list' },
      { name: note, url: `/notes/:${parameter}`, action: 'notes.mjs@show' },
    ],
    'notes.mjs': `import { back } from './lib/back.mjs'
export const list = ({ url }) => url('note', { id: 1 })
export const show = (ctx) => back(ctx)
`,
    'lib/back.mjs': `export const back = (ctx) =>
  ctx.redirect({ route: 'note', params: { id: ctx.params.id } })
export const help = () => 'url("nobody")'
`,
    'unused.test.mjs': "import './lib/back.mjs'\nurl('nobody')",
    'node_modules/a/a.mjs': "url('nobody')",
    'list.html': "<style>a { background: url('a.png') }</style>\n@foreach id in [1]\n<a href=\"{{ url('note', { id }) }}\">{!! url('note.list') !!}</a>\n@endforeach\n",
    'parts/menu.html': "@if true || url('note', { id: 7 }) === ''\n<p>{{\n  url('note.list') }} {{ url('svc.login') }} {{ url('svc.live') }}\n@endif\n",
  })
}

test('reports each address whose route or parameter has another name, with file, line and column', async (t) => {
  const rows: [names: Parameters<typeof namedRoutes>, problems: string[]][] = [
    [['note.list', 'note', 'id'], []],
    [
      ['notes.list', 'note', 'id'],
      ['list.html:3:41: url("note.list")', 'parts/menu.html:3:3: url("note.list")']
        .map((place) => `${place}: no route has that name: did you mean "notes.list"?`),
    ],
    [
      ['note.list', 'notes', 'id'],
      ['routes/middleware/guard.mjs:1:69: url("note")', 'notes.mjs:2:34: url("note")', 'lib/back.mjs:2:7: redirect({ route: "note" })', 'list.html:3:13: url("note")', 'parts/menu.html:1:13: url("note")']
        .map((place) => `${place}: no route has that name: did you mean "notes"?`),
    ],
    [
      ['note.list', 'note', 'key'],
      ['routes/middleware/guard.mjs:1:69: url("note")', 'notes.mjs:2:34: url("note")', 'lib/back.mjs:2:7: redirect({ route: "note" })', 'list.html:3:13: url("note")', 'parts/menu.html:1:13: url("note")']
        .map((place) => `${place}: the route "note" (/notes/:key) has no parameter "id"; the parameter "key" is missing`),
    ],
  ]
  for (const [names, problems] of rows) {
    const { status, stderr } = await runLauncher(t, ['check'], { cwd: namedRoutes(...names) })
    assert.deepEqual([stderr, status], [problems.map((problem) => `problem: ${problem}\n`).join(''), problems.length > 0 ? 78 : 0])
  }
})

test('reports a parameter that an action requires and its route lacks', async (t) => {
  const cwd = applicationFolder({
    'routes/a.json': [
      { name: 'note', url: '/notes/:id', action: 'a.mjs' },
      { name: 'other', url: '/others/:key', action: 'a.mjs' },
    ],
    'a.mjs': "import { action, fields } from 'svc'\nconst params = fields({ id: fields.integer(), page: fields.text().optional() })\nexport default action({ params }, () => '')",
  })
  const { status, stderr } = await runLauncher(t, ['check'], { cwd })
  assert.deepEqual([status, stderr], [78, 'problem: route "other": its action requires the parameter "id", which /others/:key lacks\n'])
})

test('reports once a module that many routes name', async (t) => {
  const routes = ['a', 'b', 'c'].map((name) => record(name, { action: 'broken.mjs' }))
  const files = { 'routes/r.json': routes, 'broken.mjs': 'export default () => {\n  await 1\n}' }
  const { stderr } = await runLauncher(t, ['check'], { cwd: applicationFolder(files) })
  assert.match(stderr, /^problem: r\.json:1:\d+, 1:\d+, 1:\d+: routes "a", "b", "c": Cannot load broken\.mjs: broken\.mjs:2: SyntaxError: [^\n]*\n$/)
})

test('names the Node that runs TypeScript, if this one does not', async (t) => {
  const cwd = applicationFolder({ 'routes/r.json': [record('t', { action: 'typed.ts' })], 'typed.ts': 'export default (): number => 1' })
  const { status, stderr } = await runLauncher(t, ['check'], { cwd })
  const runsNone = process.env['SVC_TEST_TARGET'] === 'dist' // There Node runs without type stripping.
  const problem = `problem: r.json:1:25: route "t": Cannot run typed.ts: Node ${process.versions.node} runs no TypeScript; Node 22.18 and later do\n`
  assert.deepEqual([status, stderr], runsNone ? [78, problem] : [0, ''])
})

test('prints unknown keys, which alone leave the status 0', async (t) => {
  const cwd = applicationFolder({}, { log: { levle: 'info' } })
  const { status, stdout, stderr } = await runLauncher(t, ['check'], { cwd })
  assert.deepEqual([status, stderr], [0, ''])
  const [warning, summary] = stdout.split('\n')
  assert.match(warning ?? '', /^warning: .*svc\.json: .*log\.levle.*log\.level/)
  assert.equal(summary, `${join(cwd, 'svc.json')}: all is well, 1 routes`)
})

test('prints warnings about the keys, with status 0', async (t) => {
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

test('runs no setup, writes nothing, and exits despite a timer left by a module', async (t) => {
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

test('reports everything in one run: configuration, middleware, routes, modules, actions, views', async (t) => {
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

test('warns of an unknown field, with status 0', async (t) => {
  const cwd = applicationFolder({
    'routes/z.json': [{ name: 'z', url: '/z', action: 'home.mjs', note: 'a text' }],
  })
  const { status, stdout, stderr } = await runLauncher(t, ['check'], { cwd })
  assert.deepEqual([status, stderr], [0, ''])
  assert.match(stdout, /^warning: z\.json:\d+:\d+: .*"note"/m)
})

test('names everything that an application of an earlier version must change', async (t) => {
  const cwd = applicationFolder({
    'routes/middleware/config.json': { load: ['guard.mjs'] },
    'routes/middleware/guard.mjs': 'export const settings = (ctx, next) => next()',
    'routes/z.json': [record('z', { summary: 7 })],
    'jobs/places.json': { places: [] },
    'maintenance.html': 'Closed',
  }, { server: { pipeline_limit: 64 }, settings: 7, setup: 8, paths: { public: 'jobs' } })
  const { status, stdout, stderr } = await runLauncher(t, ['check'], { cwd })
  const others = /^warning: app_key |: paths\.data needs node:sqlite, / // The second on Node 20, since there is a job file.
  const lines = `${stdout}${stderr}`.replaceAll(`${cwd}/`, '').trimEnd().split('\n').filter((line) => !others.test(line))
  assert.deepEqual([status, ...lines.map((line) => line.replace(/ \(line 1\)$/, ''))], [
    78,
    'warning: svc.json: server.pipeline_limit is a key of an earlier version: remove it, since the requests of a connection are served one at a time',
    'warning: maintenance: visitors get 503; to end it, remove maintenance.html',
    'problem: Cannot load svc.json: 2 problems',
    '  settings must be an object: it is a number',
    '  setup must be an object: it is a number',
    'problem: Cannot load svc.json: paths.public must contain nothing private, since everybody can read it: it contains paths.jobs',
    'problem: guard.mjs: Cannot load middleware guard.mjs: its export settings must be a schema, fields({...}): it is of type function: '
      + 'give a middleware of that name another one',
    'problem: z.json:1:45: route "z": summary must be a string: it is 7',
    'problem: jobs/places.json: a job file is a JSON array of job records, or an object {"jobs": [...]}',
  ])
})

test('reports each folder that is not writable, with status 78, except one that can be created', async (t) => {
  const cwd = applicationFolder({ temp: '', cache: '' }, { paths: { temp: 'temp', cache: 'cache', log: 'new/logs' } })
  const { status, stderr } = await runLauncher(t, ['check'], { cwd })
  assert.equal(status, 78)
  assert.match(stderr, /^problem: paths\.cache: this user cannot write to .*\/cache \(.*\): [^\n]*\nproblem: paths\.temp: [^\n]*: uploads above 64 KiB are 500\n$/)
})

test('prints what the local file and svc.json override, and warns of secrets in svc.json, but shows none', async (t) => {
  const module = `import { fields } from 'svc'
    export const settings = fields({ mail: fields.object({ url: fields.text(), size: fields.integer().default(1) }) })`
  const settings = { mail: { url: { env: 'SVC_TEST_MAIL' }, password: 'geheim', from: ['a'] } }
  const config = { config: { local: true }, settings, setup: { session: { ttl_s: 9 } } }
  const cwd = applicationFolder({
    'svc.local.json': { settings: { mail: { from: [] } }, setup: { session: { max: 5 } } },
    'routes/middleware/config.json': { load: ['mail.mjs'], setup: { session: { ttl_s: 7, max: 6 } } },
    'routes/middleware/mail.mjs': module,
  }, config)
  const { status, stdout, stderr } = await runLauncher(t, ['check'], { cwd, env: { SVC_TEST_MAIL: 'geheim' } })
  assert.deepEqual([status, stderr], [0, ''])
  assert.deepEqual(stdout.replaceAll(`${cwd}/`, '').split('\n'), [
    'warning: settings.mail.password (svc.json, line 1) looks like a secret in a file for version control: '
      + 'move it to svc.local.json or replace it by a reference, {"env": "NAME"}',
    'svc.local.json overrides settings.mail.from',
    'svc.json, line 1 overrides setup.session.ttl_s of routes/middleware/config.json',
    'svc.local.json, line 1 overrides setup.session.max of routes/middleware/config.json',
    'svc.json: all is well, 1 routes',
    '',
  ])
})

test('reports settings that cannot be read, or that a schema refuses', async (t) => {
  const files = {
    'routes/middleware/config.json': { load: ['mail.mjs'] },
    'routes/middleware/mail.mjs': `import { fields } from 'svc'
      export const settings = fields({ url: fields.text(), size: fields.integer() })`,
  }
  const rows: [settings: object, problem: string][] = [
    [{ url: { env: 'SVC_TEST_NONE' } }, 'Cannot load svc.json: settings.url needs the environment variable SVC_TEST_NONE: it is not set (line 1)'],
    [{ url: ['geheim'], size: 'geheim' }, 'svc.json: settings.url: Must be a single value (line 1); settings.size: Must be a whole number (line 1)'],
  ]
  for (const [settings, problem] of rows) {
    const cwd = applicationFolder(files, { settings })
    const { status, stderr } = await runLauncher(t, ['check'], { cwd })
    assert.deepEqual([status, stderr.replaceAll(`${cwd}/`, '')], [78, `problem: ${problem}\n`])
    const started = await runLauncher(t, [], { cwd })
    assert.equal(started.status, 78)
    assert.ok(started.stderr.concat(started.stdout).includes(problem.replace('svc.json', `${cwd}/svc.json`).slice(-40)), started.stderr)
    const routes = await runLauncher(t, ['routes'], { cwd })
    assert.match(routes.stdout, /^home +\* +\/ /m)
  }
})
