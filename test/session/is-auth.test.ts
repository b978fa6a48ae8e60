import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { silentLogger } from '../../lib/log/logger.ts'
import { createAuthGroup } from '../../lib/session/is-auth.ts'
import { startChain, type Actions } from '../flash/chain-server.ts'

const users: readonly unknown[] = [undefined, null, '', false, 0, 'ada', { id: 7, roles: ['a'] }, [], true]

const actions: Actions = {
  '/in SVC_MwSession': ({ session, query }) => {
    const user = users[Number(query.get('user'))]
    if (user === undefined) session.delete('_auth_user')
    else session.set('_auth_user', user)
    session.set('who', 'custom')
    session.regenerate()
    return ''
  },
  '/out SVC_MwSession': ({ session }) => void session.destroy(),
  '/page SVC_MwSession,SVC_MwIsAuth': ({ state }) => [state['user']],
  '/cached SVC_MwSession,SVC_MwIsAuth': (ctx) => {
    ctx.setHeader('Cache-Control', 'private, max-age=60')
    return [ctx.state['user']]
  },
  '/failing SVC_MwSession,SVC_MwIsAuth': (ctx) => ctx.fail(404, 'not_found', 'none'),
  '/bare SVC_MwIsAuth': () => 'reached',
  '/wrong-order SVC_MwIsAuth,SVC_MwSession': () => 'reached',
}
const signedIn = '/in?user=5'
const asJson = { accept: 'application/json' }

describe('SVC_MwIsAuth', () => {
  it('passes signed-in users, and provides the user to the layers below', async (t) => {
    const send = (await startChain(t, actions)).client()
    for (const at of [4, 5, 6, 7, 8]) {
      await send(`/in?user=${at}`)
      const answer = await send('/page')
      assert.deepEqual([answer.status, answer.json()], [200, [users[at]]])
    }
  })

  it('redirects everybody else to the sign-in page', async (t) => {
    const server = await startChain(t, actions)
    const send = server.client()
    for (const at of [0, 1, 2, 3]) {
      await send(`/in?user=${at}`)
      for (const method of ['GET', 'HEAD', 'POST']) {
        const { status, headers } = await send('/page', { method })
        const found = [status, headers.location, headers['cache-control']]
        assert.deepEqual(found, [302, method === 'POST' ? '/login' : '/login?next=/page', 'no-store'], `${method} ${at}`)
      }
    }
    assert.equal((await server.send('/page')).headers.location, '/login?next=/page', 'without a cookie')
    assert.equal((await server.send('/page')).headers['set-cookie'], undefined)
    assert.ok(server.lines.includes('DEBUG worker_http POST /page: SVC_MwIsAuth: nobody is signed in'))
  })

  it('adds the requested page to the redirect, unless it is not to', async (t) => {
    const { send, configure } = await startChain(t, actions)
    const locationOf = async (path: string): Promise<unknown> => (await send(path)).headers.location
    assert.equal(await locationOf('/page?a=%C3%A9&b=/c'), '/login?next=/page%3Fa%3D%25C3%25A9%26b%3D/c')
    assert.equal(await locationOf(`/page?${'a'.repeat(2042)}`), `/login?next=/page%3F${'a'.repeat(2042)}`)
    assert.equal(await locationOf(`/page?${'a'.repeat(2043)}`), '/login')
    configure('auth', { redirect: '/login?lang=de' })
    assert.equal(await locationOf('/page'), '/login?lang=de&next=/page')
    configure('auth', { redirect: '/login#form' })
    assert.equal(await locationOf('/page'), '/login?next=/page#form')
    configure('auth', { next: false })
    assert.equal(await locationOf('/page'), '/login')
    configure('auth', { redirect: 'https://login.example.org/' })
    assert.equal(await locationOf('/page'), 'https://login.example.org/')
  })

  it('answers a JSON client with 401', async (t) => {
    const { send } = await startChain(t, actions)
    const answer = await send('/page', { headers: asJson })
    const { 'www-authenticate': challenge, location } = answer.headers
    assert.deepEqual([answer.status, challenge, location], [401, 'Session', undefined])
    const detail = 'Nobody is signed in: sign in first, and send the session cookie'
    assert.deepEqual(answer.json(), { error: 'unauthorized', detail })
  })

  it('ends with the sign-out, and the back button does not show its pages', async (t) => {
    const send = (await startChain(t, actions)).client()
    await send(signedIn)
    assert.equal((await send('/page')).headers['cache-control'], 'no-store')
    assert.equal((await send('/failing')).headers['cache-control'], 'no-store')
    assert.equal((await send('/cached')).headers['cache-control'], 'private, max-age=60')
    await send('/out')
    assert.equal((await send('/page')).status, 302)
  })

  it('fails on a route without a session, and names the route', async (t) => {
    const { send, lines } = await startChain(t, actions)
    for (const [path, headers] of [['/bare', asJson], ['/wrong-order', {}]] as const) {
      const answer = await send(path, { headers })
      assert.equal(answer.status, 500)
      assert.ok(!answer.text.includes('SVC_MwSession'))
    }
    assert.deepEqual((await send('/bare', { headers: asJson })).json(), { error: 'auth_requires_session' })
    const message = 'has no session: put SVC_MwSession before it'
    assert.equal(lines[0], `ERROR auth_requires_session SVC_MwIsAuth on route "bare" ${message}`)
    assert.equal(lines[1], `ERROR auth_requires_session SVC_MwIsAuth on route "wrong-order" ${message}`)
  })

  it('applies new settings while running', async (t) => {
    const { client, configure } = await startChain(t, actions, { setup: { auth: { user_key: 'who' } } })
    const send = client()
    await send(signedIn)
    assert.deepEqual((await send('/page')).json(), ['custom'])
    configure('auth', { user_key: 'none', redirect: 'https://example.org/sign-in?a=b' })
    assert.equal((await send('/page')).headers.location, 'https://example.org/sign-in?a=b')
    configure('auth', undefined)
    assert.deepEqual((await send('/page')).json(), ['ada'])
  })
})

