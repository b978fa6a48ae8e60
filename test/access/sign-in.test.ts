import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { isAdminCookie } from '../../lib/access/cookie.ts'
import { CredentialStore } from '../../lib/access/credential-store.ts'
import { createSignIn, type SignIn, type SignInOptions } from '../../lib/access/sign-in.ts'
import { createCredentialWriter } from '../../lib/config/credential-writer.ts'
import { loadConfig, parseConfig } from '../../lib/config/load.ts'
import { withoutRequestId } from '../support/log-lines.ts'
import { request, type Answer } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { cheapHash, form, makePort, serve, type PanelHarness } from './support.ts'

const nowMs = 1_700_000_000_000
const ann = { 'admin.user': 'ann', 'admin.password': '5ebe2294ecd0e0f08eab7690d2a6ee69', 'admin.secret': 'cookie secret' }
const right = { user: 'ann', password: 'secret' }
const wanted = { user: 'ann', password: 'secret', password2: 'secret' }
const trusting = { 'server.trusted_proxies': ['127.0.0.1'] }
const far = { 'x-forwarded-for': '192.0.2.1' }

interface Started extends PanelHarness {
  readonly url: string
  readonly file: string
  readonly signIn: SignIn
}

/** Serves the actions with their own real svc.json, created on the first save. */
async function start(t: TestContext, config: Record<string, unknown> = {}, options: Partial<SignInOptions> = {}): Promise<Started> {
  const file = join(temporaryFolder(), 'svc.json')
  const { config: parsed } = parseConfig(config, '/')
  const writer = createCredentialWriter(file, parsed, () => {})
  const store = new CredentialStore({ config: parsed, writer, appKey: 'key in use', now: () => nowMs })
  const held = makePort(config, async (command) => {
    try {
      if ('user' in command) return { done: await store.setUp(command.user, command.password) }
      return { secret: await store.ensureSecret() }
    } finally {
      held.credentials = store.current
    }
  })
  held.credentials = store.current
  const changes = (url: string): boolean => url === '/svc-stop'
  const signIn = createSignIn(held.port, { now: () => nowMs, wait: () => Promise.resolve(), changes, ...options })
  const url = await serve(t, held, [
    { method: 'GET', url: '/svc-login', action: signIn.loginPage },
    { method: 'POST', url: '/svc-login', action: signIn.login },
    { method: 'GET', url: '/svc-logout', action: signIn.logout },
    { method: 'GET', url: '/svc-setup', action: signIn.setupPage },
    { method: 'POST', url: '/svc-setup', action: signIn.setup },
    { method: 'GET', url: '/svc-stop', action: () => 'stopped' },
  ])
  return Object.assign(held, { url, file, signIn })
}

function redirects(answer: Answer, location: string): void {
  assert.deepEqual([answer.status, answer.headers.location, answer.text], [302, location, ''])
}

/** Asserts that a response is a page of the panel with this message; '' for none. */
function isPage(answer: Answer, status: number, message: string): void {
  assert.equal(answer.status, status)
  assert.equal(answer.headers['content-type'], 'text/html; charset=utf-8')
  assert.equal(/<p class="message error" role="alert">(.*)<\/p>/.exec(answer.text)?.[1] ?? '', message)
}

/** Returns the value of an input of the page, as in the HTML. */
function valueOf(answer: Answer, name: string): string | undefined {
  return new RegExp(`<input[^>]* name="${name}"[^>]* value="([^"]*)"`).exec(answer.text)?.[1]
}

test('the pages are self-contained and isolated', async (t) => {
  const { url } = await start(t)
  const pages = [await request(`${url}/svc-login`), await request(`${url}/svc-setup`), await request(`${url}/svc-setup`, form({}))]
  const nonces = pages.map(({ headers, text }) => {
    const nonce = /<style nonce="([^"]+)">/.exec(text)?.[1]
    assert.deepEqual(
      ['content-security-policy', 'x-frame-options', 'x-content-type-options', 'cache-control', 'referrer-policy'].map((name) => headers[name]),
      [
        `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'; connect-src 'self'; img-src data:; ` +
          "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        'DENY',
        'nosniff',
        'no-store',
        'same-origin',
      ],
    )
    assert.doesNotMatch(text, / (?:src|style|on\w+)="|@import|url\(|href="(?!\/svc-|data:)/)
    return nonce
  })
  assert.equal(new Set(nonces).size, pages.length)
})

