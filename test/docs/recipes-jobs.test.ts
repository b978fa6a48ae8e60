// docs/recipes: the applications with background jobs. A Node without `node:sqlite` says so at their start.
import assert from 'node:assert/strict'
import { createServer, type IncomingMessage } from 'node:http'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, it, type TestContext } from 'node:test'
import { testApp } from '../../lib/testing/test-app.ts'
import { listen } from '../support/listen.ts'
import { recipeFolder, startRecipe } from '../support/recipe.ts'
import { request, type Answer } from '../support/request.ts'
import { hasSqlite, rowsOf, withDatabase } from '../support/sqlite.ts'
import { until } from '../support/until.ts'
import { Visitor } from '../support/visitor.ts'

/** Declares the tests of a recipe. On a Node without SQLite there is one: the start is refused. */
function describeRecipe(name: string, tests: () => void): void {
  describe(`docs/recipes/${name}.md`, () => {
    if (hasSqlite) return tests()
    it('is refused on a Node without SQLite', async (t) => {
      await assert.rejects(startRecipe(t, name), /node:sqlite/)
    })
  })
}

/** A request that a receiver got. */
interface Received {
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** A server of another service. It answers with the next of `answers`, then with 200. Returns what it got, and its address. */
async function otherService(t: TestContext, answers: [status: number, headers?: Record<string, string>][] = []) {
  const received: Received[] = []
  const server = createServer(async (incoming, response) => {
    received.push({ headers: incoming.headers, body: await text(incoming) })
    const [status, headers] = answers.shift() ?? [200]
    response.writeHead(status, { connection: 'close', ...headers }).end()
  })
  return { received, url: `http://127.0.0.1:${await listen(t, server)}/` }
}

/** Sets an environment variable until the test ends. */
function setVariable(t: TestContext, name: string, value: string): void {
  process.env[name] = value
  t.after(() => delete process.env[name])
}

/** The application of a recipe, under test. */
async function underTest(t: TestContext, name: string, change?: (text: string) => string) {
  const folder = recipeFolder(name, change)
  const app = await testApp(folder)
  t.after(() => app.close())
  return { folder, app, client: app.client() }
}

describeRecipe('outbox', () => {
  const order = { json: { email: 'ann@example.org', article: 'Milk' } }
  const statesIn = (folder: string): unknown[] => rowsOf(join(folder, 'orders.db'), 'SELECT state FROM outbox').map(({ state }) => state)

  it('sends the mail of an order, again after failures, with one key', async (t) => {
    const service = await otherService(t, [[503], [500]])
    setVariable(t, 'MAIL_URL', service.url)
    const { app, client, folder } = await underTest(t, 'outbox')
    const { id } = (await (await client.post('/orders', order)).json()) as { id: string }
    assert.deepEqual(statesIn(folder), ['new'])
    for (const seconds of [38, 76]) await app.jobs.advance(seconds)
    assert.deepEqual(statesIn(folder), ['sent'])
    assert.deepEqual(service.received.map(({ headers }) => headers['idempotency-key']), [id, id, id])
    assert.deepEqual(JSON.parse(service.received[0]?.body ?? ''), { recipient: 'ann@example.org', text: 'You ordered Milk.' })
    await app.enqueue('mail', { id })
    assert.equal(service.received.length, 3, 'what is sent is not sent again')
  })

  it('does not try a refused mail again, and leaves it out of the sweep', async (t) => {
    const service = await otherService(t, [[422]])
    setVariable(t, 'MAIL_URL', service.url)
    const { app, client, folder } = await underTest(t, 'outbox')
    await client.post('/orders', order)
    assert.deepEqual((await app.jobs.list()).map(({ state, attempt }) => [state, attempt]), [['dead', 1]])
    withDatabase(join(folder, 'orders.db'), (database) => database.exec('UPDATE outbox SET created = 0'))
    await app.jobs.advance(301)
    assert.deepEqual([statesIn(folder), service.received.length], [['refused'], 1])
  })

  it('sends mail whose job is missing, once, with the next sweep', async (t) => {
    const service = await otherService(t)
    setVariable(t, 'MAIL_URL', service.url)
    const { app, folder } = await underTest(t, 'outbox')
    const add = (id: string, age: number): void => withDatabase(join(folder, 'orders.db'), (database) =>
      database.exec(`INSERT INTO outbox (id, recipient, text, created) VALUES ('${id}', 'a@b.c', 'x', unixepoch() - ${age})`))
    add('lost', 3600)
    add('young', 0)
    await app.enqueue('mail', { id: 'lost' }, { key: 'lost', delay_s: 400 })
    await app.jobs.advance(301)
    assert.equal((await app.jobs.list()).length, 1, 'the job that waits has the key')
    await app.jobs.advance(100)
    assert.deepEqual(service.received.map(({ headers }) => headers['idempotency-key']), ['lost'])
  })

  it('keeps neither order nor mail when one fails', async (t) => {
    const { client, folder } = await underTest(t, 'outbox', (page) => page.replace('`You ordered ${article}.`', 'null'))
    assert.equal((await client.post('/orders', order)).status, 500)
    assert.deepEqual(rowsOf(join(folder, 'orders.db'), 'SELECT id FROM orders'), [])
  })
})

describeRecipe('webhook-retries', () => {
  const payment = { json: { invoice: '2026-7', cents: 1200 } }

  async function started(t: TestContext, answers?: [number, Record<string, string>?][]) {
    const service = await otherService(t, answers)
    setVariable(t, 'WEBHOOK_URL', service.url)
    setVariable(t, 'WEBHOOK_SECRET', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')
    return { ...(await underTest(t, 'webhook-retries')), received: service.received }
  }

  it('is accepted by the recipe that receives webhooks', async (t) => {
    setVariable(t, 'WEBHOOK_SECRET', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')
    const receiver = await startRecipe(t, 'webhook')
    setVariable(t, 'WEBHOOK_URL', `${receiver.url}/webhook`)
    const { app, client } = await underTest(t, 'webhook-retries')
    assert.equal((await client.post('/payments', payment)).status, 202)
    assert.deepEqual(await app.jobs.list(), [])
    assert.deepEqual(rowsOf(join(receiver.folder, 'invoices.db'), 'SELECT * FROM payments'), [{ invoice: '2026-7', cents: 1200 }])
  })

  it('tries again with the same id and body after 500, 408 and 429', async (t) => {
    const { app, client, received } = await started(t, [[500], [408], [429]])
    await client.post('/payments', payment)
    for (const seconds of [19, 38, 75]) await app.jobs.advance(seconds)
    assert.deepEqual(await app.jobs.list(), [])
    assert.equal(received.length, 4)
    assert.equal(new Set(received.map(({ headers, body }) => `${String(headers['webhook-id'])} ${body}`)).size, 1)
  })

  it('gives up at a refusal and at a redirect', async (t) => {
    for (const status of [400, 404, 410, 301]) {
      const { app, client, received } = await started(t, [[status, { location: '/elsewhere' }]])
      await client.post('/payments', payment)
      const [job] = await app.jobs.list()
      assert.deepEqual([job?.state, job?.attempt, received.length], ['dead', 1, 1], String(status))
    }
  })

  it('waits as long as Retry-After says, and gives up after a day', async (t) => {
    const { app, client, received } = await started(t, [[503, { 'retry-after': '120' }]])
    await client.post('/payments', payment)
    await app.jobs.advance(119)
    assert.equal(received.length, 1)
    await app.jobs.advance(1)
    assert.equal(received.length, 2)
    await app.enqueue('webhook', { id: 'msg_old', url: 'http://127.0.0.1:1/', body: '', until: Date.now() - 1 })
    const [job] = await app.jobs.list()
    assert.match(`${job?.state} ${job?.error}`, /^dead .*did not take msg_old within a day/)
  })
})

describeRecipe('nightly-report', () => {
  it('adds up each day that is over, once', async (t) => {
    const { app, client, folder } = await underTest(t, 'nightly-report')
    assert.equal((await client.post('/sales', { json: { cents: 100 } })).status, 201)
    const sell = (cents: number, days: number): void => withDatabase(join(folder, 'sales.db'), (database) =>
      database.exec(`INSERT INTO sales (cents, time) VALUES (${cents}, unixepoch('now', 'localtime', 'start of day', '-${days} days', '+12 hours', 'utc'))`))
    for (const [cents, days] of [[300, 1], [200, 1], [50, 3]] as const) sell(cents, days)
    const reports = async (): Promise<unknown> => ((await (await client.get('/reports')).json()) as object[]).map((row) => ({ ...row, day: '' }))
    const expected = [{ day: '', sales: 2, cents: 500 }, { day: '', sales: 1, cents: 50 }]
    await app.enqueue('report')
    assert.deepEqual(await reports(), expected)
    sell(999, 1)
    await app.jobs.advance(86_400 + 7200) // A night, also one of 25 hours.
    assert.deepEqual([await reports(), await app.jobs.list()], [expected, []])
  })
})

describeRecipe('import', () => {
  const lines = Array.from({ length: 2500 }, (_, at) => `Name ${at};City`).join('\n')
  const rowsIn = (folder: string) => rowsOf(join(folder, 'people.db'), 'SELECT line, name, city FROM people ORDER BY line')

  async function sent(t: TestContext, change?: (text: string) => string) {
    const { url, folder } = await startRecipe(t, 'import', change)
    const ann = new Visitor(url)
    const answer = await ann.send(await ann.form('/imports', '/imports'), {}, new File([lines], 'people.csv'))
    return { url, folder, page: answer.headers.location ?? '', ann }
  }

  it('reads an upload in parts, removes it, and reports the progress', async (t) => {
    const { url, folder, page, ann } = await sent(t)
    const id = page.replace('/imports?id=', '')
    const shown = async (): Promise<Answer> => ann.get(page)
    await until(async () => (await shown()).text.includes('>2500, done<'))
    assert.deepEqual(readdirSync(join(folder, 'imports')), [])
    const rows = rowsIn(folder)
    assert.deepEqual([rows.length, rows[2499]], [2500, { line: 2500, name: 'Name 2499', city: 'City' }])
    const { events } = (await request(`${url}/imports/${id}/live?since=0`)).json() as { events: { data: unknown }[] }
    assert.deepEqual(events.map(({ data }) => data), ['1000', '2000', '2500, done'])
  })

  it('continues after a failed try, with every line once', async (t) => {
    const { folder } = await sent(t, (page) => page
      .replace('"timeout_s": 3600', '"timeout_s": 3600, "backoff_s": 0')
      .replace('read = async ({ data', 'read = async ({ attempt, data')
      .replace('    store()\n', "    store()\n    if (attempt === 1 && lines === 2000) throw new Error('power')\n"))
    await until(() => existsSync(join(folder, 'imports')) && readdirSync(join(folder, 'imports')).length === 0)
    assert.equal(rowsIn(folder).length, 2500)
  })

  it('knows no other imports', async (t) => {
    const { url } = await startRecipe(t, 'import')
    for (const id of ['x', '..%2f..%2fpeople', '0'.repeat(36)]) {
      assert.equal((await request(`${url}/imports?id=${id}`)).status, 404)
      assert.equal((await request(`${url}/imports/${id}/live`)).status, 404)
    }
  })
})
