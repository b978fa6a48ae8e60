// docs/recipes: takes each application from its page, puts it over one made by `init`, and sends requests.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { runCurlLines } from '../support/curl.ts'
import { root } from '../support/launch.ts'
import { links, shownFiles } from '../support/markdown.ts'
import { recipePage, sameOrigin, signedInto, startRecipe } from '../support/recipe.ts'
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

  it('has applications of at most 60 lines', () => {
    const isOther = /^routes\/(?:middleware\/pool|pg-notes)\.mjs$/ // The second application of the database page.
    const own = names.filter((name) => !name.startsWith('from-')) // See recipes-ported.test.ts.
    const counts = own.map((name) => {
      const files = Object.entries(shownFiles(recipePage(name))).filter(([path]) => !isOther.test(path))
      const lines = files.flatMap(([, text]) => text.split('\n')).filter((line) => line !== '')
      assert.deepEqual(lines.filter((line) => line.length > 120), [], name)
      return { name, lines: lines.length }
    })
    assert.deepEqual(counts.filter(({ lines }) => lines > 60), [])
  })
})

describe('docs/recipes/sign-in.md', () => {
  it('lets users sign up, in and out, and hides the page from others', async (t) => {
    const { url, folder } = await startRecipe(t, 'sign-in')
    const ann = new Visitor(url)
    assert.equal((await ann.get('/')).headers.location, '/login?next=/')
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
    assert.match(taken.text, /This name is taken\./)
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

  it('refuses guessing, without creating a session', async (t) => {
    const { url } = await startRecipe(t, 'sign-in')
    const body = 'name=ann&password=guessed-one'
    const statuses: number[] = []
    for (let turn = 0; turn < 11; turn += 1) statuses.push((await request(`${url}/login`, { body })).status)
    assert.deepEqual(new Set(statuses.slice(0, 10)), new Set([302])) // Without a token.
    const refused = await request(`${url}/login`, { body })
    assert.deepEqual([statuses[10], refused.status, refused.headers['set-cookie']], [429, 429, undefined])
    assert.equal((await request(`${url}/login`)).status, 200)
  })

  it('refuses forms without a token and from another site, and leads to a page that says so', async (t) => {
    const { url } = await startRecipe(t, 'sign-in')
    const ann = new Visitor(url)
    await ann.submit('/sign-up', '/sign-up', { name: 'ann', password: 'correct horse' })
    const form = await ann.form('/', '/logout')
    const crossSite = () => ann.send(form, {}, undefined, { 'sec-fetch-site': 'cross-site' })
    const withoutToken = () => ann.send({ ...form, hidden: {} })
    for (const send of [crossSite, withoutToken]) {
      const refused = await send()
      assert.deepEqual([refused.status, refused.headers.location], [302, '/'])
      assert.match((await ann.follow(refused)).text, /out of date\. You are signed in\.<[^]*Hello ann/)
    }
    assert.doesNotMatch((await ann.get('/')).text, /out of date/)
  })

  it('leads to pages after a second click, in a second tab and after Back', async (t) => {
    const { url } = await startRecipe(t, 'sign-in')
    const ann = new Visitor(url)
    const account = { name: 'ann', password: 'correct horse' }
    const signUp = await ann.form('/sign-up', '/sign-up')
    const clicks = await Promise.all([ann.send(signUp, account), ann.send(signUp, account)])
    assert.deepEqual(clicks.map(({ headers }) => headers.location), ['/', '/'])
    assert.match((await ann.follow(await ann.send(signUp, account))).text, /You are signed in\.<[^]*Hello ann/)

    const signOut = await ann.form('/', '/logout')
    await ann.send(signOut)
    const again = await ann.follow(await ann.send(signOut))
    assert.equal(again.headers.location, '/login?next=/')
    assert.match((await ann.follow(again)).text, /The page was out of date\. Please sign in\./)

    const signIn = await ann.form('/login', '/login')
    const before = new Map(ann.cookies)
    assert.equal((await ann.send(signIn, account)).headers.location, '/')
    assert.match((await ann.follow(await ann.send(signIn, account))).text, /You are signed in\.<[^]*Hello ann/)
    for (const [name, value] of before) ann.cookies.set(name, value) // As if the first response had not arrived.
    const lost = await ann.follow(await ann.send(signIn, account))
    assert.match((await ann.follow(lost)).text, /Please sign in\./)
  })

  it('returns to the wanted page, and to no other site', async (t) => {
    const { url } = await startRecipe(t, 'sign-in')
    const ann = new Visitor(url)
    const account = { name: 'ann', password: 'correct horse' }
    await ann.submit('/sign-up', '/sign-up', account)
    const pageOf = async (wanted: string) => (await ann.get(wanted)).headers.location ?? ''
    await ann.submit('/', '/logout')
    const page = await pageOf('/?tab=2&q=a%20b')
    const wrong = await ann.submit(page, page, { ...account, password: 'correct house' })
    assert.equal(wrong.headers.location, page)
    assert.equal((await ann.submit(page, page, account)).headers.location, '/?tab=2&q=a%20b')
    for (const elsewhere of ['//evil.example', '/\\evil.example', 'https://evil.example', '/logout', '/svc-stop']) {
      await ann.submit('/', '/logout')
      const planted = `/login?next=${encodeURIComponent(elsewhere)}`
      assert.equal((await ann.submit(planted, planted, account)).headers.location, '/', elsewhere)
    }
  })

  it('reloads the private page from the back/forward cache, by a script that the policy allows', async (t) => {
    const { url } = await startRecipe(t, 'sign-in')
    const ann = new Visitor(url)
    await ann.submit('/sign-up', '/sign-up', { name: 'ann', password: 'correct horse' })
    const { text, headers } = await ann.get('/')
    const [, nonce = ''] = /<script nonce="([^"]+)">\s+addEventListener\('pageshow'/.exec(text) ?? []
    assert.ok(nonce !== '' && String(headers['content-security-policy']).includes(`script-src 'self' 'nonce-${nonce}'`))
    assert.equal(headers['cache-control'], 'no-store')
  })
})

