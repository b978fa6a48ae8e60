// body_limit_kb, request_timeout_s and error_format of a route, and of the routes below a prefix.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseRecord } from '../../lib/application/record.ts'
import { startApplication } from '../support/application.ts'
import { Connection, cutAtEnd, requestText } from '../support/connection.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'

const files = {
  'a.mjs': `
    export const read = async ({ readText }) => String((await readText()).length)
    export const fail = ({ fail }) => fail(409, 'taken', 'It is taken')`,
}
const html = { headers: { accept: 'text/html' } }
const json = { headers: { accept: 'application/json' } }

describe('body_limit_kb of a route', () => {
  it('overrides the limit of the server, larger or smaller', async (t) => {
    const { url } = await startApplication(t, {
      ...files,
      'routes/a.json': [
        { name: 'small', url: '/small', action: 'a.mjs@read', body_limit_kb: 1 },
        { name: 'large', url: '/large', action: 'a.mjs@read', body_limit_kb: 4 },
        { name: 'usual', url: '/usual', action: 'a.mjs@read' },
      ],
    }, { 'server.body_limit_kb': 2 })
    for (const [path, kb] of [['small', 1], ['usual', 2], ['large', 4]] as const) {
      const fits = await request(`${url}/${path}`, { body: 'x'.repeat(kb * 1024) })
      assert.deepEqual([fits.status, fits.text], [200, String(kb * 1024)], path)
      assert.equal((await request(`${url}/${path}`, { body: 'x'.repeat(kb * 1024 + 1) })).status, 413, path)
    }
  })
})

