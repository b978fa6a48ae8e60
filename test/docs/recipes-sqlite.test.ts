// docs/recipes: the applications that keep their data in SQLite. A Node without `node:sqlite` says so at their start.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it, type TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { writeFiles } from '../support/application.ts'
import { runCurlLines } from '../support/curl.ts'
import { recipeFolder, recipePage, signedInto, startRecipe, startRecipeIn } from '../support/recipe.ts'
import { request, type Answer } from '../support/request.ts'
import { hasSqlite, rowsOf, withDatabase } from '../support/sqlite.ts'
import { Visitor } from '../support/visitor.ts'

/** Declares the tests of a recipe. On a Node without SQLite there is one: the start names what is missing. */
function describeRecipe(name: string, tests: () => void): void {
  describe(`docs/recipes/${name}.md`, () => {
    if (hasSqlite) return tests()
    it('reports on a Node without SQLite what is missing', async (t) => {
      await assert.rejects(startRecipe(t, name), /\.mjs[^]*No such built-in module: node:sqlite/)
    })
  })
}

describeRecipe('database', () => {
  it('keeps notes in SQLite', async (t) => {
    const { url, folder, app } = await startRecipe(t, 'database')
    await runCurlLines(recipePage('database'), { 8080: url }, folder)
    assert.equal((await request(`${url}/notes`, { body: 'null' })).status, 422)
    const inFlight = request(`${url}/notes`, { body: '{"text":"Last"}' })
    await Promise.all([inFlight, app.stop()])
    assert.equal((await inFlight).status, 201)
    assert.equal(existsSync(join(folder, 'notes.db-wal')), false, 'the database was closed')
  })
})

