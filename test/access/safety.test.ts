import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemRoutes } from '../../lib/panel/table.ts'
import { makeCertificate } from '../support/certificate.ts'
import { request as tlsRequest } from 'node:https'
import type { IncomingHttpHeaders } from 'node:http'
import { request, type Answer } from '../support/request.ts'
import { cookieOf, greeting, nowSeconds, password, startPanel, user, type PanelServer } from '../panel/panel-server.ts'
import { form } from './support.ts'

type Headers = Readonly<Record<string, string>>

/** Every request that changes something. */
const changing: readonly (readonly [method: 'GET' | 'POST', url: string])[] = systemRoutes.flatMap(
  ({ method: methods, url, change }) =>
    change === 'never'
      ? []
      : (methods.split(',') as ('GET' | 'POST')[]).map(
          (method) => [method, change === 'with-query' ? `${url}?mod=app&on=0&seconds=0` : url] as const,
        ),
)

test('changing requests: every POST; GET logout, stop, profile and trace with a query, cache-clear, bench, reload, all by POST too', () => {
  const urls = (wanted: string) => changing.filter(([method]) => method === wanted).map(([, url]) => url)
  const posts = systemRoutes.filter(({ method }) => method.includes('POST')).map(({ url }) => url)
  assert.deepEqual(urls('POST'), posts)
  for (const url of urls('GET')) assert.ok(posts.includes(url.replace(/\?.*/, '') as never), url)
  assert.deepEqual(urls('GET'), [
    '/svc-profile?mod=app&on=0&seconds=0',
    '/svc-trace?mod=app&on=0&seconds=0',
    '/svc-cache-clear',
    '/svc-stop',
    '/svc-bench-start',
    '/svc-bench-stop',
    '/svc-routes/reload',
    '/svc-logout',
  ])
})

const elsewhere: readonly [what: string, headers: Headers][] = [
  ['Sec-Fetch-Site: cross-site', { 'sec-fetch-site': 'cross-site' }],
  ['Sec-Fetch-Site: same-site', { 'sec-fetch-site': 'same-site', origin: 'http://other.127.0.0.1' }],
  ['another origin', { origin: 'https://evil.example' }],
  ['another port', { origin: 'http://127.0.0.1:1' }],
  ['Origin: null', { origin: 'null' }],
  ['a Referer from another site', { referer: 'https://evil.example/page' }],
  ['a Sec-Fetch-Site before a valid Origin', { 'sec-fetch-site': 'cross-site', origin: 'http://HOST' }],
  ['Sec-Purpose: prefetch', { 'sec-purpose': 'prefetch' }],
  ['Sec-Purpose: prefetch;prerender', { 'sec-purpose': 'prefetch;prerender', 'sec-fetch-site': 'none' }],
  ['Purpose: prefetch', { purpose: 'prefetch', 'sec-fetch-site': 'same-origin' }],
]

const here: readonly [what: string, headers: Headers][] = [
  ['curl', {}],
  ['typed or bookmarked', { 'sec-fetch-site': 'none' }],
  ['a link in the panel', { 'sec-fetch-site': 'same-origin' }],
  ['its own Origin', { origin: 'http://HOST' }],
  ['its own Referer', { referer: 'http://HOST/svc-index' }],
  ['a trusted origin', { origin: 'https://admin.example' }],
  ['a trusted origin of another site', { 'sec-fetch-site': 'cross-site', origin: 'https://admin.example' }],
]

function headersOf(server: PanelServer, headers: Headers): Headers {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, value.replace('HOST', new URL(server.url).host)]),
  )
}

for (const env of ['prod', 'dev']) {
  test(`in ${env} every changing request from another site is 403, and nothing changes`, async (t) => {
    const server = await startPanel(
      t,
      { 'app.env': env, 'server.trusted_origins': ['https://admin.example'] },
      greeting,
    )
    const file = server.read('svc.json')
    for (const [what, headers] of elsewhere) {
      for (const [method, url] of changing) {
        const question = { method, headers: { ...headersOf(server, headers), accept: 'application/json' } }
        const answer = await server.askSignedIn(url, question)
        const reason = what.includes('urpose') ? 'is a prefetch' : 'comes from another site'
        const body = { error: 'forbidden', detail: `This request changes the server and ${reason}` }
        assert.deepEqual([answer.status, answer.json()], [403, body], `${what}: ${method} ${url}`)
        assert.equal(answer.headers['set-cookie'], undefined)
      }
      assert.equal((await server.askSignedIn('/svc-status', { headers: headersOf(server, headers) })).status, 200, what)
    }
    assert.equal(server.app.stopping, false)
    assert.equal(server.read('svc.json'), file)
    assert.equal(((await server.askSignedIn('/svc-trace')).json() as Record<string, boolean>)['app'], true)
  })
}

