import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { basename } from 'node:path'
import { test } from 'node:test'
import { changeConfig, cookieOf, nowSeconds, startPanel, type PanelServer } from './panel-server.ts'

const failing = {
  'routes/a.json': [
    { name: 'pay', url: '/pay/:id', method: 'GET', action: 'pay.mjs' },
    { name: 'fine', url: '/fine', method: 'GET', action: 'pay.mjs@fine' },
  ],
  'pay.mjs': `
    export default (ctx) => { throw new Error('Order ' + ctx.params.id + ' of "<b>" is gone') }
    export const fine = () => 'fine'
  `,
}

async function json(server: PanelServer, path: string): Promise<unknown> {
  const { status, json } = await server.askSignedIn(`${path}?format=json`)
  assert.equal(status, 200)
  return json()
}

const withAdmin = (cookie = ''): string => `${cookieOf(nowSeconds())}; ${cookie}`

/** Posts a form of the panel, and follows the redirect. */
async function pressed(server: PanelServer, path: string, fields: Record<string, string>) {
  const body = new URLSearchParams({ page: '1', ...fields }).toString()
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const answer = await server.askSignedIn(path, { method: 'POST', body, headers })
  const { status, headers: { location = '', 'set-cookie': cookies } } = answer
  assert.equal(status, 303)
  const [cookie = ''] = [cookies].flat()
  assert.match(cookie, new RegExp(`^svc_result=[\\w-]+; Max-Age=60; Path=${location.replace(/\?.*/, '')}; HttpOnly; SameSite=Strict$`))
  const page = await server.askSignedIn(location, { headers: { cookie: withAdmin(cookie.split(';')[0]) } })
  const [, kind, text] = /<p class="message (good|error) result" role="\w+">([^<]*)<\/p>/.exec(page.text) ?? []
  return { location, kind, text, page }
}