describe('docs/recipes/form.md', () => {
  it('shows the errors and the input once, and accepts valid input', async (t) => {
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
    assert.deepEqual((await ann.get('/events')).json(), { message: 'The event was added.', events: [event] })
    assert.equal((await send({ title: 'x'.repeat(20_000) })).status, 413)
    const old = await ann.form('/events/new', '/events')
    ann.cookies.clear()
    assert.match((await ann.follow(await ann.send(old))).text, /<p role="status">This form does not belong to your session\./)
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

  it('stores small and large pictures under generated names, and serves them', async (t) => {
    const { ann, send, stored, folder } = await upload(t)
    for (const bytes of [png.subarray(0, 1000), png]) {
      const sent = await send(bytes)
      assert.match(sent.headers.location ?? '', /^\/pictures\/[0-9a-f-]{36}\.png$/)
      const picture = await ann.follow(sent)
      assert.deepEqual([picture.headers['content-type'], picture.headers['x-content-type-options']], ['image/png', 'nosniff'])
      assert.ok(picture.bytes.equals(bytes))
    }
    assert.equal(stored().length, 2)
    for (const name of stored()) assert.equal(statSync(join(folder, 'uploads', name)).mode & 0o777, 0o640)
    assert.deepEqual(readdirSync(join(folder, '.cached/temp')), [])
  })

  it('refuses files that are no pictures, large files, and paths', async (t) => {
    const { ann, send, stored } = await upload(t)
    assert.equal((await send(Buffer.from('<script>'), 'a.png', 'image/png')).status, 422)
    assert.equal((await send(Buffer.alloc(100_000), 'a.png', 'image/png')).status, 422)
    assert.equal((await send(Buffer.alloc(0), '')).status, 422)
    assert.equal((await send(Buffer.concat(Array.from({ length: 27 }, () => png)))).status, 413)
    assert.deepEqual(stored(), [])
    for (const name of ['..%2Fsvc.json', 'x.png', `${'0'.repeat(36)}.png`]) assert.equal((await ann.get(`/pictures/${name}`)).status, 404)
  })
})

describe('docs/recipes/files.md', () => {
  async function members(t: TestContext) {
    const { url, folder } = await startRecipe(t, 'files')
    const [ann, bob] = [await signedInto(url, 'ann'), await signedInto(url, 'bob')]
    const send = async (visitor: Visitor, name: string, text: string) =>
      visitor.send(await visitor.form('/files', '/files'), {}, new File([text], name), sameOrigin(url, '/files'), 'file')
    return { url, folder, ann, bob, send }
  }

  it('shows and sends the files of a member, under their names', async (t) => {
    const { ann, send } = await members(t)
    for (const [name, text] of [['plan.txt', 'Old'], ['plan.txt', 'Plan'], ['Größe "1"; 😀.html', '<script>'], ['.htaccess', 'x'], ['x'.repeat(150), 'x']] as const) {
      assert.equal((await send(ann, name, text)).headers.location, '/files', name)
    }
    const shown = (await ann.get('/files')).text
    assert.deepEqual([...shown.matchAll(/<a href="\/files\/[^"]+">/g)].length, 4)
    assert.match(shown, />Größe &quot;1&quot;; 😀\.html</)
    const plan = await ann.get('/files/plan.txt')
    assert.deepEqual([plan.text, plan.headers['content-disposition'], plan.headers['cache-control']], ['Plan', `attachment; filename="plan.txt"; filename*=UTF-8''plan.txt`, 'no-store'])
    const page = await ann.get(`/files/${encodeURIComponent('Größe "1"; 😀.html')}`)
    assert.deepEqual([page.text, page.headers['content-type'], page.headers['x-content-type-options']], ['<script>', 'application/octet-stream', 'nosniff'])
    assert.match(String(page.headers['content-disposition']), /^attachment; .*filename\*=UTF-8''Gr%C3%B6%C3%9Fe/)
    assert.deepEqual([(await ann.get('/files/plan.txt', { range: 'bytes=0-1' })).text], ['Pl'])
  })

  it('shows nothing to others, and leads them to the file after the sign-in', async (t) => {
    const { url, ann, bob, send } = await members(t)
    await send(ann, 'plan.txt', 'Plan')
    assert.equal((await bob.get('/files/plan.txt')).status, 404)
    assert.doesNotMatch((await bob.get('/files')).text, /plan/)
    const annFolder = Buffer.from('ann').toString('base64url')
    const stored = Buffer.from('plan.txt').toString('base64url')
    for (const path of [`..%2F${annFolder}%2F${stored}`, `${annFolder}%2F${stored}`, '..%2F..%2Fsvc.json', '%2e%2e', stored, '%00']) {
      assert.equal((await bob.get(`/files/${path}`)).status, 404, path)
    }
    const carl = new Visitor(url)
    const page = (await carl.get('/files/plan.txt')).headers.location ?? ''
    assert.equal(page, '/login?next=/files/plan.txt')
    const wrong = await carl.submit(page, page, { name: 'ann', password: 'wrong' })
    assert.match((await carl.follow(wrong)).text, /Name or password is wrong\./)
    assert.equal((await carl.follow(await carl.submit(page, page, { name: 'ann', password: 'correct-horse' }))).text, 'Plan')
  })

  it('keeps files in the folder of their member, and refuses large ones and others without token', async (t) => {
    const { url, folder, ann, send } = await members(t)
    await send(ann, '../../svc.json', 'stolen')
    await send(ann, '..\\..\\routes\\app.json', 'stolen')
    assert.deepEqual(readdirSync(join(folder, 'files')), [Buffer.from('ann').toString('base64url')])
    assert.equal(readdirSync(join(folder, 'files'), { recursive: true }).length, 3)
    assert.doesNotMatch(readFileSync(join(folder, 'svc.json'), 'utf8'), /stolen/)
    for (const [name, text, error] of [['x'.repeat(151), 'x', 'too long'], ['big', 'x'.repeat(11_000_000), 'at most 10240 KiB'], ['', '', 'Required']] as const) {
      assert.match((await ann.follow(await send(ann, name, text))).text, new RegExp(error))
    }
    assert.equal((await send(ann, 'big', 'x'.repeat(22_000_000))).status, 413)
    const form = { ...(await ann.form('/files', '/files')), hidden: {} }
    assert.equal((await ann.send(form, {}, new File(['x'], 'x'), sameOrigin(url, '/files'), 'file')).headers.location, '/files')
    assert.equal(readdirSync(join(folder, 'files'), { recursive: true }).length, 3)
  })
})

describe('docs/recipes/roles.md', () => {
  it('admits only users with a role of the route', async (t) => {
    const { url } = await startRecipe(t, 'roles')
    const [ann, bob] = [await signedInto(url, 'ann'), await signedInto(url, 'bob')]
    assert.deepEqual((await ann.get('/users')).json(), [{ name: 'ann', roles: ['admin', 'editor'] }, { name: 'bob', roles: ['reader'] }])
    assert.equal((await ann.submit('/', '/', { text: '<b>' })).status, 303)
    const form = await ann.form('/', '/')
    const shown = (await bob.get('/')).text
    assert.match(shown, /<p>&lt;b&gt;<\/p>/)
    assert.doesNotMatch(shown, /<form/)

    const refused = await bob.send(form, { text: 'x' })
    assert.deepEqual([refused.status, refused.headers['content-type']], [403, 'text/html; charset=utf-8'])
    for (const path of ['/users', '/users/', '/%75sers']) assert.equal((await bob.get(path)).status, 403, path)
    assert.deepEqual((await bob.get('/users', { accept: 'application/json' })).json(), { error: 'wrong_role', detail: 'Your account may not do this.' })
    assert.doesNotMatch((await ann.get('/')).text, /<p>x</)
    assert.equal((await new Visitor(url).get('/users')).headers.location, '/login?next=/users')
  })

  it('admits nobody to a route without a scope, or with one that only contains the role', async (t) => {
    for (const scope of ['', '"scope": "editors"', '"scope": "adm"', '"scope": " "']) {
      const { url } = await startRecipe(t, 'roles', (text) => text.replace(', "scope": "admin"', scope && `, ${scope}`))
      assert.equal((await (await signedInto(url, 'ann')).get('/users')).status, 403, scope)
    }
  })

  it('looks the roles up with each request', async (t) => {
    const drop = "export const drop = () => { users.get('ann').roles = [] }"
    const route = '{ "name": "drop", "url": "/drop", "action": "routes/users.mjs@drop", "defaults": false },'
    const { url } = await startRecipe(t, 'roles', (text) => text.replace('export const rolesOf', `${drop}\n$&`).replace('{ "name": "users"', `${route}$&`))
    const ann = await signedInto(url, 'ann')
    assert.equal((await ann.get('/users')).status, 200)
    await ann.get('/drop')
    assert.equal((await ann.get('/users')).status, 403)
  })
})

describe('docs/recipes/csv.md', () => {
  const bom = '\uFEFF'

  async function contacts(t: TestContext) {
    const { url } = await startRecipe(t, 'csv')
    const ann = new Visitor(url)
    const send = async (content: string | Uint8Array) =>
      ann.send(await ann.form('/contacts', '/contacts'), {}, new File([typeof content === 'string' ? content : Buffer.from(content)], 'x.csv'), sameOrigin(url, '/contacts'), 'file')
    const exported = async (): Promise<string> => (await ann.get('/contacts.csv')).text
    const errors = async (content: string | Uint8Array): Promise<string[]> => {
      const { text } = await ann.follow(await send(content))
      return [...text.matchAll(/<p>(?!\d+ contacts)(.+)<\/p>/g)].map(([, error = '']) => error)
    }
    return { url, ann, send, exported, errors }
  }

  it('exports what a spreadsheet reads, under a name, and imports it again', async (t) => {
    const { ann, send, exported } = await contacts(t)
    const { headers, text } = await ann.get('/contacts.csv')
    assert.equal(text, `${bom}"name","email"\r\n"Ann Smith","ann@example.org"\r\n`)
    assert.equal(headers['content-type'], 'text/csv; charset=utf-8')
    assert.match(String(headers['content-disposition']), /^attachment; filename="contacts-\d{4}-\d\d-\d\d\.csv"$/)
    assert.equal((await send('name,email\nGröße "x",a@b.example')).status, 303)
    assert.doesNotMatch(await exported(), /Größe/, 'a quote inside a plain value')
    for (const content of ['name,email\n"Größe ""x"", y",a@b.example\n', 'name;email\r\n"Bob; B";b@b.example\r\n\r\n']) {
      assert.equal((await send(content)).headers.location, '/contacts')
    }
    const all = await exported()
    assert.ok(all.endsWith('"Größe ""x"", y","a@b.example"\r\n"Bob; B","b@b.example"\r\n'))
    await send(all)
    assert.equal((await exported()).slice(all.length), all.slice(all.indexOf('\n') + 1))
  })

  it('exports no formulas, and imports them as they were', async (t) => {
    const { send, exported } = await contacts(t)
    const names = ['=1+1', '+1', '-1', '@SUM(1)', "'=1", "'", 'a=1']
    await send(`name,email\n${names.map((name) => `"${name.startsWith("'=") ? `'${name}` : name}",a@b.example`).join('\n')}`)
    const cells = (await exported()).split('\r\n').slice(2, -1).map((line) => /^"(.*)","a@b/.exec(line)?.[1])
    assert.deepEqual(cells, ["'=1+1", "'+1", "'-1", "'@SUM(1)", "''=1", "''", 'a=1'])
    const before = await exported()
    await send(before)
    const rows = before.split('\r\n').slice(1, -1)
    assert.deepEqual((await exported()).split('\r\n').slice(1 + rows.length, -1), rows)
  })

  it('imports all or nothing, and names the lines that are wrong', async (t) => {
    const { errors, exported, send, ann, url } = await contacts(t)
    const before = await exported()
    assert.deepEqual(await errors('name,email\nBob,bob@b.example\n\n,x\n"Carl,c@c.example\n<b>,a@b.example,\n'), [
      'Line 4: name: Required; email: Must be an email address',
      'Line 5: name: Required; email: Required',
    ])
    for (const wrong of ['', 'email,name\n', 'x', '\0', Buffer.from('name,email\nGr\xf6\xdfe,a@b.example', 'latin1'), Buffer.from([0xff, 0xfe, 0x6e, 0])]) {
      assert.match((await errors(wrong)).join(), /Save it as CSV UTF-8: name,email|Required/)
    }
    assert.equal((await errors(`name,email\n${'x\n'.repeat(500)}`)).length, 20)
    assert.deepEqual(await errors(`name,email\n${'x'.repeat(2_200_000)}`), ['Must be a file of at most 2048 KiB'])
    assert.equal((await send('x'.repeat(4_300_000))).status, 413)
    const form = { ...(await ann.form('/contacts', '/contacts')), hidden: {} }
    assert.equal((await ann.send(form, {}, new File(['name,email\nx,x@x.example'], 'x'), sameOrigin(url, '/contacts'), 'file')).headers.location, '/contacts')
    assert.equal(await exported(), before)
  })

  it('reads a large file, and hostile quotes, in time', async (t) => {
    const { send, errors, exported } = await contacts(t)
    assert.equal((await send(`name,email\n${'Bob,bob@b.example\n'.repeat(20_000)}`)).status, 303)
    assert.equal((await exported()).split('\r\n').length, 20_003)
    for (const hostile of ['"'.repeat(300_000), '""'.repeat(150_001), ','.repeat(300_000), `"${'a"'.repeat(150_000)}`]) {
      assert.match((await errors(`name,email\n${hostile}`))[0] ?? '', /^Line 2: /)
    }
  })
})

describe('docs/recipes/json-api.md', () => {
  it('has curl lines that print what the page shows', async (t) => {
    const { url, folder } = await startRecipe(t, 'json-api')
    await runCurlLines(recipePage('json-api'), { 8080: url }, folder)
  })

  it('lists, changes, and replies to any JSON', async (t) => {
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
    assert.equal((await send('?done=maybe', 'GET')).status, 422)
  })

  it('describes its operations, and not the description', async (t) => {
    const { url } = await startRecipe(t, 'json-api')
    const { paths } = (await request(`${url}/api/openapi.json`)).json() as { paths: Record<string, object> }
    const operations = Object.entries(paths).map(([path, item]) => [path, ...Object.keys(item)])
    assert.deepEqual(operations, [['/api/tasks', 'get', 'post'], ['/api/tasks/{id}', 'get', 'put', 'delete']])
  })
})

describe('docs/recipes/live-list.md', () => {
  it('sends an entry to streams and polls, from the cursor of the page on', async (t) => {
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

  it('runs repeatedly, and publishes each run', async (t) => {
    const { url } = await startRecipe(t, 'job', often)
    const found = async () => ((await request(`${url}/job`)).json() as { events: { data: { found: number } }[] }).events[0]?.data.found
    await until(async () => ((await found()) ?? 0) >= 3)
  })

  it('continues after a failure, logs it, and ends with the server', async (t) => {
    const { folder, app } = await startRecipe(t, 'job', (text) => often(text).replace('count += 1', "count += 1\n  if (count % 2 === 1) throw new Error('odd')"))
    const failures = (): number => {
      app.flushLogs()
      return readFileSync(join(folder, '.logs/svc.log'), 'utf8').split('the job failed').length - 1
    }
    await until(() => failures() >= 3)
    await app.stop()
    const atEnd = failures()
    await new Promise((resolve) => setTimeout(resolve, 100)) // Five times the interval: another run would show.
    assert.equal(failures(), atEnd)
  })

  it('lets the current run finish before the server ends', async (t) => {
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
