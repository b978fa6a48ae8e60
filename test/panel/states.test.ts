import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../support/until.ts'
import { Connection, requestText } from '../support/connection.ts'
import {
  changeConfig,
  cookieOf,
  credentials,
  greeting,
  md5,
  nowSeconds,
  password,
  secret,
  startPanel,
  user,
} from './panel-server.ts'
import { cookieFrom, endpoints, form, leadsTo, says } from '../access/support.ts'

const none = { 'admin.user': '', 'admin.password': '', 'admin.secret': '' }
const wanted = { user, password, password2: password }
const guarded = endpoints.filter(({ auth }) => auth)

for (const missing of [none, { 'admin.user': '' }, { 'admin.password': '' }]) {
  test(`no credentials: every guarded endpoint leads to the setup (${Object.keys(missing).join(', ')})`, async (t) => {
    const server = await startPanel(t, missing)
    for (const { method, url } of guarded)
      leadsTo(await server.askSignedIn(url, { method }), '/svc-setup', `${method} ${url}`)
    assert.equal((await server.ask('/svc-ping')).status, 200)
    assert.equal((await server.ask('/svc-ready')).status, 200)
    const { text } = await server.ask('/svc-login')
    assert.match(text, /<a href="\/svc-setup">Set one up<\/a>/)
    assert.ok(text.indexOf('<details') > 0 && text.indexOf('<details') < text.indexOf('<form'), 'the form is folded')
    assert.equal((await server.ask('/svc-setup')).status, 200)
    leadsTo(await server.ask('/svc-logout'), '/svc-login')
    leadsTo(await server.ask('/svc-login', form({ user, password })), '/svc-setup')
  })
}

const refusedSetups: readonly [fields: Record<string, string>, message: string][] = [
  [{}, 'Username cannot be empty'],
  [{ user: '', password: 'x', password2: 'y' }, 'Username cannot be empty'],
  [{ user: '   ', password, password2: password }, 'Username cannot be empty'],
  [{ user, password: '', password2: '' }, 'Password must be at least 6 characters'],
  [{ user, password: '12345', password2: 'other' }, 'Password must be at least 6 characters'],
  [{ user, password: '123456', password2: '1234567' }, 'Passwords do not match'],
  [{ user, password: '123456' }, 'Passwords do not match'],
]

test('no credentials: a setup that breaks a rule is 422 with form and message, and nothing changes', async (t) => {
  const server = await startPanel(t, none)
  const before = server.read('svc.json')
  for (const [fields, message] of refusedSetups) says(await server.ask('/svc-setup', form(fields)), 422, message)
  assert.equal(server.read('svc.json'), before)
  leadsTo(await server.ask('/svc-status'), '/svc-setup')
})

test('from no credentials through setup and login to logout', async (t) => {
  const server = await startPanel(t, none)
  const began = Date.now()
  leadsTo(await server.ask('/svc-setup', form({ ...wanted, password: '123456', password2: '123456' })), '/svc-login')
  const { 'admin.user': savedUser, 'admin.password': savedPassword, 'admin.secret': savedSecret } = server.saved()
  assert.deepEqual([savedUser, savedPassword], [user, md5('123456')])
  const seconds = Math.floor(began / 1000)
  const candidates = [0, 1, 2, 3].map((later) => md5(`${seconds + later}${user}123456`))
  assert.ok(candidates.includes(String(savedSecret)), 'the secret is the MD5 of timestamp, user and password')

  leadsTo(await server.ask('/svc-setup'), '/svc-login')
  leadsTo(await server.ask('/svc-status'), '/svc-login?next=/svc-status')
  says(await server.ask('/svc-login', form({ user, password })), 401, 'Invalid credentials')
  says(await server.ask('/svc-login', form({ user: 'bob', password: '123456' })), 401, 'Invalid credentials')

  const login = await server.ask('/svc-login', form({ user, password: '123456' }))
  leadsTo(login, '/svc-status')
  const cookie = cookieFrom(login)
  const [, value = ''] = cookie.split('=')
  const [timestamp = '', sign] = value.split(':')
  assert.equal(sign, md5(`${String(savedSecret)}|${timestamp}`))
  assert.ok(Math.abs(Number(timestamp) - nowSeconds()) <= 60)
  assert.deepEqual(login.headers['set-cookie'], [`${cookie}; Max-Age=3600; Path=/; HttpOnly; SameSite=Lax`])
  assert.equal((await server.ask('/svc-status', { headers: { cookie } })).status, 200)

  const logout = await server.ask('/svc-logout', { headers: { cookie } })
  leadsTo(logout, '/svc-login')
  assert.deepEqual(logout.headers['set-cookie'], ['svc_admin=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax'])
})

