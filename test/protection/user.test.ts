// Who is signed in (`ctx.user`), and where a sign-in returns to (`ctx.returnTo`).
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { request } from '../support/request.ts'
import { serve } from '../support/serve.ts'
import { startApplication } from '../support/application.ts'

const routes = [
  { name: 'in', url: '/in', method: 'GET', action: 'a.mjs@enter', middleware: 'SVC_MwSession' },
  { name: 'who', url: '/who', method: 'GET', action: 'a.mjs@who', middleware: 'SVC_MwSession' },
  { name: 'open', url: '/open', method: 'GET', action: 'a.mjs@who' },
  { name: 'closed', url: '/closed', method: 'GET', action: 'a.mjs@who', middleware: 'SVC_MwSession,SVC_MwIsAuth' },
  { name: 'view', url: '/view', method: 'GET', action: 'view.html', middleware: 'SVC_MwSession' },
]
const files = {
  'routes/r.json': routes.map((route) => ({ ...route, scope: '' })),
  'view.html': '{{ ctx.user?.name }}',
  'a.mjs': `
    export const enter = (ctx) => {
      const before = ctx.user
      ctx.signIn({ name: 'ada' })
      return [before ?? 'nobody', ctx.user]
    }
    export const who = (ctx) => [ctx.user ?? 'nobody']`,
}

describe('ctx.user', () => {
  it('is the user of the session, with and without SVC_MwIsAuth, and follows sign-in and sign-out', async (t) => {
    const { url } = await startApplication(t, files)
    const first = await request(`${url}/in`)
    assert.deepEqual(first.json(), ['nobody', { name: 'ada' }])
    const cookie = first.headers['set-cookie']?.[0]?.split(';')[0] ?? ''
    const ask = async (path: string, headers = {}): Promise<string> => (await request(url + path, { headers })).text
    for (const path of ['/who', '/closed']) assert.equal(await ask(path, { cookie }), '[{"name":"ada"}]', path)
    assert.equal(await ask('/view', { cookie }), 'ada')
    assert.equal(await ask('/open', { cookie }), '["nobody"]')
    assert.equal(await ask('/who'), '["nobody"]')
  })

  it('is undefined after a sign-out in the same request', async (t) => {
    const { url } = await serve(t, { '/': '(ctx) => { ctx.signIn("ada"); ctx.session.delete("_auth_user"); return [ctx.user ?? "nobody"] }' }, {}, {
      'routes/s.json': [{ name: 's', url: '/s', method: 'GET', scope: '', action: 'actions.mjs@r0', middleware: 'SVC_MwSession' }],
    })
    assert.equal((await request(`${url}/s`)).text, '["nobody"]')
  })
})

describe('ctx.returnTo', () => {
  const rows: readonly (readonly [next: string, path: string])[] = [
    ['/page', '/page'], ['/page?a=1&b=%20', '/page?a=1&b=%20'], ['/files/a%20b', '/files/a%20b'], ['/', '/'],
    ['/nowhere', '/nowhere'], ['/a/../page?x=1', '/page?x=1'], ['/page#fragment', '/page'], ['/page?next=//evil.example', '/page?next=//evil.example'],
    ...[
      '', 'page', '//evil.example', '///evil.example', '/\\evil.example', '\\\\evil.example', '/\t/evil.example', '\t//evil.example',
      ' //evil.example', '/x/..//evil.example', '/x/%2e%2e//evil.example', '/.//evil.example', 'https://evil.example', 'https:/page',
      'javascript:alert(1)', '/page\r\nSet-Cookie: a=b', '/page\0', '/only-post', '/svc-stop', '/x/%2e%2e/svc-stop', '/svc-monitor',
      'http:evil.example', '@evil.example', '/\u0085',
    ].map((next) => [next, '/home'] as const),
  ]

  it('is a path of this application, of the form or the query, else the fallback', async (t) => {
    const { url } = await serve(t, {
      'GET /': "(ctx) => [ctx.returnTo('/home')]",
      'POST /': "async (ctx) => { await ctx.readForm(); return [ctx.returnTo('/home')] }",
      'POST /unread': "(ctx) => [ctx.returnTo()]",
      'GET /page': '() => 1',
      'POST /only-post': '() => 1',
      'GET /redirect': "(ctx) => ctx.redirect(ctx.returnTo('/home'))",
    })
    for (const [next, path] of rows) {
      const query = `next=${encodeURIComponent(next)}`
      assert.deepEqual((await request(`${url}/?${query}`)).json(), [path], JSON.stringify(next))
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      assert.deepEqual((await request(url, { body: query, headers })).json(), [path], JSON.stringify(next))
    }
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const both = (form: string): Promise<unknown> =>
      request(`${url}/?next=/page`, { body: `next=${form}`, headers }).then((answer) => answer.json())
    assert.deepEqual([await both('/other'), await both(''), await both('//evil')], [['/other'], ['/page'], ['/home']])
    assert.deepEqual((await request(`${url}/unread`, { body: 'next=/page', headers })).json(), ['/'])
    assert.equal((await request(`${url}/redirect?next=${encodeURIComponent('/page?q=é')}`)).headers.location, '/page?q=%C3%A9')
  })
})
