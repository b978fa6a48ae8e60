// docs/recipes: tests that need the launcher. `check` reports no problem, one process runs one-time work, and the server
// starts from exactly the files of an image.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { writeFiles } from '../support/application.ts'
import { launch, optionsOfSources, root, runLauncher } from '../support/launch.ts'
import { complaintsIn } from '../support/log-lines.ts'
import { shownFiles } from '../support/markdown.ts'
import { recipeFolder, recipePage } from '../support/recipe.ts'
import { request } from '../support/request.ts'
import { hasSqlite } from '../support/sqlite.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

describe('svc.js check', () => {
  const needSqlite = ['database', 'search', 'migrations', 'webhook', 'tokens', 'audit-trail', 'outbox', 'webhook-retries', 'nightly-report', 'import']
  const others = ['sign-in', 'form', 'upload', 'files', 'roles', 'csv', 'json-api', 'live-list', 'htmx', 'datastar', 'job', 'from-express', 'from-fastify', 'from-unit', 'from-php']
  for (const name of [...others, ...(hasSqlite ? needSqlite : [])]) {
    it(`finds nothing wrong with the recipe ${name}`, async (t) => {
      const folder = recipeFolder(name)
      mkdirSync(join(folder, 'www'), { recursive: true })
      writeFiles(folder, { 'jwt.key': 'k'.repeat(43) })
      const { status, stdout, stderr } = await runLauncher(t, ['check'], { cwd: folder })
      assert.deepEqual([status, /\d+ problem|WARN|: warning/.test(stdout + stderr)], [0, false], stdout + stderr)
    })
  }
})

it('docs/recipes/job.md runs in one of several processes, and all of them publish it', async (t) => {
  const note = "count += 1\n  ;(await import('node:fs')).appendFileSync('pids', `${process.pid}\\n`)"
  const cwd = recipeFolder('job', (text) => text.replace('60_000', '20').replace('count += 1', note))
  writeFiles(cwd, { 'svc.local.json': { 'server.port': 0, 'server.processes': 2, app_key: 'x'.repeat(32) } })
  const url = await launch(t, [], { cwd }).listening()
  const polls = await Promise.all(Array.from({ length: 10 }, () => request(`${url}/job`)))
  for (const poll of polls) assert.ok((poll.json() as { events: unknown[] }).events.length > 0)
  const pids = (): string[] => readFileSync(join(cwd, 'pids'), 'utf8').trim().split('\n')
  await until(() => pids().length >= 5)
  assert.equal(new Set(pids()).size, 1)
})

it('docs/recipes/from-unit.md serves files, the redirect and the application', async (t) => {
  const cwd = recipeFolder('from-unit')
  writeFiles(cwd, { 'www/index.html': 'Welcome' })
  const url = (await launch(t, ['--port', '0'], { cwd }).listening()).replace('0.0.0.0', '127.0.0.1')
  assert.equal((await request(`${url}/`)).text, 'Welcome')
  const moved = await request(`${url}/old/a/b`)
  assert.deepEqual([moved.status, moved.headers.location], [301, '/new/'])
  assert.deepEqual((await request(`${url}/api/visits`)).json(), { visits: 1 })
  await until(() => / 301 (?:\d+|-) "-" /.test(readFileSync(join(cwd, '.logs/access.log'), 'utf8')))
})

describe('docs/recipes/container.md', () => {
  const files = shownFiles(recipePage('container'))
  const lines = (files['Dockerfile'] ?? '').replaceAll('\\\n', '').trimEnd().split('\n')
  const of = (word: string): string[] => lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1))
  const listAfter = (line: string): string[] => JSON.parse(line.slice(line.indexOf('['))) as string[]

  /** The build folder of the image, as on the page, with files that must not get into the image. */
  function context(): string {
    const folder = temporaryFolder()
    cpSync(recipeFolder('json-api'), join(folder, 'app'), { recursive: true })
    for (const name of ['bin', 'lib', 'package.json']) cpSync(join(root, name), join(folder, 'svc', name), { recursive: true })
    const others = ['app/.git/config', 'app/node_modules/a/a.js', 'app/.logs/svc.log', 'svc/test/a.test.ts', 'svc/lib/.git/config']
    writeFiles(folder, Object.fromEntries(others.map((name) => [name, ''])))
    return folder
  }

  /** Copies the paths of COPY, except those of .dockerignore: `**` matches any number of folders. */
  function build(folder: string): string {
    const ignored = (files['.dockerignore'] ?? '').trimEnd().split('\n').map((pattern) => {
      const parts = pattern.split('**/').map((part) => part.replaceAll('.', '\\.').replaceAll('*', '[^/]*'))
      return new RegExp(`^${parts.join('(?:.+/)?')}(?:/|$)`)
    })
    const image = temporaryFolder()
    for (const [from = '', to = ''] of of('COPY').map((line) => line.split(' '))) {
      assert.ok(existsSync(join(folder, from)), `COPY ${from}`)
      mkdirSync(dirname(join(image, to)), { recursive: true })
      const filter = (path: string): boolean => !ignored.some((pattern) => pattern.test(path.slice(folder.length + 1)))
      cpSync(join(folder, from), join(image, to), { recursive: true, filter })
    }
    return image
  }

  it('has an image with the application and the server, and no local files', () => {
    const image = build(context())
    const found = readdirSync(image, { recursive: true, encoding: 'utf8' })
    for (const name of ['srv/app/svc.json', 'srv/app/routes/tasks.mjs', 'opt/svc/bin/svc.js', 'opt/svc/lib/app.ts']) assert.ok(found.includes(name), name)
    assert.deepEqual(found.filter((name) => /\.git(\/|$)|node_modules|\.local\.json|\.logs\/|(^|\/)test(\/|$)/.test(name)), [])
  })

  it('starts from exactly these files, is healthy, and stops with the signal that Docker sends', async (t) => {
    const image = build(context())
    const cwd = join(image, of('WORKDIR')[0] ?? '')
    const [, made = ''] = /mkdir -p (.*?) &&/.exec(of('RUN')[0] ?? '') ?? []
    for (const name of made.split(' ')) mkdirSync(join(cwd, name))
    const [node, launcher = '', ...args] = listAfter(of('CMD').at(-1) ?? '')
    assert.equal(node, 'node')
    const started = launch(t, [...args, '--port', '0'], {
      cwd,
      launcher: join(image, launcher),
      nodeOptions: optionsOfSources(),
      env: { NODE_ENV: 'production', SVC_APP_KEY: 'x'.repeat(32) },
    })
    const port = new URL(await started.listening()).port
    const warnings = complaintsIn(started.stdout().split('\n'))
    assert.deepEqual(warnings.filter((line) => !line.includes('the admin panel is not set up')), [])
    assert.equal((await request(`http://127.0.0.1:${port}/api/tasks`)).text, '[]')

    const [, ...check] = listAfter(of('HEALTHCHECK')[0] ?? '')
    const statusOf = async (at: string): Promise<number> => {
      const run = spawn(process.execPath, check.map((word) => word.replace('8080', at)), { stdio: 'ignore' })
      return ((await once(run, 'close')) as [number])[0]
    }
    assert.deepEqual([await statusOf(port), await statusOf('1')], [0, 1])
    started.child.kill((of('STOPSIGNAL')[0] ?? '') as NodeJS.Signals)
    assert.equal(await started.ended, 0)
  })
})
