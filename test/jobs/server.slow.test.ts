// Servers with jobs as processes: their ends, and what a second one does.
import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { rowsOf, hasSqlite } from '../support/sqlite.ts'
import { applicationFolder } from '../support/application-folder.ts'
import { launch, runLauncher } from '../support/launch.ts'
import { until } from '../support/until.ts'

/** An application whose job writes a file when it begins, and one when it ends or is aborted. */
function makeFolder(config: Readonly<Record<string, unknown>> = {}): string {
  const action = `
    import { appendFileSync } from 'node:fs'
    const file = new URL('jobs.txt', import.meta.url)
    export default async ({ data, signal, attempt }) => {
      appendFileSync(file, 'begin ' + attempt + '\\n')
      if (data === 'exit') process.exit(7)
      if (data === 'spin') for (;;);
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, data)
        signal.addEventListener('abort', () => (clearTimeout(timer), resolve()))
      })
      appendFileSync(file, (signal.aborted ? 'abort' : 'end') + '\\n')
    }
    export const add = async (ctx) => ctx.text(await ctx.enqueue('work', JSON.parse(ctx.query.get('data'))))`
  const files = {
    'jobs/work.json': [{ name: 'work', action: 'work.mjs' }],
    'routes/add.json': [{ name: 'add', url: '/add', action: 'work.mjs@add' }],
    'work.mjs': action,
    'jobs.txt': '',
  }
  return applicationFolder(files, { 'app.env': 'dev', 'dev.watch': false, ...config })
}

const linesOf = (folder: string): string[] => readFileSync(join(folder, 'jobs.txt'), 'utf8').split('\n').slice(0, -1)
const statesOf = (folder: string): unknown[] => rowsOf(join(folder, '.data/svc.db'), 'SELECT state, tries FROM jobs').map((row) => Object.values(row))

async function start(t: TestContext, folder: string): Promise<{ server: ReturnType<typeof launch>; add: (data: unknown) => Promise<number> }> {
  const server = launch(t, ['start'], { cwd: folder })
  const base = await server.listening()
  return { server, add: async (data) => (await fetch(`${base}/add?data=${encodeURIComponent(JSON.stringify(data))}`)).status }
}