test('requests from this site, typed or sent by curl pass', async (t) => {
  const server = await startPanel(t, { 'server.trusted_origins': ['https://admin.example'] }, greeting)
  const statuses = new Map([
    ['POST /svc-routes/add', 409],
    ['POST /svc-routes/delete', 400],
    ['GET /svc-profile?mod=app&on=0&seconds=0', 400],
    ['POST /svc-profile?seconds=0', 400],
    ['POST /svc-trace', 400],
    ['POST /svc-jobs/retry', 400],
    ['POST /svc-jobs/discard', 400],
    ['POST /svc-jobs/run', 400],
    ['POST /svc-login', 401],
    ['POST /svc-setup', 302],
    ['GET /svc-logout', 302],
    ['POST /svc-logout', 302],
  ])
  for (const [what, headers] of here) {
    for (const [method, path] of changing.filter(([, path]) => path !== '/svc-stop')) {
      const url = path === '/svc-profile' ? '/svc-profile?seconds=0' : path // A profile takes seconds.
      const question = { method, headers: headersOf(server, headers), ...(method === 'POST' && { body: '{}' }) }
      const typed = url === '/svc-login' ? form({ user: 'nobody' }, question.headers) : question
      const { status } = await server.askSignedIn(url, typed)
      assert.equal(status, statuses.get(`${method} ${url}`) ?? 200, `${what}: ${method} ${url}`)
    }
  }
})

