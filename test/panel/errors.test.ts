import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Answer } from '../support/request.ts'
import { exchange, parseAnswer } from '../support/raw.ts'
import { Seeded } from '../support/seeded.ts'
import { cookieOf, greeting, md5, nowSeconds, password, secret, startPanel, user } from './panel-server.ts'
import { form } from '../access/support.ts'

const html = 'text/html; charset=utf-8'

function isJson(answer: Answer, status: number, body: unknown): void {
  assert.deepEqual(
    [answer.status, answer.headers['content-type']],
    [status, 'application/json; charset=utf-8'],
    answer.text,
  )
  assert.deepEqual(answer.json(), body)
}

test('302: not authenticated, after login, logout and setup; without a body', async (t) => {
  const server = await startPanel(t)
  const rows: [Answer, string][] = [
    [await server.ask('/svc-monitor'), '/svc-login?next=/svc-monitor'],
    [await server.ask('/svc-login', form({ user, password })), '/svc-status'],
    [await server.ask('/svc-logout'), '/svc-login'],
    [await server.ask('/svc-setup'), '/svc-login'],
  ]
  for (const [answer, location] of rows) {
    const { status, headers, text } = answer
    assert.deepEqual([status, headers.location, text, headers['content-length']], [302, location, '', '0'])
  }
})

test('400: add with invalid JSON or a reserved name; delete without a name', async (t) => {
  const server = await startPanel(t)
  const reserved = 'name must not begin with "svc.", which is for system routes: it is "svc.mine"'
  const record = { name: 'svc.mine', url: '/mine', action: 'a.mjs' }
  isJson(await server.askSignedIn('/svc-routes/add', { body: '{"name":' }), 400, {
    ok: false,
    error: 'Cannot read the body as JSON: line 1, column 9: expected a value, but found the end of the text',
  })
  isJson(await server.askSignedIn('/svc-routes/add', { body: '[]' }), 400, {
    ok: false,
    error: 'The body must be a JSON object',
  })
  isJson(await server.post('/svc-routes/add', record), 400, { ok: false, error: reserved })
  isJson(await server.post('/svc-routes/delete', {}), 400, {
    ok: false,
    error: 'name is missing: it must be the name of a route',
  })
})

test('400: trace of an unknown module, with GET too, and with an invalid body; the switches stay', async (t) => {
  const server = await startPanel(t)
  const before = (await server.askSignedIn('/svc-trace')).json()
  const { error: unknown } = (await server.askSignedIn('/svc-trace?mod=nothing')).json() as { error: string }
  assert.match(unknown, /must be all or one of app, server, .*: it is nothing$/)
  for (const module of ['nothing', 'App', ' app', '__proto__', 'constructor']) {
    const error = unknown.replace(/nothing$/, module)
    isJson(await server.askSignedIn(`/svc-trace?mod=${encodeURIComponent(module)}&on=0`), 400, { ok: false, error })
    isJson(await server.post('/svc-trace', { module, enabled: true }), 400, { ok: false, error })
  }
  const queries = [
    'on=0',
    'mod=',
    'mod=app&on=2',
    'mod=app&on=',
    'mod=app&on=true',
    'mod=app&ttl=',
    'mod=app&ttl=0',
    'mod=app&ttl=-1',
  ]
  for (const query of [...queries, 'mod=app&ttl=86401', 'mod=app&ttl=1.5', 'mod=app&ttl=1e3', 'x=y']) {
    const answer = await server.askSignedIn(`/svc-trace?${query}`)
    const { error } = answer.json() as { error: string }
    isJson(answer, 400, { ok: false, error })
    assert.match(error, /^(mod is missing|on must be 0 or 1|ttl must be 1 to 86400)/, query)
  }
  const bodies = [
    {},
    { module: 'app' },
    { enabled: true },
    { module: 5, enabled: true },
    { module: 'app', enabled: 1 },
    { module: 'app', enabled: 'on' },
  ]
  for (const body of [
    ...bodies,
    ...[0, -1, 1.5, 86_401, '60', null, true].map((ttl) => ({ module: 'app', enabled: false, ttl })),
  ]) {
    const answer = await server.post('/svc-trace', body)
    const { error } = answer.json() as { error: string }
    isJson(answer, 400, { ok: false, error })
    assert.match(
      error,
      /^(module is missing|enabled must be true or false|ttl must be 1 to 86400)/,
      JSON.stringify(body),
    )
  }
  assert.deepEqual((await server.askSignedIn('/svc-trace')).json(), before)
})

test('401: a failed login, with the form and the message', async (t) => {
  const server = await startPanel(t)
  const wrong = [
    { user, password: 'wrong' },
    { user: 'bob', password },
    { user },
    { password },
    {},
    { user: '', password: '' },
  ]
  for (const fields of [...wrong, { user, password: md5(password) }, { user: user.toUpperCase(), password }]) {
    const answer = await server.ask('/svc-login', form(fields as Record<string, string>))
    assert.deepEqual([answer.status, answer.headers['content-type']], [401, html])
    assert.match(answer.text, /role="alert">Invalid credentials<\/p>\n<form /)
    assert.equal(answer.headers['set-cookie'], undefined)
  }
})