describeRecipe('search', () => {
  const rows = ({ text }: Answer): string[] => [...text.matchAll(/<tr><td>(.*?)<\/td><td>(.*?)<\/td><td>(.*?)<\/td>/g)].map((row) => row.slice(1).join('|'))
  const links = ({ text }: Answer): Record<string, string> =>
    Object.fromEntries([...text.matchAll(/<a href="([^"]*)">(\w+)</g)].map(([, href = '', name = '']) => [name, href.replaceAll('&amp;', '&')]))

  it('searches, sorts and turns pages, by links that keep the rest', async (t) => {
    const { url } = await startRecipe(t, 'search')
    const get = (query: string): Promise<Answer> => request(`${url}/books${query}`)
    const first = await get('')
    assert.deepEqual([rows(first).length, rows(first)[0]], [20, 'Volume 1|O’Brian|1801'])
    assert.match(first.text, /500 books/)
    const found = await get('?q=austen&sort=year&order=desc')
    assert.match(found.text, /250 books[^]*aria-sort="descending">\s*<a href="\?q=austen&amp;sort=year&amp;order=asc&amp;page=1">year/)
    assert.equal(rows(found)[0], 'Volume 98|Jane Austen|1898')
    assert.deepEqual(Object.keys(links(found)), ['title', 'author', 'year', 'Next'])
    const second = await get(links(found)['Next'] ?? '')
    assert.equal(links(second)['Previous'], '?q=austen&sort=year&order=desc&page=1')
    assert.equal(links(second)['title'], '?q=austen&sort=title&order=asc&page=1')
    assert.deepEqual(links(await get('?q=austen&page=13'))['Next'], undefined)
    assert.deepEqual([rows(await get('?page=26')).length, links(await get('?page=26'))['Previous']], [0, '?q=&sort=title&order=asc&page=25'])
  })

  it('shows every row once, over all pages of equal values', async (t) => {
    const { url } = await startRecipe(t, 'search')
    const pages = await Promise.all(Array.from({ length: 25 }, (_, at) => request(`${url}/books?sort=author&page=${at + 1}`)))
    assert.equal(new Set(pages.flatMap(rows)).size, 500)
  })

  it('takes no SQL and no HTML from the query', async (t) => {
    const { url } = await startRecipe(t, 'search')
    const get = (query: Record<string, string>): Promise<Answer> => request(`${url}/books?${new URLSearchParams(query)}`)
    const attacks = ["' OR 1=1 --", "'; DROP TABLE books; --", 'title; DROP TABLE books', '(SELECT 1)', '1', 'constructor', '__proto__', 'id', 'TITLE']
    for (const text of attacks) {
      for (const name of ['sort', 'order', 'page']) if (!(name === 'page' && text === '1')) assert.equal((await get({ [name]: text })).status, 422, `${name}=${text}`)
      assert.equal((await get({ q: `x${text}` })).status, 200)
    }
    assert.match((await get({ q: "' OR 1=1 --" })).text, /<p>0 books/)
    for (const [q, count] of [['%', 0], ['_', 0], ['\\', 0], ['Volume 1_', 0], ['VOLUME 1', 111]] as const) assert.match((await get({ q })).text, new RegExp(`<p>${count} books`), q)
    assert.equal((await request(`${url}/books?sort=title&sort=year`)).status, 422)
    const quoted = await get({ q: '"><script>' })
    assert.doesNotMatch(quoted.text, /<script>/)
    assert.match(quoted.text, /value="&quot;&gt;&lt;script&gt;"/)
    assert.match((await get({})).text, /500 books/)
  })
})

describeRecipe('migrations', () => {
  const second = 'migrations/002-days.sql'
  const note = { text: 'Milk', day: '2026-03-01' }
  const add = (url: string, body: object): Promise<Answer> =>
    request(`${url}/notes`, { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })

  it('brings an old database up to date, and keeps its rows', async (t) => {
    const folder = recipeFolder('migrations')
    const text = readFileSync(join(folder, second), 'utf8')
    rmSync(join(folder, second))
    const old = await startRecipeIn(t, folder)
    assert.equal((await add(old.url, note)).status, 500) // Without the column.
    await old.app.stop()
    withDatabase(join(folder, 'notes.db'), (database) => database.exec("INSERT INTO notes (text) VALUES ('Old')"))
    writeFiles(folder, { [second]: text })
    const { url, app } = await startRecipeIn(t, folder)
    assert.deepEqual((await request(`${url}/notes`)).json(), [{ id: 1, text: 'Old', day: '2026-01-01' }])
    await app.stop()
    const again = await startRecipeIn(t, folder)
    assert.equal((await add(again.url, note)).status, 201)
    again.app.flushLogs()
    assert.equal(readFileSync(join(folder, '.logs/svc.log'), 'utf8').split('ran 00').length, 3, 'each ran once')
  })

  it('prints what the page shows', async (t) => {
    const { url, folder } = await startRecipe(t, 'migrations')
    await runCurlLines(recipePage('migrations'), { 8080: url }, folder)
  })

  it('changes nothing when one of several fails, and does not hold the lock', async (t) => {
    const folder = recipeFolder('migrations')
    writeFiles(folder, { 'migrations/003-wrong.sql': 'CREATE TABLE more (id INTEGER) STRICT; CREATE TABEL wrong' })
    await assert.rejects(startRecipeIn(t, folder), /003-wrong\.sql: near "TABEL"/)
    rmSync(join(folder, 'migrations/003-wrong.sql'))
    const file = join(folder, 'notes.db')
    assert.deepEqual([rowsOf(file, 'PRAGMA user_version'), rowsOf(file, 'SELECT * FROM sqlite_schema')], [[{ user_version: 0 }], []])
    assert.equal((await add((await startRecipeIn(t, folder)).url, note)).status, 201)
  })

  it('may rebuild a table that others refer to, and enforces foreign keys afterwards', async (t) => {
    const folder = recipeFolder('migrations')
    writeFiles(folder, {
      'migrations/003-tags.sql': `CREATE TABLE tags (note INTEGER NOT NULL REFERENCES notes ON DELETE CASCADE) STRICT;
        INSERT INTO notes (id, text) VALUES (1, 'Milk'); INSERT INTO tags VALUES (1);`,
      'migrations/004-rebuild.sql': `CREATE TABLE fresh (id INTEGER PRIMARY KEY, text TEXT NOT NULL, day TEXT NOT NULL) STRICT;
        INSERT INTO fresh SELECT id, text, day FROM notes; DROP TABLE notes; ALTER TABLE fresh RENAME TO notes;`,
      'routes/notes.mjs': `export default ({ state: { db } }) => db.prepare('PRAGMA foreign_keys').all()\nexport const add = () => {}`,
    })
    const { url } = await startRecipeIn(t, folder)
    assert.deepEqual(rowsOf(join(folder, 'notes.db'), 'SELECT * FROM tags'), [{ note: 1 }])
    assert.deepEqual((await request(`${url}/notes`)).json(), [{ foreign_keys: 1 }])
  })

  it('refuses a newer database, a gap and a number that is there twice', async (t) => {
    const folder = recipeFolder('migrations')
    await (await startRecipeIn(t, folder)).app.stop()
    rmSync(join(folder, second))
    await assert.rejects(startRecipeIn(t, folder), /notes\.db has version 2, the application only 1/)
    writeFiles(folder, { 'migrations/003-gap.sql': '' })
    await assert.rejects(startRecipeIn(t, folder), /003-gap\.sql does not have the next number/)
    writeFiles(folder, { 'migrations/002-a.sql': '', 'migrations/002-b.sql': '' })
    await assert.rejects(startRecipeIn(t, folder), /002-b\.sql does not have the next number/)
  })

  it('runs each migration once when several start at once', async () => {
    const module = pathToFileURL(join(recipeFolder('migrations'), 'routes/middleware/database.mjs')).href
    const code = `import(${JSON.stringify(module)}).then(({ setup }) => setup({ logger: () => (line) => require('node:worker_threads').parentPort.postMessage(line) })())`
    const lines: string[] = []
    const run = () => new Promise((resolve, reject) => {
      new Worker(code, { eval: true }).on('message', (line: string) => lines.push(line)).on('error', reject).on('exit', resolve)
    })
    await Promise.all(Array.from({ length: 8 }, run))
    assert.deepEqual(lines.sort(), ['ran 001-notes.sql', 'ran 002-days.sql'])
  })
})

describeRecipe('webhook', () => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const paid = JSON.stringify({ type: 'invoice.paid', data: { invoice: '2026-7', cents: 1200 } })
  const earlier = process.env['WEBHOOK_SECRET']
  before(() => void (process.env['WEBHOOK_SECRET'] = secret))
  after(() => {
    if (earlier === undefined) delete process.env['WEBHOOK_SECRET']
    else process.env['WEBHOOK_SECRET'] = earlier
  })

  interface Delivery {
    readonly id?: string
    readonly time?: string
    readonly body?: string
    /** What is signed, when that is something else. */
    readonly signed?: string
    readonly key?: Buffer
    readonly signature?: (right: string) => string
  }
  const now = (): number => Math.floor(Date.now() / 1000)

  function send(url: string, { id = 'msg_1', time = String(now()), body = paid, ...more }: Delivery = {}): Promise<Answer> {
    const key = more.key ?? Buffer.from(secret.slice(6), 'base64')
    const right = `v1,${createHmac('sha256', key).update(more.signed ?? `${id}.${time}.${body}`).digest('base64')}`
    const headers = { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': more.signature?.(right) ?? right }
    return request(`${url}/webhook`, { body, headers: { ...headers, 'content-type': 'application/json' } })
  }

  async function started(t: TestContext, change?: (text: string) => string) {
    const { url, folder } = await startRecipe(t, 'webhook', change)
    return { url, payments: () => rowsOf(join(folder, 'invoices.db'), 'SELECT invoice, cents FROM payments') }
  }

  it('applies each delivery once, however often and at once it is sent', async (t) => {
    const { url, payments } = await started(t)
    const answers = await Promise.all(Array.from({ length: 10 }, () => send(url)))
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([204]))
    assert.equal((await send(url, { time: String(now() - 200) })).status, 204) // Repeated and signed anew.
    assert.deepEqual(payments(), [{ invoice: '2026-7', cents: 1200 }])
    assert.equal((await send(url, { id: 'msg_2', signature: (right) => `v1,AAAA v2,x ${right}` })).status, 204)
    assert.equal((await send(url, { id: 'msg_3', body: '{"type":"customer.new","data":[]}' })).status, 204)
    assert.equal(payments().length, 2)
  })

  it('refuses what is changed, unsigned, old, early or malformed', async (t) => {
    const { url, payments } = await started(t)
    const time = String(now())
    const rows: [string, Delivery, number][] = [
      ['other body', { signed: `msg_1.${time}.${paid}`, time, body: paid.replace('1200', '9900') }, 401],
      ['same JSON, other bytes', { signed: `msg_1.${time}.${paid}`, time, body: paid.replace(':', ': ') }, 401],
      ['other id', { signed: `msg_0.${time}.${paid}`, time }, 401],
      ['other time', { signed: `msg_1.${now() - 900}.${paid}`, time }, 401],
      ['other key', { key: Buffer.alloc(24) }, 401],
      ['no key', { key: Buffer.alloc(0) }, 401],
      ['no signature', { signature: () => '' }, 401],
      ['part of it', { signature: (right) => right.slice(0, 20) }, 401],
      ['no id', { id: '' }, 401],
      ['old', { time: String(now() - 400) }, 401],
      ['early', { time: String(now() + 400) }, 401],
      ...['', 'NaN', 'Infinity', 'x'].map((wrong): [string, Delivery, number] => [`time ${wrong}`, { time: wrong }, 401]),
      ['no JSON', { body: '{' }, 400],
      ['wrong data', { body: '{"type":"invoice.paid","data":{"invoice":"7","cents":-1}}' }, 422],
      ['too large', { body: `"${'x'.repeat(70_000)}"` }, 413],
    ]
    for (const [name, delivery, status] of rows) assert.equal((await send(url, delivery)).status, status, name)
    assert.equal((await request(`${url}/webhook`, { body: paid })).status, 401)
    assert.deepEqual(payments(), [])
  })

  it('keeps neither the id nor the change when one fails, so that the repetition counts', async (t) => {
    const { url, payments } = await started(t, (text) => text.replace('if (isNew)', "if (isNew && globalThis.fails) throw new Error('full')\n    $&"))
    Object.assign(globalThis, { fails: true })
    assert.equal((await send(url)).status, 500)
    Object.assign(globalThis, { fails: false })
    assert.equal((await send(url)).status, 204)
    assert.equal(payments().length, 1)
  })

  it('does not start without its secret', async (t) => {
    for (const wrong of ['', 'whsec_', 'whsec_c2hvcnQ=']) {
      process.env['WEBHOOK_SECRET'] = wrong
      await assert.rejects(startRecipe(t, 'webhook'), /WEBHOOK_SECRET must be whsec_ and 24 or more bytes/)
    }
    process.env['WEBHOOK_SECRET'] = secret
  })
})

