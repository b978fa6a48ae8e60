import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { publishedInsecureAppKey } from '../../lib/config/app-key.ts'
import { createApp } from '../support/app.ts'
import { startApplication, testKey } from '../support/application.ts'
import { request, type Answer } from '../support/request.ts'
import {
  cookieOf,
  credentials,
  greeting,
  md5,
  nowSeconds,
  password,
  startPanel,
  user,
  type PanelServer,
} from '../panel/panel-server.ts'
import { form, leadsTo } from './support.ts'

const none = { 'admin.user': '', 'admin.password': '', 'admin.secret': '' }
const wanted = { user, password, password2: password }

function isRefused(answer: Answer, reason: RegExp): void {
  assert.deepEqual([answer.status, answer.headers['content-type']], [500, 'text/html; charset=utf-8'])
  assert.match(answer.text, reason)
  assert.match(answer.text, /<form class="card" method="post"/)
  assert.equal(answer.headers['set-cookie'], undefined)
}

/** Files in the folder whose name begins with a dot: possible leftovers of a failed write. */
function leftovers(folder: string): string[] {
  return readdirSync(folder).filter((name) => name.endsWith('.tmp'))
}

test('of two concurrent setups one wins, and svc.json has all its values', async (t) => {
  const server = await startPanel(t, none)
  const names = ['ann', 'bob', 'cat', 'dan']
  const answers = await Promise.all(
    names.map((user) => server.ask('/svc-setup', form({ user, password: `of ${user}`, password2: `of ${user}` }))),
  )
  for (const answer of answers) leadsTo(answer, '/svc-login')
  const { 'admin.user': winner, 'admin.password': hash } = server.saved()
  assert.ok(names.includes(String(winner)))
  assert.equal(hash, md5(`of ${String(winner)}`))
  for (const user of names) {
    const { status } = await server.ask('/svc-login', form({ user, password: `of ${user}` }))
    assert.equal(status, user === winner ? 302 : 401)
  }
  const auditLines = server.lines().filter((line) => line.includes('set up by'))
  assert.deepEqual(auditLines, [
    `INFO server admin.user and admin.password set up by 127.0.0.1: from "" to "${String(winner)}"`,
  ])
})

test('a setup keeps unknown keys, their order, the form of each key and the mode of the file', async (t) => {
  const server = await startPanel(t, none)
  const file = join(server.folder, 'svc.json')
  for (const mode of [0o600, 0o640]) {
    const text =
      '{\n\t"mine": [1, 2.50],\n\t"admin": {"note": "kept", "user": ""},\n\t"server.port": 0,\n'
      + '\t"log.console": false,\n\t"zz": null\n}\n'
    writeFileSync(file, text)
    chmodSync(file, mode)
    await server.restart()
    leadsTo(await server.ask('/svc-setup', form(wanted)), '/svc-login')
    const { admin, app_key: key } = server.saved() as { admin: Record<string, string>; app_key: string }
    const { note, user: savedUser, password: hash, secret } = admin
    assert.deepEqual([note, savedUser, hash], ['kept', user, md5(password)])
    const hashes = `"password": "${hash}", "secret": "${secret}"`
    assert.equal(
      server.read('svc.json'),
      text.replace('"user": ""', `"user": "ann", ${hashes}`).replace('\n}', `,\n\t"app_key": "${key}"\n}`),
    )
    assert.equal(statSync(file).mode & 0o777, mode)
    assert.deepEqual(leftovers(server.folder), [])
  }
})

test('setup saves the app_key of prod with the credentials, and the warning disappears', async (t) => {
  const server = await startPanel(t, { ...none, app_key: '' })
  assert.match(server.app.warnings().join(), /app_key is empty/)
  leadsTo(await server.ask('/svc-setup', form(wanted)), '/svc-login')
  assert.ok(String(server.saved()['app_key']).length >= 43)
  assert.deepEqual(server.app.warnings(), [])
  const login = await server.ask('/svc-login', form({ user, password }))
  const headers = { cookie: login.headers['set-cookie']?.[0]?.split(';')[0] ?? '' }
  assert.deepEqual(((await server.ask('/svc-status', { headers })).json() as { warnings: string[] }).warnings, [])
  await server.restart()
  assert.deepEqual(server.app.warnings(), [])
  assert.equal((await server.ask('/svc-status', { headers })).status, 200)
})

test('setup keeps the warning about a key in app_key_previous', async (t) => {
  const server = await startPanel(t, { ...none, app_key: '', app_key_previous: [publishedInsecureAppKey] })
  assert.equal(server.app.warnings().length, 2)
  leadsTo(await server.ask('/svc-setup', form(wanted)), '/svc-login')
  assert.match(server.app.warnings().join('|'), /^app_key_previous holds the published default[^|]*$/)
})