test('401: add without a cookie by a program that accepts only JSON', async (t) => {
  const server = await startPanel(t)
  const body = JSON.stringify({ name: 'a', url: '/a', action: 'a.mjs' })
  const refused = { ok: false, error: 'Not logged in: send the cookie svc_admin of a login' }
  isJson(await server.ask('/svc-routes/add', { body, headers: { accept: 'application/json' } }), 401, refused)
  for (const accept of ['*/*', 'application/json, */*', 'text/html', '']) {
    assert.equal((await server.ask('/svc-routes/add', { body, headers: { accept } })).status, 302, accept)
  }
  const answer = await server.ask('/svc-routes/delete', { body, headers: { accept: 'application/json' } })
  assert.equal(answer.status, 302)
})

test('409: add of a taken name, and of an invalid route', async (t) => {
  const server = await startPanel(t, {}, greeting)
  const record = { name: 'hello', url: '/a', action: 'hello.mjs' }
  isJson(await server.post('/svc-routes/add', record), 409, {
    ok: false,
    error: 'Cannot add route "hello": the name is taken: delete that route first or choose another name',
    name: 'hello',
  })
  isJson(await server.post('/svc-routes/add', { name: 'b', action: 'hello.mjs' }), 409, {
    ok: false,
    error: 'url is missing',
    name: 'b',
  })
  isJson(await server.post('/svc-routes/add', { url: '/c', action: 'hello.mjs' }), 409, {
    ok: false,
    error: 'name is missing',
    name: '',
  })
})

test('413 and 415: a body that is too large or compressed', async (t) => {
  const server = await startPanel(t, { 'server.body_limit_kb': 1 })
  const large = await server.post('/svc-routes/add', { name: 'x'.repeat(2000) })
  assert.equal(large.status, 413)
  assert.equal((await server.post('/svc-routes/add', {}, { 'content-encoding': 'gzip' })).status, 415)
  assert.equal((await server.ask('/svc-login', form({ user, password: 'x'.repeat(2000) }))).status, 413)
  assert.equal(
    (await server.ask('/svc-login', { body: '{}', headers: { 'content-type': 'application/json' } })).status,
    415,
  )
})

const now = nowSeconds()
const good = cookieOf(now).slice('svc_admin='.length)
const [, sign = ''] = good.split(':')

const badCookies: readonly [what: string, field: string][] = [
  ['empty', 'svc_admin='],
  ['without a value', 'svc_admin'],
  ['another name', `SVC_ADMIN=${good}`],
  ['damaged at its end', `svc_admin=${good.slice(0, -1)}`],
  ['one character more', `svc_admin=${good}0`],
  ['another last character', `svc_admin=${good.slice(0, -1)}${good.endsWith('0') ? '1' : '0'}`],
  ['another time', `svc_admin=${now - 1}:${sign}`],
  ['signed with another secret', cookieOf(now, 'other')],
  ['signed with no secret', cookieOf(now, '')],
  ['the hardened form', cookieOf(now, secret, true)],
  ['an upper-case sign', `svc_admin=${good.toUpperCase()}`],
  ['a wrong separator', `svc_admin=${good.replace(':', '|')}`],
  ['no separator', `svc_admin=${good.replace(':', '')}`],
  ['two separators', `svc_admin=${good.replace(':', '::')}`],
  ['a third part', `svc_admin=${good}:`],
  ['no time', `svc_admin=:${md5(`${secret}|`)}`],
  ['no sign', `svc_admin=${now}:`],
  ['13 digits', cookieOf(`0${String(now).padStart(12, '0')}`)],
  ['far too many digits', cookieOf('9'.repeat(400))],
  ['a negative time', cookieOf(-1)],
  ['a time with a point', cookieOf('1.5')],
  ['a time in hex', cookieOf('0x10')],
  ['a time with an exponent', cookieOf('1e9')],
  ['a time in Arabic digits', `svc_admin=${encodeURIComponent('١٢٣')}:${md5(`${secret}|١٢٣`)}`],
  ['no number', cookieOf('NaN')],
  ['a time with a space', `svc_admin=%20${good}`],
  ['a NUL', `svc_admin=${good}%00`],
  ['a NUL in front', `svc_admin=%00${good}`],
  ['a line end', `svc_admin=${good}%0A`],
  ['over-long', `svc_admin=${good}${'0'.repeat(4000)}`],
  ['wrong encoding', 'svc_admin=%zz%ff%c0%80'],
  ['an object of JavaScript', 'svc_admin=[object Object]'],
  ['a prototype', '__proto__=1; constructor=2'],
]

test('an invalid cookie: signed out, never an error', async (t) => {
  const server = await startPanel(t)
  assert.equal((await server.ask('/svc-status', { headers: { cookie: `svc_admin=${good}` } })).status, 200)
  for (const [what, cookie] of badCookies) {
    const { status, headers } = await server.ask('/svc-status', { headers: { cookie } })
    assert.deepEqual([status, headers.location], [302, '/svc-login?next=/svc-status'], what)
    assert.equal((await server.ask('/svc-logout', { headers: { cookie } })).status, 302, what)
  }
  assert.deepEqual(
    server.lines().filter((line) => line.startsWith('ERROR')),
    [],
  )
})

