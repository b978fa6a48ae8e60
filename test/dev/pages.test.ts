import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { startApplication, type Files } from '../support/application.ts'
import { exchange } from '../support/raw.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'
import { navigation, openStream, page, startDev } from './dev-support.ts'

const tag = '<script type="module" src="/svc-dev.js"></script>\n'
const actions: Readonly<Record<string, string>> = {
  view: "(ctx) => ctx.view('a.html')",
  later: "async (ctx) => { const { view } = ctx; await 0; return view('a.html') }",
  part: "(ctx) => ctx.view('part.html')",
  text: "() => '<html><body>text</body></html>'",
  xml: "(ctx) => { ctx.setHeader('Content-Type', 'application/xml'); return ctx.view('a.html') }",
  policy: `(ctx) => { ctx.setHeader('Content-Security-Policy', "default-src 'self'"); ctx.setHeader('ETag', '"1"'); return ctx.view('a.html') }`,
  broken: "() => { throw new Error('not yet') }",
  refused: "(ctx) => ctx.fail(409, 'conflict', 'no')",
}
const files: Files = {
  'routes/r.json': [
    ...Object.keys(actions).map((name) => ({ name, url: `/${name}`, method: '*', scope: '', action: `actions.mjs@${name}` })),
    { name: 'late', url: '/late', method: 'GET', scope: '', action: 'a.html', middleware: 'late' },
    { name: 'plain', url: '/plain', method: 'GET', scope: '', action: 'a.html' },
  ],
  'actions.mjs': Object.entries(actions).map(([name, text]) => `export const ${name} = ${text}\n`).join(''),
  'routes/middleware/config.json': { load: ['late.mjs'] },
  'routes/middleware/late.mjs': `export default async (ctx, next) => { await next(); ctx.setHeader('Content-Security-Policy', ["script-src 'nonce-abc'", "connect-src 'none'"]) }`,
  'a.html': page('a'),
  'part.html': '<p>a</p>',
}

describe('a page in dev', () => {
  test('rendered by a view has the script, for every visitor', async (t) => {
    const { url } = await startDev(t, files)
    const whole = `<html><body><p>a</p>${tag}</body></html>`
    for (const headers of [navigation, { 'sec-fetch-mode': 'navigate' }, { 'sec-fetch-dest': 'document' }, { accept: 'text/html,*/*' }]) {
      for (const path of ['/view', '/later', '/plain']) {
        assert.equal((await request(url + path, { headers })).text, whole, `${path} ${JSON.stringify(headers)}`)
      }
    }
    const { headers } = await request(`${url}/view`, { method: 'HEAD', headers: navigation })
    assert.equal(Number(headers['content-length']), whole.length)
  })

  test('has the script while its view is being saved: empty, or without its end', async (t) => {
    const { url } = await startDev(t, { ...files, 'a.html': '', 'part.html': '<!doctype html>\n<html><body><p>' })
    for (const [path, text] of [['/plain', ''], ['/part', '<!doctype html>\n<html><body><p>']] as const) {
      assert.equal((await request(url + path, { headers: navigation })).text, text + tag)
      assert.equal((await request(url + path)).text, text)
    }
  })

  test('has no script when a program requests it, or it is not a complete page of a view', async (t) => {
    const { url } = await startDev(t, files)
    const program = [
      { accept: '*/*' },
      { accept: 'application/json' },
      { accept: 'text/html', 'x-requested-with': 'XMLHttpRequest' },
      { accept: 'text/html', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
      { accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
    ]
    for (const headers of program) assert.equal((await request(`${url}/view`, { headers })).text, page('a'))
    for (const path of ['/part', '/text', '/xml', '/svc-index']) {
      assert.ok(!(await request(url + path, { headers: navigation })).text.includes('svc-dev'), path)
    }
  })

  test('has a policy under which the script runs, and no ETag with it', async (t) => {
    const { url } = await startDev(t, files)
    const { headers, text } = await request(`${url}/policy`, { headers: navigation })
    const [, nonce] = /src="\/svc-dev.js" nonce="([^"]{22,})">/.exec(text) ?? []
    const policy = `default-src 'self'; script-src 'self' 'nonce-${nonce}'; connect-src 'self'`
    assert.equal(headers['content-security-policy'], policy)
    assert.equal(headers.etag, undefined)
    const again = await request(`${url}/policy`, { headers: navigation })
    assert.notEqual(again.headers['content-security-policy'], policy)
    const plain = await request(`${url}/policy`)
    assert.deepEqual([plain.headers['content-security-policy'], plain.headers.etag], ["default-src 'self'", '"1"'])
  })

  test('has the nonce of a policy set after its view', async (t) => {
    const { url } = await startDev(t, files)
    const { headers, text } = await request(`${url}/late`, { headers: navigation })
    assert.match(text, /<script type="module" src="\/svc-dev.js" nonce="abc">/)
    assert.equal(headers['content-security-policy'], "script-src 'nonce-abc', connect-src 'self'")
  })

  test('for an error has the script too, but not below /svc-', async (t) => {
    const server = await startDev(t, files)
    for (const path of ['/broken', '/refused', '/nothing']) {
      const { headers, text } = await request(server.url + path, { headers: navigation })
      const [, nonce] = /src="\/svc-dev.js" nonce="([^"]+)"><\/script>\n<\/body>/.exec(text) ?? []
      assert.match(String(headers['content-security-policy']), new RegExp(`script-src 'nonce-${nonce}'; connect-src 'self'$`), path)
    }
    server.write({ 'routes/errors/error.html': page('{{ status }}') })
    const own = await request(`${server.url}/nothing`, { headers: navigation })
    assert.equal(own.text, `<html><body><p>404</p>${tag}</body></html>`)
    for (const path of ['/broken', '/nothing']) assert.ok(!(await request(server.url + path)).text.includes('svc-dev'))
    assert.ok(!(await request(`${server.url}/svc-nothing`, { headers: navigation })).text.includes('svc-dev'))
  })
})