test('setup in dev, or with an app_key, writes no app_key', async (t) => {
  const dev = await startPanel(t, { ...none, app_key: '', 'app.env': 'dev' })
  leadsTo(await dev.ask('/svc-setup', form(wanted)), '/svc-login')
  assert.deepEqual([dev.saved()['admin.user'], dev.saved()['app_key']], [user, ''])
  const own = await startPanel(t, none)
  leadsTo(await own.ask('/svc-setup', form(wanted)), '/svc-login')
  assert.equal(own.saved()['app_key'], testKey)
})

/** Ways to make `svc.json` unwritable, as root or not, and how to repair it. */
const obstacles: readonly [
  what: string,
  reason: RegExp,
  spoil: (folder: string) => void,
  mend: (folder: string) => void,
][] = [
  [
    'a folder instead of the file',
    /Cannot (?:save|load) \S+svc\.json: it is (?:not a regular file|a folder)/,
    (folder) => {
      renameSync(join(folder, 'svc.json'), join(folder, 'kept'))
      mkdirSync(join(folder, 'svc.json'))
    },
    (folder) => {
      rmSync(join(folder, 'svc.json'), { recursive: true })
      renameSync(join(folder, 'kept'), join(folder, 'svc.json'))
    },
  ],
  [
    'its folder removed',
    /Cannot save \S+svc\.json: ENOENT: .*; the folder does not exist/,
    (folder) => renameSync(folder, `${folder}-away`),
    (folder) => {
      rmSync(folder, { recursive: true, force: true })
      renameSync(`${folder}-away`, folder)
    },
  ],
  [
    'invalid JSON in it',
    /Cannot (?:save|load) \S+svc\.json: it is not valid JSON at line 1, column 2/,
    (folder) => {
      renameSync(join(folder, 'svc.json'), join(folder, 'kept'))
      writeFileSync(join(folder, 'svc.json'), '{')
    },
    (folder) => renameSync(join(folder, 'kept'), join(folder, 'svc.json')),
  ],
]

for (const [what, reason, spoil, mend] of obstacles) {
  test(`an unwritable svc.json, ${what}: 500, the page shows the reason, nothing changes, and a later attempt succeeds`, async (t) => {
    const server = await startPanel(t, { ...none, app_key: '' })
    spoil(server.folder)
    isRefused(await server.ask('/svc-setup', form(wanted)), reason)
    leadsTo(await server.ask('/svc-status'), '/svc-setup')
    assert.match(server.app.warnings().join(), /app_key is empty/)
    mend(server.folder)
    assert.deepEqual([server.saved()['admin.user'], server.saved()['app_key']], ['', ''])
    assert.deepEqual(leftovers(server.folder), [])
    assert.ok(server.lines().some((line) => line.startsWith('ERROR server the admin credentials could not be saved')))
    leadsTo(await server.ask('/svc-setup', form(wanted)), '/svc-login')
    leadsTo(await server.ask('/svc-login', form({ user, password })), '/svc-status')
  })

  test(`a secret that cannot be written, ${what}: nobody is logged in, and a later attempt succeeds`, async (t) => {
    const server = await startPanel(t, { 'admin.secret': '' })
    spoil(server.folder)
    isRefused(await server.ask('/svc-login', form({ user, password })), reason)
    leadsTo(
      await server.ask('/svc-status', { headers: { cookie: cookieOf(nowSeconds(), '') } }),
      '/svc-login?next=/svc-status',
    )
    mend(server.folder)
    assert.equal(server.saved()['admin.secret'], '')
    leadsTo(await server.ask('/svc-login', form({ user, password })), '/svc-status')
    assert.match(String(server.saved()['admin.secret']), /^[0-9a-f]{32}$/)
  })
}

test('credentials written while the server runs are not overwritten by a setup: they apply from then on', async (t) => {
  const server = await startPanel(t, none)
  server.write({ 'svc.json': { ...server.saved(), ...credentials } })
  const file = server.read('svc.json')
  const intruder = { user: 'eve', password: 'eves own', password2: 'eves own' }
  leadsTo(await server.ask('/svc-setup', form(intruder)), '/svc-login')
  assert.equal(server.read('svc.json'), file)
  assert.equal((await server.ask('/svc-login', form(intruder))).status, 401)
  leadsTo(await server.ask('/svc-login', form({ user, password })), '/svc-status')
  assert.equal((await server.ask('/svc-status', { headers: { cookie: cookieOf(nowSeconds()) } })).status, 200)
})