describe('setup.auth', () => {
  const group = createAuthGroup({ log: () => silentLogger })

  it('accepts paths and http(s) URLs, and reports unknown keys', () => {
    for (const redirect of ['/', '/login', '/a/b?c=d#e', '/é', 'http://localhost:1/x', 'HTTPS://example.org']) {
      const prepared = group.prepare({ redirect })
      assert.deepEqual([prepared.warnings, prepared.unready], [[], undefined], redirect)
    }
    const { warnings } = group.prepare({ redirct: '/x' })
    assert.deepEqual(warnings, ['unknown key setup.auth.redirct: did you mean redirect?'])
  })

  const place =
    'setup.auth.redirect must be a path that begins with one slash, such as /login, or an http or https URL: it is'
  const wrong: readonly (readonly [given: unknown, message: string])[] = [
    ['x', 'setup.auth must be an object with user_key, redirect, next'],
    [{ user_key: '' }, 'setup.auth.user_key must be a key of the session, not empty: it is ""'],
    ...['_flash', '_csrf_token'].map((key) => [
      { user_key: key },
      `setup.auth.user_key must be another key: sessions use this one internally: it is "${key}"`,
    ] as const),
    [{ user_key: 1 }, 'setup.auth.user_key must be a string: it is 1'],
    ...['', 'login', '//example.org', '/\\example.org', 'javascript:alert(1)', 'https://', '/a b', '/a\r\nb'].map(
      (redirect) => [{ redirect }, `${place} ${JSON.stringify(redirect)}`] as const,
    ),
  ]
  for (const [given, message] of wrong) {
    it(`refuses ${JSON.stringify(given)}`, () => {
      assert.throws(() => group.prepare(given), { name: 'SettingsError', message })
    })
  }
})
