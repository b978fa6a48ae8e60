import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { makeAdminCookie } from '../../lib/access/cookie.ts'
import { createGuard, type Change } from '../../lib/access/guard.ts'
import { exchange, parseAnswer } from '../support/raw.ts'
import { request } from '../support/request.ts'
import { makePort, serve, type PanelHarness } from './support.ts'

const nowMs = 1_700_000_000_500
const credentials = { user: 'ann', password: '5ebe2294ecd0e0f08eab7690d2a6ee69', secret: 'secret' }
const rules = { secret: 'secret', hardened: false, lifetimeMinutes: 60, nowMs }
const cookie = `svc_admin=${makeAdminCookie(rules)}`
const json = 'application/json'

/** Serves an open page, a guarded page, some that change something, and one that anybody may change. */
async function start(t: TestContext, config: Record<string, unknown> = {}): Promise<PanelHarness & { url: string }> {
  const held = makePort(config)
  held.credentials = credentials
  const guard = createGuard(held.port, { now: () => nowMs })
  const rows: [method: string, url: string, auth: boolean, change: Change][] = [
    ['GET', '/svc-ping', false, 'never'],
    ['GET', '/svc-index', true, 'never'],
    ['GET', '/svc-stop', true, 'always'],
    ['GET', '/svc-trace', true, 'with-query'],
    ['POST', '/svc-trace', true, 'always'],
    ['POST', '/svc-routes/add', true, 'always'],
    ['POST', '/svc-login', false, 'never'],
    ['GET', '/svc-item/:id', true, 'never'],
  ]
  const url = await serve(
    t,
    held,
    rows.map(([method, url, auth, change]) => ({ method, url, guard: guard({ auth, change, url, meaning: '' }), action: () => 'passed' })),
  )
  return Object.assign(held, { url })
}

test('lets everybody read open pages, and the rest only with a valid cookie', async (t) => {
  const { url } = await start(t)
  assert.equal((await request(`${url}/svc-ping`)).text, 'passed')
  assert.equal((await request(`${url}/svc-index`, { headers: { cookie } })).text, 'passed')
  assert.equal((await request(`${url}/svc-index`, { headers: { cookie: `a=b; ${cookie}; c=d` } })).text, 'passed')
  for (const before of ['svc_admin=', 'svc_admin=x', `svc_admin=1:${'a'.repeat(32)}`, `svc_admin=${makeAdminCookie({ ...rules, secret: 'old' })}`]) {
    assert.equal((await request(`${url}/svc-index`, { headers: { cookie: `${before}; ${cookie}` } })).text, 'passed', before)
    assert.equal((await request(`${url}/svc-index`, { headers: { cookie: before } })).status, 302, before)
  }
})

test('no response may be cached', async (t) => {
  const { url } = await start(t)
  const crossSite = { cookie, 'sec-fetch-site': 'cross-site' }
  const rows: [status: number, path: string, method: string, headers: Record<string, string>][] = [
    [200, '/svc-ping', 'GET', {}],
    [200, '/svc-index', 'GET', { cookie }],
    [302, '/svc-index', 'GET', {}],
    [401, '/svc-routes/add', 'POST', { accept: json }],
    [403, '/svc-stop', 'GET', crossSite],
    [405, '/svc-stop', 'HEAD', { cookie }],
  ]
  for (const [status, path, method, headers] of rows) {
    const answer = await request(url + path, { method, headers })
    assert.deepEqual([answer.status, answer.headers['cache-control']], [status, 'no-store'], `${method} ${path}`)
  }
})

test('redirects clients without a valid cookie to the login, with the path without its query', async (t) => {
  const { url } = await start(t)
  const old = `svc_admin=${makeAdminCookie({ ...rules, nowMs: nowMs - 3_601_000 })}`
  for (const wrong of ['', 'svc_admin=', 'svc_admin=1:2', 'svc_admin=%ff%00', `svc_admin=${'x'.repeat(5000)}`, old, `${cookie}0`]) {
    const answer = await request(`${url}/svc-index?a=b`, { headers: { cookie: wrong } })
    assert.deepEqual([answer.status, answer.headers.location, answer.text], [302, '/svc-login?next=/svc-index', ''], wrong)
  }
  const odd = await request(`${url}/svc-item/a%20b&c=d`)
  assert.equal(odd.headers.location, '/svc-login?next=/svc-item/a%2520b%26c%3Dd')
})

