// docs/recipes/from-*.md: the application after the move passes the checks of its page, and does what its page says
// besides. `test/external/recipes-ported.test.ts` runs the application before the move too.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { shownFiles, shownFilesIn } from '../support/markdown.ts'
import { portedChecks, runPortedChecks, startPorted } from '../support/ported.ts'
import { recipePage } from '../support/recipe.ts'
import { request } from '../support/request.ts'
import { Visitor } from '../support/visitor.ts'

describe('the applications after the move', () => {
  for (const [name, checks] of Object.entries(portedChecks)) {
    it(`passes the checks of docs/recipes/${name}.md`, async (t) => {
      await runPortedChecks(checks, (await startPorted(t, name)).url, 'after')
    })
  }

  it('logs each request as the Express application does, also one that is refused', async (t) => {
    const { url, app, folder } = await startPorted(t, 'from-express')
    await request(`${url}/api/books`, { body: '{}', headers: { 'content-type': 'application/json' } })
    app.flushLogs()
    assert.match(readFileSync(join(folder, '.logs/svc.log'), 'utf8'), /\[INFO \] \[app\] POST \/api\/books \d+ ms\n/)
  })

  it('has the time of the Fastify application in its responses, also in errors, and its log line', async (t) => {
    const { url, app, folder } = await startPorted(t, 'from-fastify')
    assert.match(String((await request(`${url}/api/books/9`)).headers['server-timing']), /^app;dur=\d+\.\d$/)
    assert.equal((await request(`${url}/api/books/1/x`)).headers['server-timing'], undefined)
    const headers = { 'content-type': 'application/json' }
    const statusOf = async (body: string) => (await request(`${url}/api/books`, { body, headers })).status
    const wrong = ['{"title":7,"pages":1}', '{"title":"a","pages":"1"}', 'null']
    assert.deepEqual(await Promise.all(wrong.map(statusOf)), [422, 422, 422])
    assert.equal(await statusOf('{"title":"Sanditon","pages":60}'), 201)
    app.flushLogs()
    assert.match(readFileSync(join(folder, '.logs/svc.log'), 'utf8'), /\[INFO \] \[app\] added book=2\n/)
  })

  it('refuses broken JSON with its place', async (t) => {
    const { url } = await startPorted(t, 'from-unit')
    const headers = { 'content-type': 'application/json' }
    const broken = await request(`${url}/api/books`, { body: '{"title":', headers })
    assert.deepEqual([broken.status, (broken.json() as { error: string }).error], [400, 'bad_json'])
  })

  it('sends no file but pictures, and none for a name that leads elsewhere', async (t) => {
    const { url } = await startPorted(t, 'from-php')
    const ann = new Visitor(url)
    await ann.submit('/', '/', { name: 'Ann', seats: '1' })
    for (const name of ['..%2Fguests.jsonl', '..%2Fsvc.json', 'x.png']) {
      assert.equal((await ann.get(`/pictures/${name}`)).status, 404, name)
    }
  })
})

it('the applications before and after the move have at most 80 lines each', () => {
  const servers = { 'from-express': 'Express', 'from-fastify': 'Fastify', 'from-php': 'PHP', 'from-unit': 'Unit' }
  for (const [name, server] of Object.entries(servers)) {
    for (const files of [shownFilesIn(recipePage(name), server), shownFiles(recipePage(name))]) {
      const lines = Object.values(files).join('').split('\n').filter((line) => line !== '')
      assert.ok(lines.length > 0 && lines.length <= 80, `${name}: ${lines.length}`)
      assert.deepEqual(lines.filter((line) => line.length > 120), [], name)
    }
  }
})
