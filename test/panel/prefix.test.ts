// Below a prefix: every redirect and link that the server itself makes, and what an attacker tries with the prefix.
import assert from 'node:assert/strict'
import { describe, it, test, type TestContext } from 'node:test'
import { navigation, openStream, startDev } from '../dev/dev-support.ts'
import { request, type Answer, type Question } from '../support/request.ts'
import { cookieOf, greeting, nowSeconds, startPanel } from './panel-server.ts'
import { useThePanelBelow, type Browse } from './below-prefix.ts'

const folder = { 'paths.public': 'routes/public' }
const trusted = { 'server.trusted_proxies': ['127.0.0.1'] }
const session = { middleware: 'SVC_MwSession' }
const files = {
  'routes/a.json': [
    { name: 'home', url: '/', action: 'a.mjs@home' },
    { name: 'note', url: '/notes/:id', action: 'a.mjs@note' },
    { name: 'named', url: '/named', action: 'a.mjs@named' },
    { name: 'written', url: '/written', action: 'a.mjs@written' },
    { name: 'view', url: '/view', action: 'page.html' },
    { name: 'mine', url: '/mine', action: 'a.mjs@home', middleware: 'SVC_MwSession, SVC_MwIsAuth' },
    { name: 'back', url: '/back', action: 'a.mjs@back', ...session },
    { name: 'form', url: '/form', action: 'a.mjs@form', ...session },
    { name: 'end', url: '/end', action: 'a.mjs@end', ...session },
    { name: 'sent', url: '/sent', method: 'POST', action: 'a.mjs@sent', ...session },
    { name: 'checked', url: '/checked', method: 'POST', action: 'a.mjs@home', middleware: 'SVC_MwSession, SVC_MwCsrf' },
    { name: 'api', url: '/api', action: 'svc:openapi' },
    { name: 'rest', url: '/rest/*rest', action: 'a.mjs@home' },
  ],
  'a.mjs': `
    export const home = (ctx) => ({ prefix: ctx.prefix, path: ctx.path, returnTo: ctx.returnTo() })
    export const note = (ctx) => ctx.url('note', { id: 7 })
    export const named = (ctx) => ctx.redirect({ route: 'note', params: { id: 7 } })
    export const written = (ctx) => ctx.redirect('/written/by/the/author')
    export const back = (ctx) => ctx.redirect(ctx.returnTo())
    export const form = (ctx) => { ctx.session.set('seen', 1); return 'form' }
    export const end = (ctx) => { ctx.session.destroy(); return 'ended' }
    export const sent = (ctx) => ctx.validate(ctx.fields({ name: ctx.fields.text() }))
  `,
  'page.html': '<body><a href="{{ prefix }}/x">{{ path }}</a> {{ url("note", { id: 7 }) }} {{ ctx.prefix }}</body>',
  'routes/middleware/config.json': { setup: { csrf: { redirect: '/refused' }, auth: { redirect: '/login' } } },
  'routes/public/folder/index.html': 'a folder',
}

/** Starts a server and returns what sends requests to it as a trusted proxy that has taken `/app` off. */
async function startBelow(t: Pick<TestContext, 'after'>, config: Readonly<Record<string, unknown>> = trusted) {
  const server = await startPanel(t, { ...folder, ...config }, files)
  const ask = (path: string, { headers, ...question }: Question = {}): Promise<Answer> =>
    server.ask(path, { ...question, headers: { 'x-forwarded-prefix': '/app', ...headers } })
  return { server, ask, cookie: cookieOf(nowSeconds()) }
}

async function formCookie(ask: (path: string) => Promise<Answer>): Promise<string> {
  return (await ask('/form')).headers['set-cookie']?.[0]?.split(';')[0] ?? ''
}

