import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { createClientAddress } from '../../lib/http/client-address.ts'
import { createContextClass } from '../../lib/http/features.ts'
import { compose, type Action, type Chain } from '../../lib/chain/compose.ts'
import { parsePattern } from '../../lib/routing/pattern.ts'
import { Registry } from '../../lib/routing/registry.ts'
import { RequestServer } from '../../lib/core/server.ts'
import { startApplication } from '../support/application.ts'
import { Connection, cutAtEnd, requestText } from '../support/connection.ts'
import { listen } from '../support/listen.ts'
import { exchange, parseAnswer } from '../support/raw.ts'
import { request } from '../support/request.ts'
import { serve } from '../support/serve.ts'
import { until } from '../support/until.ts'
import { makeRequestServer } from '../support/request-server.ts'

const json = { headers: { accept: 'application/json' } }

describe('the path of a request', () => {
  it('answers 404 without a matching pattern and 405 with Allow for another method', async (t) => {
    const { url } = await startApplication(t, {
      'routes/a.json': [{ name: 'a', url: '/a', method: 'GET,POST', action: 'a.mjs' }],
      'a.mjs': "export default () => 'here'",
    })
    const missing = await request(`${url}/b`, json)
    assert.equal(missing.status, 404)
    assert.deepEqual(missing.json(), { error: 'not_found', detail: 'Nothing is here: /b' })
    const wrong = await request(`${url}/a`, { ...json, method: 'DELETE' })
    assert.equal(wrong.status, 405)
    assert.equal(wrong.headers.allow, 'GET, HEAD, OPTIONS, POST')
    assert.equal((wrong.json() as { error: string }).error, 'method_not_allowed')
  })

  it('answers OPTIONS with 204 and Allow, unless a route handles it', async (t) => {
    const { url } = await startApplication(t, {
      'routes/a.json': [
        { name: 'a', url: '/a', method: 'GET', action: 'a.mjs' },
        { name: 'any', url: '/any', action: 'a.mjs' },
      ],
      'a.mjs': 'export default ({ method }) => method',
    })
    const plain = await request(`${url}/a`, { method: 'OPTIONS' })
    assert.deepEqual([plain.status, plain.headers.allow], [204, 'GET, HEAD, OPTIONS'])
    assert.equal((await request(`${url}/any`, { method: 'OPTIONS' })).text, 'OPTIONS')
  })

  it('answers HEAD as GET without the body', async (t) => {
    const { port } = await startApplication(t, {
      'routes/a.json': [{ name: 'a', url: '/a', method: 'GET', action: 'a.mjs' }],
      'a.mjs': "export default () => 'twelve bytes'",
    })
    const { status, headers, body } = parseAnswer(await exchange(port, 'HEAD /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n'))
    assert.deepEqual([status, headers['content-length'], body], [200, '12', ''])
  })

  it('accepts a target in absolute form, and uses its host as the Host', async (t) => {
    const { port } = await startApplication(t, {
      'routes/a.json': [{ name: 'a', url: '/a', action: 'a.mjs' }],
      'a.mjs': 'export default ({ path, query, host }) => ({ path, q: query.get("q"), host })',
    })
    const request = 'GET http://example.org:81/a?q=1 HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n'
    const { body } = parseAnswer(await exchange(port, request))
    assert.deepEqual(JSON.parse(body), { path: '/a', q: '1', host: 'example.org:81' })
  })

  it('refuses a target that is not a path', async (t) => {
    const { port } = await startApplication(t, {})
    for (const line of ['GET *', 'POST *', 'OPTIONS *?a', 'OPTIONS a', 'GET example.org:80', 'GET ftp://example.org/a']) {
      const text = await exchange(port, `${line} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`)
      assert.equal(parseAnswer(text).status, 400, line)
    }
  })

  it('answers OPTIONS * with the ordinary methods, whatever the routes', async (t) => {
    const { port, lines } = await startApplication(t, {
      'routes/a.json': [{ name: 'rest', url: '/*rest', action: 'a.mjs' }],
      'a.mjs': "export default () => 'never'",
    })
    const ask = async (fields: string) => parseAnswer(await exchange(port, `OPTIONS * HTTP/1.1\r\n${fields}Connection: close\r\n\r\n`))
    const { status, headers, body } = await ask('Host: h\r\n')
    assert.deepEqual([status, headers['allow'], body], [204, 'DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT', ''])
    assert.equal((await ask('')).status, 400, 'without a Host')
    assert.match(lines('access.log')[0] ?? '', /"OPTIONS \* HTTP\/1\.1" 204/)
  })

  it('sends the request id with every 5xx, even from the application, and below 500 only on demand', async (t) => {
    const { url } = await startApplication(t, {
      'routes/a.json': [{ name: 'a', url: '/:status', action: 'a.mjs' }],
      'a.mjs': 'export default (ctx) => ctx.json({}, Number(ctx.params.status))',
    })
    for (const [status, pattern] of [[200, /^undefined$/], [404, /^undefined$/], [500, /^[\w-]{36}$/], [503, /^[\w-]{36}$/]] as const) {
      assert.match(String((await request(`${url}/${status}`)).headers['x-request-id']), pattern, `${status}`)
    }
  })

  it('answers 500 without a reason, and logs the reason with its stack', async (t) => {
    const { url, lines } = await startApplication(t, {
      'routes/a.json': [
        { name: 'a.sync', url: '/sync', action: 'a.mjs' },
        { name: 'a.late', url: '/late', action: 'a.mjs@late' },
        { name: 'a.odd', url: '/odd', action: 'a.mjs@odd' },
        { name: 'a.circle', url: '/circle', action: 'a.mjs@circle' },
      ],
      'a.mjs': `export default () => { throw new Error('secret reason') }
        export const late = async () => { throw new Error('later reason') }
        export const odd = () => { throw 'no error' }
        export const circle = () => { const a = {}; a.a = a; return a }`,
    })
    for (const path of ['/sync', '/late', '/odd', '/circle']) {
      const answer = await request(url + path, json)
      assert.equal(answer.status, 500, path)
      assert.deepEqual(answer.json(), { error: 'internal_error' })
    }
    const { text: page, headers } = await request(`${url}/sync`)
    assert.match(page, /500 Internal Server Error/)
    assert.doesNotMatch(page, /secret reason|a\.mjs/)
    const id = String(headers['x-request-id'])
    assert.match(id, /^[\w-]{36}$/)
    assert.ok(page.includes(`<p>Request <code>${id}</code></p>`))
    assert.ok(lines().some((line) => line.endsWith(`[ERROR] [error] GET /sync (a.sync): secret reason [${id}]`)))
    const log = lines()
    const at = log.findIndex((line) => line.includes('[ERROR] [error] GET /sync (a.sync): secret reason'))
    assert.notEqual(at, -1)
    assert.match(log[at + 1] ?? '', /^ {4}Error: secret reason$/)
    assert.match(log[at + 2] ?? '', /^ {4}at .*a\.mjs:1/)
    assert.ok(log.some((line) => line.includes('GET /odd (a.odd): A value that is not an Error was thrown: no error')))
  })

  it('shows the stack of a 500 in dev', async (t) => {
    const files = {
      'routes/a.json': [{ name: 'a', url: '/', action: 'a.mjs' }],
      'a.mjs': "export default () => { throw new Error('the <reason>') }",
    }
    const { url } = await startApplication(t, files, { 'app.env': 'dev' })
    assert.match((await request(url)).text, /Error: the &lt;reason&gt;[^]*<span>at .*a\.mjs/)
  })

  it('answers an error as JSON if the request prefers JSON, else as a page', async (t) => {
    const { url } = await startApplication(t, {})
    const rows: [Record<string, string>, boolean][] = [
      [{}, false],
      [{ accept: 'text/html,*/*' }, false],
      [{ accept: 'application/json' }, true],
      [{ accept: 'application/problem+json' }, true],
      [{ 'x-requested-with': 'XMLHttpRequest' }, true],
      [{ 'content-type': 'application/json' }, true],
      [{ 'content-type': 'application/vnd.api+json; charset=utf-8' }, true],
      [{ 'content-type': 'text/jsonish' }, false],
    ]
    for (const [headers, asJson] of rows) {
      const answer = await request(`${url}/none`, { method: 'POST', headers, body: '{}' })
      assert.equal(answer.headers['content-type']?.startsWith('application/json'), asJson, JSON.stringify(headers))
    }
  })

  it('logs a response that its client did not wait for under module response', async (t) => {
    const { port, lines } = await startApplication(t, {
      'routes/a.json': [{ name: 'large', url: '/large', action: 'a.mjs' }],
      'a.mjs': "export default () => 'x'.repeat(2 ** 25)",
    })
    const client = new Connection(t, port)
    await client.send(requestText('GET /large'))
    await once(client.socket, 'data')
    client.socket.resetAndDestroy()
    const warning = '[INFO ] [response] GET /large (large): the connection closed before the whole response was sent'
    await until(() => lines().some((line) => line.endsWith(warning)))
  })

  it('writes one access log line per request, with 499 for a client that disconnected before the response', async (t) => {
    const { url, port, lines, app } = await startApplication(t, {
      'routes/a.json': [
        { name: 'ok', url: '/ok', action: 'a.mjs' },
        { name: 'slow', url: '/slow', action: 'a.mjs@slow' },
      ],
      'a.mjs': `export default () => 'ok'
        export const slow = (ctx) => {
          ctx.log('at work')
          return new Promise((resolve) => ctx.signal.addEventListener('abort', () => resolve('gone')))
        }`,
    })
    await request(`${url}/ok?secret=1`)
    const socket = connect(port, '127.0.0.1')
    socket.write('GET /slow HTTP/1.1\r\nHost: h\r\n\r\n')
    await until(() => lines().some((line) => line.endsWith('at work')))
    socket.destroy()
    await once(socket, 'close')
    await until(() => lines('access.log').length === 2)
    const [first, second] = lines('access.log')
    assert.match(first ?? '', /^127\.0\.0\.1 - - \[\d\d\/\w{3}\/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "GET \/ok HTTP\/1\.1" 200$/)
    assert.match(second ?? '', /"GET \/slow HTTP\/1\.1" 499$/)
    assert.deepEqual(app.warnings(), [])
  })
})

/** Actions that wait until the test releases them: `GET /wait/NAME`, then `GET /go/NAME`. */
const gates = {
  'routes/gates.json': [
    { name: 'wait', url: '/wait/:name', action: 'gates.mjs@wait' },
    { name: 'leave', url: '/leave/:name', action: 'gates.mjs@leave' },
    { name: 'quick', url: '/quick', action: 'gates.mjs@quick' },
  ],
  'gates.mjs': `
    import { EventEmitter } from 'node:events'
    const gate = new EventEmitter().setMaxListeners(0)
    globalThis[Symbol.for('svc.test.gates')] = gate
    export const wait = (ctx) => new Promise((resolve, reject) => {
      ctx.log('waits ' + ctx.params.name)
      gate.once(ctx.params.name, (how) => (how === 'reject' ? reject(new Error('as asked')) : resolve(ctx.params.name)))
    })
    export const leave = (ctx) => new Promise((resolve) => {
      ctx.log('waits ' + ctx.params.name)
      ctx.signal.addEventListener('abort', () => resolve('left'))
    })
    export const quick = () => 'quick'`,
}

/** Releases an action of `gates`. */
function open(name: string, how = 'resolve'): void {
  const gate = (globalThis as { [key: symbol]: unknown })[Symbol.for('svc.test.gates')] as NodeJS.EventEmitter
  assert.ok(gate.emit(name, how), `no request waits at ${name}`)
}

/** The requests that wait for a worker. */
async function waiting(url: string): Promise<number> {
  const status = (await request(`${url}/svc-status`)).json() as { pool_http: { queue: number } }
  return status.pool_http.queue
}

describe('pool_http', () => {
  const small = { 'app.env': 'dev', 'pool_http.workers': 1, 'pool_http.queue_size': 1 }
  const waits = (lines: () => string[], name: string) => () => lines().some((line) => line.endsWith(`waits ${name}`))
  const refused = (lines: () => string[], name: string) => () => lines().some((line) => line.includes(`/wait/${name} (wait): 503`))

  it('queues requests without a worker, and answers 503 with Retry-After at once if the queue is full', async (t) => {
    cutAtEnd(t)
    const { url, port, lines } = await startApplication(t, gates, small)
    const clients: Connection[] = []
    for (const name of ['a', 'b', 'c']) {
      const client = new Connection(t, port)
      clients.push(client)
      await client.send(requestText(`GET /wait/${name}`))
      await until(name === 'a' ? waits(lines, 'a') : async () => (await waiting(url)) === 1)
    }
    await until(refused(lines, 'c'))
    const answer = await request(`${url}/quick`, json)
    const { error } = answer.json() as { error: string }
    assert.deepEqual([answer.status, answer.headers['retry-after'], error], [503, '1', 'overloaded'])
    assert.ok(!waits(lines, 'b')())
    open('a')
    await until(waits(lines, 'b'))
    open('b')
    const answers = await Promise.all(clients.map((client) => client.answers(1)))
    assert.deepEqual(answers.map(([first]) => first?.status), [200, 200, 503])
    assert.equal((await request(`${url}/quick`)).status, 200)
    assert.ok(lines().some((line) => /\[WARN \] \[pool\] refused GET \/wait\/c \(wait\): 1 requests running, 1 waiting/.test(line)))
    assert.ok(!lines().some((line) => line.includes('[ERROR]')), 'a full pool is not an application error')
  })

  it('frees a worker after a reply, a rejection, a throw and a disconnect', async (t) => {
    cutAtEnd(t)
    const { url, port, lines } = await startApplication(
      t,
      {
        ...gates,
        'routes/b.json': [
          { name: 'throw', url: '/throw', action: 'b.mjs' },
          { name: 'status', url: '/status', action: 'b.mjs@status' },
          { name: 'missing', url: '/missing', action: 'none.mjs' },
          { name: 'null', url: '/null', action: 'b.mjs@nothing' },
        ],
        'b.mjs': `export default () => { throw new Error('x') }
          export const status = (ctx) => { ctx.status = 1; return '' }
          export const nothing = async () => { throw Object.create(null) }`,
      },
      { 'pool_http.workers': 1, 'pool_http.queue_size': 0 },
    )
    const free = async (): Promise<void> => assert.equal((await request(`${url}/quick`)).text, 'quick')
    for (const path of ['/throw', '/status', '/missing', '/null']) {
      assert.equal((await request(url + path)).status, 500)
      await free()
    }
    const rejected = request(`${url}/wait/a`)
    await until(waits(lines, 'a'))
    open('a', 'reject')
    assert.equal((await rejected).status, 500)
    await free()
    const client = new Connection(t, port)
    await client.send(requestText('GET /leave/c'))
    await until(waits(lines, 'c'))
    assert.equal((await request(`${url}/quick`)).status, 503)
    client.socket.destroy()
    await until(async () => (await request(`${url}/quick`)).status === 200)
  })

  it('forgets a client that disconnects while waiting', async (t) => {
    cutAtEnd(t)
    const { url, port, lines } = await startApplication(t, gates, small)
    const [first, gone, second] = [new Connection(t, port), new Connection(t, port), new Connection(t, port)]
    await first.send(requestText('GET /wait/a'))
    await until(waits(lines, 'a'))
    await gone.send(requestText('GET /wait/gone'))
    await until(async () => (await waiting(url)) === 1)
    await gone.reset()
    await until(() => lines('access.log').some((line) => line.endsWith('"GET /wait/gone HTTP/1.1" 499')))
    await second.send(requestText('GET /wait/b'))
    await until(async () => (await waiting(url)) === 1)
    open('a')
    await until(waits(lines, 'b'))
    open('b')
    assert.deepEqual((await second.answers(1)).map(({ status }) => status), [200])
    assert.ok(!waits(lines, 'gone')(), 'its action has not run')
  })

  it('starts a long queue of synchronous actions without a stack overflow', async (t) => {
    cutAtEnd(t)
    const config = { 'app.env': 'dev', 'pool_http.workers': 1, 'pool_http.max_wait_ms': 60_000, 'log.level': 'info', 'access_log.enabled': false }
    const { app, url, port, lines } = await startApplication(t, gates, config)
    const first = request(`${url}/wait/a`)
    await until(waits(lines, 'a'))
    const clients = Array.from({ length: 1000 }, () => new Connection(t, port))
    for (const client of clients) await client.send(requestText('GET /quick'))
    await until(async () => (await waiting(url)) === clients.length)
    open('a')
    await first
    for (const client of clients) assert.equal((await client.answers(1))[0]?.status, 200)
    for (const { socket } of clients) socket.destroy()
    await app.stop()
    const problems = lines().filter((line) => /\[ERROR\]|the stop took longer/.test(line))
    assert.deepEqual(problems, [], 'each request was uncounted once, or the stop would wait forever')
  })

  it('does not queue requests that no route matches', async (t) => {
    const { url, lines } = await startApplication(t, gates, { ...small, 'pool_http.queue_size': 0 })
    const first = request(`${url}/wait/a`)
    await until(waits(lines, 'a'))
    assert.equal((await request(`${url}/quick`)).status, 503)
    assert.equal((await request(`${url}/none`)).status, 404)
    open('a')
    await first
  })

  it('does not queue system routes, and they hold no worker', async (t) => {
    let release = (_: string): void => {}
    const { requests, url } = await serveRoutes(t, [
      { name: 'slow', path: '/slow', action: () => new Promise((resolve) => (release = resolve)) },
      { name: 'svc.ping', path: '/svc-ping', system: true, action: () => 'pong' },
      { name: 'svc.late', path: '/svc-late', system: true, action: async () => 'late pong' },
    ])
    const slow = request(`${url}/slow`)
    await until(() => requests.pool.busy === 1)
    assert.equal((await request(`${url}/slow`)).status, 503)
    assert.equal((await request(`${url}/svc-ping`)).text, 'pong')
    assert.equal((await request(`${url}/svc-late`)).text, 'late pong')
    assert.equal(requests.pool.busy, 1)
    release('done')
    assert.equal((await slow).text, 'done')
    assert.equal(requests.pool.busy, 0)
    await requests.idle()
    assert.equal(requests.active, 0)
  })

  it('logs when saturation begins and ends', async (t) => {
    const { url, lines } = await startApplication(t, gates, small)
    const first = request(`${url}/wait/a`)
    await until(waits(lines, 'a'))
    open('a')
    await first
    const alerts = lines().flatMap((line) => /\[(\w+) *\] \[pool_detector\] (.*)/.exec(line)?.slice(1).join(' ') ?? [])
    assert.deepEqual(alerts, ['WARN pool_http: alert on', 'INFO pool_http: alert off'])
  })
})

describe('pipelined requests', () => {
  it('are answered in order', async (t) => {
    cutAtEnd(t)
    const { port, lines } = await startApplication(t, gates)
    const client = new Connection(t, port)
    await client.send(['/wait/a', '/quick', '/none', '/wait/b'].map((path) => requestText(`GET ${path}`)).join(''))
    await until(() => lines().some((line) => line.endsWith('waits a')))
    open('a')
    await until(() => lines().some((line) => line.endsWith('waits b')))
    open('b')
    const answers = await client.answers(4)
    assert.deepEqual(answers.map(({ status }) => status), [200, 200, 404, 200])
    assert.deepEqual([answers[0]?.body, answers[1]?.body, answers[3]?.body], ['a', 'quick', 'b'])
  })

  it('end when their client disconnects, and those that wait behind are never served', async (t) => {
    const { app, port, lines } = await startApplication(t, gates, { 'server.stop_timeout_s': 60 })
    const client = new Connection(t, port)
    await client.send(['/leave/a', '/leave/b', '/none'].map((path) => requestText(`GET ${path}`)).join(''))
    await until(() => lines().some((line) => line.endsWith('waits a')))
    client.socket.destroy()
    await until(() => lines('access.log').length > 0)
    assert.match(lines('access.log').join(), /^[^,]*"GET \/leave\/a HTTP\/1\.1" 499$/)
    assert.ok(!lines().some((line) => line.endsWith('waits b')))
    await app.stop()
    assert.ok(!lines().some((line) => line.includes('the stop took longer')))
  })

  it('leave no listeners on a connection that serves many', async (t) => {
    cutAtEnd(t)
    const { port } = await serve(t, {
      '/': "(ctx) => { const s = ctx.request.socket; return String(s.listenerCount('close')) }",
      '/late': 'async (ctx) => { await null; return "late" }',
    })
    const client = new Connection(t, port)
    await client.send(requestText('GET /'))
    const [before] = await client.answers(1)
    for (let round = 1; round <= 5; round++) {
      await client.send(requestText('GET /late').repeat(30))
      await client.answers(1 + round * 30)
    }
    await client.send(requestText('GET /'))
    const answers = await client.answers(152)
    assert.equal(answers.at(-1)?.body, before?.body)
  })
})

describe('the resources of a request', () => {
  it('are released; a failure of that is logged', async (t) => {
    const action = "(ctx) => { ctx.body.dispose = () => Promise.reject(new Error('disk')); return 'x' }"
    const { url, lines } = await serve(t, { '/': action })
    assert.equal((await request(url)).text, 'x')
    await until(() => lines().some((line) => /\[ERROR\] \[response\] GET \/ \(r0\): an upload's temporary files/.test(line)))
  })
})

describe('the end of a request', () => {
  it('comes with its response, on every Node, if the kernel has accepted all of it', async (t) => {
    const after: unknown[] = []
    const { requests, url } = await serveRoutes(
      t,
      [
        { name: 'json', path: '/json', action: () => ({ a: 1 }) },
        { name: 'late', path: '/late', action: async () => 'late' },
      ],
      (response) => after.push([requests.active, response.listenerCount('close')]),
    )
    assert.equal((await request(`${url}/json`)).status, 200)
    assert.deepEqual(after, [[0, 0]], 'there is no listener for its close event')
    assert.equal((await request(`${url}/late`)).status, 200)
    assert.deepEqual(after[1], [0, 0])
    await requests.idle()
  })
})

interface BareRoute {
  readonly name: string
  readonly path: string
  readonly system?: boolean
  readonly action: Action
}

/** Runs a request server with one worker and no queue on a plain `node:http` server. `handled`: called after `handle`. */
async function serveRoutes(
  t: TestContext,
  routes: readonly BareRoute[],
  handled: (response: ServerResponse) => void = () => {},
): Promise<{ readonly requests: RequestServer; readonly url: string }> {
  const registry = new Registry<Chain>()
  for (const { name, path, system = false, action } of routes) {
    const record = { name, url: path, action: 'a.mjs', method: '*', middleware: '', scope: '' }
    registry.add({ record, pattern: parsePattern(path), system, target: compose([], action, { late: () => {}, misuse: () => {} }) })
  }
  const { ContextClass } = createContextClass([], {
    bodyLimitBytes: 1,
    clientAddress: createClientAddress([]),
  })
  const requests = makeRequestServer({ registry, ContextClass, pool: { workers: 1, queueSize: 0 } })
  const server = createServer((question, answer) => {
    requests.handle(question, answer, 'nothing')
    setImmediate(() => handled(answer))
  })
  return { requests, url: `http://127.0.0.1:${await listen(t, server)}` }
}