// ---- login ----

test('the correct name and password get the cookie and redirect to the status', async (t) => {
  const held = await start(t, ann)
  const answer = await request(`${held.url}/svc-login`, form(right))
  redirects(answer, '/svc-status')
  const [cookie = ''] = answer.headers['set-cookie'] ?? []
  assert.match(cookie, /^svc_admin=1700000000:[0-9a-f]{32}; Max-Age=3600; Path=\/; HttpOnly; SameSite=Lax$/)
  const value = cookie.slice('svc_admin='.length, cookie.indexOf(';'))
  assert.equal(isAdminCookie(value, { secret: 'cookie secret', hardened: false, lifetimeMinutes: 60, nowMs }), true)
  assert.deepEqual(held.lines, ['INFO login by 127.0.0.1: "ann"'])
})

test('on TLS the cookie is Secure; without a lifetime it has no Max-Age', async (t) => {
  const { url } = await start(t, { ...ann, ...trusting, 'session.lifetime': 0 })
  const answer = await request(`${url}/svc-login`, form(right, { 'x-forwarded-proto': 'https', ...far }))
  assert.match(answer.headers['set-cookie']?.[0] ?? '', /^svc_admin=[0-9]+:[0-9a-f]{32}; Path=\/; HttpOnly; Secure; SameSite=Lax$/)
})

test('a login redirects to next if that changes nothing on this host', async (t) => {
  const { url } = await start(t, ann)
  for (const [next, location] of [
    ['/svc-index?a=b', '/svc-index'],
    ['//evil.example', '/svc-status'],
    ['/svc-stop', '/svc-status'],
    ['', '/svc-status'],
  ] as const) {
    redirects(await request(`${url}/svc-login`, form({ ...right, next })), location)
  }
})

test('a wrong name or password gets the form again, with the name and next but not the password', async (t) => {
  const held = await start(t, ann)
  const rows = [
    { user: 'ann', password: 'Secret' },
    { user: 'Ann', password: 'secret' },
    { user: 'ann', password: '' },
    { user: 'ann', password: ann['admin.password'] },
    { user: 'ann' },
    { password: 'secret' },
    {},
  ]
  for (const row of rows) {
    const answer = await request(`${held.url}/svc-login`, form({ ...row, next: '/svc-index' } as Record<string, string>))
    isPage(answer, 401, 'Invalid credentials')
    assert.equal(answer.headers['set-cookie'], undefined)
    assert.deepEqual([valueOf(answer, 'user'), valueOf(answer, 'next')], ['user' in row ? row.user : '', '/svc-index'])
    assert.doesNotMatch(answer.text, /value="secret"|value="Secret"/i)
  }
  assert.deepEqual(held.lines, rows.map(() => 'INFO failed login by 127.0.0.1'))
})

test('typed input is escaped', async (t) => {
  const { url } = await start(t, ann)
  const answer = await request(`${url}/svc-login`, form({ user: '"><script>x', password: 'x' }))
  assert.equal(valueOf(answer, 'user'), '&quot;&gt;&lt;script&gt;x')
})

test('the login form has a valid next, and links to the setup if there are no credentials', async (t) => {
  const { url } = await start(t, ann)
  const page = await request(`${url}/svc-login?next=/svc-index`)
  isPage(page, 200, '')
  assert.equal(valueOf(page, 'next'), '/svc-index')
  assert.equal(valueOf(await request(`${url}/svc-login?next=//evil.example`), 'next'), '/svc-monitor')
  assert.equal(valueOf(await request(`${url}/svc-login`), 'next'), '/svc-monitor')
  assert.doesNotMatch(page.text, /svc-setup/)
  const fresh = await start(t)
  assert.match((await request(`${fresh.url}/svc-login`)).text, /<a href="\/svc-setup">/)
  redirects(await request(`${fresh.url}/svc-login`, form(right)), '/svc-setup')
})

