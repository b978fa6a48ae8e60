// Error pages: the application's views, and the page of `dev`.
import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { request } from '../support/request.ts'
import { serve } from '../support/serve.ts'

const actions = {
  '/fail': "({ fail }) => fail(409, 'taken', 'It is <taken>')",
  '/teapot': "({ fail, setHeader }) => { setHeader('X-Kept', '1'); setHeader('ETag', '\"a\"'); fail(418, 'tea', 'No coffee') }",
  '/throw': "() => { throw new Error('a secret reason') }",
}
const everyName = '{{ status }} {{ code }} {{ title }} [{{ detail }}] {{ id }} [{{ csp_nonce }}]'

describe('a view in paths.errors', () => {
  it('is the page of its status, else of its class, else of all errors', async (t) => {
    const { url, folder } = await serve(t, actions, {}, {
      'routes/errors/409.html': 'own 409: {{ detail }}',
      'routes/errors/4xx.html': 'own 4xx: {{ status }} {{ title }}',
      'routes/errors/error.html': `own: ${everyName}`,
    })
    const textOf = async (path: string): Promise<string> => (await request(url + path)).text
    assert.equal(await textOf('/fail'), 'own 409: It is &lt;taken&gt;')
    assert.equal(await textOf('/nowhere'), 'own 4xx: 404 Not Found')
    assert.match(await textOf('/throw'), /^own: 500 internal_error Internal Server Error \[\] [\w-]{20,} \[\]$/)
    rmSync(join(folder, 'routes/errors/409.html'))
    assert.equal(await textOf('/fail'), 'own 4xx: 409 Conflict')
    writeFileSync(join(folder, 'routes/errors/404.html'), 'made later')
    assert.equal(await textOf('/nowhere'), 'made later')
  })

  it('keeps the fields set so far, except those of the reply that it replaces', async (t) => {
    const { url } = await serve(t, actions, {}, { 'routes/errors/error.html': 'own' })
    const { status, headers, text } = await request(`${url}/teapot`)
    assert.deepEqual([status, text, headers['x-kept'], headers.etag], [418, 'own', '1', undefined])
    assert.deepEqual([headers['content-type'], headers['content-security-policy']], ['text/html; charset=utf-8', undefined])
  })

  it('is not used for programs, for the panel, and for a full queue', async (t) => {
    const key = `error-pages-${process.pid}`
    const { url } = await serve(
      t,
      { '/wait': `() => { process.emit('${key}'); return new Promise((resolve) => process.once('${key} end', resolve)) }` },
      { 'pool_http.workers': 1, 'pool_http.queue_size': 0 },
      { 'routes/errors/error.html': 'own' },
    )
    const json = await request(`${url}/nowhere`, { headers: { accept: 'application/json' } })
    assert.equal((json.json() as { error: string }).error, 'not_found')
    assert.match((await request(`${url}/svc-nothing`)).text, /<h1>404 Not Found<\/h1>/)
    const busy = new Promise((resolve) => process.once(key as 'SIGUSR2', resolve)) // Any name will do.
    const waiting = request(`${url}/wait`)
    await busy
    const full = await request(`${url}/wait`)
    assert.match(full.text, /<h1>503 Service Unavailable<\/h1>/)
    assert.equal((await request(`${url}/nowhere`)).text, 'own')
    process.emit(`${key} end` as 'SIGUSR2')
    await waiting
  })

  it('that fails is logged once and not retried until its file changes', async (t) => {
    const { url, folder, lines } = await serve(t, actions, {}, {
      'routes/errors/404.html': '{{ wrong }}',
      'routes/errors/error.html': 'not in its place',
    })
    for (let n = 0; n < 3; n++) assert.match((await request(`${url}/nowhere`)).text, /<h1>404 Not Found<\/h1>/)
    const said = lines().filter((line) => line.includes('Cannot show the error page routes/errors/404.html'))
    assert.equal(said.length, 1)
    assert.ok(lines().some((line) => line.includes('unknown name "wrong"')))
    writeFileSync(join(folder, 'routes/errors/404.html'), 'mended {{ status }}')
    assert.equal((await request(`${url}/nowhere`)).text, 'mended 404')
  })
})

