import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { startApplication } from '../support/application.ts'
import { request } from '../support/request.ts'
import { root } from '../support/markdown.ts'

const source = readFileSync(new URL('lib/live/svc-live.js', root), 'utf8')

describe('/svc-live.js', () => {
  it('is served unchanged, with a strong ETag for each encoding', async (t) => {
    const { url } = await startApplication(t, {})
    const plain = await request(`${url}/svc-live.js`)
    assert.equal(plain.status, 200)
    assert.equal(plain.text, source)
    const { headers } = plain
    assert.equal(headers['content-type'], 'text/javascript; charset=utf-8')
    assert.equal(headers['cache-control'], 'no-cache')
    assert.equal(headers['x-content-type-options'], 'nosniff')
    assert.match(String(headers.etag), /^"[\w-]{22}"$/)

    const accepting = { 'accept-encoding': 'gzip' }
    const packed = await request(`${url}/svc-live.js`, { headers: accepting })
    assert.equal(packed.headers['content-encoding'], 'gzip')
    assert.equal(gunzipSync(packed.bytes).toString(), source)
    assert.match(String(packed.headers.etag), /^"[\w-]{22}"$/)
    assert.notEqual(packed.headers.etag, headers.etag)
    assert.equal(packed.headers.vary, 'Accept-Encoding')

    const known = await request(`${url}/svc-live.js`, { headers: { 'if-none-match': `"a", ${headers.etag}` } })
    assert.deepEqual([known.status, known.text, known.headers.etag], [304, '', headers.etag])
    for (const [name, value, status] of [
      ['if-none-match', '*', 304],
      ['if-none-match', `W/${headers.etag}`, 304],
      ['if-none-match', `"a${String(headers.etag).slice(1)}`, 200],
      ['if-match', '*', 200],
      ['if-match', '"a"', 412],
      ['if-modified-since', new Date().toUTCString(), 200],
      ['if-unmodified-since', new Date(0).toUTCString(), 200],
    ] as const) {
      const answer = await request(`${url}/svc-live.js`, { headers: { [name]: value } })
      assert.deepEqual([answer.status, answer.headers.etag], [status, headers.etag], `${name}: ${value}`)
    }
    const other = await request(`${url}/svc-live.js`, { headers: { ...accepting, 'if-none-match': String(headers.etag) } })
    assert.equal(other.status, 200)
    const head = await request(`${url}/svc-live.js`, { method: 'HEAD' })
    assert.deepEqual([head.status, head.headers['content-length']], [200, String(source.length)])
  })

  it('is served before setup, without the panel, and for every Host in dev', async (t) => {
    const { url } = await startApplication(t, {}, { 'admin.enabled': false })
    assert.equal((await request(`${url}/svc-live.js`)).status, 200)
    const dev = await startApplication(t, {}, { 'app.env': 'dev' })
    const headers = { host: 'board.example.org' }
    assert.equal((await request(`${dev.url}/svc-live.js`, { headers })).status, 200)
    assert.equal((await request(`${dev.url}/svc-ping`, { headers })).status, 400)
  })

  it('has at most 360 lines, 5.4 kB compressed, and no import', () => {
    assert.ok(source.split('\n').length <= 361)
    assert.ok(gzipSync(source, { level: 9 }).length <= 5400)
    assert.doesNotMatch(source, /^\s*import\b|\bimport\(/m)
  })
})