test('credentials set: a setup changes nothing and leads to the login', async (t) => {
  const server = await startPanel(t)
  const before = server.read('svc.json')
  leadsTo(await server.ask('/svc-setup'), '/svc-login')
  leadsTo(
    await server.ask('/svc-setup', form({ user: 'eve', password: 'longer one', password2: 'longer one' })),
    '/svc-login',
  )
  leadsTo(await server.ask('/svc-setup', form({})), '/svc-login')
  assert.equal(server.read('svc.json'), before)
})

test('logged out: every guarded endpoint redirects to the login with its path as next', async (t) => {
  const server = await startPanel(t)
  for (const { method, url } of guarded) {
    leadsTo(await server.ask(`${url}?a=b`, { method }), `/svc-login?next=${url}`, `${method} ${url}`)
  }
})

test('logged in: a login with next leads there', async (t) => {
  const server = await startPanel(t, {}, greeting)
  leadsTo(await server.ask('/svc-login', form({ user, password, next: '/svc-routes/list' })), '/svc-routes/list')
  leadsTo(await server.ask('/svc-login', form({ user, password, next: '/hello/a%20b?c=d' })), '/hello/a%20b')
})

const cookies: readonly [what: string, secondsAgo: number, status: number][] = [
  ['issued now', 0, 200],
  ['exactly as old as the lifetime', 3600, 200],
  ['a second older', 3601, 302],
  ['much older', 1_000_000, 302],
  ['300 s in the future', -300, 200],
  ['301 s in the future', -301, 302],
]

test('time passes: a cookie is valid for its lifetime', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_800_000_000_999 })
  const server = await startPanel(t)
  for (const hardened of [false, true]) {
    changeConfig(server, { 'admin.hardened': hardened })
    await server.restart()
    for (const [what, secondsAgo, status] of cookies) {
      const cookie = cookieOf(1_800_000_000 - secondsAgo, secret, hardened)
      assert.equal((await server.ask('/svc-status', { headers: { cookie } })).status, status, what)
    }
  }
})

test('with a lifetime of 0 a cookie never expires, and ends with the browser', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_800_000_000_999 })
  const server = await startPanel(t, { 'session.lifetime': 0 })
  for (const timestamp of [0, 1, '000000000001']) {
    assert.equal((await server.ask('/svc-status', { headers: { cookie: cookieOf(timestamp) } })).status, 200)
  }
  assert.equal((await server.ask('/svc-status', { headers: { cookie: cookieOf(nowSeconds() + 301) } })).status, 302)
  const login = await server.ask('/svc-login', form({ user, password }))
  assert.deepEqual(login.headers['set-cookie'], [`${cookieFrom(login)}; Path=/; HttpOnly; SameSite=Lax`])
})

test('the lifetime counts from the login and is renewed by each', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_800_000_000_000 })
  const server = await startPanel(t, { 'session.lifetime': 1 })
  const first = cookieFrom(await server.ask('/svc-login', form({ user, password })))
  t.mock.timers.setTime(1_800_000_060_000)
  const second = cookieFrom(await server.ask('/svc-login', form({ user, password })))
  assert.equal((await server.ask('/svc-status', { headers: { cookie: first } })).status, 200)
  t.mock.timers.setTime(1_800_000_061_000)
  assert.equal((await server.ask('/svc-status', { headers: { cookie: first } })).status, 302)
  assert.equal((await server.ask('/svc-status', { headers: { cookie: second } })).status, 200)
})

test('a changed secret ends every session; an emptied one too, and the next login makes one', async (t) => {
  const server = await startPanel(t)
  const old = { headers: { cookie: cookieOf(nowSeconds()) } }
  assert.equal((await server.ask('/svc-status', old)).status, 200)
  changeConfig(server, { 'admin.secret': 'another' })
  await server.restart()
  leadsTo(await server.ask('/svc-status', old), '/svc-login?next=/svc-status')
  changeConfig(server, { 'admin.secret': '' })
  await server.restart()
  for (const signedWith of [secret, 'another', '']) {
    leadsTo(
      await server.ask('/svc-status', { headers: { cookie: cookieOf(nowSeconds(), signedWith) } }),
      '/svc-login?next=/svc-status',
    )
  }
  const login = await server.ask('/svc-login', form({ user, password }))
  leadsTo(login, '/svc-status')
  const made = String(server.saved()['admin.secret'])
  assert.match(made, /^[0-9a-f]{32}$/)
  const headers = { cookie: cookieFrom(login) }
  assert.equal((await server.ask('/svc-status', { headers })).status, 200)
  await server.restart()
  assert.equal((await server.ask('/svc-status', { headers })).status, 200)
})