describe('the page of a 500 in dev', () => {
  const headers = { cookie: 'SVCSID=cookie-value', authorization: 'Bearer bearer-value', 'x-api-token': 'token-value', 'x-shown': 'shown' }

  it('shows message, source, frames and request, and masks possible secrets', async (t) => {
    const { url } = await serve(t, { '/throw/:password': "() => { throw new Error('a <reason>', { cause: new Error('deeper') }) }" }, { 'app.env': 'dev' })
    const answer = await request(`${url}/throw/path-value?creditCard=card-value&page=2`, { headers })
    assert.equal(answer.status, 500)
    assert.match(answer.text, /Error: a &lt;reason&gt;\nCaused by: Error: deeper/)
    assert.match(answer.text, /<h2>actions\.mjs:1<\/h2>\n<div class="source"><code><span class="here"><b>1<\/b>export const r0 = /)
    assert.match(answer.text, /<div class="frames"><code><span>at r0 \(actions\.mjs/)
    assert.match(answer.text, /<details><summary>The whole stack, with the server and Node/)
    assert.match(answer.text, /<td>x-shown<\/td><td>shown<\/td>/)
    assert.match(answer.text, /<td>\?page<\/td><td>2<\/td>/)
    for (const secret of ['cookie-value', 'bearer-value', 'token-value', 'path-value', 'card-value']) {
      assert.ok(!answer.text.includes(`>${secret}<`), secret)
    }
    assert.match(String(answer.headers['content-security-policy']), /^default-src 'none'; style-src 'sha256-/)
  })

  it('shows the line of a view that fails', async (t) => {
    const { url } = await serve(t, { '/view': "({ view }) => view('a.html')" }, { 'app.env': 'dev' }, { 'a.html': '<p>\n{{ missing }}\n</p>' })
    assert.match((await request(`${url}/view`)).text, /<h2>a\.html:2<\/h2>\n<div class="source">.*<span class="here"><b>2<\/b>\{\{ missing }}/)
  })

  it('masks a parameter that may be secret in the path too, and in the query of the referring page', async (t) => {
    const { url } = await serve(t, { '/reset/:token/:id': '() => { throw new Error("no") }' }, { 'app.env': 'dev' })
    const { text } = await request(`${url}/reset/TOKEN-VALUE/5`, { headers: { referer: 'http://a/?token=TOKEN-VALUE&page=7' } })
    assert.doesNotMatch(text, /TOKEN-VALUE/)
    assert.match(text, /<h2>GET \/reset\/:token\/:id<\/h2>/)
  })

  it('is a page for errors of any kind', async (t) => {
    const errors = [
      'Object.assign(new Error("a"), { stack: 5 })',
      'Object.defineProperty(new Error("a"), "name", { get() { throw new Error("no name") } })',
      'Object.defineProperty(new Error("a"), "stack", { get() { throw new Error("no stack") } })',
      'Object.defineProperty(new Error("a"), "message", { get() { throw new Error("no message") } })',
      '(() => { const e = new Error("round"); e.cause = e; return e })()',
      'new Proxy(new Error("a"), { get() { throw new Error("no") } })',
    ]
    const actions = Object.fromEntries(errors.map((error, at) => [`/${at}`, `() => { throw ${error} }`]))
    for (const env of ['dev', 'prod']) {
      const { url } = await serve(t, actions, { 'app.env': env })
      for (const at of errors.keys()) {
        const { status, text } = await request(`${url}/${at}`)
        assert.equal(status, 500, errors[at])
        assert.ok(text.includes('500 Internal Server Error') && text.length < 20_000, `${errors[at]}: ${text.length}`)
      }
    }
  })

  it('is shown only to this machine, and not in prod', async (t) => {
    const dev = await serve(t, actions, { 'app.env': 'dev' })
    const foreign = await request(`${dev.url}/throw`, { headers: { host: 'rebound.example' } })
    const program = await request(`${dev.url}/throw`, { headers: { host: 'rebound.example', accept: 'application/json' } })
    const prod = await serve(t, actions, { 'app.env': 'prod' })
    const answers = [foreign, program, await request(`${prod.url}/throw`)]
    for (const { status, text } of answers) assert.deepEqual([status, text.includes('a secret reason')], [500, false])
    const listed = await serve(t, actions, { 'app.env': 'dev', 'server.allowed_hosts': ['dev.example'] })
    assert.match((await request(`${listed.url}/throw`, { headers: { host: 'dev.example' } })).text, /a secret reason/)
  })
})
