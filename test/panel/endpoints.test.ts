import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemRoutes } from '../../lib/panel/table.ts'
import { traceModules } from '../../lib/log/trace.ts'
import { serverName } from '../../lib/base/version.ts'
import type { Answer } from '../support/request.ts'
import { until } from '../support/until.ts'
import { greeting, startPanel, type PanelServer } from './panel-server.ts'
import { endpoints, isJson } from '../access/support.ts'

const json = 'application/json; charset=utf-8'
const html = 'text/html; charset=utf-8'
const dev = { 'app.env': 'dev', 'admin.user': '', 'admin.password': '', 'admin.secret': '' }

function isPage(answer: Answer, ...texts: readonly string[]): void {
  assert.equal(answer.status, 200, answer.text)
  assert.equal(answer.headers['content-type'], html)
  for (const text of texts) assert.ok(answer.text.includes(text), `the page lacks ${text}`)
}

/** Requests every endpoint that answers at once and keeps the server running, in an order without side effects. */
async function asksEverything(server: PanelServer): Promise<void> {
  const on = Object.fromEntries(traceModules.map((module) => [module, true]))
  const off = Object.fromEntries(traceModules.map((module) => [module, false]))
  const ask = (path: string) => server.askSignedIn(path)
  isJson(await ask('/svc-ping'), { status: 'ok', server: serverName })
  isJson(await ask('/svc-ready'), { status: 'ready' })
  isPage(await ask('/svc-monitor'), '<title>Monitor')
  isPage(await ask('/svc-index'), '<title>Routes', '/svc-routes/listall', '/hello/:name', 'Open hello')
  isJson(await ask('/svc-trace'), on)
  isJson(await ask('/svc-trace?mod=pool&on=0'), { ...on, pool: false })
  isJson(await ask('/svc-trace?mod=all&on=0'), off)
  isJson(await ask('/svc-trace?mod=pool'), { ...off, pool: true })
  isJson(await server.post('/svc-trace', { module: 'all', enabled: true }), on)
  isJson(await server.post('/svc-trace', { module: 'error', enabled: false }), { ...on, error: false })
  isJson(await ask('/svc-trace'), { ...on, error: false })
  isJson(await ask('/svc-bench-start'), { bench: 'start' })
  const bench = (await ask('/svc-bench-stop')).json() as { bench: string; metrics: Record<string, unknown> }
  assert.deepEqual(Object.keys(bench), ['bench', 'metrics'])
  assert.equal(bench.bench, 'stop')
  const status = await ask('/svc-status')
  assert.equal(status.headers['content-type'], json)
  assert.deepEqual(Object.keys(bench.metrics), Object.keys(status.json() as object))
  const added = { name: 'late', url: '/late', action: 'hello.mjs', summary: 'Comes late', description: 'a\nb', deprecated: true, hidden: true }
  isJson(await server.post('/svc-routes/add', added), { ok: true, name: 'late' })
  const listed = (await ask('/svc-routes/list?format=json')).json() as { name: string }[]
  assert.deepEqual(listed.find(({ name }) => name === 'late'), { ...added, method: '*', middleware: '', scope: '' })
  isPage(await ask('/svc-routes/list'), 'hello', '/hello/:name', 'hello.mjs', '/late')
  assert.ok(!(await ask('/svc-routes/list')).text.includes('svc.ping'))
  isPage(await ask('/svc-routes/listall'), 'svc.ping', '/hello/:name')
  isJson(await server.post('/svc-routes/delete', { name: 'late' }), { ok: true, name: 'late' })
  isJson(await ask('/svc-routes/reload'), {
    ok: true,
    total_deleted: 1,
    total_loaded: 1,
    added: [],
    removed: [],
    changed: [],
  })
  isJson(await ask('/svc-routes/match?path=/hello/bob'), {
    ok: true,
    matched: true,
    route: { name: 'hello', url: '/hello/:name', action: 'hello.mjs', method: 'GET', middleware: '', scope: '' },
    params: { name: 'bob' },
  })
  isPage(await ask('/svc-login'), '<form', 'name="user"', 'name="password"', 'name="next"')
  const metrics = await ask('/svc-metrics')
  assert.deepEqual([metrics.status, metrics.headers['content-type']], [200, 'text/plain; version=0.0.4; charset=utf-8'])
  isJson(await ask('/svc-cache-clear'), { status: 'ok', deleted: 0, path: join(server.folder, '.cached/views') })
}

