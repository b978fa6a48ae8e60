// app.request(): requests without a port, for tests of applications.
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { createApp, type App } from '../support/app.ts'
import { testKey, writeFiles } from '../support/application.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const actions = {
  '/json': '({ query, headers, ip, host }) => ({ a: query.get("a"), agent: headers["user-agent"] ?? null, ip, host })',
  '/secure': '({ secure, host, setCookie }) => (setCookie("c", "v"), { secure, host })',
  '/echo': 'async ({ readText, method }) => `${method}: ${await readText()}`',
  '/form': 'async ({ readForm }) => { const form = await readForm(); return { b: form.get("b"), file: form.files.map(({ filename, size }) => [filename, size]) } }',
  '/empty': '({ empty }) => empty()',
  '/move': '({ redirect }) => redirect("/json")',
  '/stream': '({ sse, channel }) => sse(channel("c"))',
  '/hold': '({ hold, signal }) => hold(() => new Promise((_, reject) => { process.emit("inject-held"); signal.addEventListener("abort", () => { process.emit("inject-left"); reject(signal.reason) }) }))',
  '/large': '() => "x".repeat(2 ** 22)',
}

/** An application that has not been started. */
function make(t: Pick<TestContext, 'after'>, files: Readonly<Record<string, unknown>> = {}): App {
  const folder = temporaryFolder()
  const routes = Object.keys(actions).map((url, at) => ({ name: `r${at}`, url, action: `a.mjs@r${at}` }))
  const source = Object.values(actions).map((text, at) => `export const r${at} = ${text}\n`).join('')
  writeFiles(folder, { 'routes/a.json': routes, 'a.mjs': source, ...files })
  const app = createApp({ folder, config: { 'server.port': 0, 'log.console': false, app_key: testKey } })
  t.after(async () => {
    await app.stop()
    app.closeLogs()
  })
  return app
}