describe('a redirect that the server makes', () => {
  const rows: readonly [what: string, path: string, status: number, location: string, question?: Question][] = [
    ['to the sign-in of the panel', '/svc-status', 302, '/app/svc-login?next=/svc-status'],
    ['after the sign-out', '/svc-logout', 302, '/app/svc-login'],
    ['away from the setup', '/svc-setup', 302, '/app/svc-login'],
    ['after the setup of another', '/svc-setup', 302, '/app/svc-login', { method: 'POST', body: '' }],
    ['to the sign-in of the application', '/mine?a=b', 302, '/app/login?next=/mine%3Fa%3Db'],
    ['to the page after the sign-in', '/back?next=/notes/7%3Fa', 302, '/app/notes/7?a'],
    ['to that page, written with the prefix', '/back?next=/app/notes/7', 302, '/app/notes/7'],
    ['to no page after the sign-in', '/back', 302, '/app/'],
    ['to another host after the sign-in', '/back?next=//evil.example', 302, '/app/'],
    ['to another host after the sign-in, below the prefix', '/back?next=/app//evil.example', 302, '/app/'],
    ['to a folder', '/folder?a', 301, '/app/folder/?a'],
    ['to a route of the application', '/named', 302, '/app/notes/7'],
    ['after a refused token', '/checked', 302, '/app/refused', { method: 'POST', body: '' }],
    ['that the author wrote', '/written', 302, '/written/by/the/author'],
  ]
  for (const [what, path, status, location, question] of rows) {
    it(`${what} leads to ${location}`, async (t) => {
      const { ask } = await startBelow(t)
      const answer = await ask(path, question)
      assert.deepEqual([answer.status, answer.headers.location], [status, location])
    })
  }

  it('to the setup leads below the prefix', async (t) => {
    const { ask } = await startBelow(t, { ...trusted, 'admin.user': '' })
    assert.equal((await ask('/svc-status')).headers.location, '/app/svc-setup')
    assert.equal((await ask('/svc-login', { body: '' })).headers.location, '/app/svc-setup')
  })

  it('opens a route of the index below the prefix', async (t) => {
    const { ask, cookie } = await startBelow(t)
    assert.equal((await ask('/svc-index?open=note&in.id=7', { headers: { cookie } })).headers.location, '/app/notes/7')
  })

  it('back to the page of a form leads below the prefix, and to no other page', async (t) => {
    const { ask, server } = await startBelow(t)
    const cookie = await formCookie(ask)
    const type = 'application/x-www-form-urlencoded'
    const send = (page: string): Promise<Answer> =>
      ask('/sent', { body: 'name=', headers: { cookie, referer: server.url + page, 'content-type': type } })
    const back = await send('/app/form?a')
    assert.deepEqual([back.status, back.headers.location], [303, '/app/form?a'])
    assert.equal((await send('/app/svc-status')).status, 422)
  })
})

test('the context, a view, a URL and the description have the prefix', async (t) => {
  const { ask, cookie } = await startBelow(t)
  assert.deepEqual((await ask('/')).json(), { prefix: '/app', path: '/', returnTo: '/app/' })
  assert.equal((await ask('/notes/7')).text, '/app/notes/7')
  assert.equal((await ask('/view')).text, '<body><a href="/app/x">/view</a> /app/notes/7 /app</body>')
  for (const path of ['/api', '/svc-openapi?format=json']) {
    const { servers } = (await ask(path, { headers: { cookie } })).json() as { servers: unknown }
    assert.deepEqual(servers, [{ url: '/app' }], path)
  }
})

test('in dev, the script of pages is below the prefix, and finds its stream beside itself', async (t) => {
  const { url } = await startDev(t, files, { ...trusted, 'server.prefix': '/own' })
  const opened = (path: string, headers = {}) => request(url + path, { headers: { ...navigation, ...headers } })
  assert.match((await opened('/own/view')).text, /<script type="module" src="\/own\/svc-dev.js"/)
  assert.match((await opened('/none', { 'x-forwarded-prefix': '/app' })).text, /<script type="module" src="\/app\/svc-dev.js"/)
  const script = await request(`${url}/own/svc-dev.js`)
  assert.match(script.text, /new URL\('svc-dev-events', import.meta.url\)/)
  await openStream(t, `${url}/own`)
})

test('the scripts of pages send their requests below the prefix', async (t) => {
  const { ask, cookie } = await startBelow(t)
  for (const page of ['/svc-monitor', '/svc-openapi']) {
    assert.match((await ask(page, { headers: { cookie } })).text, /^const prefix = '\/app'$/m, page)
  }
})

