// `testApp`: the application of a folder as its tests see it.
import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import type { TestApp, TestAppOptions } from 'svc'
import { testApp as load } from '../../lib/index.ts'
import { writeFiles, type Files } from '../support/application.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const routes = [
  ['page', 'GET', '/', 'a.mjs@page', 'SVC_MwSession, SVC_MwCsrf'],
  ['add', 'POST', '/notes', 'a.mjs@add', 'SVC_MwSession, SVC_MwCsrf'],
  ['signed', 'PUT', '/signed', 'a.mjs@read', 'SVC_MwCsrfCheck'],
  ['origin', 'DELETE', '/origin', 'a.mjs@read', 'SVC_MwOrigin'],
  ['echo', 'PATCH,POST', '/echo', 'a.mjs@read', ''],
  ['mine', 'GET', '/mine', 'a.mjs@mine', 'SVC_MwSession, SVC_MwIsAuth'],
  ['login', 'GET', '/login', 'a.mjs@page', ''],
  ['files', 'POST', '/files', 'a.mjs@files', ''],
  ['events', 'GET', '/events', 'a.mjs@events', ''],
  ['loop', 'GET', '/loop', 'a.mjs@loop', ''],
  ['cookie', 'GET', '/deep/cookie', 'a.mjs@cookie', ''],
] as const
const files: Files = {
  'routes/r.json': routes.map(([name, method, url, action, middleware]) => ({ name, method, url, action, middleware, scope: '' })),
  'routes/middleware/config.json': { setup: { csrf: { lapse: 3600 }, session: { store: 'file', path: 'kept' } } },
  'svc.json': { server: { port: 1, processes: 4, allowed_hosts: ['example.org'] }, app: { env: 'dev' }, log: { level: 'debug' } },
  'svc.local.json': '{ broken',
  'a.mjs': `
    export const page = (ctx) => '<h1>Page</h1>'
    export const add = async (ctx) => {
      const values = await ctx.validate(ctx.fields({ text: ctx.fields.text() }))
      return ctx.redirect('/?added=' + values.text, 303)
    }
    export const read = async (ctx) => ({
      method: ctx.method, body: await ctx.readText(), type: ctx.headers['content-type'] ?? '', accept: ctx.headers.accept ?? '',
      origin: ctx.headers.origin ?? '', referer: ctx.headers.referer ?? '', cookie: ctx.headers.cookie ?? '',
    })
    export const mine = (ctx) => [ctx.user]
    export const files = async (ctx) => {
      const form = await ctx.readForm()
      return { fields: [...form.entries()], files: form.files.map(({ name, filename, type, size }) => [name, filename, type, size]) }
    }
    export const events = (ctx) => ctx.sse(ctx.channel('news'))
    export const loop = (ctx) => ctx.redirect('/loop')
    export const cookie = (ctx) => {
      ctx.setCookie('here', '1', { path: '/deep' })
      ctx.setCookie('gone', '', { maxAge: 0 })
      ctx.setCookie('safe', '1', { secure: true })
      return ctx.redirect('/echo', 307)
    }`,
}

async function start(t: TestContext, more: Files = {}, options?: TestAppOptions): Promise<{ app: TestApp; folder: string }> {
  const folder = temporaryFolder()
  writeFiles(folder, { ...files, ...more })
  const app = (await load(folder, options)) as TestApp
  t.after(() => app.close())
  return { app, folder }
}

