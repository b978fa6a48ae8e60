// docs/recipes: each application is taken from its page, put over one that `init` made, and asked.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { runCurlLines } from '../support/curl.ts'
import { root } from '../support/launch.ts'
import { links, shownFiles } from '../support/markdown.ts'
import { recipePage, startRecipe } from '../support/recipe.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'
import { Visitor } from '../support/visitor.ts'

const names = readdirSync(join(root, 'docs/recipes')).map((file) => file.replace(/\.md$/, '')).filter((name) => name !== 'README')

describe('docs/recipes', () => {
  it('has every recipe in its list, and in the index', () => {
    for (const [page, folder] of [[recipePage('README'), ''], [recipePage('../README'), 'recipes/']] as const) {
      const listed = new Set(links(page).flatMap((link) => new RegExp(`^${folder}([\\w-]+)\\.md`).exec(link)?.[1] ?? []))
      assert.deepEqual(names.filter((name) => !listed.has(name)), [], page.file)
    }
  })

  it('has applications of 60 lines at most, short enough to be read', () => {
    const isOther = /^routes\/(?:middleware\/pool|pg-notes)\.mjs$/ // Of the second application on the page of databases.
    const counts = names.map((name) => {
      const files = Object.entries(shownFiles(recipePage(name))).filter(([path]) => !isOther.test(path))
      const lines = files.flatMap(([, text]) => text.split('\n')).filter((line) => line !== '')
      assert.deepEqual(lines.filter((line) => line.length > 120), [], name)
      return { name, lines: lines.length }
    })
    assert.deepEqual(counts.filter(({ lines }) => lines > 60), [])
  })
})

describe('docs/recipes/sign-in.md', () => {
  it('lets people sign up, in and out, and nobody else see the page', async (t) => {
    const { url, folder } = await startRecipe(t, 'sign-in')
    const ann = new Visitor(url)
    assert.equal((await ann.get('/')).headers.location, '/login')
    const short = await ann.follow(await ann.submit('/sign-up', '/sign-up', { name: 'ann', password: 'short' }))
    assert.match(short.text, /value="ann"[^]*Must have at least 8 characters/)
    const wrongName = await ann.follow(await ann.submit('/sign-up', '/sign-up', { name: '<b>', password: 'correct horse' }))
    assert.match(wrongName.text, /value="&lt;b&gt;"[^]*Does not have the expected form/)
    assert.doesNotMatch((await ann.get('/sign-up')).text, /correct horse|&lt;b&gt;/)
    assert.equal((await ann.submit('/sign-up', '/sign-up', { name: 'ann', password: 'correct horse' })).headers.location, '/')
    const home = await ann.get('/')
    assert.match(home.text, /<p>Hello ann<\/p>/)
    assert.equal(home.headers['cache-control'], 'no-store')

    const stored = join(folder, 'users.json')
    const [first] = JSON.parse(readFileSync(stored, 'utf8')) as [string, string][]
    assert.equal(first?.[0], 'ann')
    assert.match(first?.[1] ?? '', /^\$scrypt\$ln=14,r=8,p=5\$/)
    assert.equal(statSync(stored).mode & 0o777, 0o600)
    const before = ann.cookies.get('SVCSID') ?? ''
    assert.equal((await ann.submit('/', '/logout')).headers.location, '/login')
    assert.equal((await request(`${url}/`, { headers: { cookie: `SVCSID=${before}` } })).status, 302)

    const taken = await ann.follow(await ann.submit('/sign-up', '/sign-up', { name: 'ann', password: 'another one' }))
    assert.match(taken.text, /Somebody else has this name\./)
    for (const name of ['ann', 'nobody']) {
      const wrong = await ann.submit('/login', '/login', { name, password: 'correct house' })
      assert.deepEqual([wrong.status, wrong.headers.location], [303, '/login'])
      assert.match((await ann.follow(wrong)).text, /Name or password is wrong\./)
    }
    const planted = ann.cookies.get('SVCSID')
    assert.equal((await ann.submit('/login', '/login', { name: 'ann', password: 'correct horse' })).headers.location, '/')
    assert.notEqual(ann.cookies.get('SVCSID'), planted)
    assert.equal((await ann.get('/')).status, 200)
  })

  it('refuses who guesses, without a session', async (t) => {
    const { url } = await startRecipe(t, 'sign-in')
    const body = 'name=ann&password=guessed-one'
    const statuses: number[] = []
    for (let turn = 0; turn < 11; turn += 1) statuses.push((await request(`${url}/login`, { body })).status)
    assert.deepEqual(new Set(statuses.slice(0, 10)), new Set([403])) // Without a token.
    const refused = await request(`${url}/login`, { body })
    assert.deepEqual([statuses[10], refused.status, refused.headers['set-cookie']], [429, 429, undefined])
    assert.equal((await request(`${url}/login`)).status, 200)
  })

  it('refuses forms without a token and from another site', async (t) => {
    const { url } = await startRecipe(t, 'sign-in')
    const ann = new Visitor(url)
    await ann.submit('/sign-up', '/sign-up', { name: 'ann', password: 'correct horse' })
    const form = await ann.form('/', '/logout')
    const cross = await ann.send(form, {}, undefined, { 'sec-fetch-site': 'cross-site' })
    const without = await ann.send({ ...form, hidden: {} })
    assert.deepEqual([cross.json(), without.json()], [
      { error: 'csrf_invalid', reason: 'cross_site' },
      { error: 'csrf_invalid', reason: 'missing' },
    ])
    assert.equal((await ann.get('/')).status, 200)
  })
})