describe('the script and its stream', () => {
  test('are served only in dev with watching', async (t) => {
    const { url } = await startDev(t, files)
    const { status, headers, text } = await request(`${url}/svc-dev.js`)
    assert.deepEqual([status, headers['content-type']], [200, 'text/javascript; charset=utf-8'])
    assert.equal(text, readFileSync(new URL('../../lib/dev/svc-dev.js', import.meta.url), 'utf8'))
    const off = [
      await startApplication(t, files, { 'app.env': 'prod' }, { watch: true }),
      await startApplication(t, files, { 'app.env': 'dev' }),
      await startDev(t, files, { 'dev.watch': false }),
    ]
    for (const { url: other } of off) {
      for (const path of ['/svc-dev.js', '/svc-dev-events']) assert.equal((await request(other + path)).status, 404)
      assert.equal((await request(`${other}/view`, { headers: navigation })).text, page('a'))
    }
    for (const path of ['/svc-dev', '/svc-dev.json', '/svc-dev.js/x']) assert.equal((await request(url + path)).status, 404)
    assert.equal((await request(`${url}/svc-dev.js`, { body: '' })).status, 404)
  })

  test('are served only for a host of this machine or an allowed one', async (t) => {
    const open = await startDev(t, files)
    const named = await startDev(t, files, { 'server.allowed_hosts': ['dev.example.org'] })
    const rows = [
      [open, 'localhost', 200],
      [open, 'a.localhost:1', 200],
      [open, '[::1]', 200],
      [open, 'evil.example', 404],
      [named, 'dev.example.org', 200],
      [named, 'localhost', 400],
      [named, 'evil.example', 400],
    ] as const
    for (const [{ port }, host, status] of rows) {
      for (const path of ['/svc-dev.js', '/view']) {
        const answer = await exchange(port, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nSec-Fetch-Mode: navigate\r\nConnection: close\r\n\r\n`)
        const isView = path === '/view' && status === 404
        assert.equal(answer.slice(9, 12), String(isView ? 200 : status), `${path} ${host}`)
        assert.equal(answer.includes('src="/svc-dev.js"'), path === '/view' && status === 200, `${path} ${host}`)
      }
    }
  })

  test('take no worker and appear in no metric and no log', async (t) => {
    const server = await startDev(t, files, { 'pool_rest.workers_sse': 0, 'pool_rest.queue_size': 0, 'pool_http.workers': 1 })
    await openStream(t, server.url)
    await request(`${server.url}/svc-dev.js`)
    const status = (await request(`${server.url}/svc-status`)).json() as { requests: { total: number; active: number } }
    assert.deepEqual([status.requests.total, status.requests.active], [0, 1])
    assert.deepEqual(server.lines('access.log').filter((line) => line.includes('svc-dev')), [])
    assert.deepEqual(server.lines().filter((line) => line.includes('svc-dev')), [])
  })

  test('refresh a page that is older than the last change', async (t) => {
    const server = await startDev(t, files)
    const old = await openStream(t, server.url, 3_600_000)
    await old.told(1)
    const young = await openStream(t, server.url)
    server.write({ 'a.html': page('b') })
    await young.told(1)
    assert.deepEqual([old.news, young.news], [[[], []], [[]]])
  })

  test('end with the server, and do not delay a stop', async (t) => {
    const server = await startDev(t, files)
    const stream = await openStream(t, server.url)
    await server.app.stop()
    await stream.ended
    await until(() => server.lines().some((line) => line.endsWith('stopped')))
    assert.deepEqual(server.lines().filter((line) => line.includes('cut')), [])
  })
})