describe('testApp', () => {
  it('has the configuration of the folder without the local file, in prod, and writes elsewhere', async (t) => {
    const folder = temporaryFolder()
    writeFiles(folder, files)
    const before = readdirSync(folder, { recursive: true }).sort()
    const { TMPDIR = tmpdir() } = process.env
    t.after(() => void (process.env['TMPDIR'] = TMPDIR))
    const own = temporaryFolder() // Tests in other processes use the common one at the same time.
    process.env['TMPDIR'] = own
    const left = (): string[] => readdirSync(own)
    const app = await load(pathToFileURL(`${folder}/`))
    t.after(() => app.close())
    const { config } = app
    assert.deepEqual([config['app.env'], config['log.level'], config['log.console'], config['server.processes']], ['prod', 'debug', false, 1])
    const client = app.client()
    assert.equal(await (await client.get('/')).text(), '<h1>Page</h1>')
    await client.signIn('ada')
    await client.post('/files', { files: { a: { filename: 'a.txt', content: 'x'.repeat(100_000) } } })
    assert.deepEqual(readdirSync(folder, { recursive: true }).sort(), before)
    const [mine = ''] = left()
    assert.match(mine, /^svc-test-app-/)
    assert.ok(existsSync(join(own, mine, 'sessions')))
    await app.close()
    assert.deepEqual(left(), [])
    await assert.rejects(client.get('/'), /the server has been stopped/)
  })

  it('takes values over those of the folder, and rejects for a folder that cannot be loaded', async (t) => {
    const config = { log: { level: 'warn' }, 'server.body_limit_kb': 1 }
    const { app } = await start(t, {}, { config, setup: { csrf: { lapse: 7 } } })
    assert.deepEqual([app.config['log.level'], app.config['server.body_limit_kb']], ['warn', 1])
    const folder = temporaryFolder()
    const rows: [Files, TestAppOptions, RegExp][] = [
      [{}, { config: { 'log.level': 'loud' } }, /log\.level must be/],
      [{ 'svc.json': '{' }, {}, /svc\.json/],
      [{ 'routes/middleware/config.json': { load: ['none.mjs'] } }, {}, /none\.mjs/],
      [{ 'routes/r.json': '{' }, {}, /r\.json/],
    ]
    for (const [wrong, options, message] of rows) {
      writeFiles(folder, { ...files, ...wrong })
      await assert.rejects(load(folder, options), message)
    }
  })

  it('gives clients with cookies, sign-in and sign-out of their own', async (t) => {
    const { app } = await start(t)
    const [ada, other] = [app.client(), app.client()]
    await ada.signIn({ name: 'ada' })
    assert.deepEqual(await (await ada.get('/mine')).json(), [{ name: 'ada' }])
    assert.equal((await other.get('/mine')).headers.get('location'), '/login?next=/mine')
    await ada.signOut()
    assert.equal((await ada.get('/mine')).status, 302)
    await assert.rejects(ada.signIn(null), /The application answered 500/)
    const { get } = ada
    assert.equal((await get('/')).status, 200)
  })

  it('sends the CSRF token that the route checks, unless it is not to', async (t) => {
    const { app } = await start(t)
    for (const [method, path, expected] of [['post', '/notes', 303], ['put', '/signed', 200]] as const) {
      const client = app.client()
      assert.equal((await client[method](path, { form: { text: 'a' } })).status, expected, path)
      assert.equal((await client[method](path, { json: { text: 'b' } })).status, expected, path)
      const refused = await client[method](path, { form: { text: 'a' }, csrf: false })
      assert.deepEqual([refused.status, await refused.json()], [403, { error: 'csrf_invalid', reason: 'missing' }])
      const elsewhere = await client[method](path, { form: { text: 'a' }, headers: { origin: 'https://evil.example' } })
      assert.deepEqual(await elsewhere.json(), { error: 'csrf_invalid', reason: 'cross_site' })
    }
    const client = app.client()
    await client.signIn('ada')
    assert.equal((await client.delete('/origin')).status, 200)
    assert.equal((await client.delete('/origin', { headers: { origin: 'https://evil.example' } })).status, 403)
  })

  it('goes back to the page of a refused form, as a browser does', async (t) => {
    const { app } = await start(t)
    const client = app.client()
    await client.get('/?q=1')
    const refused = await client.post('/notes', { form: { text: '' } })
    assert.deepEqual([refused.status, refused.headers.get('location')], [303, '/?q=1'])
    const followed = await client.post('/notes', { form: { text: 'b' }, follow: true })
    assert.deepEqual([followed.status, await followed.text()], [200, '<h1>Page</h1>'])
    await assert.rejects(client.get('/loop', { follow: true }), { message: '/loop redirects more than 20 times' })
  })

  it('has clients that send their requests below server.prefix', async (t) => {
    const { app } = await start(t, {}, { config: { 'server.prefix': '/app' } })
    const client = app.client()
    assert.equal((await client.get('/mine')).headers.get('location'), '/app/login?next=/mine')
    await client.signIn('ann')
    for (const path of ['/mine', '/app/mine']) assert.deepEqual(await (await client.get(path)).json(), ['ann'])
    const added = await client.post('/notes', { form: { text: 'hello' } })
    assert.deepEqual([added.status, added.headers.get('location')], [303, '/?added=hello'])
    await client.signOut()
    assert.equal((await client.get('/app/mine')).status, 302)
    const secure = app.client()
    await secure.get('https://localhost/')
    assert.equal((await secure.post('https://localhost/notes', { form: { text: 'hello' } })).status, 303, 'with its Secure cookie')
  })

  it('sends forms, files, JSON and other bodies', async (t) => {
    const { app } = await start(t)
    const client = app.client()
    const echoed = async (options: object): Promise<Record<string, string>> =>
      (await (await client.patch('/echo', options)).json()) as Record<string, string>
    const { body, type } = await echoed({ form: { a: 'é', tags: ['x', 'y'], lines: [{ name: 'n', more: { b: 1 } }], no: undefined } })
    assert.equal(body, 'a=%C3%A9&tags=x&tags=y&lines.0.name=n&lines.0.more.b=1')
    assert.equal(type, 'application/x-www-form-urlencoded;charset=UTF-8')
    const json = await echoed({ json: null })
    assert.deepEqual([json['body'], json['type'], json['accept']], ['null', 'application/json', 'application/json'])
    assert.equal((await echoed({ body: 'raw', headers: { 'Content-Type': 'text/x' } }))['type'], 'text/x')
    const sent = await client.post('/files', {
      form: { a: 1 },
      files: { one: new File(['123'], '1.txt', { type: 'text/plain' }), two: [{ filename: '2', content: Buffer.from('12') }, { filename: '3', content: '' }] },
    })
    assert.deepEqual(await sent.json(), {
      fields: [['a', '1']],
      files: [['one', '1.txt', 'text/plain', 3], ['two', '2', 'application/octet-stream', 2], ['two', '3', 'application/octet-stream', 0]],
    })
    await assert.rejects(client.post('/echo', { json: 1, body: 'a' }), TypeError)
    await assert.rejects(client.post('/echo', { forms: {} } as object), /there is no option "forms"/)
  })

  it('keeps cookies as a browser does', async (t) => {
    const { app } = await start(t)
    const client = app.client()
    await client.get('/deep/cookie')
    const cookieAt = async (path: string): Promise<unknown> =>
      ((await (await client.patch(path, { headers: {} })).json()) as Record<string, string>)['cookie']
    assert.equal(await cookieAt('/echo'), '')
    await client.signIn('ada')
    assert.match(String(await cookieAt('/echo')), /^SVCSID=[^;]+$/)
  })

  it('reads a stream of events', async (t) => {
    const { app } = await start(t)
    const client = app.client()
    const events = await client.events('/events')
    const first = await app.channel('news').publish({ a: 'é\n' })
    await app.channel('news').publish('text')
    assert.deepEqual(await events.next(), { id: String(first), event: 'message', data: { a: 'é\n' } })
    for await (const { data } of events) {
      assert.equal(data, 'text')
      break
    }
    await assert.rejects(client.events('/'), /^Error: \/ is not a stream of events: it is 200 text\/html; charset=utf-8: <h1>Page<\/h1>$/)
  })
})