describe('request_timeout_s of a route', () => {
  it('overrides that of the server, from its record or the defaults of its file', async (t) => {
    cutAtEnd(t)
    const { port, lines } = await startApplication(t, {
      ...files,
      'routes/a.json': {
        defaults: { request_timeout_s: 1, error_format: 'json' },
        routes: [
          { name: 'short', url: '/short', action: 'a.mjs@read' },
          { name: 'long', url: '/long', action: 'a.mjs@read', request_timeout_s: 86_400 },
        ],
      },
    }, { 'access_log.format': 'common' })
    const [short, long] = [new Connection(t, port), new Connection(t, port)]
    for (const client of [short, long]) {
      const path = client === short ? '/short' : '/long'
      await client.send(requestText(`POST ${path}`, ['Content-Length: 3', 'Connection: close'], 'a'))
    }
    const [head = '', body = ''] = (await short.closed()).split('\r\n\r\n')
    assert.match(head, /^HTTP\/1\.1 408 /)
    assert.match(body, /^\{"error":"request_timeout",/)
    await until(() => lines('access.log').some((line) => line.endsWith(` "POST /short HTTP/1.1" 408 ${body.length}`)))
    await long.send('bc')
    assert.match(await long.closed(), /^HTTP\/1\.1 200 [^]*\r\n\r\n3$/)
  })

  it('must be a number of seconds, of a day at most', async () => {
    for (const value of [0, 86_401, 1.5, '60', null]) {
      const record = { name: 'a', url: '/a', method: 'GET', action: 'a.mjs', request_timeout_s: value }
      const parsed = parseRecord(record, { root: '/', middlewareKnown: () => true })
      assert.ok('problems' in parsed)
      assert.deepEqual(parsed.problems, [`request_timeout_s must be 1 to 86400: it is ${JSON.stringify(value)}`])
    }
  })
})

describe('error_format', () => {
  const isJson = (text: string): boolean => text.startsWith('{"error":')

  it('of a route determines the format of its errors, whatever the client accepts', async (t) => {
    const { url } = await startApplication(t, {
      ...files,
      'routes/a.json': [
        { name: 'json', url: '/json', action: 'a.mjs@fail', error_format: 'json' },
        { name: 'html', url: '/html', action: 'a.mjs@fail', error_format: 'html' },
        { name: 'auto', url: '/auto', action: 'a.mjs@fail', error_format: 'auto' },
        { name: 'auth', url: '/auth', action: 'a.mjs@fail', error_format: 'json', middleware: 'SVC_MwSession,SVC_MwIsAuth' },
      ],
    })
    const rows = [['json', true, true], ['html', false, false], ['auto', false, true]] as const
    for (const [path, forHtml, forJson] of rows) {
      assert.equal(isJson((await request(`${url}/${path}`, html)).text), forHtml, path)
      assert.equal(isJson((await request(`${url}/${path}`, json)).text), forJson, path)
    }
    assert.equal((await request(`${url}/auth`, html)).status, 401) // No redirect to the sign-in.
    assert.equal(isJson((await request(`${url}/nowhere`, html)).text), false)
  })

  it('of a file with a prefix applies to 404 and 405 below it; the longest prefix wins, and of equal ones the first', async (t) => {
    const below = (prefix: string, format: string, name: string) => ({
      defaults: { prefix, error_format: format, method: 'GET' },
      routes: [{ name, url: '/there', action: 'a.mjs@fail' }],
    })
    const { app, url, write } = await startApplication(t, {
      ...files,
      'routes/a.json': below('/api/:tenant', 'json', 'a'),
      'routes/b.json': below('/api/:tenant/pages', 'html', 'b'),
      'routes/c.json': below('/api/:tenant', 'html', 'c'),
    })
    const formOf = async (path: string, method = 'GET') => {
      const { status, text } = await request(url + path, { ...html, method })
      return [status, isJson(text)]
    }
    assert.deepEqual(await formOf('/api/x/there'), [409, true])
    assert.deepEqual(await formOf('/api/x/there', 'POST'), [405, true])
    assert.deepEqual(await formOf('/api/x/nowhere/at/all'), [404, true])
    assert.deepEqual(await formOf('/api/x'), [404, true])
    assert.deepEqual(await formOf('/api'), [404, false])
    assert.deepEqual(await formOf('/apiary/x'), [404, false])
    assert.deepEqual(await formOf('/api/x/pages/nowhere'), [404, false])
    write({ 'routes/a.json': [] })
    await app.control.apply({ type: 'routes.reload' })
    assert.deepEqual(await formOf('/api/x/nowhere'), [404, false])
  })

  it('of a prefix matches as the routes do: a literal takes precedence over a parameter, in any encoding', async (t) => {
    const below = (prefix: string, format: string, name: string) => ({
      defaults: { prefix, error_format: format, method: 'GET' },
      routes: [{ name, url: '/there', action: 'a.mjs@fail' }],
    })
    const { url } = await startApplication(t, {
      ...files,
      'routes/a.json': below('/t/:tenant', 'json', 'a'),
      'routes/b.json': below('/t/acme', 'html', 'b'),
      'routes/c.json': below('/t/:tenant/deep', 'html', 'c'),
      'routes/d.json': below('/é', 'json', 'd'),
    })
    const rows = [
      ['/t/acme/nowhere', false],
      ['/t/%61cme/nowhere', false],
      ['/t/other/nowhere', true],
      ['/t/other/deep/nowhere', false],
      ['/%C3%A9/nowhere', true],
      ['/%c3%a9/nowhere', true],
    ] as const
    for (const [path, expected] of rows) assert.equal(isJson((await request(url + path, html)).text), expected, path)
  })

  it('applies to invalid percent-encoding too', async (t) => {
    const { url } = await startApplication(t, {
      ...files,
      'routes/a.json': [
        { name: 'json', url: '/json/:x', action: 'a.mjs@fail', error_format: 'json' },
        { name: 'html', url: '/html/:x', action: 'a.mjs@fail', error_format: 'html' },
      ],
    })
    for (const [path, question, expected] of [['json', html, true], ['html', json, false]] as const) {
      const { status, text } = await request(`${url}/${path}/%ff`, question)
      assert.deepEqual([status, isJson(text)], [400, expected], path)
    }
  })
})
