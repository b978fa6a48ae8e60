import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import { startApplication } from './support/application.ts'
import { exchange, parseAnswer } from './support/raw.ts'
import { request } from './support/request.ts'
import { until } from './support/until.ts'

const json = { headers: { accept: 'application/json' } }

describe('the way of a request', () => {
  it('answers 404 where no pattern matches and 405 with Allow where another method does', async (t) => {
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

  it('answers OPTIONS with 204 and Allow, unless a route takes it', async (t) => {
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

  it('takes a target in absolute form, and its host for the Host', async (t) => {
    const { port } = await startApplication(t, {
      'routes/a.json': [{ name: 'a', url: '/a', action: 'a.mjs' }],
      'a.mjs': 'export default ({ path, query, host }) => ({ path, q: query.get("q"), host })',
    })
    const request = 'GET http://example.org:81/a?q=1 HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n'
    const { body } = parseAnswer(await exchange(port, request))
    assert.deepEqual(JSON.parse(body), { path: '/a', q: '1', host: 'example.org:81' })
  })

  it('refuses a target that is no path', async (t) => {
    const { port } = await startApplication(t, {})
    for (const target of ['*', 'example.org:80', 'ftp://example.org/a']) {
      const method = target === '*' ? 'OPTIONS' : 'GET'
      const text = await exchange(port, `${method} ${target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`)
      assert.equal(parseAnswer(text).status, 400, target)
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
    const page = (await request(`${url}/sync`)).text
    assert.match(page, /500 Internal Server Error/)
    assert.doesNotMatch(page, /secret reason|a\.mjs/)
    const log = lines()
    const at = log.findIndex((line) => line.includes('[ERROR] [error] GET /sync (a.sync): secret reason'))
    assert.notEqual(at, -1)
    assert.match(log[at + 1] ?? '', /^ {4}Error: secret reason$/)
    assert.match(log[at + 2] ?? '', /^ {4}at .*a\.mjs:1/)
    assert.ok(log.some((line) => line.includes('GET /odd (a.odd): A value that is no Error was thrown: no error')))
  })

  it('shows the stack of a 500 in dev', async (t) => {
    const files = {
      'routes/a.json': [{ name: 'a', url: '/', action: 'a.mjs' }],
      'a.mjs': "export default () => { throw new Error('the <reason>') }",
    }
    const { url } = await startApplication(t, files, { 'app.env': 'dev' })
    assert.match((await request(url)).text, /Error: the &lt;reason&gt;\n +at /)
  })

  it('answers an error as JSON when the request names JSON, else as a page', async (t) => {
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

  it('writes one access line a request, with 499 for a client that left before its answer', async (t) => {
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