const browser = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64)', accept: 'text/html,*/*;q=0.8' }

for (const env of ['prod', 'dev']) {
  test(`in ${env} a browser's GET without an origin needs a confirmation, whose button performs the request`, async (t) => {
    const server = await startPanel(t, { 'app.env': env }, greeting)
    const { host, origin } = new URL(server.url)
    for (const [, url] of changing.filter(([method]) => method === 'GET')) {
      const asked = await server.askSignedIn(url, { headers: browser })
      assert.equal(asked.status, 200, url)
      assert.ok(asked.text.includes(`<form class="card" method="post" action="${url.replaceAll('&', '&amp;')}">`), asked.text)
      assert.equal(asked.headers['set-cookie'], undefined)
      const plain = await server.askSignedIn(url, { headers: { ...browser, accept: 'application/json' } })
      assert.equal(plain.status, 403)
      assert.match(plain.text, /does not say where it comes from: send a POST/)
    }
    assert.equal(server.app.stopping, false)
    assert.equal(((await server.askSignedIn('/svc-trace')).json() as Record<string, boolean>)['app'], true)
    for (const said of [{ referer: `http://${host}/svc-index` }, { origin }, { 'sec-fetch-site': 'none' }]) {
      const answer = await server.askSignedIn('/svc-cache-clear', { headers: { ...browser, ...said } })
      assert.deepEqual((answer.json() as { status: string }).status, 'ok')
    }
    const button = { method: 'POST', headers: { ...browser, origin, 'content-type': 'application/x-www-form-urlencoded' }, body: '' }
    const switched = await server.askSignedIn('/svc-trace?mod=app&on=0', button)
    assert.equal((switched.json() as Record<string, boolean>)['app'], false)
    assert.deepEqual((await server.askSignedIn('/svc-stop', button)).json(), { status: 'stopping' })
    assert.equal(server.app.stopping, true)
  })
}

test('in prod a browser without the cookie is sent to the login, without a confirmation', async (t) => {
  const server = await startPanel(t, {}, greeting)
  assert.equal((await server.ask('/svc-stop', { headers: browser })).headers.location, '/svc-login?next=/svc-stop')
  assert.equal((await server.ask('/svc-logout', { headers: browser })).headers.location, '/svc-login')
})

test('a refusal is a page for people', async (t) => {
  const server = await startPanel(t)
  const { status, headers, text } = await server.askSignedIn('/svc-stop', {
    headers: { 'sec-fetch-site': 'cross-site' },
  })
  assert.deepEqual([status, headers['content-type']], [403, 'text/html; charset=utf-8'])
  assert.match(text, /<h1>403 Forbidden<\/h1>/)
})

test('HEAD on a changing path is 405 with the allowed methods', async (t) => {
  const server = await startPanel(t, {}, greeting)
  const urls = changing.filter(([method]) => method === 'GET').map(([, url]) => url)
  const allow = new Map([
    ['/svc-routes/add', 'OPTIONS, POST'],
    ['/svc-routes/delete', 'OPTIONS, POST'],
  ])
  for (const url of new Set([...urls, ...allow.keys()])) {
    const { status, headers, text } = await server.askSignedIn(url, { method: 'HEAD' })
    assert.deepEqual([status, headers.allow, text], [405, allow.get(url) ?? 'GET, OPTIONS, POST', ''], url)
  }
  assert.equal(server.app.stopping, false)
})

test('every page is self-contained and isolated: nonce, no frames, no sniffing, no store', async (t) => {
  const server = await startPanel(t, {}, greeting)
  const setup = await startPanel(t, { 'admin.user': '' })
  const pages = ['/svc-monitor', '/svc-index', '/svc-routes/list', '/svc-routes/listall', '/svc-login']
  const nonces = new Set<string>()
  for (const answer of [
    ...(await Promise.all(pages.map((path) => server.askSignedIn(path)))),
    await setup.ask('/svc-setup'),
  ]) {
    const { headers, text } = answer
    assert.equal(answer.status, 200)
    const [, nonce = ''] = /style-src 'nonce-([\w+/=]{24})'/.exec(String(headers['content-security-policy'])) ?? []
    assert.equal(
      headers['content-security-policy'],
      [
        "default-src 'none'",
        `style-src 'nonce-${nonce}'`,
        `script-src 'nonce-${nonce}'`,
        "connect-src 'self'",
        'img-src data:',
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
      ].join('; '),
    )
    nonces.add(nonce)
    const { 'x-frame-options': frames, 'x-content-type-options': sniffing, 'cache-control': store } = headers
    assert.deepEqual(
      [frames, sniffing, store, headers['referrer-policy']],
      ['DENY', 'nosniff', 'no-store', 'same-origin'],
    )
    for (const [tag] of text.matchAll(/<(?:script|style)\b[^>]*>/g)) {
      assert.ok(tag.includes(`nonce="${nonce}"`) || tag.includes('type="application/json"'), tag)
    }
    const markup = text.replace(/<script type="application\/json"[^>]*>.*?<\/script>/gs, '')
    assert.ok(
      !/\b(?:src|srcset)="(?!data:)|<link\b[^>]*href="(?!data:)|\bon\w+="|style="|https?:\/\/(?!www\.w3\.org)/.test(
        markup,
      ),
      markup,
    )
  }
  assert.equal(nonces.size, 6)
})

test('in dev on a loopback address only local host names reach the panel, in prod any', async (t) => {
  const dev = await startPanel(t, { 'app.env': 'dev' }, greeting)
  const names: [host: string, status: number][] = [
    ['localhost:1', 200],
    ['127.0.0.1', 200],
    ['[::1]:80', 200],
    ['evil.example', 400],
    ['localhost.evil.example', 400],
    ['192.168.1.1', 400],
  ]
  for (const [host, status] of names) {
    for (const path of ['/svc-ping', '/svc-status', '/svc-login'])
      assert.equal((await dev.ask(path, { headers: { host } })).status, status, host)
    assert.equal((await dev.ask('/hello/bob', { headers: { host } })).status, 200)
  }
  const answer = await dev.ask('/svc-status', { headers: { host: 'evil.example', accept: 'application/json' } })
  assert.deepEqual(answer.json(), {
    error: 'bad_host',
    detail:
      'In dev the admin panel accepts only local host names; '
      + 'open it as localhost or 127.0.0.1, or name the host in server.allowed_hosts',
  })
  const prod = await startPanel(t)
  assert.equal((await prod.askSignedIn('/svc-status', { headers: { host: 'any.example' } })).status, 200)
})

test('the cookie is Secure on TLS', async (t) => {
  const files = { 'a.pem': '', 'a.key': '' }
  const server = await startPanel(t, {}, files)
  makeCertificate(server.folder, 'a')
  server.write({ 'svc.json': { ...server.saved(), 'server.tls.cert': 'a.pem', 'server.tls.key': 'a.key' } })
  await server.restart()
  const { method, body, headers } = form({ user, password })
  const answer = await new Promise<IncomingHttpHeaders>((resolve, reject) => {
    const sent = tlsRequest(
      `${server.url}/svc-login`,
      { method, headers, agent: false, rejectUnauthorized: false },
      (response) => {
        response.resume().on('end', () => resolve(response.headers))
      },
    )
    sent.on('error', reject).end(body)
  })
  assert.match(
    answer['set-cookie']?.[0] ?? '',
    /^svc_admin=\d+:[0-9a-f]{32}; Max-Age=3600; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
  )
})

function says(answer: Answer, status: number, message: string): void {
  assert.equal(answer.status, status)
  assert.ok(answer.text.includes(`role="alert">${message}</p>`), answer.text)
}

const wanted = { user: 'bob', password: 'a good one', password2: 'a good one' }
const empty = { 'admin.user': '', 'admin.password': '', 'admin.secret': '' }

/** Returns the token from the log. */
function tokenOf(server: PanelServer): string {
  const found = server
    .lines()
    .flatMap((line) => /^WARN server the admin panel is not set up: .*: ([0-9a-f]{32})$/.exec(line)?.[1] ?? [])
  assert.ok(found.length === 1)
  return found[0] as string
}