test('errors are grouped by cause, and cleared by a button, which leaves an audit line', async (t) => {
  const server = await startPanel(t, {}, failing)
  for (const id of [1, 2, 3]) assert.equal((await server.ask(`/pay/${id}`)).status, 500)
  const [group, ...others] = (await json(server, '/svc-errors')) as Record<string, unknown>[]
  assert.deepEqual(others, [])
  assert.deepEqual([group?.['count'], group?.['message'], group?.['routes']], [3, 'Error: Order # of "…" is gone', ['pay']])
  assert.match(String(group?.['place']), /pay\.mjs:2$/)
  assert.match(String(group?.['stack']), /Order 3 of "<b>"/)
  const { text } = await server.askSignedIn('/svc-errors')
  assert.match(text, /<strong>Error: Order # of &quot;…&quot; is gone<\/strong>/)
  assert.match(text, /id="error-count"[^>]*>1</)
  assert.ok(!text.includes('<b>'))
  const { location, kind, text: said } = await pressed(server, '/svc-errors/clear', {})
  assert.deepEqual([location, kind, said], ['/svc-errors', 'good', 'All errors cleared.'])
  assert.deepEqual(await json(server, '/svc-errors'), [])
  assert.ok(server.lines().some((line) => /INFO server errors cleared by 127\.0\.0\.1: 1 groups$/.test(line)))
})

test('the configuration shows the value and the source of each key, and for a secret whether it is set', async (t) => {
  const server = await startPanel(t, { 'log.max_files': 3, app_key: 'x'.repeat(20), 'pool_http.queue_size': 17 })
  const { keys, warnings } = (await json(server, '/svc-config')) as {
    keys: { key: string; value: unknown; source: string; warnings: string[] }[]
    warnings: string[]
  }
  const of = (name: string) => keys.find(({ key }) => key === name)
  assert.deepEqual([of('pool_http.queue_size')?.value, of('pool_ws.workers')?.source], [17, 'default'])
  assert.match(String(of('pool_http.queue_size')?.source), /^svc\.json, line \d+$/)
  assert.deepEqual([of('app_key')?.value, of('admin.secret')?.value, of('shared.url')?.value], ['set', 'set', 'empty'])
  assert.match(String(of('app_key')?.warnings), /fewer than 32 characters/)
  assert.deepEqual([of('app_key_previous')?.warnings, warnings], [[], []])
  const { text } = await server.askSignedIn('/svc-config')
  for (const secret of ['x'.repeat(20), '0123456789abcdef0123456789abcdef']) assert.ok(!text.includes(secret))
  assert.match(text, /queue_size<\/td>\s*<td[^>]*>17<\/td>\s*<td[^>]*>4096<\/td>\s*<td[^>]*>svc\.json, line \d+</)
})

test('the configuration shows what differs from the defaults first, and filters by words', async (t) => {
  const server = await startPanel(t, { 'pool_http.queue_size': 17, 'pool_ws.workers': 1000, 'admin.totp': '', app_key: 'x'.repeat(20) })
  const listed = async (query: string): Promise<[differing: string[], same: string[], text: string]> => {
    const { text } = await server.askSignedIn(`/svc-config${query}`)
    const [before = '', after = ''] = text.split('<details class="fold"')
    const keysIn = (part: string) => [...part.matchAll(/<td class="name">([^<]*)</g)].map(([, key = '']) => key)
    return [keysIn(before), keysIn(after), text]
  }
  const [differing, same, text] = await listed('')
  const set = ['app_key', 'server.port', 'admin.user', 'admin.password', 'admin.secret', 'log.console', 'pool_http.queue_size']
  assert.deepEqual(differing, set)
  for (const key of ['pool_ws.workers', 'admin.totp', 'server.host', 'settings']) assert.ok(same.includes(key), key)
  assert.ok(text.includes(`${same.length} keys have their default`) && text.includes(`>${same.length + set.length} keys<`))
  const [found, others, page] = await listed('?q=QUEUE+size')
  assert.deepEqual([found, others], [['pool_http.queue_size'], ['pool_rest.queue_size']])
  assert.ok(page.includes(`2 of ${same.length + set.length} keys`) && page.includes('<details class="fold" open>'))
  assert.match((await listed('?q=nothing+of+this'))[2], /No key has all of these words\./)
  const { keys } = (await server.askSignedIn('/svc-config?format=json&q=queue_size')).json() as { keys: unknown[] }
  assert.equal(keys.length, 2)
  const part = (await server.askSignedIn('/svc-config?q=app_key&part=results')).text
  assert.match(part, /^<div id="results" data-count="3 of/)
  assert.ok(!page.includes('x'.repeat(20)))
})

test('the errors show the frames of the application, fold the others, and link ids to their log lines', async (t) => {
  const server = await startPanel(t, {}, failing)
  const id = 'id-of-request_1.a'
  assert.equal((await server.ask('/pay/1', { headers: { 'x-request-id': id } })).status, 500)
  const { text } = await server.askSignedIn('/svc-errors')
  assert.ok(text.includes('1 cause, 1 error in the last hour.'))
  assert.ok(text.includes(`<a href="/svc-monitor#request=${id}">${id}</a>`))
  const [own = '', others = ''] = text.slice(text.indexOf('class="stack"')).split('<details>')
  assert.match(own, /<li>[^<]*pay\.mjs:2:\d+\)?<\/li>/)
  assert.ok(!own.includes('compose'))
  assert.match(others, /^\s*<summary>\d+ frames? of the server, packages and Node<\/summary>[^]*compose/)
  await server.post('/svc-errors/clear', {})
  assert.ok((await server.askSignedIn('/svc-errors')).text.includes('No errors since the start.'))
})

test('bar and title name the application and the machine, but not to those who are not signed in', async (t) => {
  const server = await startPanel(t)
  const folder = basename(server.folder)
  const { text } = await server.askSignedIn('/svc-changes')
  assert.ok(text.includes(`<title>Changes · ${folder} · ${hostname()}</title>`))
  assert.ok(text.includes(`<strong>${folder}</strong> ${hostname()}`))
  const browser = { accept: 'text/html', 'user-agent': 'Mozilla/5.0', cookie: 'svc_admin=1:forged' }
  for (const path of ['/svc-login', '/svc-logout']) {
    const page = await server.ask(path, { headers: browser })
    assert.match(page.text, /<title>[^<·]* · svc<\/title>/)
    assert.ok(!page.text.includes(folder) && !page.text.includes(hostname()), path)
  }
  changeConfig(server, { 'shared.name': 'shop' })
  await server.restart()
  assert.ok((await server.askSignedIn('/svc-changes')).text.includes(`<title>Changes · shop · ${hostname()}</title>`))
})

test('the page for the login says when there is nothing to log in to', async (t) => {
  const server = await startPanel(t, { 'app.env': 'dev' })
  assert.match((await server.ask('/svc-login')).text, /In dev the panel needs no login\.\n<a href="\/svc-monitor">/)
  const form = /<form class="card" method="post" action="\/svc-login">/
  assert.match((await server.ask('/svc-login')).text.split('<details class="fold">')[1] ?? '', form)
  const inProd = await startPanel(t)
  assert.match((await inProd.ask('/svc-login')).text, form)
  assert.doesNotMatch((await inProd.ask('/svc-login')).text, /needs no login|administrator/)
})

test('the configuration shows each setting in use with its source, and no secret', async (t) => {
  process.env['SVC_TEST_RELAY'] = 'relay.example'
  t.after(() => delete process.env['SVC_TEST_RELAY'])
  const mail = { host: { env: 'SVC_TEST_RELAY' }, pass: 'geheim', pin: 1234, token: '', url: 'smtp://a:geheim@b', key_ids: ['a'] }
  const server = await startPanel(t, { settings: { mail, hosts: [{ file: 'host' }, 'b'], none: {} }, setup: { csrf: { lapse: 9 } } }, {
    host: 'hidden.example',
    'routes/middleware/config.json': { load: ['m.mjs'], setup: { csrf: { lapse: 7, field: 'f' }, jwt: { key: 'geheim'.repeat(6) } } },
    'routes/middleware/m.mjs': `import { fields } from 'svc'
      export const settings = fields({ size: fields.integer().default(5), apiKey: fields.text().default('geheim') })`,
  })
  const { keys } = (await json(server, '/svc-config')) as { keys: { key: string; value: unknown; source: string }[] }
  const rows = keys.filter(({ key }) => /^(?:settings|setup)\b/.test(key)).map(({ key, value, source }) => [key, value, source])
  assert.deepEqual(rows, [
    ['settings.mail.host', 'set', 'env SVC_TEST_RELAY'],
    ['settings.mail.pass', 'set', 'svc.json, line 1'],
    ['settings.mail.pin', 'set', 'svc.json, line 1'],
    ['settings.mail.token', 'empty', 'svc.json, line 1'],
    ['settings.mail.url', 'set', 'svc.json, line 1'],
    ['settings.mail.key_ids.0', 'a', 'svc.json, line 1'],
    ['settings.hosts.0', 'set', 'file host'],
    ['settings.hosts.1', 'b', 'svc.json, line 1'],
    ['settings.none', {}, 'svc.json, line 1'],
    ['settings.size', 5, 'default of the schema'],
    ['settings.apiKey', 'set', 'default of the schema'],
    ['setup.csrf.lapse', 9, 'svc.json, line 1'],
    ['setup.csrf.field', 'f', 'config.json'],
    ['setup.jwt.key', 'set', 'config.json'],
  ])
  const { text } = await server.askSignedIn('/svc-config')
  for (const secret of ['geheim', 'relay.example', 'hidden.example', '1234']) {
    assert.ok(!text.includes(secret) && !server.lines().join().includes(secret), secret)
  }
  assert.match(text, /settings\.none<\/td>\s*<td[^>]*>\{\}</)
})

test('changes shows who changed what, also before the last restart', async (t) => {
  const server = await startPanel(t, {}, failing)
  const route = { name: 'new', url: '/new', method: 'GET', action: 'pay.mjs@fine' }
  await server.post('/svc-routes/add', route)
  await server.restart()
  await server.post('/svc-trace', { module: 'pool', enabled: false })
  const records = (await json(server, '/svc-changes')) as { seq: number; time: string; mac: string }[]
  const [traced, , , added] = records.map(({ seq, time, mac, ...rest }) => rest)
  assert.deepEqual(records.map(({ seq }) => seq), [5, 4, 3, 2, 1])
  const user = 'ann'
  assert.deepEqual(traced, { by: '127.0.0.1', user, what: 'trace of pool set', from: 'on', to: 'off' })
  assert.deepEqual(added, { by: '127.0.0.1', user, what: 'route "new" added', to: route })
  assert.match(String(records[0]?.time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d$/)
  const { text } = await server.askSignedIn('/svc-changes')
  assert.match(text, />127\.0\.0\.1, ann<[^]*>trace of pool set<[^]*>on<[^]*>off<[^]*>route &quot;new&quot; added</)
  assert.ok(server.lines().some((line) => /INFO server trace of pool set by 127\.0\.0\.1: from on to off$/.test(line)))
})

test('changes shows no forged changes, and failed sign-ins do not push changes out', async (t) => {
  const actions = { 'forge.mjs': "export default ({ logger }) => { logger('server').info('notices sorted by a date'); logger('server').info('route \"x\" added by 10.0.0.1: {}') }" }
  const routes = [{ name: 'forge', url: '/forge', method: 'GET', action: 'forge.mjs' }]
  const server = await startPanel(t, {}, { ...failing, ...actions, 'routes/f.json': routes })
  await server.ask('/forge')
  await server.post('/svc-trace', { module: 'pool', enabled: false })
  const form = { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'user=ann&password=wrong' }
  for (let time = 0; time < 3; time += 1) assert.equal((await server.ask('/svc-login', form)).status, 401)
  const records = (await json(server, '/svc-changes')) as { what: string }[]
  assert.deepEqual(records.map(({ what }) => what), ['trace of pool set', 'start'])
})

test('diff shows what a reload would change, and changes nothing', async (t) => {
  const server = await startPanel(t, {}, failing)
  const [pay, fine] = failing['routes/a.json']
  assert.deepEqual(await json(server, '/svc-routes/diff'), { ok: true, added: [], removed: [], changed: [] })
  await server.post('/svc-routes/add', { name: 'new', url: '/new', method: 'GET', action: 'pay.mjs@fine' })
  server.write({ 'routes/a.json': [{ ...pay, url: '/pays/:id' }, { ...fine, name: 'well' }] })
  const expected = { ok: true, added: ['well'], removed: ['fine', 'new'], changed: ['pay'] }
  assert.deepEqual(await json(server, '/svc-routes/diff'), expected)
  const { text } = await server.askSignedIn('/svc-routes/diff')
  assert.match(text, /&quot;\/pays\/:id&quot;/)
  assert.equal((await server.ask('/fine')).status, 200)
  const reloaded = (await server.post('/svc-routes/reload', {})).json() as Record<string, unknown>
  assert.deepEqual([reloaded['added'], reloaded['removed'], reloaded['changed']], [['well'], ['fine', 'new'], ['pay']])
  server.write({ 'routes/a.json': '[{' })
  const refused = (await json(server, '/svc-routes/diff')) as { ok: boolean; errors: { file: string }[] }
  assert.deepEqual([refused.ok, refused.errors[0]?.file], [false, 'a.json'])
  assert.match((await server.askSignedIn('/svc-routes/diff')).text, /A reload would be refused/)
})

test('a form of the panel adds, shows, matches and deletes a route, and keeps typed values when it is refused', async (t) => {
  const server = await startPanel(t, {}, failing)
  const typed = { name: 'new', url: '/new/:id', method: 'GET', action: 'pay.mjs@fine', middleware: '' }
  const added = await pressed(server, '/svc-routes/add', { ...typed, persist: 'true' })
  assert.deepEqual([added.location, added.kind, added.text], ['/svc-routes/list?record=new', 'good', 'Route new added.'])
  assert.match(added.page.text, /<pre[^>]*>\{\n {2}&quot;name&quot;: &quot;new&quot;/)
  assert.match(server.read('routes/admin.json'), /"\/new\/:id"/)
  const again = await pressed(server, '/svc-routes/add', { ...typed, url: '/"other"' })
  assert.equal(again.kind, 'error')
  assert.match(again.page.text, /value="\/&quot;other&quot;"/)
  const dry = await server.askSignedIn('/svc-routes/list?method=GET&path=/new/7')
  assert.match(dry.text, /Route new answers: GET \/new\/:id/)
  assert.match((await server.askSignedIn('/svc-routes/list?path=/nowhere')).text, /None answers \(404\)/)
  const record = await server.askSignedIn('/svc-routes/list?record=new')
  assert.match(record.text, /<pre[^>]*>\{\n {2}&quot;name&quot;: &quot;new&quot;/)
  const absent = await pressed(server, '/svc-routes/add', { ...typed, name: 'absent', url: '/absent', action: 'absent.mjs' })
  assert.equal(absent.kind, 'error')
  assert.match(String(absent.text), /^Route absent added, but: Cannot load absent\.mjs: there is no such file/)
  const gone = await pressed(server, '/svc-routes/delete', { name: 'new' })
  assert.deepEqual([gone.kind, gone.text], ['good', 'Route new deleted. If a route file has it, the next reload brings it back.'])
  assert.equal((await server.ask('/new/7')).status, 404)
})

for (const [path, fields, page, text] of [
  ['/svc-trace', { module: 'pool', enabled: 'false', ttl: '5' }, '/svc-monitor', 'The trace is switched.'],
  ['/svc-trace?mod=pool&on=0', {}, '/svc-monitor', 'The trace is switched.'],
  ['/svc-trace', { module: 'nobody', enabled: 'true' }, '/svc-monitor', /nobody/],
  ['/svc-cache-clear', {}, '/svc-monitor', 'View cache: 0 files deleted.'],
  ['/svc-bench-start', {}, '/svc-monitor', /bench window has begun/],
  ['/svc-bench-stop', {}, '/svc-monitor', /those of the bench window/],
  ['/svc-routes/reload', {}, '/svc-routes/list', '2 routes loaded.'],
  ['/svc-stop', {}, '/svc-monitor', 'The server is stopping.'],
] as const) {
  test(`a form of the panel gets a page from ${path} with ${JSON.stringify(fields)}`, async (t) => {
    const server = await startPanel(t, {}, failing)
    const result = await pressed(server, path, fields)
    assert.equal(result.location, page)
    if (typeof text === 'string') assert.equal(result.text, text)
    else assert.match(String(result.text), text)
    if (path === '/svc-stop') await server.app.stopped
  })
}

test('a result is shown once, only on its page, and an invalid cookie is ignored', async (t) => {
  const server = await startPanel(t)
  for (const value of ['x', Buffer.from('[1]').toString('base64url'), Buffer.from('null').toString('base64url')]) {
    const { status, text, headers } = await server.askSignedIn('/svc-errors', { headers: { cookie: withAdmin(`svc_result=${value}`) } })
    assert.equal(status, 200)
    assert.doesNotMatch(text, /<script>|class="message error result"[^>]*>undefined/)
    assert.match(String(headers['set-cookie']), /^svc_result=; Max-Age=0; Path=\/svc-errors/)
  }
})

test('a result waits for a displayed page: HEAD, a prefetch or a part of a page do not consume it', async (t) => {
  const server = await startPanel(t)
  const cookie = withAdmin(`svc_result=${Buffer.from('{"ok":true,"text":"Done."}').toString('base64url')}`)
  const setsCookie = async (path: string, method: string, headers: Record<string, string> = {}): Promise<boolean> =>
    (await server.askSignedIn(path, { method, headers: { cookie, ...headers } })).headers['set-cookie'] !== undefined
  assert.equal(await setsCookie('/svc-routes/list', 'HEAD'), false)
  assert.equal(await setsCookie('/svc-routes/list?part=results', 'GET'), false)
  assert.equal(await setsCookie('/svc-routes/list', 'GET', { 'sec-purpose': 'prefetch' }), false)
  assert.equal(await setsCookie('/svc-routes/list', 'GET'), true)
})

test('an odd name does not break the lists', async (t) => {
  const server = await startPanel(t, {}, failing)
  const route = { name: '\ud800', url: '/odd', method: 'GET', action: 'pay.mjs@fine' }
  assert.equal((await server.post('/svc-routes/add', route)).status, 200)
  for (const path of ['/svc-routes/list', '/svc-routes/listall', '/svc-index']) assert.equal((await server.askSignedIn(path)).status, 200)
  assert.match((await server.askSignedIn('/svc-routes/list?record=%EF%BF%BD')).text, /Delete this route/)
})

test('an audit line is written whatever the trace switches', async (t) => {
  const server = await startPanel(t, {}, failing)
  await server.post('/svc-trace', { module: 'all', enabled: false })
  await server.post('/svc-routes/delete', { name: 'fine' })
  const records = ((await json(server, '/svc-changes')) as { what: string; from: unknown }[]).map(({ what, from }) => [what, from])
  assert.deepEqual(records, [['route "fine" deleted', { ...failing['routes/a.json'][1], middleware: '', scope: '' }], ['trace of all set', 'on'], ['start', undefined]])
  const text = server.lines().join('\n')
  assert.match(text, /route "fine" deleted by 127\.0\.0\.1: it was \{/)
  assert.match(text, /trace of all set by 127\.0\.0\.1: from on to off/)
})

test('a form that is not UTF-8 is refused', async (t) => {
  const server = await startPanel(t, {}, failing)
  const body = Buffer.from([...Buffer.from('page=1&name=f'), 0xff, ...Buffer.from('&url=/f&action=pay.mjs')])
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  assert.equal((await server.askSignedIn('/svc-routes/add', { method: 'POST', body, headers })).status, 400)
})

test('a body without page=1 is JSON, whatever its content type', async (t) => {
  const server = await startPanel(t, {}, failing)
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const { status, json } = await server.askSignedIn('/svc-routes/delete', { method: 'POST', body: '{"name":"fine"}', headers })
  assert.deepEqual([status, json()], [200, { ok: true, name: 'fine' }])
})