test('a new secret, or none, ends every session', async (t) => {
  const held = await start(t)
  for (const secret of ['other', '']) {
    held.credentials = { ...credentials, secret }
    assert.equal((await request(`${held.url}/svc-index`, { headers: { cookie } })).status, 302)
  }
})

test('without credentials every guarded page redirects to the setup, even the call that otherwise gets 401', async (t) => {
  const held = await start(t)
  for (const missing of [{ user: '' }, { password: '' }]) {
    held.credentials = { ...credentials, ...missing }
    const page = await request(`${held.url}/svc-index`, { headers: { cookie } })
    assert.deepEqual([page.status, page.headers.location], [302, '/svc-setup'])
    const add = await request(`${held.url}/svc-routes/add`, { body: '{}', headers: { accept: json } })
    assert.deepEqual([add.status, add.headers.location], [302, '/svc-setup'])
  }
})

test('a program that accepts only JSON gets 401 instead of the login when it adds a route', async (t) => {
  const { url } = await start(t)
  const rows: [accept: string | undefined, status: number][] = [
    [json, 401],
    ['Application/JSON;q=0.9', 401],
    ['application/json, application/problem+json', 401],
    [undefined, 302],
    ['', 302],
    ['*/*', 302],
    ['application/json, */*', 302],
    ['text/html', 302],
    ['application/jsonp', 302],
  ]
  for (const [accept, status] of rows) {
    const headers = accept === undefined ? {} : { accept }
    const answer = await request(`${url}/svc-routes/add`, { body: '{}', headers: headers as Record<string, string> })
    assert.equal(answer.status, status, accept)
    if (status === 401) {
      assert.deepEqual(answer.json(), { ok: false, error: 'Not logged in: send the cookie svc_admin of a login' })
    } else assert.equal(answer.headers.location, '/svc-login?next=/svc-routes/add')
  }
  const other = await request(`${url}/svc-trace`, { body: '{}', headers: { accept: json } })
  assert.equal(other.status, 302)
})

test('in dev no login is required, with and without credentials', async (t) => {
  const held = await start(t, { 'app.env': 'dev' })
  assert.equal((await request(`${held.url}/svc-index`)).text, 'passed')
  held.credentials = { user: '', password: '', secret: '' }
  assert.equal((await request(`${held.url}/svc-stop`)).text, 'passed')
})

const trusted = 'https://trusted.example'
const origins: [what: string, headers: Record<string, string>, passes: boolean][] = [
  ['nothing, as curl sends it', {}, true],
  ['an address typed', { 'sec-fetch-site': 'none' }, true],
  ['a page of this site', { 'sec-fetch-site': 'same-origin' }, true],
  ['another site', { 'sec-fetch-site': 'cross-site' }, false],
  ['a page of a subdomain', { 'sec-fetch-site': 'same-site' }, false],
  ['a trusted origin', { 'sec-fetch-site': 'cross-site', origin: trusted }, true],
  ['an origin of this host', { origin: 'http://HOST' }, true],
  ['an origin of another host', { origin: 'http://evil.example' }, false],
  ['an origin of another port', { origin: 'http://127.0.0.1:1' }, false],
  ['the origin null', { origin: 'null' }, false],
  ['the origin null from this site', { origin: 'null', 'sec-fetch-site': 'same-origin' }, true],
  ['a referrer of this host', { referer: 'http://HOST/svc-index' }, true],
  ['a referrer of another host', { referer: 'http://evil.example/' }, false],
  ['a prefetch', { 'sec-fetch-site': 'none', 'sec-purpose': 'prefetch;prerender' }, false],
  ['a prefetch by an older browser', { purpose: 'prefetch' }, false],
  ['another purpose', { 'sec-purpose': 'preview' }, true],
]