test('a setup from another machine needs the token in the log; a local one does not', async (t) => {
  const proxied = await startPanel(t, { ...empty, 'server.trusted_proxies': ['127.0.0.1'] })
  const far = { 'x-forwarded-for': '203.0.113.9' }
  assert.ok((await proxied.ask('/svc-setup', { headers: far })).text.includes('name="setup_token"'))
  assert.ok(!(await proxied.ask('/svc-setup')).text.includes('setup_token'))
  says(await proxied.ask('/svc-setup', form(wanted, far)), 422, 'Setup token is missing or wrong')
  says(
    await proxied.ask('/svc-setup', form({ ...wanted, setup_token: '0'.repeat(32) }, far)),
    422,
    'Setup token is missing or wrong',
  )
  assert.equal(proxied.saved()['admin.user'], '')
  const done = await proxied.ask('/svc-setup', form({ ...wanted, setup_token: tokenOf(proxied) }, far))
  assert.deepEqual([done.status, done.headers.location], [302, '/svc-login'])
  assert.equal(proxied.saved()['admin.user'], 'bob')
  assert.ok(
    proxied.lines().includes('INFO server admin.user and admin.password set up by 203.0.113.9: from "" to "bob"'),
  )
})

const tokenRows: readonly [what: string, config: Record<string, unknown>, headers: Headers, required: boolean][] = [
  [
    'a private address through a trusted proxy',
    { 'server.trusted_proxies': ['127.0.0.1'] },
    { 'x-forwarded-for': '10.1.2.3' },
    true,
  ],
  ['a forwarding header from an untrusted proxy', {}, { 'x-forwarded-for': '10.1.2.3' }, true],
  ['Forwarded from a proxy that is not trusted', {}, { forwarded: 'for=10.1.2.3' }, true],
  ['Via from a proxy that is not trusted', {}, { via: '1.1 proxy' }, true],
  ['a name rebound to this machine', {}, { host: 'evil.example' }, true],
  ['on: always', { 'admin.setup_token': 'on' }, {}, true],
  [
    'off: never',
    { 'admin.setup_token': 'off', 'server.trusted_proxies': ['127.0.0.1'] },
    { 'x-forwarded-for': '203.0.113.9' },
    false,
  ],
]

for (const [what, config, headers, required] of tokenRows) {
  test(`the setup token, ${what}: ${required ? 'required' : 'not required'}`, async (t) => {
    const server = await startPanel(t, { ...empty, ...config })
    assert.equal((await server.ask('/svc-setup', { headers })).text.includes('setup_token'), required)
    assert.equal((await server.ask('/svc-setup', form(wanted, headers))).status, required ? 422 : 302)
  })
}