describe('a request without a port', () => {
  it('is answered like any other, and the first loads the application', async (t) => {
    const app = make(t)
    const [one, two] = await Promise.all([app.request('/json?a=1', { headers: { 'user-agent': 'test' } }), app.request('json')])
    assert.deepEqual([one.status, one.headers.get('content-type')], [200, 'application/json; charset=utf-8'])
    assert.deepEqual(await one.json(), { a: '1', agent: 'test', ip: '127.0.0.1', host: 'localhost' })
    assert.equal(two.status, 200)
    const own = await app.request('/json', { headers: { Host: 'example.org' } })
    assert.equal(((await own.json()) as { host: string }).host, 'example.org')
    assert.equal((await app.request('/nowhere')).status, 404)
    assert.equal((await app.request('/svc-ready')).status, 200)
    assert.equal((await app.request('/svc-status')).status, 302)
  })

  it('takes what fetch takes: methods, texts, forms and files', async (t) => {
    const app = make(t)
    assert.equal(await (await app.request('/echo', { method: 'PUT', body: 'text' })).text(), 'PUT: text')
    assert.equal(await (await app.request('/echo', { method: 'POST', body: new URLSearchParams({ a: 'b c' }) })).text(), 'POST: a=b+c')
    const form = new FormData()
    form.set('b', 'c')
    form.set('file', new File(['x'.repeat(100_000)], 'f.txt'))
    const answer = await app.request('/form', { method: 'POST', body: form })
    assert.deepEqual(await answer.json(), { b: 'c', file: [['f.txt', 100_000]] })
    assert.equal((await app.request('/echo', { method: 'POST', body: 'x'.repeat(2 ** 21) })).status, 413)
  })

  it('takes a URL and a Request, with the overrides of init', async (t) => {
    const app = make(t)
    const { a, host } = (await (await app.request(new URL('http://example.org:8080/json?a=1'))).json()) as { a: string; host: string }
    assert.deepEqual([a, host], ['1', 'example.org:8080'])
    const sent = new Request('http://localhost/echo', { method: 'POST', body: new URLSearchParams({ a: 'b' }), headers: { 'x-a': '1' } })
    assert.equal(await (await app.request(sent.clone())).text(), 'POST: a=b')
    assert.equal(await (await app.request(sent, { method: 'PUT', body: 'other' })).text(), 'PUT: other')
    const agent = new Request('http://localhost/json', { headers: { 'user-agent': 'test' } })
    assert.equal(((await (await app.request(agent)).json()) as { agent: string }).agent, 'test')
    const left = AbortSignal.abort()
    await assert.rejects(app.request(new Request('http://localhost/json', { signal: left })), { name: 'AbortError' })
    await app.request(sent.url, { method: 'POST', body: 'x' })
  })

  it('of an https: address is secure, and of any other is not', async (t) => {
    const app = make(t)
    for (const [input, secure, host] of [
      ['https://example.org/secure', true, 'example.org'],
      [new URL('https://example.org:8443/secure'), true, 'example.org:8443'],
      [new Request('https://example.org/secure'), true, 'example.org'],
      ['http://example.org/secure', false, 'example.org'],
      ['/secure', false, 'localhost'],
    ] as const) {
      const answer = await app.request(input)
      assert.deepEqual(await answer.json(), { secure, host })
      assert.equal(/; Secure/.test(answer.headers.get('set-cookie') ?? ''), secure)
    }
  })

  it('refuses an invalid address, and another scheme', async (t) => {
    const app = make(t)
    for (const wrong of [undefined, null, 7, {}, { url: '/json' }, ['/json']]) {
      await assert.rejects(app.request(wrong as unknown as string), { name: 'TypeError', message: /give a path, a URL or a Request: it is / })
    }
    for (const wrong of ['ftp://localhost/json', 'file:///json', 'ws://localhost/json']) {
      await assert.rejects(app.request(wrong), { name: 'TypeError', message: /must begin with http:, https: or \/: it is / })
    }
    await assert.rejects(app.request('http://'), { name: 'TypeError' })
  })

  it('returns responses without a body, redirects and large ones', async (t) => {
    const app = make(t)
    const empty = await app.request('/empty')
    assert.deepEqual([empty.status, empty.body], [204, null])
    const head = await app.request('/json', { method: 'HEAD' })
    assert.deepEqual([head.status, head.body], [200, null])
    const moved = await app.request('/move')
    assert.deepEqual([moved.status, moved.headers.get('location')], [302, '/json'])
    assert.equal((await (await app.request('/large')).text()).length, 2 ** 22)
  })

  it('reads a stream as it arrives, and cancels it', async (t) => {
    const app = make(t)
    const stream = await app.request('/stream')
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    while (!text.includes('data:')) {
      text += (await reader?.read())?.value ?? ''
      if (text.startsWith('retry: 2000')) app.channel('c').publish({ a: 1 })
    }
    assert.match(text, /data: \{"a":1\}\n\n/)
    await reader?.cancel()
    const [isHeld, isLeft] = ['inject-held', 'inject-left'].map(
      (name) => new Promise<void>((resolve) => process.once(name as 'SIGUSR2', () => resolve())), // Any name will do.
    )
    const leaving = new AbortController()
    const held = app.request('/hold', { signal: leaving.signal })
    void isHeld?.then(() => leaving.abort())
    await assert.rejects(held, { name: 'AbortError' })
    await isLeft
  })

  it('works on a started server too, but not after its stop', async (t) => {
    const app = make(t)
    await app.start()
    assert.equal((await app.request('/json')).status, 200)
    await app.stop()
    await assert.rejects(app.request('/json'), { message: 'Cannot send a request: the server has been stopped' })
  })

  it('fails when the application cannot be loaded', async (t) => {
    const app = make(t, { 'routes/b.json': '{' })
    await assert.rejects(app.request('/json'), /b\.json/)
  })
})
