import assert from 'node:assert/strict'
import { existsSync, readdirSync, symlinkSync } from 'node:fs'
import { test } from 'node:test'
import type { Answer } from '../support/request.ts'
import { greeting, startPanel, type PanelServer } from './panel-server.ts'

const late = { name: 'late', url: '/late', method: 'GET', action: 'hello.mjs@late' }
const files = { ...greeting, 'hello.mjs': `${greeting['hello.mjs'] as string}export const late = () => 'late'\n` }
const stored = { name: 'late', url: '/late', action: 'hello.mjs@late', method: 'GET', middleware: '', scope: '' }

function is(answer: Answer, status: number, body: unknown): void {
  assert.deepEqual(
    [answer.status, answer.headers['content-type']],
    [status, 'application/json; charset=utf-8'],
    answer.text,
  )
  assert.deepEqual(answer.json(), body)
}

async function names(server: PanelServer, list = 'list'): Promise<string[]> {
  const records = (await server.askSignedIn(`/svc-routes/${list}?format=json`)).json() as { name: string }[]
  return records.map(({ name }) => name)
}

test('an added route serves at once, also if a view or a module is created later', async (t) => {
  const server = await startPanel(t, {}, files)
  is(await server.post('/svc-routes/add', late), 200, { ok: true, name: 'late' })
  assert.equal((await server.ask('/late')).text, 'late')
  is(await server.post('/svc-routes/add', { name: 'soon', pattern: '/soon', action: 'soon.html' }), 200, {
    ok: true,
    name: 'soon',
    warning: (
      (await server.post('/svc-routes/add', { name: 'soon2', url: '/soon2', action: 'soon.html' })).json() as {
        warning: string
      }
    ).warning,
  })
  assert.equal((await server.ask('/soon')).status, 500)
  server.write({ 'soon.html': 'now' })
  assert.equal((await server.ask('/soon')).text, 'now')
})

test('the body is read as JSON whatever its content type', async (t) => {
  const server = await startPanel(t, {}, files)
  const types = [
    'application/x-www-form-urlencoded',
    'text/plain;charset=UTF-16',
    'multipart/form-data; boundary=x',
    'nonsense',
  ]
  for (const [at, type] of types.entries()) {
    const answer = await server.post('/svc-routes/add', { ...late, name: `r${at}` }, { 'content-type': type })
    assert.equal(answer.status, 200, `${type}: ${answer.text}`)
  }
})

const notObjects = ['', ' ', '{', '{"name":"a"', '[]', 'null', '"text"', '1', 'name=a', '\u0000', '{}{}']

test('a body that is not a JSON object is 400 for add, delete and trace', async (t) => {
  const server = await startPanel(t, {}, files)
  for (const path of ['/svc-routes/add', '/svc-routes/delete', '/svc-trace']) {
    for (const body of [...notObjects, Buffer.from([0x7b, 0xff, 0x7d])]) {
      const answer = await server.askSignedIn(path, { method: 'POST', body })
      const { ok, error, ...rest } = answer.json() as { ok: boolean; error: string }
      assert.deepEqual([answer.status, ok, rest], [400, false, {}], `${path} ${JSON.stringify(body)}: ${answer.text}`)
      assert.ok(typeof error === 'string' && error.length > 10, error)
    }
  }
  assert.deepEqual(await names(server), ['hello'])
})

const refused: readonly [what: string, status: number, record: object, error: RegExp][] = [
  ['a reserved name', 400, { ...late, name: 'svc.mine' }, /must not begin with "svc\."/],
  ['a reserved name with much else wrong', 400, { name: 'svc.' }, /must not begin with "svc\."/],
  ['no name', 409, { url: '/a', action: 'hello.mjs' }, /^name is missing/],
  ['an empty name', 409, { ...late, name: '' }, /^name must not be empty/],
  ['a name that is no text', 409, { ...late, name: 5 }, /^name must be a string: it is 5/],
  ['no url', 409, { name: 'a', action: 'hello.mjs' }, /^url is missing/],
  ['no action', 409, { name: 'a', url: '/a' }, /^action is missing/],
  ['everything missing', 409, {}, /name is missing.*; url is missing.*; action is missing/],
  ['a bad pattern', 409, { ...late, url: 'late' }, /late/],
  ['a bad parameter', 409, { ...late, url: '/a/:b/:b' }, /b/],
  ['url and pattern that differ', 409, { ...late, pattern: '/other' }, /two names of one field/],
  ['a bad method', 409, { ...late, method: 'GET POST' }, /^method must be/],
  ['unknown middleware', 409, { ...late, middleware: 'SVC_Mw' }, /^middleware "SVC_Mw" is not known/],
  ['an action outside the root', 409, { ...late, action: '../../etc/passwd' }, /^action must be a path below/],
  ['a link that leads out of the root', 409, { ...late, action: 'out.mjs' }, /^action must not be a link that leads out of /],
  ['a view that is one', 409, { ...late, action: 'out.html' }, /^action must not be a link that leads out of /],
  ['an absolute action', 409, { ...late, action: '/etc/passwd' }, /^action must be a path below/],
  ['a name that is taken', 409, { ...late, name: 'hello' }, /the name is taken/],
  ['persist that is no boolean', 409, { ...late, persist: 'yes' }, /^persist must be true or false: it is "yes"/],
]