test('each change through the panel has an audit line: who, what, from, to', async (t) => {
  const server = await startPanel(t, { 'server.trusted_proxies': ['127.0.0.1'], 'admin.secret': '' }, greeting)
  const from = { 'x-forwarded-for': '203.0.113.9' }
  const login = await server.ask('/svc-login', form({ user, password }, from))
  const headers = { ...from, cookie: login.headers['set-cookie']?.[0]?.split(';')[0] ?? '' }
  const ask = (path: string) => server.ask(path, { headers })
  const post = (path: string, value: unknown) => server.ask(path, { headers, body: JSON.stringify(value) })
  await server.ask('/svc-login', form({ user: 'mistyped password', password: 'x' }, from))
  await ask('/svc-trace?mod=pool&on=0&ttl=60')
  await ask('/svc-trace')
  await post('/svc-trace', { module: 'all', enabled: false })
  await post('/svc-trace', { module: 'all', enabled: true })
  await post('/svc-routes/add', { name: 'a\nb', url: '/a', action: 'hello.mjs' })
  await post('/svc-routes/add', { name: 'late', url: '/late', action: 'hello.mjs', persist: true })
  await post('/svc-routes/delete', { name: 'late' })
  await post('/svc-routes/delete', { name: 'late' })
  await ask('/svc-routes/reload')
  server.write({ 'routes/a.json': '{' })
  await ask('/svc-routes/reload')
  await ask('/svc-cache-clear')
  await ask('/svc-bench-start')
  await ask('/svc-bench-stop')
  await ask('/svc-logout')
  await server.ask('/svc-logout', { headers: from })
  await ask('/svc-stop')
  const audited = server
    .lines()
    .filter((line) => line.includes('203.0.113.9'))
    .filter((line) => !/^DEBUG/.test(line))
  const late = { name: 'late', url: '/late', action: 'hello.mjs', method: '*', middleware: '', scope: '' }
  assert.deepEqual(audited, [
    'INFO server admin.secret made by 203.0.113.9: it was empty',
    'INFO server login by 203.0.113.9: "ann"',
    'INFO server failed login by 203.0.113.9',
    'INFO server trace of pool set by 203.0.113.9: from on to off for 60 s',
    'INFO server trace of all set by 203.0.113.9: from various to off',
    'INFO server trace of all set by 203.0.113.9: from off to on',
    'INFO server route "late" added by 203.0.113.9: {"name":"late","url":"/late","action":"hello.mjs"}, persisted',
    `INFO server route "late" deleted by 203.0.113.9: it was ${JSON.stringify(late)}`,
    'INFO server route "late" deleted by 203.0.113.9: it did not exist',
    'INFO server routes reloaded by 203.0.113.9: 1 removed, 1 loaded',
    audited[10],
    'INFO server view cache cleared by 203.0.113.9: 0 files',
    'INFO server bench window started by 203.0.113.9',
    'INFO server bench window read by 203.0.113.9',
    'INFO server logout by 203.0.113.9: "ann"',
    'INFO server stop requested by 203.0.113.9',
  ])
  assert.match(
    audited[10] ?? '',
    /^WARN server reload by 203\.0\.113\.9 refused: Cannot reload the routes, so the old ones stay: a\.json: /,
  )
  assert.ok(!server.lines().join().includes('mistyped'))
})

test('an audit line is written whatever the trace switch of its module', async (t) => {
  const server = await startPanel(t)
  await server.askSignedIn('/svc-trace?mod=server&on=0')
  await server.askSignedIn('/svc-bench-start')
  await server.askSignedIn('/svc-trace?mod=server&on=1')
  assert.deepEqual(
    server.lines().filter((line) => line.includes(' by 127.')),
    [
      'INFO server trace of server set by 127.0.0.1: from on to off',
      'INFO server bench window started by 127.0.0.1',
      'INFO server trace of server set by 127.0.0.1: from off to on',
    ],
  )
})

test('two panels in one process share nothing', async (t) => {
  const one = await startPanel(t)
  const two = await startPanel(t, { 'admin.secret': 'another' })
  const headers = { cookie: cookieOf(nowSeconds()) }
  assert.equal((await request(`${one.url}/svc-status`, { headers })).status, 200)
  assert.equal((await request(`${two.url}/svc-status`, { headers })).status, 302)
})