test('in prod every endpoint answers a signed-in user', async (t) => {
  const server = await startPanel(t, {}, greeting)
  await asksEverything(server)
  const { status, headers } = await server.askSignedIn('/svc-setup')
  assert.deepEqual([status, headers.location], [302, '/svc-login'])
})

test('in dev every endpoint answers anyone, without credentials', async (t) => {
  const server = await startPanel(t, dev, greeting)
  await asksEverything({
    ...server,
    askSignedIn: server.ask,
    post: (path, value) => server.ask(path, { body: JSON.stringify(value) }),
  })
  isPage(await server.ask('/svc-setup'), 'name="user"', 'name="password"', 'name="password2"')
})

test('with admin.enabled false only ping, slow and ready exist, signed in or not, dev or prod', async (t) => {
  for (const env of ['prod', 'dev']) {
    const server = await startPanel(t, { 'admin.enabled': false, 'app.env': env })
    for (const { always, method, url } of endpoints) {
      if (url === '/svc-slow') continue
      const headers = { accept: 'application/json' }
      for (const ask of [server.ask, server.askSignedIn]) {
        const answer = await ask(url, { method, headers })
        assert.equal(answer.status, always ? 200 : 404, `${env} ${method} ${url}`)
        if (!always) assert.deepEqual(answer.json(), { error: 'not_found', detail: `Nothing is here: ${url}` })
      }
    }
    assert.equal((await server.ask('/svc-slow', { method: 'OPTIONS' })).status, 204)
    assert.match((await server.ask('/svc-status')).text, /<title>404 Not Found<\/title>/)
  }
})

test('an application may use the paths of a disabled panel', async (t) => {
  const files = {
    'routes/a.json': [{ name: 'mine', url: '/svc-status', action: 'a.mjs' }],
    'a.mjs': 'export default () => "mine"',
  }
  const off = await startPanel(t, { 'admin.enabled': false }, files)
  assert.equal((await off.ask('/svc-status')).text, 'mine')
  const on = await startPanel(t, { 'app.env': 'dev' }, files)
  assert.equal((await on.ask('/svc-status')).headers['content-type'], json)
})

test('the status has the fields and types of the spec', async (t) => {
  const server = await startPanel(t, { 'pool_http.workers': 7, 'pool_ws.workers': 5 }, greeting)
  for (let count = 0; count < 3; count += 1) await server.ask('/hello/x')
  await server.ask('/nothing')
  const status = (await server.askSignedIn('/svc-status')).json() as Record<string, Record<string, unknown>>
  const { requests = {}, pool_http: http = {}, pool_ws: ws = {}, pool_rest: rest = {} } = status
  assert.ok(Number.isInteger(status['uptime_s']))
  assert.deepEqual([requests['total'], requests['errors'], requests['active']], [4, 1, 1])
  assert.deepEqual(requests['by_class'], { '1xx': 0, '2xx': 3, '3xx': 0, '4xx': 1, '5xx': 0 })
  assert.deepEqual([http['workers'], http['queue'], http['alert']], [7, 0, false])
  assert.deepEqual([ws['workers'], ws['active']], [5, 0])
  assert.deepEqual([rest['sse'], rest['longpoll']], [0, 0])
  assert.deepEqual(status['warnings'], [])
})