for (const [what, status, record, error] of refused) {
  test(`add refuses ${what} with ${status}`, async (t) => {
    const server = await startPanel(t, {}, files)
    for (const name of ['out.mjs', 'out.html']) symlinkSync('/etc/hostname', `${server.folder}/${name}`)
    const answer = await server.post('/svc-routes/add', record)
    const body = answer.json() as { ok: boolean; error: string; name?: string }
    assert.equal(answer.status, status, answer.text)
    assert.match(body.error, error)
    const { name = '' } = record as { name?: unknown }
    const rest = status === 400 ? {} : { name: typeof name === 'string' ? name : '' }
    assert.deepEqual(body, { ok: false, error: body.error, ...rest })
    assert.deepEqual(await names(server), ['hello'])
    assert.ok(!existsSync(`${server.folder}/routes/admin.json`))
  })
}

const warned: readonly [what: string, record: object, warning: RegExp][] = [
  ['whose action file is not there yet', { ...late, action: 'nowhere.mjs' }, /nowhere\.mjs/],
  ['whose action is of an unknown kind', { ...late, action: 'hello.exe' }, /hello\.exe/],
  ['whose export is not there', { ...late, action: 'hello.mjs@none' }, /none/],
  [
    'that another route hides',
    { ...late, url: '/hello/:other' },
    /route "hello" answers this method and pattern already/,
  ],
  [
    'that a system route hides',
    { ...late, url: '/svc-ping' },
    /route "svc\.ping" answers this method and pattern already/,
  ],
  [
    'with a field that nobody knows',
    { ...late, methods: 'GET' },
    /"methods" is not known and is ignored: did you mean "method"/,
  ],
  ['with a method that nobody can send', { ...late, method: 'FETCH' }, /"FETCH" is not one that this server can receive/],
]

for (const [what, record, warning] of warned) {
  test(`add takes a route ${what}, with a warning`, async (t) => {
    const server = await startPanel(t, {}, files)
    const answer = await server.post('/svc-routes/add', record)
    const body = answer.json() as { warning: string }
    assert.match(body.warning, warning)
    is(answer, 200, { ok: true, name: 'late', warning: body.warning })
    assert.deepEqual(await names(server), ['hello', 'late'])
  })
}

test('of many concurrent adds of one name one wins', async (t) => {
  const server = await startPanel(t, {}, files)
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => server.post('/svc-routes/add', { ...late, persist: true })),
  )
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409, 409, 409, 409, 409, 409])
  assert.deepEqual(JSON.parse(server.read('routes/admin.json')), [stored])
})

test('delete removes a route and exposes the one it shadowed; an unknown name is not an error', async (t) => {
  const server = await startPanel(t, {}, files)
  await server.post('/svc-routes/add', { ...late, name: 'second', url: '/hello/:who' })
  assert.equal((await server.ask('/hello/bob')).text, 'hello bob')
  is(await server.post('/svc-routes/delete', { name: 'hello' }), 200, { ok: true, name: 'hello' })
  assert.equal((await server.ask('/hello/bob')).text, 'late')
  for (const name of ['hello', 'never', '__proto__', 'x'.repeat(1000)]) {
    is(await server.post('/svc-routes/delete', { name }), 200, { ok: true, name })
  }
})

test('delete without a name, or of a system route, is 400', async (t) => {
  const server = await startPanel(t, {}, files)
  const missing = 'name is missing: it must be the name of a route'
  for (const body of [{}, { name: '' }, { name: null }, { name: 5 }, { name: ['hello'] }]) {
    is(await server.post('/svc-routes/delete', body), 400, { ok: false, error: missing })
  }
  for (const name of ['svc.ping', 'svc.none', 'svc.']) {
    is(await server.post('/svc-routes/delete', { name }), 400, {
      ok: false,
      error: `"${name}" is a system route: it cannot be removed`,
    })
  }
  assert.ok((await names(server, 'listall')).includes('svc.ping'))
})