for (const [what, headers, passes] of origins) {
  test(`a changing request is ${passes ? 'accepted' : 'refused'}: ${what}`, async (t) => {
    const { url } = await start(t, { 'server.trusted_origins': [trusted] })
    const sent = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.replace('HOST', url.slice(7))]))
    const ask = (path: string, method: string) => request(url + path, { method, headers: { ...sent, cookie, accept: json } })
    for (const call of ['GET /svc-stop', 'GET /svc-trace?mod=app', 'POST /svc-trace', 'POST /svc-login']) {
      const [method = '', path = ''] = call.split(' ')
      const answer = await ask(path, method)
      assert.equal(answer.status, passes ? 200 : 403, call)
      if (!passes) assert.equal((answer.json() as { error: string }).error, 'forbidden')
    }
    assert.equal((await ask('/svc-index', 'GET')).text, 'passed', 'a request that changes nothing passes')
    assert.equal((await ask('/svc-trace', 'GET')).text, 'passed')
    assert.equal((await ask('/svc-trace?', 'GET')).text, 'passed')
  })
}

test('another site is refused without learning whether somebody is logged in, as a page or as JSON', async (t) => {
  const { url } = await start(t)
  const page = await request(`${url}/svc-stop`, { headers: { 'sec-fetch-site': 'cross-site' } })
  assert.equal(page.status, 403)
  assert.match(page.text, /<pre>This request changes the server and comes from another site<\/pre>/)
  const program = await request(`${url}/svc-stop`, { headers: { 'sec-purpose': 'prefetch', accept: json } })
  assert.deepEqual(program.json(), { error: 'forbidden', detail: 'This request changes the server and is a prefetch' })
})

test('HEAD is refused if it would change something, with the allowed methods', async (t) => {
  const { url } = await start(t)
  const stop = await request(`${url}/svc-stop`, { method: 'HEAD', headers: { cookie } })
  assert.deepEqual([stop.status, stop.headers.allow], [405, 'GET, OPTIONS, POST'])
  const trace = await request(`${url}/svc-trace?mod=app`, { method: 'HEAD', headers: { cookie } })
  assert.deepEqual([trace.status, trace.headers.allow], [405, 'GET, OPTIONS, POST'])
  for (const path of ['/svc-trace', '/svc-index']) {
    assert.equal((await request(url + path, { method: 'HEAD', headers: { cookie } })).status, 200, path)
  }
})

const hosts: [host: string, passes: boolean][] = [
  ['localhost', true],
  ['app.localhost:8080', true],
  ['127.0.0.1', true],
  ['127.1.2.3:80', true],
  ['[::1]:8080', true],
  ['evil.example', false],
  ['192.168.1.5', false],
  ['localhost.evil.example', false],
]

test('in dev on a loopback address, the Host must be a local name', async (t) => {
  const ask = async (url: string, host: string) => {
    const text = `GET /svc-ping HTTP/1.1\r\nHost: ${host}\r\nAccept: ${json}\r\nConnection: close\r\n\r\n`
    return parseAnswer(await exchange(Number(new URL(url).port), text))
  }
  const { url } = await start(t, { 'app.env': 'dev' })
  for (const [host, passes] of hosts) {
    const { status, body } = await ask(url, host)
    assert.equal(status, passes ? 200 : 400, host)
    if (!passes) assert.equal((JSON.parse(body) as { error: string }).error, 'bad_host')
  }
  const others = [
    {},
    { 'app.env': 'dev', 'server.host': '0.0.0.0' },
    { 'app.env': 'dev', 'server.allowed_hosts': ['evil.example'] },
  ]
  for (const config of others) {
    const { status } = await ask((await start(t, config)).url, 'evil.example')
    assert.equal(status, 200, JSON.stringify(config))
  }
  for (const host of ['localhost', '::1']) {
    const config = { 'app.env': 'dev', 'server.host': host }
    assert.equal((await ask((await start(t, config)).url, 'evil.example')).status, 400, host)
  }
})