test('the status with monitor in its query has the data of the page', async (t) => {
  const server = await startPanel(t)
  const status = (await server.askSignedIn('/svc-status?monitor=1')).json() as { monitor: object }
  assert.deepEqual(Object.keys(status.monitor), ['history', 'requests', 'lines', 'error_groups', 'errors_last_hour', 'trace'])
  assert.ok(!('monitor' in ((await server.askSignedIn('/svc-status')).json() as object)))
})

test('the alert of pool_http follows the busy workers', async (t) => {
  let release = (): void => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  Object.assign(globalThis, { heldByTest: held })
  t.after(() => Reflect.deleteProperty(globalThis, 'heldByTest'))
  const files = {
    'routes/a.json': [{ name: 'hold', url: '/hold', action: 'a.mjs' }],
    'a.mjs': 'export default async () => { await globalThis.heldByTest; return "done" }',
  }
  const server = await startPanel(t, { 'pool_http.workers': 2, 'pool_http.alert_pct': 50 }, files)
  const poolOf = async () =>
    ((await server.askSignedIn('/svc-status')).json() as { pool_http: Record<string, unknown> }).pool_http
  const waiting = [0, 1, 2].map(() => server.ask('/hold'))
  await until(async () => (await poolOf())['queue'] === 1)
  const { busy, alert } = await poolOf()
  assert.deepEqual([busy, alert], [2, true])
  release()
  assert.deepEqual(
    (await Promise.all(waiting)).map(({ text }) => text),
    ['done', 'done', 'done'],
  )
  const { alert: after, waits } = (await poolOf()) as { alert: boolean; waits: { count: number } }
  assert.deepEqual([after, waits.count], [false, 1])
})

test('bench-start sets every counter and timing to 0; gauges and the uptime stay', async (t) => {
  const server = await startPanel(
    t,
    { 'server.max_connections_per_ip': 0 },
    {
      'routes/a.json': [{ name: 'view', url: '/view', action: 'a.html' }],
      'a.html': 'a view',
    },
  )
  for (let count = 0; count < 5; count += 1) await server.ask('/view')
  interface Dump {
    uptime_s: number
    window_s: number
    requests: {
      total: number
      errors: number
      active: number
      by_class: Record<string, number>
      bytes_in: number
      bytes_out: number
    }
    routes: { name: string }[]
    views: Record<string, number>
    log: Record<string, number>
    access_log: Record<string, number>
    connections: { refused: number }
    pool_http: { refused: number; waits: { count: number } }
  }
  const before = (await server.askSignedIn('/svc-status')).json() as Dump
  assert.ok(before.views['hits'] === 4 && before.views['misses'] === 1 && before.access_log['written'] !== 0)
  assert.deepEqual((await server.askSignedIn('/svc-bench-start')).json(), { bench: 'start' })
  const { metrics } = (await server.askSignedIn('/svc-bench-stop')).json() as { metrics: Dump }
  assert.deepEqual([metrics.requests.total, metrics.requests.errors, metrics.requests.active], [0, 0, 1])
  assert.deepEqual(metrics.routes, [])
  assert.deepEqual(metrics.views, { hits: 0, misses: 0 })
  assert.deepEqual([metrics.connections.refused, metrics.pool_http.refused, metrics.pool_http.waits.count], [0, 0, 0])
  assert.ok((metrics.access_log['written'] ?? 9) <= 1 && metrics.access_log['lost'] === 0)
  assert.ok((metrics.log['written'] ?? 9) <= 2 && metrics.log['lost'] === 0)
  assert.ok(metrics.uptime_s >= before.uptime_s && metrics.window_s < before.window_s + 1)
})