describe('server.prefix', () => {
  const own = { 'server.prefix': '/own' }

  it('is taken off, once, and requests without it are served', async (t) => {
    const server = await startPanel(t, { ...own, ...folder }, files)
    const pathOf = async (path: string): Promise<unknown> => (await server.ask(path)).json()
    assert.deepEqual(await pathOf('/own/'), { prefix: '/own', path: '/', returnTo: '/own/' })
    assert.deepEqual(await pathOf('/own'), { prefix: '/own', path: '/', returnTo: '/own/' })
    assert.deepEqual(await pathOf('/own?a=/b'), { prefix: '/own', path: '/', returnTo: '/own/' })
    assert.deepEqual(await pathOf('/'), { prefix: '/own', path: '/', returnTo: '/own/' })
    assert.equal((await server.ask('/own/own/')).status, 404)
    assert.equal((await server.ask('/owner')).status, 404)
    assert.equal((await server.ask('/own/folder/')).text, 'a folder')
    assert.equal(server.app.url('note', { id: 7 }), '/own/notes/7')
  })

  it('gives way to that of a trusted proxy, which is not taken off', async (t) => {
    const { ask } = await startBelow(t, { ...own, ...trusted })
    assert.deepEqual((await ask('/own/')).json(), { prefix: '/app', path: '/', returnTo: '/app/' })
    assert.equal((await ask('/app/')).status, 404)
  })

  it('is in the access log as it was sent', async (t) => {
    const server = await startPanel(t, { ...own, 'access_log.format': 'json' }, files)
    for (const path of ['/own/notes/7?a', '/notes/7', '/own']) await server.ask(path)
    server.app.flushLogs()
    const lines = server.read('.logs/access.log').trim().split('\n').map((line) => JSON.parse(line) as { path: string; route: string })
    const logged = lines.map(({ path, route }) => `${path} ${route}`)
    assert.deepEqual(logged, ['/own/notes/7 note', '/notes/7 note', '/own home'])
  })

  it('is the prefix of the panel when the proxy passes the path as it is', async (t) => {
    const server = await startPanel(t, own, greeting)
    await useThePanelBelow('/own', browserOf(server.url))
  })
})

test('the whole panel can be used below the prefix of a proxy that takes it off', async (t) => {
  const server = await startPanel(t, trusted, greeting)
  const proxied: Browse = (path, cookie, form) => {
    assert.ok(path.startsWith('/app/'), path)
    return browserOf(server.url, { 'x-forwarded-prefix': '/app' })(path.slice('/app'.length), cookie, form)
  }
  const seen = await useThePanelBelow('/app', proxied)
  for (const page of ['/svc-monitor', '/svc-errors', '/svc-routes/list', '/svc-routes/diff', '/svc-openapi', '/svc-config', '/svc-changes', '/svc-index']) {
    assert.ok(seen.includes(page), page)
  }
})

test('the cookies of the panel and of a session have the prefix as their path', async (t) => {
  const { ask, server, cookie } = await startBelow(t)
  const body = new URLSearchParams({ user: 'ann', password: 'correct horse' }).toString()
  const form = { body, headers: { 'content-type': 'application/x-www-form-urlencoded' } }
  const pathsOf = ({ headers }: Answer): string[] => (headers['set-cookie'] ?? []).map((line) => /Path=([^;]*)/.exec(line)?.[1] ?? '')
  const signOut = { headers: { cookie } }
  assert.deepEqual(pathsOf(await ask('/svc-login', form)), ['/app'])
  assert.deepEqual(pathsOf(await ask('/svc-logout', signOut)), ['/app'])
  assert.deepEqual(pathsOf(await ask('/form')), ['/app'])
  assert.deepEqual(pathsOf(await ask('/end', { headers: { cookie: await formCookie(ask) } })), ['/app'])
  assert.deepEqual(pathsOf(await server.ask('/svc-login', form)), ['/'])
  assert.deepEqual(pathsOf(await server.ask('/form')), ['/'])
})

