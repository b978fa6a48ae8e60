import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runLauncher } from '../support/launch.ts'
import { applicationFolder } from '../support/application-folder.ts'

test('prints a row per route in the order of registration', async (t) => {
  const cwd = applicationFolder({
    'routes/middleware/config.json': { load: ['guard.mjs'] },
    'routes/middleware/guard.mjs': 'export default (ctx, next) => next()',
    'routes/a.json': [
      { name: 'note.show', url: '/notes/:id', method: 'GET', action: 'home.mjs', middleware: 'guard' },
      { name: 'note.add', pattern: '/notes', method: 'post, put', action: 'home.mjs@add' },
    ],
  })
  assert.deepEqual(await runLauncher(t, ['routes'], { cwd }), {
    status: 0,
    stdout: `name       method    url         middleware  action
note.show  GET       /notes/:id  guard       home.mjs
note.add   POST,PUT  /notes      -           home.mjs@add
home       *         /           -           home.mjs
`,
    stderr: '',
  })
})

test('prints the valid routes, reports those left out, and exits with 78', async (t) => {
  const cwd = applicationFolder({ 'routes/b.json': [{ name: 'b', url: '/b' }] })
  const { status, stdout, stderr } = await runLauncher(t, ['routes'], { cwd })
  assert.equal(status, 78)
  assert.match(stdout, /^home +\* +\/ +- +home\.mjs$/m)
  assert.equal(stderr, 'left out: b.json:1:2: route "b": action is missing\n')
})

test('prints the table and exits with 78 when the middleware cannot be loaded', async (t) => {
  const cwd = applicationFolder({ 'routes/middleware/config.json': '[]' })
  const { status, stdout, stderr } = await runLauncher(t, ['routes'], { cwd })
  assert.equal(status, 78)
  assert.match(stdout, /^home +/m)
  assert.match(stderr, /^left out: .*config\.json: it must be an object/)
})