describe('a server with jobs', () => {
  it('exits with 78 on a Node without SQLite, and check says why', async (t) => {
    const folder = makeFolder()
    const checked = await runLauncher(t, ['check'], { cwd: folder })
    if (hasSqlite) return assert.equal(checked.status, 0, checked.stderr)
    assert.equal(checked.status, 78)
    assert.match(checked.stderr, /paths\.data needs node:sqlite/)
    const { status, stdout, stderr } = await runLauncher(t, ['start'], { cwd: folder })
    assert.equal(status, 78)
    assert.match(stdout + stderr, /paths\.data needs node:sqlite, which Node .* does not have: run Node 22\.13 or later/)
    const jobs = [{ name: 'a', action: 'a.mjs', optional: true }]
    const optional = applicationFolder({ 'jobs/a.json': jobs, 'a.mjs': 'export default () => {}', '.data/svc.db': 'of another Node' })
    const { status: warned, stdout: warning } = await runLauncher(t, ['check'], { cwd: optional })
    assert.equal(warned, 0)
    assert.match(warning, /^warning: .*paths\.data needs node:sqlite/m)
  })

  if (!hasSqlite) return

  it('waits at a stop for a job that ends in time', async (t) => {
    const folder = makeFolder()
    const { server, add } = await start(t, folder)
    assert.equal(await add(500), 200)
    await until(() => linesOf(folder).length === 1)
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
    assert.deepEqual(linesOf(folder), ['begin 1', 'end'])
    assert.deepEqual(statesOf(folder), [])
  })

  it('aborts a job that does not, and gives it back without counting the try', async (t) => {
    const folder = makeFolder({ 'server.stop_timeout_s': 1 })
    const { server, add } = await start(t, folder)
    await add(3_600_000)
    await until(() => linesOf(folder).length === 1)
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
    assert.deepEqual(linesOf(folder), ['begin 1', 'abort'])
    assert.deepEqual(statesOf(folder), [[0, 0]])
  })

  it('runs a job again whose process was killed, and leaves it dead after the third end', async (t) => {
    const folder = makeFolder()
    for (const count of [1, 2, 3]) {
      const { server, add } = await start(t, folder)
      if (count === 1) await add('exit').catch(() => {}) // The process may end before it answers.
      assert.equal(await server.ended, 7)
      assert.equal(linesOf(folder).length, count)
    }
    const { server } = await start(t, folder)
    assert.match(server.stdout(), /job 1 \(work\) is dead: its process ended 3 times while the job ran/)
    assert.deepEqual(statesOf(folder), [[2, 1]])
  })

  it('replaces a worker that a job has ended, three times', async (t) => {
    const folder = makeFolder({ 'server.processes': 2 })
    const { server, add } = await start(t, folder)
    await add('exit').catch(() => {})
    await until(() => /job 1 \(work\) is dead/.test(server.stdout()))
    assert.equal(linesOf(folder).length, 3)
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
  })

  for (const processes of [1, 2]) {
    it(`does not start while another server uses its file, with ${processes} processes`, async (t) => {
      const folder = makeFolder({ 'server.processes': processes })
      await start(t, folder)
      const { status, stdout, stderr } = await runLauncher(t, ['start', '--port', '0'], { cwd: folder })
      assert.equal(status, 1, stdout + stderr)
      assert.match(stdout + stderr, /svc\.db is in use by another server: stop that server, or name another paths\.data/)
    })
  }

  it('copies its file while it runs, and check reads it', async (t) => {
    const folder = makeFolder({ 'pool_jobs.workers': 0 })
    const { add } = await start(t, folder)
    await add(1)
    const copy = join(folder, 'copy.db')
    const { status, stdout } = await runLauncher(t, ['backup', copy], { cwd: folder })
    assert.deepEqual([status, stdout], [0, `copied ${join(folder, '.data/svc.db')} to ${copy}\n`])
    assert.deepEqual(rowsOf(copy, 'SELECT name FROM jobs').map(({ name }) => name), ['work'])
    const again = await runLauncher(t, ['backup', copy], { cwd: folder })
    assert.equal(again.status, 1)
    assert.match(again.stderr, /^Cannot back up .*EEXIST/)
    const checked = await runLauncher(t, ['check'], { cwd: folder })
    assert.match(checked.stdout, /svc\.db has jobs: 1 waiting, 0 running, 0 dead\n/)
  })

  it('sets a damaged file aside, and check finds it', async (t) => {
    const folder = makeFolder()
    const { server, add } = await start(t, folder)
    await add(1)
    server.child.kill('SIGTERM')
    await server.ended
    writeFileSync(join(folder, '.data/svc.db'), 'x'.repeat(40_000))
    const checked = await runLauncher(t, ['check'], { cwd: folder })
    assert.equal(checked.status, 78)
    assert.match(checked.stderr, /svc\.db is damaged/)
    const next = await start(t, folder)
    assert.match(next.server.stdout(), /svc\.db is damaged \(.*\): it is now .*svc\.db\.damaged-\d+T\d+Z/)
    assert.equal(await next.add(1), 200)
  })

  it('makes no file and loads no code for jobs when there is no job file', async (t) => {
    const folder = applicationFolder()
    const loaded = join(folder, 'loaded.mjs')
    writeFileSync(loaded, `
      import { registerHooks } from 'node:module'
      import { appendFileSync } from 'node:fs'
      registerHooks?.({ load: (url, context, next) => (appendFileSync(${JSON.stringify(join(folder, 'loaded.txt'))}, url + '\\n'), next(url, context)) })`)
    const server = launch(t, ['start'], { cwd: folder, env: { NODE_OPTIONS: `--import ${loaded}` } })
    await server.listening()
    const files = readFileSync(join(folder, 'loaded.txt'), 'utf8')
    assert.match(files, /\/core\/server\./)
    assert.doesNotMatch(files, /\/(?:jobs\/(?!$)|data\/|cluster\/)/)
    assert.equal(existsSync(join(folder, '.data')), false)
  })
})
