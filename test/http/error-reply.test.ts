import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import { errorPage, toHttpError } from '../../lib/http/error-reply.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { request } from '../support/request.ts'
import { serve } from '../support/serve.ts'

describe('toHttpError', () => {
  it('recognizes an HttpError of another copy of the server by its mark, which JSON cannot have, even without cooperation', async () => {
    const copy = `${new URL('../../lib/http/errors.ts', import.meta.url).href}?copy`
    const { HttpError: Other } = (await import(copy)) as typeof import('../../lib/http/errors.ts')
    const error = new Other(418, 'teapot', 'Short and stout')
    assert.notEqual(Other, HttpError)
    assert.equal(toHttpError(error), error)
    class Own extends Other {}
    assert.equal(toHttpError(new Own(409, 'taken', 'It is taken')).status, 409)
    const refusing = new Proxy(new Error('asked'), { has: () => assert.fail() })
    for (const thrown of [{ status: 404, code: 'a', message: 'b', headers: {} }, Object.assign(new Error('a'), { status: 404 }), refusing]) {
      assert.equal(toHttpError(thrown).status, 500)
    }
  })

  it('keeps an HttpError and turns everything else into a 500', () => {
    const error = new HttpError(404, 'not_found', 'x')
    assert.equal(toHttpError(error), error)
    const thrown = new Error('reason')
    const made = toHttpError(thrown)
    assert.deepEqual([made.status, made.code, made.message, made.cause], [500, 'internal_error', 'reason', thrown])
    const revoked = Proxy.revocable(new Error(), {})
    revoked.revoke()
    const rows: [unknown, RegExp][] = [
      ['text', /thrown: text$/],
      [undefined, /thrown: undefined$/],
      [null, /thrown: null$/],
      [Symbol('s'), /thrown: Symbol\(s\)$/],
      [Object.create(null), /thrown: \[Object: null prototype\] \{\}$/],
      [{ toString: () => assert.fail() }, /thrown: \{ toString/],
      [revoked.proxy, /thrown: /],
    ]
    for (const [value, message] of rows) {
      assert.deepEqual([toHttpError(value).status, message.test(toHttpError(value).message)], [500, true], String(message))
    }
  })
})

describe('an HttpError', () => {
  it('has the default code and message of its status', () => {
    const rows = [
      [404, 'not_found', 'Not Found'],
      [409, 'conflict', 'Conflict'],
      [418, 'i_m_a_teapot', "I'm a Teapot"],
      [499, 'error', 'Error'],
      [500, 'internal_error', 'Internal Server Error'],
    ] as const
    for (const [status, code, message] of rows) {
      const error = new HttpError(status)
      assert.deepEqual([error.code, error.message], [code, message])
    }
    const own = new HttpError(404, undefined, 'Nothing here')
    assert.deepEqual([own.code, own.message], ['not_found', 'Nothing here'])
  })
})

describe('errorPage', () => {
  it('shows the status and escapes the detail', () => {
    assert.match(errorPage(404, '<b>'), /<h1>404 Not Found<\/h1>\n<pre>&lt;b&gt;<\/pre>/)
    assert.match(errorPage(500, undefined), /<p>Something went wrong on the server\. Its log has the details\.<\/p>/)
    assert.match(errorPage(503, undefined), /<p>The server is busy or is being stopped\./)
    const unavailable = errorPage(503, undefined, { id: 'a<b', code: 'shared_away' })
    assert.match(unavailable, /<p>A service that this page needs cannot be reached at the moment\.[^]*<p>Request <code>a&lt;b<\/code><\/p>/)
    const bare = errorPage(499, undefined)
    assert.match(bare, /<h1>499 Error<\/h1>/)
    assert.doesNotMatch(bare, /<pre>/)
  })
})

describe('the response to an error', () => {
  it('drops, from 500, cookies and fields of the replaced reply, and keeps the rest', async (t) => {
    const dropped = ['Cache-Control', 'Content-Disposition', 'Content-Encoding', 'Content-Language', 'Content-Range', 'ETag']
    const { url } = await serve(t, {
      '/': `(ctx) => {
        for (const name of ${JSON.stringify([...dropped, 'Last-Modified', 'Location', 'Expires', 'X-Kept'])}) ctx.setHeader(name, 'a')
        ctx.setHeader('Content-Type', 'image/png')
        ctx.setCookie('a', 'b')
        ctx.status = 201
        ctx.text('reply')
        throw new Error('x')
      }`,
    })
    const { status, headers, text } = await request(url)
    assert.equal(status, 500)
    for (const name of [...dropped, 'Last-Modified', 'Location', 'Expires', 'Set-Cookie']) {
      assert.equal(headers[name.toLowerCase()], undefined, name)
    }
    assert.deepEqual([headers['x-kept'], headers['content-type']], ['a', 'text/html; charset=utf-8'])
    assert.match(text, /<h1>500/)
  })

  it('is sent even if a field made the reply invalid', async (t) => {
    const { url } = await serve(t, { '/': "(ctx) => { ctx.setHeader('Trailer', 'X-A'); return 'x' }" })
    const { status, headers } = await request(url)
    assert.deepEqual([status, headers['trailer']], [500, undefined])
  })

  it('keeps cookies below 500, where the application intended the response, and always keeps no-store', async (t) => {
    const action = (status: number) => `(ctx) => {
      ctx.setCookie('a', 'b')
      ctx.setHeader('Cache-Control', 'no-store')
      ctx.setHeader('ETag', '"a"')
      ctx.fail(${status}, 'failed', 'x')
    }`
    const { url } = await serve(t, { '/403': action(403), '/499': action(499), '/500': action(500) })
    for (const [path, cookies] of [['/403', 1], ['/499', 1], ['/500', undefined]] as const) {
      const { headers } = await request(url + path)
      assert.deepEqual([headers['set-cookie']?.length, headers.etag], [cookies, undefined], path)
      assert.equal(headers['cache-control'], 'no-store')
    }
  })

  it("is a page with nosniff, or JSON for a program's request", async (t) => {
    const { url } = await serve(t, { '/': "(ctx) => ctx.fail(409, 'taken', 'the <name> is taken')", '/down': "(ctx) => ctx.fail(503, 'down', 'secret')" })
    const page = await request(url)
    const [, style = ''] = /<style>(.*?)<\/style>/s.exec(page.text) ?? []
    const hash = createHash('sha256').update(style).digest('base64')
    assert.equal(page.headers['content-security-policy'], `default-src 'none'; style-src 'sha256-${hash}'`)
    assert.deepEqual([page.status, page.headers['x-content-type-options']], [409, 'nosniff'])
    assert.match(page.text, /the &lt;name&gt; is taken/)
    for (const headers of [{ accept: 'text/html, application/json' }, { 'x-requested-with': 'xmlhttprequest' }]) {
      assert.deepEqual((await request(url, { headers })).json(), { error: 'taken', detail: 'the <name> is taken' })
    }
    const body = await request(url, { body: '{}', headers: { 'content-type': 'APPLICATION/JSON; charset=utf-8' } })
    assert.deepEqual(body.json(), { error: 'taken', detail: 'the <name> is taken' })
    for (const headers of [{ accept: 'application/jsonish' }, { 'x-requested-with': 'fetch' }]) {
      assert.match((await request(url, { headers })).text, /^<!doctype html>/)
    }
    const wanted = ['application/json;q=0.5', 'text/html;q=0, application/problem+json', 'text/json; v=1 ;q=0.001']
    const unwanted = ['application/json;q=0', '*/*, APPLICATION/JSON ; Q=0.000', 'application/json; v=1; q=0, text/html']
    for (const accept of [...wanted, ...unwanted]) {
      const isPage = (await request(url, { headers: { accept } })).text.startsWith('<!doctype html>')
      assert.equal(isPage, unwanted.includes(accept), accept)
    }
    assert.deepEqual((await request(`${url}/down`, { headers: { accept: 'application/json' } })).json(), { error: 'down' })
    assert.doesNotMatch((await request(`${url}/down`)).text, /secret/)
  })

  it('is a 500 if the error has an invalid field, and the log names it', async (t) => {
    const fields = [{ 'Content-Length': '0' }, { 'a b': 'c' }, { 'X-A': 'a\nb' }, { 'X-A': undefined as unknown as string }]
    for (const headers of fields) assert.throws(() => new HttpError(409, 'x', 'y', { headers }), TypeError, JSON.stringify(headers))
    const { url, lines } = await serve(t, {
      '/': `async () => {
        const { HttpError } = await import(${JSON.stringify(new URL('../../lib/http/errors.ts', import.meta.url).href)})
        throw new HttpError(409, 'x', 'y', { headers: { 'Content-Length': '0' } })
      }`,
    })
    assert.equal((await request(url)).status, 500)
    assert.match(lines().join('\n'), /Cannot set Content-Length: the server sets it according to the body: leave it out; /)
  })

  it('handles any thrown value', async (t) => {
    const thrown = ['undefined', 'null', '1n', "Symbol('a')", 'Object.create(null)', '{ get message() { throw 1 } }', '() => 1']
    const proxy = '(() => { const { proxy, revoke } = Proxy.revocable(new Error(), {}); revoke(); return proxy })()'
    const getter = 'Object.defineProperty(new Error(), "message", { get() { throw new Error("no") } })'
    const odd = [proxy, getter, 'Object.assign(new Error(), { message: {} })', 'Object.assign(new Error("a"), { stack: 1 })']
    const actions = Object.fromEntries([...thrown, ...odd].map((text, at) => [`/${at}`, `async () => { throw ${text} }`]))
    for (const env of ['prod', 'dev']) {
      const { url } = await serve(t, { ...actions, '/ok': "() => 'ok'" }, { 'app.env': env })
      for (const path of Object.keys(actions)) {
        const json = await request(url + path, { headers: { accept: 'application/json' } })
        assert.deepEqual([json.status, (json.json() as { error: string }).error], [500, 'internal_error'], path)
      }
      assert.equal((await request(`${url}/ok`)).text, 'ok')
    }
  })

  it('shows the error in dev if there is no stack', async (t) => {
    const action = "() => { const e = new Error('bare'); delete e.stack; e.stack = undefined; throw e }"
    const { url } = await serve(t, { '/': action }, { 'app.env': 'dev' })
    const { detail } = (await request(url, { headers: { accept: 'application/json' } })).json() as { detail: string }
    assert.match(detail, /^\[Error: bare\]/) // The rest of the text differs from Node 22 on.
  })
})
