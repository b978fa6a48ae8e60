// docs/recipes/database.md: the module for PostgreSQL, with a PostgreSQL and the package `pg`, in two processes.
import assert from 'node:assert/strict'
import { existsSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { it, type TestContext } from 'node:test'
import { writeFiles } from '../support/application.ts'
import { launch, root, runLauncher } from '../support/launch.ts'
import { startPostgreSql } from '../support/postgresql.ts'
import { recipeFolder } from '../support/recipe.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'

/** The application of the page with what it says to exchange, and the package. */
function application(): string {
  const packages = join(root, 'test/postgresql/node_modules')
  if (!existsSync(packages)) throw new Error('The package pg is missing: run npm ci --prefix test/postgresql')
  const folder = recipeFolder('database', (text) =>
    text.replace('"database.mjs"', '"pool.mjs"').replace('"middleware": "database"', '"middleware": "pool"').replaceAll('routes/notes.mjs', 'routes/pg-notes.mjs'),
  )
  symlinkSync(packages, join(folder, 'node_modules'))
  writeFiles(folder, { 'svc.local.json': { 'server.port': 0, 'server.processes': 2, app_key: 'x'.repeat(32), 'server.stop_timeout_s': 4 } })
  return folder
}

async function start(t: TestContext) {
  const database = await startPostgreSql(t)
  database.ask('CREATE TABLE notes (id integer GENERATED ALWAYS AS IDENTITY, text text NOT NULL)')
  const server = launch(t, [], { cwd: application(), env: database.env })
  return { database, server, url: await server.listening() }
}

it('keeps notes in PostgreSQL, of several processes', async (t) => {
  const { database, server, url } = await start(t)
  const ids = new Set<number>()
  await Promise.all(Array.from({ length: 40 }, async (_, at) => {
    const added = await request(`${url}/notes`, { body: JSON.stringify({ text: `'; DROP TABLE notes; -- ${at}` }) })
    assert.equal(added.status, 201)
    ids.add((added.json() as { id: number }).id)
  }))
  assert.equal(ids.size, 40)
  assert.equal(((await request(`${url}/notes`)).json() as unknown[]).length, 40)
  assert.equal((await request(`${url}/notes`, { body: 'null' })).status, 422)
  assert.ok(Number(database.ask("SELECT count(*) FROM pg_stat_activity WHERE client_port = -1 AND backend_type = 'client backend'")) <= 21)
  server.child.kill('SIGTERM')
  assert.equal(await server.ended, 0)
  assert.equal(database.ask("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'").trim(), '1', 'only psql itself')
})

it('goes on when the database has been started anew, and says what broke', async (t) => {
  const { database, server, url } = await start(t)
  const all = async () => Promise.all(Array.from({ length: 10 }, async () => (await request(`${url}/notes`)).status))
  await all()
  await database.stop()
  await until(() => server.stdout().includes('[ERROR] [database] an idle connection broke'))
  assert.deepEqual([...new Set(await all())], [500])
  await database.start()
  await until(async () => (await all()).every((status) => status === 200))
})

it('does not start where the database is not there, and says so', async (t) => {
  const env = { PGHOST: '/nowhere', PGUSER: 'app', PGDATABASE: 'postgres' }
  const { status, stdout, stderr } = await runLauncher(t, [], { cwd: application(), env })
  assert.equal(status, 78)
  assert.match(stdout + stderr, /pool\.mjs[^]*ENOENT[^]*nowhere/)
})