describeRecipe('tokens', () => {
  interface Pair {
    readonly access_token: string
    readonly refresh_token: string
  }
  const key = 'k'.repeat(43)
  const post = (url: string, path: string, value: object): Promise<Answer> =>
    request(`${url}/api/${path}`, { body: JSON.stringify(value), headers: { 'content-type': 'application/json' } })
  const me = (url: string, token: string): Promise<Answer> => request(`${url}/api/me`, { headers: { authorization: `Bearer ${token}` } })
  const refresh = (url: string, { refresh_token }: Pair): Promise<Answer> => post(url, 'refresh', { refresh_token })

  async function started(t: TestContext, change?: (text: string) => string) {
    const folder = recipeFolder('tokens', change)
    writeFiles(folder, { 'jwt.key': `${key}\n` })
    const { url } = await startRecipeIn(t, folder)
    const enter = async (): Promise<Pair> => (await post(url, 'enter', { name: 'ann', password: 'correct-horse' })).json() as Pair
    return { url, folder, enter }
  }

  it('prints what the page shows', async (t) => {
    const { url, folder } = await started(t)
    await runCurlLines(recipePage('tokens'), { 8080: url }, folder)
  })

  it('gives tokens for the API, and new ones for a refresh token, once', async (t) => {
    const { url, enter } = await started(t)
    const first = await enter()
    assert.deepEqual((await me(url, first.access_token)).json(), { user: 'ann' })
    const second = (await refresh(url, first)).json() as Pair
    assert.deepEqual((await me(url, second.access_token)).json(), { user: 'ann' })
    assert.notEqual(second.refresh_token, first.refresh_token)
    const third = (await refresh(url, second)).json() as Pair
    assert.deepEqual([(await refresh(url, first)).status, (await refresh(url, third)).status], [401, 401], 'a reuse ends the sign-in')
    assert.equal((await refresh(url, (await refresh(url, await enter())).json() as Pair)).status, 200)
  })

  it('lets one of two refreshes at once win, and ends the sign-in', async (t) => {
    const { url, enter } = await started(t)
    const other = await enter()
    const first = await enter()
    const answers = await Promise.all(Array.from({ length: 5 }, () => refresh(url, first)))
    const won = answers.filter(({ status }) => status === 200)
    assert.equal(won.length, 1)
    assert.equal((await refresh(url, won[0]?.json() as Pair)).status, 401)
    assert.equal((await refresh(url, other)).status, 200, 'another phone stays signed in')
  })

  it('ends a sign-in at the sign-out, and after 30 days without use', async (t) => {
    const { url, enter, folder } = await started(t)
    const left = await enter()
    assert.equal((await post(url, 'leave', { refresh_token: left.refresh_token })).status, 204)
    assert.equal((await refresh(url, left)).status, 401)
    const old = await enter()
    const file = join(folder, 'tokens.db')
    const [row] = rowsOf(file, 'SELECT expires - unixepoch() AS s, * FROM sign_ins')
    assert.ok(Math.abs(Number(row?.['s']) - 30 * 86_400) < 10)
    assert.doesNotMatch(JSON.stringify(row), new RegExp(old.refresh_token.slice(37)))
    withDatabase(file, (database) => database.exec('UPDATE sign_ins SET expires = unixepoch()'))
    assert.equal((await refresh(url, old)).status, 401)
  })

  it('refuses forged, foreign, expired and malformed tokens', async (t) => {
    const { url, enter } = await started(t)
    const { access_token: token, refresh_token: refreshToken } = await enter()
    const [header = '', claims = ''] = token.split('.')
    const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const sign = (head: object, body: object, secret = key): string => {
      const signed = `${encode(head)}.${encode(body)}`
      return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
    }
    const own = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { exp: number }
    const left = own.exp - Date.now() / 1000
    assert.ok(left > 295 && left <= 300)
    const head = { alg: 'HS256', typ: 'JWT' }
    const forged = [
      `${header}.${encode({ ...own, sub: 'bob' })}.${token.split('.')[2]}`,
      sign(head, own, 'x'.repeat(43)),
      `${encode({ alg: 'none' })}.${claims}.`,
      sign(head, { ...own, exp: 1 }),
      sign(head, { ...own, aud: 'another' }),
      sign(head, { ...own, iss: 'another' }),
      refreshToken,
    ]
    assert.equal((await me(url, sign(head, own))).status, 200)
    for (const one of forged) assert.equal((await me(url, one)).status, 401, one)
    for (const wrong of ['', 'x', token, `${refreshToken}x`, refreshToken.slice(0, 36), "' OR 1=1 --", null, { a: 1 }]) {
      assert.equal((await post(url, 'refresh', { refresh_token: wrong })).status, 422)
    }
    const guess = `${refreshToken.slice(0, 37)}${'A'.repeat(43)}`
    assert.equal((await post(url, 'refresh', { refresh_token: guess })).status, 401)
    assert.equal((await post(url, 'refresh', { refresh_token: `${'0'.repeat(36)}.${'A'.repeat(43)}` })).status, 401)
  })

  it('limits the attempts to sign in', async (t) => {
    const { url, enter } = await started(t)
    const statuses: number[] = []
    for (let turn = 0; turn < 11; turn += 1) statuses.push((await post(url, 'enter', {})).status)
    assert.deepEqual([new Set(statuses.slice(0, 10)), statuses[10]], [new Set([422]), 429])
    assert.deepEqual((await enter() as unknown as { error: string }).error, 'too_many_requests')
  })
})