test('a persisted route is in admin.json and survives restart and reload; delete removes it there', async (t) => {
  const server = await startPanel(t, {}, files)
  await server.post('/svc-routes/add', { ...late, name: 'volatile', url: '/volatile' })
  is(await server.post('/svc-routes/add', { ...late, persist: true }), 200, { ok: true, name: 'late' })
  assert.equal(server.read('routes/admin.json'), `[\n  ${JSON.stringify(stored)}\n]\n`)
  is(await server.askSignedIn('/svc-routes/reload'), 200, {
    ok: true,
    total_deleted: 3,
    total_loaded: 2,
    added: [],
    removed: ['volatile'],
    changed: [],
  })
  await server.restart()
  assert.deepEqual(await names(server), ['hello', 'late'])
  assert.equal((await server.ask('/late')).text, 'late')
  is(await server.post('/svc-routes/delete', { name: 'late' }), 200, { ok: true, name: 'late' })
  assert.deepEqual(JSON.parse(server.read('routes/admin.json')), [])
  await server.restart()
  assert.deepEqual(await names(server), ['hello'])
  assert.deepEqual(readdirSync(`${server.folder}/routes`).sort(), ['.keep', 'a.json', 'admin.json'])
})

test('a name that a route file has is not persisted a second time: the next reload would fail', async (t) => {
  const server = await startPanel(t, {}, files)
  await server.post('/svc-routes/delete', { name: 'hello' })
  const record = { ...late, name: 'hello' }
  const answer = await server.post('/svc-routes/add', { ...record, persist: true })
  const { error } = answer.json() as { error: string }
  is(answer, 409, { ok: false, error, name: 'hello' })
  assert.match(error, /a\.json/)
  is(await server.post('/svc-routes/add', record), 200, { ok: true, name: 'hello' })
  assert.equal((await server.askSignedIn('/svc-routes/reload')).status, 200)
})

test('a reload reports what was added, removed and changed', async (t) => {
  const server = await startPanel(
    t,
    {},
    {
      ...files,
      'routes/b.json': [
        { name: 'same', url: '/same', action: 'hello.mjs' },
        { name: 'other', url: '/other', action: 'hello.mjs' },
        { name: 'gone', url: '/gone', action: 'hello.mjs' },
      ],
    },
  )
  server.write({
    'routes/b.json': [
      { name: 'same', pattern: '/same', method: '*', action: 'hello.mjs' },
      { name: 'other', url: '/other', method: 'POST', action: 'hello.mjs' },
      { name: 'new', url: '/new', action: 'hello.mjs@late' },
      { name: 'waits', url: '/waits', action: 'later.mjs' },
    ],
  })
  const answer = await server.askSignedIn('/svc-routes/reload')
  const { warnings } = answer.json() as { warnings: string[] }
  is(answer, 200, {
    ok: true,
    total_deleted: 4,
    total_loaded: 5,
    added: ['new', 'waits'],
    removed: ['gone'],
    changed: ['other'],
    warnings,
  })
  assert.equal(warnings.length, 1)
  assert.match(warnings[0] ?? '', /^b\.json:1:224: route "waits": .*later\.mjs/)
  assert.equal((await server.ask('/new')).text, 'late')
  assert.equal((await server.ask('/gone')).status, 404)
})

test('a reload with any problem is 409 with every problem, and the old table stays', async (t) => {
  const server = await startPanel(t, {}, files)
  await server.post('/svc-routes/add', late)
  server.write({
    'routes/a.json': [
      { name: 'hello', url: '/hello/:name', action: 'hello.mjs' },
      { name: 'hello', url: '/b', action: 'hello.mjs' },
    ],
    'routes/b.json': '{',
    'routes/c.json': [
      { name: 'svc.mine', url: '/c', action: 'hello.mjs' },
      { url: '/d', action: 'hello.mjs' },
    ],
  })
  const answer = await server.askSignedIn('/svc-routes/reload')
  const { error, errors } = answer.json() as {
    error: string
    errors: { file: string; index: number | null; name: string; error: string }[]
  }
  is(answer, 409, { ok: false, error, errors })
  assert.match(error, /^Cannot reload the routes, so the old ones stay: /)
  const places = errors.map(({ file, index, name }) => [file, index, name])
  assert.deepEqual(places, [
    ['a.json', 1, 'hello'],
    ['b.json', null, ''],
    ['c.json', 0, 'svc.mine'],
    ['c.json', 1, ''],
  ])
  for (const problem of errors) assert.ok(problem.error.length > 10 && Object.keys(problem).length === 4)
  assert.deepEqual(await names(server), ['hello', 'late'])
  assert.equal((await server.ask('/late')).text, 'late')
})