test('two logins at once with an empty secret share the one that is made', async (t) => {
  const server = await startPanel(t, { 'admin.secret': '' })
  const logins = await Promise.all([1, 2, 3].map(() => server.ask('/svc-login', form({ user, password }))))
  for (const login of logins) {
    assert.equal((await server.ask('/svc-status', { headers: { cookie: cookieFrom(login) } })).status, 200)
  }
})

test('in dev no endpoint requires a cookie, and signing in and out still works', async (t) => {
  const server = await startPanel(t, { 'app.env': 'dev' })
  const wrong = { headers: { cookie: 'svc_admin=1:2' } }
  assert.equal((await server.ask('/svc-status')).status, 200)
  assert.equal((await server.ask('/svc-status', wrong)).status, 200)
  const login = await server.ask('/svc-login', form({ user, password }))
  leadsTo(login, '/svc-status')
  says(await server.ask('/svc-login', form({ user, password: 'x' })), 401, 'Invalid credentials')
  leadsTo(await server.ask('/svc-logout', wrong), '/svc-login')
})

test('stop: running requests are completed, on connections that are then closed', async (t) => {
  let release = (): void => {}
  Object.assign(globalThis, { stopHeldByTest: new Promise<void>((resolve) => (release = resolve)) })
  t.after(() => Reflect.deleteProperty(globalThis, 'stopHeldByTest'))
  const server = await startPanel(
    t,
    { 'pool_http.workers': 1 },
    {
      'routes/a.json': [{ name: 'hold', url: '/hold', action: 'a.mjs' }],
      'a.mjs': 'export default async () => { await globalThis.stopHeldByTest; return "done" }',
    },
  )
  const [first, second, idle] = [
    new Connection(t, server.port),
    new Connection(t, server.port),
    new Connection(t, server.port),
  ]
  await idle.send(requestText('GET /svc-ping'))
  await idle.answers(1)
  await first.send(requestText('GET /hold'))
  await second.send(requestText('GET /hold'))
  const isQueued = async (): Promise<boolean> => {
    const { pool_http: pool } = (await server.askSignedIn('/svc-status')).json() as {
      pool_http: Record<string, number>
    }
    return pool['busy'] === 1 && pool['queue'] === 1
  }
  await until(isQueued)
  const stop = await server.askSignedIn('/svc-stop')
  assert.deepEqual([stop.status, stop.json(), stop.headers.connection], [200, { status: 'stopping' }, 'close'])
  await idle.send(requestText('GET /svc-ready'))
  const [, ready] = await idle.answers(2)
  assert.deepEqual([ready?.status, ready?.body, ready?.headers['connection']], [503, '{"status":"stopping"}', 'close'])
  release()
  for (const connection of [first, second]) {
    const answer = await connection.closed()
    assert.match(answer, /^HTTP\/1\.1 200 OK\r\n/)
    assert.match(answer, /\r\nConnection: close\r\n(?:.*\r\n)*\r\ndone$/i)
  }
  await server.app.stopped
})

test('run-time routes and reloads: absent, registered, absent again', async (t) => {
  const server = await startPanel(t, {}, greeting)
  const record = { name: 'late', url: '/late', action: 'hello.mjs' }
  assert.equal((await server.ask('/late')).status, 404)
  assert.equal((await server.post('/svc-routes/add', record)).status, 200)
  assert.equal((await server.ask('/late')).status, 200)
  assert.equal((await server.post('/svc-routes/delete', { name: 'late' })).status, 200)
  assert.equal((await server.ask('/late')).status, 404)
  await server.post('/svc-routes/add', record)
  const reload = (await server.askSignedIn('/svc-routes/reload')).json() as object
  assert.deepEqual(reload, { ok: true, total_deleted: 2, total_loaded: 1, added: [], removed: ['late'], changed: [] })
  assert.equal((await server.ask('/late')).status, 404)
  await server.post('/svc-routes/add', record)
  await server.restart()
  assert.equal((await server.ask('/late')).status, 404)
})

test('hand-written credentials in the file apply', async (t) => {
  const server = await startPanel(t, {
    ...none,
    admin: { user: credentials['admin.user'], password: credentials['admin.password'] },
    'admin.user': undefined,
    'admin.password': undefined,
    'admin.secret': undefined,
  })
  leadsTo(await server.ask('/svc-login', form({ user, password })), '/svc-status')
  const { admin } = server.saved() as { admin: Record<string, string> }
  assert.deepEqual(Object.keys(admin), ['user', 'password', 'secret'])
})