describe('docs/recipes/form.md', () => {
  it('says what is wrong once, with what was typed, and takes what is right', async (t) => {
    const { url } = await startRecipe(t, 'form')
    const ann = new Visitor(url)
    const send = (fields: Record<string, string>) => ann.submit('/events/new', '/events', fields)
    const wrong = await send({ title: '<b>', day: '2026-02-31', seats: '0' })
    assert.deepEqual([wrong.status, wrong.headers.location], [303, '/events/new'])
    const shown = (await ann.follow(wrong)).text
    assert.match(shown, /value="&lt;b&gt;"[^]*value="2026-02-31"[^]*a date that exists[^]*value="0"[^]*1 or more/)
    assert.doesNotMatch((await ann.get('/events/new')).text, /value="2026|1 or more/)
    assert.equal((await ann.follow(await send({}))).text.match(/-error">\w/g)?.length, 3)
    assert.equal((await send({ title: 'Fair', day: '2026-02-28', seats: '40' })).headers.location, '/events')
    const event = { title: 'Fair', day: '2026-02-28', seats: 40 }
    assert.deepEqual((await ann.get('/events')).json(), { message: 'The event is there.', events: [event] })
    assert.equal((await send({ title: 'x'.repeat(20_000) })).status, 413)
  })
})

describe('docs/recipes/upload.md', () => {
  const png = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(200_000, 1)])

  async function upload(t: TestContext) {
    const { url, folder } = await startRecipe(t, 'upload')
    const ann = new Visitor(url)
    const send = async (bytes: Uint8Array, name = '../../svc.png', type = 'text/html') => {
      return ann.send(await ann.form('/pictures', '/pictures'), {}, new File([Buffer.from(bytes)], name, { type }))
    }
    const stored = () => (existsSync(join(folder, 'uploads')) ? readdirSync(join(folder, 'uploads')) : [])
    return { ann, send, stored, folder }
  }

  it('keeps small and large pictures under names of its own, and gives them back', async (t) => {
    const { ann, send, stored, folder } = await upload(t)
    for (const bytes of [png.subarray(0, 1000), png]) {
      const sent = await send(bytes)
      assert.match(sent.headers.location ?? '', /^\/pictures\/[0-9a-f-]{36}\.png$/)
      const picture = await ann.follow(sent)
      assert.deepEqual([picture.headers['content-type'], picture.headers['x-content-type-options']], ['image/png', 'nosniff'])
      assert.ok(picture.bytes.equals(bytes))
    }
    assert.equal(stored().length, 2)
    for (const name of stored()) assert.equal(statSync(join(folder, 'uploads', name)).mode & 0o777, 0o600)
    assert.deepEqual(readdirSync(join(folder, '.cached/temp')), [])
  })

  it('refuses what is no picture, what is too large, and paths', async (t) => {
    const { ann, send, stored } = await upload(t)
    assert.equal((await send(Buffer.from('<script>'), 'a.png', 'image/png')).status, 422)
    assert.equal((await send(Buffer.alloc(100_000), 'a.png', 'image/png')).status, 422)
    assert.equal((await send(Buffer.alloc(0), '')).status, 422)
    assert.equal((await send(Buffer.concat(Array.from({ length: 27 }, () => png)))).status, 413)
    assert.deepEqual(stored(), [])
    for (const name of ['..%2Fsvc.json', 'x.png', `${'0'.repeat(36)}.png`]) assert.equal((await ann.get(`/pictures/${name}`)).status, 404)
  })
})

describe('docs/recipes/json-api.md', () => {
  it('has curl lines that print what stands there', async (t) => {
    const { url, folder } = await startRecipe(t, 'json-api')
    await runCurlLines(recipePage('json-api'), { 8080: url }, folder)
  })

  it('lists, changes, and answers whatever JSON it is sent', async (t) => {
    const { url } = await startRecipe(t, 'json-api')
    const headers = { 'content-type': 'application/json' }
    const send = (path: string, method: string, body?: string) =>
      request(`${url}/api/tasks${path}`, { method, ...(body && { body, headers }) })
    for (const body of ['null', '7', '[]', '{}', '{"title":7}']) assert.equal((await send('', 'POST', body)).status, 422, body)
    assert.equal((await send('', 'POST', '{"title":" a ","owner":"x"}')).status, 201)
    assert.deepEqual((await send('/1', 'PUT', '{"title":"b","done":true}')).json(), { id: '1', title: 'b', done: true })
    assert.deepEqual((await send('?done=true', 'GET')).json(), [{ id: '1', title: 'b', done: true }])
    assert.deepEqual((await send('?done=false', 'GET')).json(), [])
    assert.equal((await send('/__proto__', 'GET')).status, 404)
    assert.equal((await send('', 'POST', `{"title":"${'x'.repeat(70_000)}"}`)).status, 413)
  })
})

describe('docs/recipes/live-list.md', () => {
  it('tells streams and polls of an entry, from the cursor of the page on', async (t) => {
    const { url, folder } = await startRecipe(t, 'live-list')
    const ann = new Visitor(url)
    const since = /data-since="(\d+)"/.exec((await ann.get('/')).text)?.[1]
    const leave = new AbortController()
    const stream = await fetch(`${url}/items/live?since=${since}`, { signal: leave.signal, headers: { accept: 'text/event-stream' } })
    const poll = request(`${url}/items/live?since=${since}`)
    assert.equal((await ann.submit('/', '/add', { text: ' ' })).status, 422)
    assert.equal((await ann.submit('/', '/add', { text: 'Milk' })).status, 303)
    const { events } = (await poll).json() as { events: { data: unknown }[] }
    assert.deepEqual(events.map(({ data }) => data), [{ text: 'Milk' }])
    let heard = ''
    for await (const chunk of stream.body as unknown as AsyncIterable<Uint8Array>) {
      heard += Buffer.from(chunk).toString()
      if (heard.includes('data: {"text":"Milk"}')) break
    }
    leave.abort()
    await runCurlLines(recipePage('live-list'), { 8080: url }, folder)
    assert.match((await ann.get('/')).text, /<li>Milk<\/li>/)
  })
})

describe('docs/recipes/job.md', () => {
  const often = (text: string): string => text.replace('everyMs = 60_000', 'everyMs = 20')

  it('runs again and again, and tells of it', async (t) => {
    const { url } = await startRecipe(t, 'job', often)
    const found = async () => ((await request(`${url}/job`)).json() as { events: { data: { found: number } }[] }).events[0]?.data.found
    await until(async () => ((await found()) ?? 0) >= 3)
  })

  it('goes on after a failure, says so, and ends with the server', async (t) => {
    const { folder, app } = await startRecipe(t, 'job', (text) => often(text).replace('count += 1', "count += 1\n  if (count % 2 === 1) throw new Error('odd')"))
    const failures = (): number => {
      app.flushLogs()
      return readFileSync(join(folder, '.logs/svc.log'), 'utf8').split('the job failed').length - 1
    }
    await until(() => failures() >= 3)
    await app.stop()
    const atEnd = failures()
    await new Promise((resolve) => setTimeout(resolve, 100)) // Five times the interval: a run more would show.
    assert.equal(failures(), atEnd)
  })

  it('lets the run that goes on end before the server does', async (t) => {
    const note = (name: string): string => `await writeFile(new URL('../../${name}', import.meta.url), '')\n`
    const slowly = `const { writeFile } = await import('node:fs/promises')
      ${note('begun')} await new Promise((resolve) => setTimeout(resolve, 200))
      ${note('done')}`
    const { folder, app } = await startRecipe(t, 'job', (text) => often(text).replace('count += 1', slowly))
    await until(() => existsSync(join(folder, 'begun')))
    await app.stop()
    assert.ok(existsSync(join(folder, 'done')))
  })
})

describe('docs/recipes/from-express.md', () => {
  it('answers as the application in Express does', async (t) => {
    const { url, app, folder } = await startRecipe(t, 'from-express')
    assert.deepEqual((await request(`${url}/books/1`)).json(), { id: '1', title: 'Emma' })
    const missing = await request(`${url}/books/9`)
    assert.deepEqual([missing.status, (missing.json() as { error: string }).error], [404, 'no_book'])
    const send = (body: string) => request(`${url}/books`, { body, headers: { 'content-type': 'application/json' } })
    const wrong = await send('{}')
    assert.deepEqual([wrong.status, (wrong.json() as { error: string }).error], [422, 'no_title'])
    const added = await send('{"title":"Persuasion"}')
    assert.deepEqual([added.status, added.headers.location, added.json()], [201, '/books/2', { id: '2', title: 'Persuasion' }])
    app.flushLogs()
    assert.match(readFileSync(join(folder, '.logs/svc.log'), 'utf8'), /\[INFO \] \[app\] POST \/books \d+ ms\n/)
  })
})

describe('docs/recipes/database.md', () => {
  const hasSqlite = process.getBuiltinModule('node:sqlite') !== undefined

  it(hasSqlite ? 'keeps notes in SQLite' : 'says on a Node without SQLite what is missing', async (t) => {
    if (!hasSqlite) {
      await assert.rejects(startRecipe(t, 'database'), /database\.mjs[^]*No such built-in module: node:sqlite/)
      return
    }
    const { url, folder, app } = await startRecipe(t, 'database')
    await runCurlLines(recipePage('database'), { 8080: url }, folder)
    assert.equal((await request(`${url}/notes`, { body: 'null' })).status, 422)
    const inFlight = request(`${url}/notes`, { body: '{"text":"Last"}' })
    await Promise.all([inFlight, app.stop()])
    assert.equal((await inFlight).status, 201)
    assert.equal(existsSync(join(folder, 'notes.db-wal')), false, 'the database was closed')
  })
})