describe('an attacker', () => {
  const type = 'application/x-www-form-urlencoded'

  it('who is no trusted proxy has no prefix', async (t) => {
    const { ask } = await startBelow(t, { 'server.trusted_proxies': ['192.0.2.1'] })
    assert.deepEqual((await ask('/')).json(), { prefix: '', path: '/', returnTo: '/' })
    const { ask: other } = await startBelow(t, {})
    assert.equal((await other('/svc-status')).headers.location, '/svc-login?next=/svc-status')
  })

  it('cannot make a redirect to another host of the prefix', async (t) => {
    const { server } = await startBelow(t)
    for (const prefix of ['//evil.example', '/\\evil.example', '/%5Cevil.example', 'https://evil.example', '/a/..//evil.example', '/app,//evil.example']) {
      for (const path of ['/svc-status', '/folder', '/named', '/mine', '/back']) {
        const { headers } = await server.ask(path, { headers: { 'x-forwarded-prefix': prefix } })
        assert.match(headers.location ?? '', /^\/(?!app|[/\\])/, `${prefix} ${path}`)
      }
    }
  })

  it('cannot hide a path of the panel from a proxy behind the field', async (t) => {
    const { server, cookie } = await startBelow(t)
    const headers = { cookie, 'x-forwarded-prefix': '/x' }
    assert.equal((await server.ask('/x/svc-status', { headers })).status, 404)
  })

  it('cannot pass admin.allow with a prefix, however it is written', async (t) => {
    const { server, cookie } = await startBelow(t, { ...trusted, 'server.prefix': '/own', 'admin.allow': ['192.0.2.7'] })
    for (const path of ['/svc-status', '/own/svc-status', '/own/%73vc-status', '/%6fwn/svc-status', '/own//svc-status', '/own/own/svc-status', '/own/./svc-status', '/own/../svc-status', '/own/svc-status/']) {
      for (const prefix of ['/own', '/x', '/svc-status']) {
        const { status } = await server.ask(path, { headers: { cookie, 'x-forwarded-prefix': prefix, 'x-forwarded-for': '198.51.100.1' } })
        assert.equal(status, 404, `${path} ${prefix}`)
      }
    }
    const inside = { cookie, 'x-forwarded-for': '192.0.2.7' }
    assert.equal((await server.ask('/own/svc-status', { headers: inside })).status, 200)
  })

  it('cannot pass the sign-in with a prefix', async (t) => {
    const { server } = await startBelow(t, { ...trusted, 'server.prefix': '/own' })
    for (const path of ['/own/svc-status', '/own/%73vc-status', '/own/svc-status/']) {
      assert.equal((await server.ask(path)).headers.location?.startsWith('/own/svc-login?next='), true, path)
    }
  })

  it('cannot make a sign-in stop the server, in whatever way next is written', async (t) => {
    const { ask } = await startBelow(t, { ...trusted, 'server.prefix': '/own' })
    for (const next of ['/svc-stop', '/own/svc-stop', '/app/svc-stop', '/own/own/svc-stop', '/app/own/app/svc-stop', '/own/x/../svc-stop', '/own/%73vc-stop', '/app//svc-stop', '/own\\svc-stop']) {
      const body = new URLSearchParams({ user: 'ann', password: 'correct horse', next }).toString()
      const { status, headers } = await ask('/svc-login', { body, headers: { 'content-type': type } })
      assert.deepEqual([status, headers.location], [302, '/app/svc-status'], next)
    }
  })

  it('cannot make the index lead to the panel, in whatever way the path is built', async (t) => {
    const everything = { 'routes/b.json': [{ name: 'all', url: '/*all', action: 'a.mjs@home' }] }
    const server = await startPanel(t, { 'server.prefix': '/own' }, { ...files, ...everything })
    for (const all of ['svc-stop', 'own/svc-stop', 'own/own/svc-stop']) {
      const { status } = await server.askSignedIn(`/svc-index?open=all&in.all=${all}`)
      assert.equal(status, 400, all)
    }
  })
})

/** A browser without cookies of its own, which follows nothing. */
function browserOf(url: string, more: Question['headers'] = {}): Browse {
  return async (path, cookie, form) => {
    const headers = { cookie, ...more, ...(form && { 'content-type': 'application/x-www-form-urlencoded' }) }
    const body = form && new URLSearchParams(form).toString()
    const { status, headers: sent, text } = await request(url + path, { headers, ...(body !== undefined && { body }) })
    return { status, text, location: sent.location ?? '', cookies: sent['set-cookie'] ?? [] }
  }
}
