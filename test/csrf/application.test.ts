import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { createResourceTokens } from '../../lib/tokens/resource-id.ts'
import { startApplication, testKey, type TestApplication } from '../support/application.ts'
import { request, type Question } from '../support/request.ts'
import { cookieOf, valueOf } from './form-server.ts'

const form = (body: string, headers: Record<string, string> = {}): Question => ({
  headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
  body,
})

/** A page with a form per kind of route, and the action that receives it. */
const files = {
  'routes/r.json': [
    { name: 'signed', url: '/signed', method: '*', middleware: 'SVC_MwCsrfCheck', action: 'notes.mjs' },
    { name: 'session', url: '/session', method: '*', middleware: 'SVC_MwSession, SVC_MwCsrf', action: 'notes.mjs' },
    { name: 'alone', url: '/alone', method: '*', middleware: 'SVC_MwCsrf', action: 'notes.mjs' },
    { name: 'api', url: '/api', method: '*', middleware: 'SVC_MwCsrfCheck', action: 'notes.mjs', error_format: 'json' },
  ],
  'notes.mjs': `export default async (ctx) => {
    if (ctx.method !== 'POST') return ctx.view('form.html', { id: 'note|7' })
    return { id: await ctx.UGetResource() }
  }`,
  'form.html': '<form>\n@csrf\n@resource id\n</form><meta content="{{ csrf_token }}">\n',
}

function start(t: TestContext, more: Record<string, unknown> = {}, config = {}): Promise<TestApplication> {
  return startApplication(t, { ...files, ...more }, config)
}

describe('an application with forms', () => {
  it('renders both tokens in views, and accepts them', async (t) => {
    const { url } = await start(t)
    for (const path of ['/signed', '/session']) {
      const page = await request(url + path)
      const [csrf = '', resource = ''] = page.text.match(/<input [^>]*>/g) ?? []
      const text = /content="([^"]*)"/.exec(page.text)?.[1]
      assert.equal(text, path === '/session' ? valueOf(csrf) : '')
      assert.equal(page.headers['cache-control'], 'private')
      assert.equal(createResourceTokens({ keys: [testKey], now: Date.now }).read(valueOf(resource)), 'note|7')
      const fields = `_csrf=${valueOf(csrf)}&_resource_id=${encodeURIComponent(valueOf(resource))}`
      const answer = await request(url + path, form(fields, { Cookie: cookieOf(page) ?? '' }))
      assert.deepEqual([answer.status, answer.json()], [200, { id: 'note|7' }])
      const headers = { Cookie: cookieOf(page) ?? '', Origin: 'https://evil.example' }
      const forged = await request(url + path, form(fields, headers))
      assert.deepEqual([forged.status, forged.json()], [403, { error: 'csrf_invalid', reason: 'cross_site' }])
    }
  })

  it('logs a refusal, and names a route without a session', async (t) => {
    const { url, lines } = await start(t)
    assert.equal((await request(`${url}/signed`, form('_csrf=x'))).status, 403)
    const alone = await request(`${url}/alone`)
    assert.deepEqual([alone.status, alone.json()], [500, { error: 'csrf_requires_session' }])
    const logged = lines().filter((line) => line.includes('[error]'))
    assert.match(logged[0] ?? '', /\[WARN \] \[error\] POST \/signed \(signed\) was refused by the CSRF .*: malformed \[\S{36}\]$/)
    assert.match(logged[1] ?? '', /\[ERROR\] \[error\] GET \/alone was not served: .* of route "alone" \[\S{36}\]$/)
    assert.equal(logged.length, 2)
  })

  it('reports at the start, at a reload and for a new route that a middleware has no session before it', async (t) => {
    const behind = { name: 'behind', url: '/behind', middleware: 'SVC_MwIsAuth, SVC_MwSession', action: 'notes.mjs' }
    const { app, url, lines } = await start(t, { 'routes/z.json': [behind] }, { 'app.env': 'dev' })
    const warnings = [
      'r.json:1:256: route "alone": middleware SVC_MwCsrf cannot work: SVC_MwSession must come before it in the list',
      'z.json:1:35: route "behind": middleware SVC_MwIsAuth cannot work: SVC_MwSession must come before it in the list',
    ]
    assert.deepEqual(app.warnings(), warnings)
    const logged = lines().filter((line) => line.includes('[WARN ] [config] ')).map((line) => line.split('[config] ', 2)[1])
    assert.deepEqual(logged, warnings)
    const reload = (await request(`${url}/svc-routes/reload`)).json() as { warnings: string[] }
    assert.deepEqual(reload.warnings, warnings)
    const add = async (name: string, middleware: string): Promise<string | undefined> => {
      const body = JSON.stringify({ name, url: `/${name}`, middleware, action: 'notes.mjs' })
      const answer = await request(`${url}/svc-routes/add`, { method: 'POST', body })
      assert.equal(answer.status, 200)
      return (answer.json() as { warning?: string }).warning
    }
    const problem = 'cannot work: SVC_MwSession must come before it in the list'
    assert.equal(await add('one', 'SVC_MwCsrf'), `middleware SVC_MwCsrf ${problem}`)
    assert.equal(await add('two', 'SVC_MwSession,SVC_MwCsrf,SVC_MwIsAuth'), undefined)
    assert.equal(await add('three', 'SVC_MwCsrfCheck'), undefined)
    assert.equal((await request(`${url}/behind`)).status, 500)
  })

  it('accepts open forms after a change of the key, while the old key still verifies', async (t) => {
    const before = await start(t)
    const [csrf = '', resource = ''] = (await request(`${before.url}/signed`)).text.match(/<input [^>]*>/g) ?? []
    const question = form(`_csrf=${valueOf(csrf)}&_resource_id=${encodeURIComponent(valueOf(resource))}`)
    const rotated = await start(t, {}, { app_key: 'new', app_key_previous: [testKey] })
    assert.deepEqual((await request(`${rotated.url}/signed`, question)).json(), { id: 'note|7' })
    const changed = await start(t, {}, { app_key: 'new' })
    const refused = await request(`${changed.url}/signed`, question)
    assert.deepEqual(refused.json(), { error: 'csrf_invalid', reason: 'signature' })
  })

  it('reads setup.csrf, and again at a reload', async (t) => {
    const config = (csrf: object): Record<string, unknown> => ({ 'routes/middleware/config.json': { setup: { csrf } } })
    const { url, write } = await start(t, config({ redirect: '/again' }), { 'app.env': 'dev' })
    const refused = await request(`${url}/signed`, { method: 'POST' })
    assert.deepEqual([refused.status, refused.headers.location], [302, '/again'])
    const programResponse = await request(`${url}/api`, { method: 'POST' })
    assert.deepEqual([programResponse.status, programResponse.json()], [403, { error: 'csrf_invalid', reason: 'missing' }])
    write(config({ redirect: 'again' }))
    assert.equal((await request(`${url}/svc-routes/reload`)).status, 409)
    assert.equal((await request(`${url}/signed`, { method: 'POST' })).status, 302)
    write(config({ field: 'token' }))
    assert.equal((await request(`${url}/svc-routes/reload`)).status, 200)
    assert.equal((await request(`${url}/signed`, { method: 'POST' })).status, 403)
    assert.match((await request(`${url}/signed`)).text, /<input type="hidden" name="token"/)
  })
})