test('hardened: a scrypt hash is checked, and the cookie is an HMAC', async (t) => {
  const { url } = await start(t, { ...ann, 'admin.hardened': true, 'admin.password': cheapHash('secret') })
  isPage(await request(`${url}/svc-login`, form({ ...right, password: 'Secret' })), 401, 'Invalid credentials')
  const answer = await request(`${url}/svc-login`, form(right))
  assert.match(answer.headers['set-cookie']?.[0] ?? '', /^svc_admin=1700000000:[0-9a-f]{64};/)
})

test('with an empty secret a login makes one and saves it', async (t) => {
  const held = await start(t, { ...ann, 'admin.secret': '' })
  redirects(await request(`${held.url}/svc-login`, form(right)), '/svc-status')
  assert.match(held.credentials.secret, /^[0-9a-f]{32}$/)
  assert.equal(loadConfig(held.file).config['admin.secret'], held.credentials.secret)
})

test('a secret that cannot be saved: the form shows the reason, nobody is logged in, nothing changes in memory', async (t) => {
  const held = await start(t, { ...ann, 'admin.secret': '' })
  mkdirSync(held.file)
  const answer = await request(`${held.url}/svc-login`, form({ ...right, next: '/svc-index' }))
  isPage(answer, 500, `Cannot save ${held.file}: it is not a regular file (request ${String(answer.headers['x-request-id'])})`)
  assert.equal(answer.headers['set-cookie'], undefined)
  assert.equal(valueOf(answer, 'next'), '/svc-index')
  assert.equal(held.credentials.secret, '')
  assert.deepEqual(held.lines.map(withoutRequestId), ['ERROR the admin credentials could not be saved'])
})

test('an invalid or too large body is refused as everywhere', async (t) => {
  const [{ url }, fresh] = [await start(t, ann), await start(t)]
  for (const path of [`${url}/svc-login`, `${fresh.url}/svc-setup`]) {
    assert.equal((await request(path, { body: '{}', headers: { 'content-type': 'application/json' } })).status, 415)
    assert.equal((await request(path, form({ user: 'x'.repeat(1_048_576) }))).status, 413)
  }
})

// ---- the throttle ----

test('from the 11th failure the response waits a second; after 100 there is no attempt, even with the correct password', async (t) => {
  let waits = 0
  const clock = { ms: 0 }
  const wait = (ms: number) => {
    assert.equal(ms, 1000)
    waits += 1
    return Promise.resolve()
  }
  const { url } = await start(t, ann, { wait, now: () => nowMs + clock.ms })
  const fail = () => request(`${url}/svc-login`, form({ user: 'ann', password: 'wrong!', next: '/svc-index' }))
  for (let i = 0; i < 100; i++) isPage(await fail(), 401, 'Invalid credentials')
  assert.equal(waits, 90)
  clock.ms = 20_000
  const refused = await fail()
  isPage(refused, 429, 'Too many failed logins. Try again in 40 seconds.')
  assert.deepEqual([refused.headers['retry-after'], valueOf(refused, 'user'), valueOf(refused, 'next')], ['40', 'ann', '/svc-index'])
  assert.equal((await request(`${url}/svc-login`, form(right))).status, 429)
  clock.ms = 60_000
  redirects(await request(`${url}/svc-login`, form(right)), '/svc-status')
})

test('the correct password is accepted until then, and resets the count', async (t) => {
  let waits = 0
  const { url } = await start(t, ann, { wait: () => Promise.resolve(void (waits += 1)) })
  const wrong = form({ user: 'ann', password: 'wrong!' })
  for (let i = 0; i < 99; i++) await request(`${url}/svc-login`, wrong)
  redirects(await request(`${url}/svc-login`, form(right)), '/svc-status')
  assert.equal(waits, 89)
  isPage(await request(`${url}/svc-login`, wrong), 401, 'Invalid credentials')
  assert.equal(waits, 89)
})