test('Prometheus counters do not decrease at a bench-start', async (t) => {
  const server = await startPanel(
    t,
    {},
    {
      ...greeting,
      'routes/b.json': [
        { name: 'odd "name" \\', url: '/odd', action: 'fails.mjs' },
        { name: 'view', url: '/view', action: 'a.html' },
      ],
      'fails.mjs': 'export default () => { throw new Error("no") }',
      'a.html': 'a view',
    },
  )
  for (const path of ['/hello/x', '/odd', '/view', '/view', '/nothing', '/svc-status']) await server.ask(path)
  const before = (await server.askSignedIn('/svc-metrics')).text
  assert.ok(before.includes('svc_http_requests_total{route="hello",code="2xx"} 1\n'))
  assert.ok(before.includes('svc_http_requests_total{route="odd \\"name\\" \\\\",code="5xx"} 1\n'))
  assert.ok(!before.includes('/hello') && !before.includes('/nothing'))
  await server.askSignedIn('/svc-bench-start')
  const after = (await server.askSignedIn('/svc-metrics')).text
  const [old, now] = [countersOf(before), countersOf(after)]
  assert.ok(old.size > 20)
  for (const [sample, value] of old)
    assert.ok((now.get(sample) ?? -1) >= value, `${sample} went back from ${value} to ${now.get(sample)}`)
})

/** The samples of counters and histograms. */
function countersOf(text: string): Map<string, number> {
  const counts = /^# TYPE (\S+) (?:counter|histogram)$/gm
  const names = [...text.matchAll(counts)].map(([, name]) => name)
  const samples = text
    .split('\n')
    .filter((line) => names.some((name) => new RegExp(`^${name}(_bucket|_sum|_count)?[ {]`).test(line)))
  return new Map(
    samples.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  )
}

test('cache-clear deletes compiled views and their sources, recursively, and counts them; other files stay', async (t) => {
  const server = await startPanel(
    t,
    { 'app.env': 'dev' },
    {
      'routes/a.json': [
        { name: 'a', url: '/a', action: 'a.html' },
        { name: 'b', url: '/b', action: 'deep/b.html' },
      ],
      'a.html': 'view a',
      'deep/b.html': 'view b',
    },
  )
  server.write({
    '.cached/views/deep/notes.txt': 'mine',
    '.cached/views/own.prg': 'mine',
    '.cached/views/old/__c.prg': 'old',
  })
  assert.equal((await server.ask('/a')).text, 'view a')
  assert.equal((await server.ask('/b')).text, 'view b')
  const path = join(server.folder, '.cached/views')
  isJson(await server.ask('/svc-cache-clear'), { status: 'ok', deleted: 5, path })
  const left = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  assert.deepEqual(left.map(({ name }) => name).sort(), ['notes.txt', 'own.prg'])
  assert.equal((await server.ask('/a')).text, 'view a', 'the RAM cache goes on')
  isJson(await server.ask('/svc-cache-clear'), { status: 'ok', deleted: 0, path })
})

test('GET also serves HEAD if nothing changes, and OPTIONS lists the methods', async (t) => {
  const server = await startPanel(t)
  for (const path of ['/svc-ping', '/svc-status', '/svc-index', '/svc-login', '/svc-trace']) {
    const [head, get] = [await server.askSignedIn(path, { method: 'HEAD' }), await server.askSignedIn(path)]
    assert.deepEqual([head.status, head.text, head.headers['content-type']], [200, '', get.headers['content-type']])
  }
  const paths = systemRoutes.filter(({ method, change }) => method !== 'POST' && change !== 'never').map(({ url }) => url)
  assert.ok(paths.includes('/svc-stop') && paths.includes('/svc-trace'))
  for (const path of [...paths, '/svc-trace?mod=app&on=0']) {
    for (const [method, status] of [['OPTIONS', 204], ['PUT', 405], ['DELETE', 405], ['PATCH', 405]] as const) {
      const { status: found, headers } = await server.askSignedIn(path, { method })
      assert.deepEqual([found, headers.allow], [status, 'GET, OPTIONS, POST'], `${method} ${path}`)
    }
  }
  const put = await server.askSignedIn('/svc-status', { method: 'PUT', headers: { accept: 'application/json' } })
  assert.deepEqual([put.status, put.headers.allow], [405, 'GET, HEAD, OPTIONS'])
  assert.deepEqual(put.json(), { error: 'method_not_allowed', detail: '/svc-status takes GET, HEAD, OPTIONS, not PUT' })
})