test('a cookie of raw bytes or of random ones: signed out, never an error; of two Cookie fields the valid one counts', async (t) => {
  const server = await startPanel(t)
  const seeded = new Seeded(20261120)
  const tried = Array.from({ length: 60 }, () => seeded.bytes(seeded.integer(40)).map((byte) => byte | 0x80))
  for (const bytes of tried) {
    const head = `GET /svc-status HTTP/1.1\r\nHost: h\r\nConnection: close\r\nCookie: svc_admin=${now}:`
    const { status } = parseAnswer(
      await exchange(server.port, Buffer.concat([Buffer.from(head), bytes, Buffer.from('\r\n\r\n')])),
    )
    assert.equal(status, 302, Buffer.from(bytes).toString('hex'))
  }
  const raw = (fields: string) => `GET /svc-status HTTP/1.1\r\nHost: h\r\nConnection: close\r\n${fields}\r\n\r\n`
  const twice = parseAnswer(await exchange(server.port, raw(`Cookie: svc_admin=bad\r\nCookie: svc_admin=${good}`)))
  assert.equal(twice.status, 200)
  assert.equal(parseAnswer(await exchange(server.port, raw('Cookie: svc_admin=1\u0000:2'))).status, 400)
  assert.equal((await server.ask('/svc-ping')).status, 200)
})

const hostile: readonly string[] = [
  'https://evil.example/',
  'http:evil.example',
  '//evil.example',
  '///evil.example',
  '////evil.example',
  '/\\evil.example',
  '\\\\evil.example',
  '\\/evil.example',
  '/\t/evil.example',
  '/\n/evil.example',
  '/\r\nSet-Cookie: a=b',
  '\t//evil.example',
  ' //evil.example',
  '/%0d%0aSet-Cookie: a=b\u0000',
  '/x/..//evil.example',
  '/./\\evil.example',
  '/%2e%2e//evil.example',
  'javascript:alert(1)',
  'data:text/html,x',
  'evil.example',
  '@evil.example',
  ':@evil.example',
  '?next=//evil.example',
  '#//evil.example',
  '',
  '/svc-logout',
  '/svc-stop',
  '/svc-stop?x=y',
  '/svc-stop/',
  '/x/../svc-stop',
  '/x/%2e%2e/svc-stop',
  '/.\\svc-stop',
  '/svc-cache-clear',
  '/svc-bench-start',
  '/svc-bench-stop',
  '/svc-routes/reload',
  '/svc-routes/add',
  '/svc-routes/delete',
]

const harmless: readonly [next: string, location: string][] = [
  ['/svc-monitor', '/svc-monitor'],
  ['/svc-trace?mod=all&on=0', '/svc-trace'],
  ['/svc-routes/list?format=json', '/svc-routes/list'],
  ['/hello/a#b', '/hello/a'],
  ['/hello/a%2Fb', '/hello/a%2Fb'],
  ['/hello/https://evil.example', '/hello/https://evil.example'],
  ['/hello/%0d%0a', '/hello/%0d%0a'],
]

test('next leads to a path of this host that changes nothing, or is ignored', async (t) => {
  const server = await startPanel(t, {}, greeting)
  for (const next of hostile) {
    const login = await server.ask('/svc-login', form({ user, password, next }))
    assert.deepEqual([login.status, login.headers.location], [302, '/svc-status'], JSON.stringify(next))
    assert.equal(login.headers['set-cookie']?.length, 1, JSON.stringify(next))
    const page = await server.ask(`/svc-login?next=${encodeURIComponent(next)}`)
    assert.ok(page.text.includes('<input type="hidden" name="next" value="/svc-monitor">'), JSON.stringify(next))
  }
  for (const [next, location] of harmless) {
    const login = await server.ask('/svc-login', form({ user, password, next }))
    assert.equal(login.headers.location, location, next)
  }
})

test('the path of a redirect to the login is encoded and comes back complete', async (t) => {
  const server = await startPanel(t, {}, greeting)
  const { headers } = await server.ask('/svc-status/?a=b&c=//evil.example')
  assert.equal(headers.location, '/svc-login?next=/svc-status/')
  const page = await server.ask(String(headers.location))
  assert.ok(page.text.includes('<input type="hidden" name="next" value="/svc-status/">'))
})

test('typed values are escaped when a form is shown again', async (t) => {
  const server = await startPanel(t, { 'admin.user': '', 'admin.password': '' })
  const typed = '"><script>alert(1)</script>'
  const setup = await server.ask('/svc-setup', form({ user: typed, password: 'x', password2: 'x' }))
  assert.equal(setup.status, 422)
  assert.ok(!setup.text.includes('<script>alert') && setup.text.includes('&lt;script&gt;alert(1)'))
})