test('while routes are reloaded no request gets a 404', async (t) => {
  const server = await startPanel(t, {}, files)
  let reloading = true
  const reloads = (async () => {
    for (let count = 0; count < 20; count += 1)
      assert.equal((await server.askSignedIn('/svc-routes/reload')).status, 200)
    reloading = false
  })()
  let asked = 0
  while (reloading) {
    const { status, text } = await server.ask('/hello/bob')
    assert.deepEqual([status, text], [200, 'hello bob'])
    asked += 1
  }
  await reloads
  assert.ok(asked > 0)
})

test('the lists as JSON are route records: of the application, or all', async (t) => {
  const server = await startPanel(t, {}, files)
  const list = await server.askSignedIn('/svc-routes/list?format=json')
  is(list, 200, [{ name: 'hello', url: '/hello/:name', action: 'hello.mjs', method: 'GET', middleware: '', scope: '' }])
  const all = await names(server, 'listall')
  assert.deepEqual([all.at(0), all.at(-1), all.length], ['svc.ping', 'hello', 38]) // With svc.live.
})

test('an odd name and pattern are escaped in the listings', async (t) => {
  const server = await startPanel(t, {}, files)
  const odd = { name: '<script>alert(1)</script>', url: '/<b>"\'&', action: 'hello.mjs' }
  assert.equal((await server.post('/svc-routes/add', odd)).status, 200)
  for (const path of ['/svc-index', '/svc-routes/list', '/svc-routes/listall', '/svc-monitor']) {
    const { text } = await server.askSignedIn(path)
    assert.ok(!text.includes('<script>alert') && !text.includes('<b>"'), path)
  }
})

const matches: readonly [query: string, status: number, body: object][] = [
  ['path=/hello/a%2520b', 200, { ok: true, matched: true, route: 'hello', params: { name: 'a b' } }],
  ['method=get&path=/hello/x%3Fq=1', 200, { ok: true, matched: true, route: 'hello', params: { name: 'x' } }],
  ['method=HEAD&path=/hello/x/', 200, { ok: true, matched: true, route: 'hello', params: { name: 'x' } }],
  ['path=/svc-ping', 200, { ok: true, matched: true, route: 'svc.ping', params: {} }],
  ['path=/none', 200, { ok: true, matched: false, status: 404, reason: 'no pattern matches the path' }],
  [
    'method=POST&path=/hello/x',
    200,
    {
      ok: true,
      matched: false,
      status: 405,
      reason: 'the path takes GET, HEAD, OPTIONS',
      allow: ['GET', 'HEAD', 'OPTIONS'],
    },
  ],
  [
    'method=OPTIONS&path=/hello/x',
    200,
    {
      ok: true,
      matched: false,
      status: 204,
      reason: 'the path takes GET, HEAD, OPTIONS',
      allow: ['GET', 'HEAD', 'OPTIONS'],
    },
  ],
  [
    'path=/hello/%25zz',
    200,
    { ok: true, matched: false, status: 400, reason: 'The path has a wrong percent-encoding in "%zz"' },
  ],
  ['', 400, { ok: false, error: 'path must begin with /: it is ""' }],
  ['path=none', 400, { ok: false, error: 'path must begin with /: it is "none"' }],
]

test('a dry match reports which route would answer, with its parameters, or why none would', async (t) => {
  const server = await startPanel(t, {}, files)
  for (const [query, status, body] of matches) {
    const answer = await server.askSignedIn(`/svc-routes/match?${query}`)
    const found = answer.json() as { route?: { name: string } }
    assert.deepEqual(
      [answer.status, found.route === undefined ? found : { ...found, route: found.route.name }],
      [status, body],
      query,
    )
  }
})

test('a dry match of a badly encoded path has status and reason of the 400 that a request would get', async (t) => {
  const server = await startPanel(t, {}, files)
  const headers = { accept: 'application/json' }
  const dry = await server.askSignedIn('/svc-routes/match?path=/hello/%25zz')
  const real = await server.ask('/hello/%zz', { headers })
  const { status, reason } = dry.json() as { status: number; reason: string }
  const { detail } = real.json() as { detail: string }
  assert.deepEqual([status, reason], [real.status, detail])
  assert.deepEqual([dry.status, status], [200, 400])
})