test('without a file nothing is written before the setup, which creates it only for the owner', async (t) => {
  const { folder } = await startApplication(t, {})
  assert.ok(!existsSync(join(folder, 'svc.json')))
  const file = join(folder, 'made.json')
  const app = createApp({ folder, configFile: file, config: { 'server.port': 0, 'log.console': false } })
  t.after(async () => {
    await app.stop()
    app.closeLogs()
  })
  const { url } = await app.start()
  assert.ok(!existsSync(file))
  leadsTo(await request(`${url}/svc-setup`, form(wanted)), '/svc-login')
  assert.equal(statSync(file).mode & 0o777, 0o600)
})

test('an embedded server without a file keeps its credentials in memory', async (t) => {
  const { url, folder } = await startApplication(t, {}, none)
  leadsTo(await request(`${url}/svc-setup`, form(wanted)), '/svc-login')
  leadsTo(await request(`${url}/svc-login`, form({ user, password })), '/svc-status')
  assert.ok(!existsSync(join(folder, 'svc.json')))
})

const late = { name: 'late', url: '/late', action: 'hello.mjs' }

function isUnsaved(answer: Answer, reason: RegExp): void {
  const { error } = answer.json() as { error: string }
  assert.match(error, reason)
  assert.deepEqual([answer.status, answer.json()], [500, { ok: false, error, name: 'late' }])
}

async function isRegistered(server: PanelServer): Promise<boolean> {
  return (await server.ask('/late')).status === 200
}

test('an unusable admin.json: 500 with the reason, and the route is not registered', async (t) => {
  const server = await startPanel(t, {}, greeting)
  const file = join(server.folder, 'routes/admin.json')
  mkdirSync(file)
  isUnsaved(await server.post('/svc-routes/add', { ...late, persist: true }), /^Cannot load \S+admin\.json: it is not a regular file$/)
  rmSync(file, { recursive: true })
  for (const [text, reason] of [
    ['{}', /it is not an array of route records/],
    ['[', /it is not valid JSON at line 1/],
    ['', /it is empty: write \[\] for no routes$/],
  ] as const) {
    writeFileSync(file, text)
    isUnsaved(await server.post('/svc-routes/add', { ...late, persist: true }), reason)
    assert.equal(server.read('routes/admin.json'), text)
    assert.ok(!(await isRegistered(server)))
  }
  rmSync(file)
  renameSync(join(server.folder, 'routes'), join(server.folder, 'away'))
  isUnsaved(await server.post('/svc-routes/add', { ...late, persist: true }), /^Cannot save \S+admin\.json: ENOENT/)
  renameSync(join(server.folder, 'away'), join(server.folder, 'routes'))
  assert.ok(!(await isRegistered(server)))
  assert.equal((await server.post('/svc-routes/add', { ...late, persist: true })).status, 200)
  assert.ok(await isRegistered(server))
})

test('a route stays if it cannot be removed from admin.json', async (t) => {
  const server = await startPanel(t, {}, greeting)
  await server.post('/svc-routes/add', { ...late, persist: true })
  writeFileSync(join(server.folder, 'routes/admin.json'), '[')
  isUnsaved(
    await server.post('/svc-routes/delete', { name: 'late' }),
    /^Cannot load \S+admin\.json: it is not valid JSON/,
  )
  assert.ok(await isRegistered(server))
})

test('admin.json keeps existing records in their order, and is replaced atomically', async (t) => {
  const records = [
    { name: 'own', url: '/own', action: 'hello.mjs', note: 'mine' },
    { name: 'late', url: '/old', action: 'hello.mjs', bad: 1 },
  ]
  const server = await startPanel(t, {}, { ...greeting, 'routes/admin.json': records })
  await server.post('/svc-routes/delete', { name: 'late' })
  const { ino } = statSync(join(server.folder, 'routes/admin.json'))
  assert.equal((await server.post('/svc-routes/add', { ...late, method: 'get, post', persist: true })).status, 200)
  const stored = { name: 'late', url: '/late', action: 'hello.mjs', method: 'GET,POST', middleware: '', scope: '' }
  assert.deepEqual(JSON.parse(server.read('routes/admin.json')), [records[0], stored])
  assert.notEqual(statSync(join(server.folder, 'routes/admin.json')).ino, ino)
  assert.deepEqual(leftovers(join(server.folder, 'routes')), [])
  const reload = (await server.askSignedIn('/svc-routes/reload')).json() as { changed: string[]; added: string[] }
  assert.deepEqual([reload.added, reload.changed], [[], []])
})

test('a cookie survives a restart, since the server keeps no list', async (t) => {
  const server = await startPanel(t, credentials)
  const headers = { cookie: cookieOf(nowSeconds()) }
  await server.restart()
  assert.equal((await server.ask('/svc-status', { headers })).status, 200)
})