test('with 50 responses waiting, a failure is answered with a time to retry', async (t) => {
  const waits: (() => void)[] = []
  const config = { ...ann, ...trusting }
  const { url } = await start(t, config, { wait: () => new Promise<void>((resolve) => waits.push(resolve)) })
  const wrong = form({ user: 'ann', password: 'wrong!' }, far)
  const answers = Array.from({ length: 61 }, () => request(`${url}/svc-login`, wrong))
  const statuses = Promise.all(answers.map(async (answer) => (await answer).status))
  const refused = await Promise.any(answers.map(async (answer) => ((await answer).status === 429 ? answer : Promise.reject(new Error('401')))))
  isPage(refused, 429, 'Too many failed logins. Try again in 1 second.')
  assert.equal(refused.headers['retry-after'], '1')
  redirects(await request(`${url}/svc-login`, form(right, far)), '/svc-status')
  assert.equal(waits.length, 50)
  for (const resolve of waits) resolve()
  const counts = (await statuses).reduce<Record<number, number>>((sum, status) => ({ ...sum, [status]: (sum[status] ?? 0) + 1 }), {})
  assert.deepEqual(counts, { 401: 60, 429: 1 })
})

// ---- logout ----

test('a logout deletes the cookie at once and redirects to the login', async (t) => {
  const held = await start(t, ann)
  const login = await request(`${held.url}/svc-login`, form(right))
  const cookie = login.headers['set-cookie']?.[0]?.split(';')[0] ?? ''
  const answer = await request(`${held.url}/svc-logout`, { headers: { cookie } })
  redirects(answer, '/svc-login')
  assert.deepEqual(answer.headers['set-cookie'], ['svc_admin=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax'])
  assert.equal(held.lines.at(-1), 'INFO logout by 127.0.0.1: "ann"')
  redirects(await request(`${held.url}/svc-logout`), '/svc-login')
  assert.equal(held.lines.length, 2, 'a client that was not logged in changed nothing')
})

// ---- setup ----

test('a setup saves name, hash, secret and the key in use, only for the owner, and redirects to the login', async (t) => {
  const held = await start(t)
  isPage(await request(`${held.url}/svc-setup`), 200, '')
  redirects(await request(`${held.url}/svc-setup`, form(wanted)), '/svc-login')
  const { config } = loadConfig(held.file)
  assert.deepEqual(
    [config['admin.user'], config['admin.password'], config.app_key],
    ['ann', '5ebe2294ecd0e0f08eab7690d2a6ee69', 'key in use'],
  )
  assert.match(config['admin.secret'], /^[0-9a-f]{32}$/)
  assert.deepEqual(held.credentials, { user: 'ann', password: config['admin.password'], secret: config['admin.secret'] })
  assert.deepEqual(held.lines, ['INFO admin.user and admin.password set up by 127.0.0.1: from "" to "ann"'])
  redirects(await request(`${held.url}/svc-login`, form(right)), '/svc-status')
})

test('a name and a password set decomposed can be typed composed', async (t) => {
  const held = await start(t)
  const [user, password] = ['Zoe\u0308', 'se\u0301sames']
  redirects(await request(`${held.url}/svc-setup`, form({ user, password, password2: password })), '/svc-login')
  for (const way of ['NFC', 'NFD']) {
    const typed = form({ user: user.normalize(way), password: password.normalize(way) })
    redirects(await request(`${held.url}/svc-login`, typed), '/svc-status')
  }
})

test('a setup changes nothing if there are credentials', async (t) => {
  const held = await start(t, ann)
  redirects(await request(`${held.url}/svc-setup`), '/svc-login')
  redirects(await request(`${held.url}/svc-setup`, form({ user: 'eve', password: 'other1', password2: 'other1' })), '/svc-login')
  assert.equal(held.credentials.user, 'ann')
  assert.equal(existsSync(held.file), false)
  assert.deepEqual(held.lines, [])
})

test('invalid input gets the form again, with the name but not the passwords', async (t) => {
  const held = await start(t)
  const rows: [fields: Record<string, string>, message: string][] = [
    [{}, 'Username cannot be empty'],
    [{ password: 'secret', password2: 'secret' }, 'Username cannot be empty'],
    [{ user: 'ann', password: '12345', password2: '1' }, 'Password must be at least 6 characters'],
    [{ user: 'ann', password: 'secret' }, 'Passwords do not match'],
    [{ user: 'ann', password: 'secret', password2: 'secreT' }, 'Passwords do not match'],
  ]
  for (const [fields, message] of rows) {
    const answer = await request(`${held.url}/svc-setup`, form(fields))
    isPage(answer, 422, message)
    assert.equal(valueOf(answer, 'user'), fields['user'] ?? '')
    assert.doesNotMatch(answer.text, /value="(?:secret|12345)"/i)
  }
  assert.equal(held.credentials.user, '')
  assert.equal(existsSync(held.file), false)
})