describeRecipe('audit-trail', () => {
  const entries = ({ text }: Answer): string[] => [...text.matchAll(/<p>[-\d]+ [:\d]+ UTC: (.*)<\/p>/g)].map(([, entry = '']) => entry)
  const query = 'SELECT user, article, old, new FROM trail ORDER BY id'

  it('shows who changed what, from and to', async (t) => {
    const { url, folder } = await startRecipe(t, 'audit-trail')
    const [ann, bob] = [await signedInto(url, 'ann'), await signedInto(url, 'bob')]
    for (const [who, cents] of [[ann, '130'], [bob, '125'], [bob, '125']] as const) {
      assert.equal((await who.submit('/', '/', { article: 'Milk', cents })).headers.location, '/')
    }
    assert.deepEqual(entries(await ann.get('/')), ['bob changed Milk from 130 to 125', 'ann changed Milk from 120 to 130'])
    const [entry] = rowsOf(join(folder, 'prices.db'), 'SELECT time FROM trail')
    assert.ok(Math.abs(Date.parse(`${String(entry?.['time'])}Z`) - Date.now()) < 10_000)
    assert.equal((await new Visitor(url).get('/')).headers.location, '/login?next=/')
  })

  it('has every one of changes at once, each from where the one before led to', async (t) => {
    const { url, folder } = await startRecipe(t, 'audit-trail')
    const ann = await signedInto(url, 'ann')
    const form = await ann.form('/', '/')
    await Promise.all(Array.from({ length: 20 }, (_, at) => ann.send(form, { article: 'Bread', cents: String(400 + at) })))
    const rows = rowsOf(join(folder, 'prices.db'), query)
    assert.equal(rows.length, 20)
    rows.reduce((last, row) => (assert.equal(row['old'], last), row['new']), 350 as unknown)
  })

  it('takes no name, no wrong price and no other article from the form', async (t) => {
    const { url, folder } = await startRecipe(t, 'audit-trail')
    const ann = await signedInto(url, 'ann')
    await ann.submit('/', '/', { article: 'Milk', cents: '130', editor: 'bob', user: 'bob', _auth_user: 'bob' })
    for (const fields of [{ article: 'Milk', cents: '-1' }, { article: 'Milk', cents: "1; DROP TABLE trail" }, { article: "Milk' OR 1=1 --", cents: '1' }]) {
      assert.equal((await ann.submit('/', '/', fields)).status, 303)
    }
    assert.deepEqual(rowsOf(join(folder, 'prices.db'), query), [{ user: 'ann', article: 'Milk', old: 120, new: 130 }])
    const form = { ...(await ann.form('/', '/')), hidden: {} }
    assert.equal((await ann.send(form, { article: 'Milk', cents: '1' })).headers.location, '/')
    assert.match((await ann.get('/')).text, /This form came without its security token/)
  })

  it('is never without its change, nor the change without it, and cannot be altered', async (t) => {
    const attacks = ["UPDATE trail SET user = 'bob'", 'DELETE FROM trail', "REPLACE INTO trail SELECT id, time, 'bob', article, old, new FROM trail", "INSERT OR REPLACE INTO trail (id) VALUES (1)"]
    const run = `export const attack = ({ query }) => { db.exec(query.get('sql')) }`
    const { url, folder, app } = await startRecipe(t, 'audit-trail', (text) => text
      .replace('export const change', `${run}\n$&`)
      .replace('"routes": [', '$& { "name": "attack", "url": "/attack", "action": "routes/prices.mjs@attack" },'))
    const ann = await signedInto(url, 'ann')
    await ann.submit('/', '/', { article: 'Milk', cents: '130' })
    for (const sql of attacks) assert.equal((await ann.get(`/attack?${new URLSearchParams({ sql })}`)).status, 500, sql)
    app.flushLogs()
    assert.ok(readFileSync(join(folder, '.logs/svc.log'), 'utf8').split('append only').length > attacks.length)
    assert.deepEqual(rowsOf(join(folder, 'prices.db'), query), [{ user: 'ann', article: 'Milk', old: 120, new: 130 }])
    const form = await ann.form('/', '/')
    const broken = 'ALTER TABLE trail RENAME COLUMN old TO gone; ALTER TABLE trail DROP COLUMN gone'
    withDatabase(join(folder, 'prices.db'), (database) => database.exec(broken)) // The trigger fails from now on.
    assert.equal((await ann.send(form, { article: 'Milk', cents: '140' })).status, 500)
    assert.deepEqual(rowsOf(join(folder, 'prices.db'), "SELECT cents FROM prices WHERE article = 'Milk'"), [{ cents: 130 }])
  })
})