test('of two concurrent setups one wins, and both redirect to the login', async (t) => {
  for (const hardened of [false, true]) {
    const held = await start(t, { 'admin.hardened': hardened })
    const users = ['ann', 'bob', 'eve']
    const answers = await Promise.all(users.map((user) => request(`${held.url}/svc-setup`, form({ ...wanted, user }))))
    for (const answer of answers) redirects(answer, '/svc-login')
    assert.equal(held.lines.length, 1)
    assert.ok(users.includes(held.credentials.user))
    assert.equal(loadConfig(held.file).config['admin.user'], held.credentials.user)
  }
})

test('credentials that cannot be saved: the form shows the reason, nothing changes in memory, and a later attempt succeeds', async (t) => {
  const held = await start(t)
  writeFileSync(held.file, '{"admin": ')
  const answer = await request(`${held.url}/svc-setup`, form(wanted))
  assert.equal(answer.status, 500)
  assert.match(answer.text, /<p class="message error" role="alert">Cannot load .*svc\.json/)
  assert.equal(valueOf(answer, 'user'), 'ann')
  assert.deepEqual(held.credentials, { user: '', password: '', secret: '' })
  assert.equal(readFileSync(held.file, 'utf8'), '{"admin": ')
  assert.deepEqual(held.lines.map(withoutRequestId), ['ERROR the admin credentials could not be saved'])
  rmSync(held.file)
  redirects(await request(`${held.url}/svc-setup`, form(wanted)), '/svc-login')
})

test('a setup from another machine needs the token in the log', async (t) => {
  const held = await start(t, trusting)
  held.signIn.announceSetup()
  const token = /token: ([0-9a-f]{32})$/.exec(held.lines[0] ?? '')?.[1] ?? ''
  assert.equal(valueOf(await request(`${held.url}/svc-setup`, { headers: far }), 'setup_token'), '')
  assert.doesNotMatch((await request(`${held.url}/svc-setup`)).text, /setup_token/)
  for (const wrong of [{}, { setup_token: '' }, { setup_token: token.slice(1) }]) {
    const answer = await request(`${held.url}/svc-setup`, form({ ...wanted, ...wrong }, far))
    isPage(answer, 422, 'Setup token is missing or wrong')
    assert.equal(valueOf(answer, 'setup_token'), wrong.setup_token ?? '')
  }
  isPage(await request(`${held.url}/svc-setup`, form({ ...wanted, user: '', setup_token: token }, far)), 422, 'Username cannot be empty')
  assert.equal(held.credentials.user, '')
  redirects(await request(`${held.url}/svc-setup`, form({ ...wanted, setup_token: ` ${token}\n` }, far)), '/svc-login')
  assert.deepEqual(held.lines.slice(1), ['INFO admin.user and admin.password set up by 192.0.2.1: from "" to "ann"'])
})

test('a long name is shortened in the log, but not elsewhere', async (t) => {
  const held = await start(t)
  const user = `"\n${'x'.repeat(500)}`
  redirects(await request(`${held.url}/svc-setup`, form({ ...wanted, user })), '/svc-login')
  assert.equal(held.credentials.user, user)
  assert.equal(held.lines[0]?.endsWith(`to ${JSON.stringify(`${user.slice(0, 100)}...`)}`), true)
})

test('other failures have their own messages', async (t) => {
  const held = makePort({}, () => Promise.reject('no Error'))
  const { setup } = createSignIn(held.port, { changes: () => false })
  const url = await serve(t, held, [{ method: 'POST', url: '/svc-setup', action: setup }])
  const answer = await request(`${url}/svc-setup`, form(wanted))
  isPage(answer, 500, `no Error (request ${String(answer.headers['x-request-id'])})`)
})
