// SVC_MwCors: preflights, the fields of responses and errors, settings.
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { startApplication, type TestApplication } from '../support/application.ts'
import { request, type Answer } from '../support/request.ts'

type Fields = Readonly<Record<string, string>>

const files = {
  'a.mjs': `
    export const read = () => ({ a: 1 })
    export const varies = (ctx) => (ctx.setHeader('Vary', 'Accept'), { a: 1 })
    export const fails = ({ fail }) => fail(409, 'taken', 'It is taken')
    export const throws = () => { throw new Error('no') }
    export const options = () => 'an answer of its own'`,
  'count.mjs': 'export const count = (ctx, next) => { process.emit("svc-cors-count"); return next() }',
}
const route = (name: string, method: string, middleware: string, url = `/${name}`) =>
  ({ name, url, method, action: `a.mjs@${name}`, middleware })
const routes = [
  route('read', 'GET,POST,PUT', 'count, SVC_MwCors'),
  route('varies', 'GET', 'SVC_MwCors'),
  route('fails', 'GET', 'SVC_MwCors'),
  route('throws', 'GET', 'SVC_MwCors'),
  { ...route('fails', 'GET', 'SVC_MwJwt, SVC_MwCors', '/guarded'), name: 'guarded' },
  { ...route('read', 'GET', '', '/closed'), name: 'closed' },
  { ...route('read', 'GET', 'SVC_MwCors', '/own'), name: 'own' },
  route('options', 'OPTIONS', 'count', '/own'),
  { ...route('read', '*', 'SVC_MwCors', '/any/:id'), name: 'any' },
]
const origin = 'https://app.example.org'
const settings = { origins: [origin, 'http://localhost:3000'], methods: 'GET, POST', headers: ['Content-Type', 'x-a'], expose: 'x-total' }

function start(t: TestContext, cors: unknown, config: Readonly<Record<string, unknown>> = {}): Promise<TestApplication> {
  const middleware = { load: ['../../count.mjs'], setup: { jwt: { key: 'a key of thirty-two characters!!' }, ...(cors !== undefined && { cors }) } }
  return startApplication(t, { ...files, 'routes/a.json': routes, 'routes/middleware/config.json': middleware }, config)
}

const preflight = (url: string, method: string, more: Fields = {}): Promise<Answer> =>
  request(url, { method: 'OPTIONS', headers: { origin, 'access-control-request-method': method, ...more } })
const allowed = ({ headers }: Answer): string | undefined => headers['access-control-allow-origin']

describe('a preflight', () => {
  it('of an app or an extension is answered with its origin, and so are its requests', async (t) => {
    const { url, app } = await start(
      t,
      { origins: ['capacitor://localhost', 'chrome-extension://abcdefghijklmnop'], credentials: true },
      { 'server.trusted_origins': ['capacitor://localhost'] },
    )
    for (const [of, isAllowed] of [['capacitor://localhost', true], ['chrome-extension://abcdefghijklmnop', true], ['ionic://localhost', false]] as const) {
      const expected = isAllowed ? of : undefined
      assert.equal(allowed(await preflight(`${url}/read`, 'POST', { origin: of })), expected, of)
      assert.equal(allowed(await request(`${url}/read`, { headers: { origin: of } })), expected, of)
    }
    const [warning = '', ...others] = app.warnings().filter((text) => text.includes('server.trusted_origins'))
    assert.match(warning, /setup\.cors\.origins has chrome-extension:\/\/abcdefghijklmnop, with credentials/)
    assert.deepEqual(others, [])
  })

  it('is answered by the route that takes the method, with what it allows, before any other middleware', async (t) => {
    const { url, lines } = await start(t, settings)
    let count = 0
    const counting = (): void => void (count += 1)
    process.on('svc-cors-count' as 'SIGUSR2', counting) // Any name will do.
    t.after(() => process.off('svc-cors-count' as 'SIGUSR2', counting))
    const answer = await preflight(`${url}/read`, 'POST', { 'access-control-request-headers': 'content-type,X-A' })
    assert.equal(answer.status, 204)
    const { headers } = answer
    assert.equal(headers['access-control-allow-origin'], origin)
    assert.equal(headers['access-control-allow-methods'], 'GET, POST')
    assert.equal(headers['access-control-allow-headers'], 'Content-Type, x-a')
    assert.equal(headers['access-control-max-age'], '600')
    assert.equal(headers['access-control-allow-credentials'], undefined)
    assert.equal(headers.vary, 'Origin')
    assert.equal((await preflight(`${url}/own`, 'GET')).headers['access-control-allow-origin'], origin)
    assert.equal(allowed(await preflight(`${url}/any/1`, 'GET')), origin)
    assert.equal(count, 0)
    assert.match(lines('access.log')[0] ?? '', /"OPTIONS \/read HTTP\/1\.1" 204/)
  })

  const refused: readonly (readonly [what: string, path: string, method: string, more: Fields])[] = [
    ['a method that the settings do not allow', '/read', 'PUT', {}],
    ['a method that nobody knows', '/any/1', 'BREW', {}],
    ['a method in small letters', '/any/1', 'post', {}],
    ['a header that the settings do not allow', '/read', 'POST', { 'access-control-request-headers': 'x-a, x-b' }],
    ['very many headers', '/read', 'POST', { 'access-control-request-headers': 'a,'.repeat(7000) }],
    ['another origin', '/read', 'GET', { origin: 'https://evil.example' }],
    ['an origin with another port', '/read', 'GET', { origin: 'https://app.example.org:444' }],
    ['an origin with another scheme', '/read', 'GET', { origin: 'http://app.example.org' }],
    ['an origin that ends as one that is allowed', '/read', 'GET', { origin: 'https://evil-app.example.org' }],
    ['an origin with a path', '/read', 'GET', { origin: 'https://app.example.org/' }],
    ['two origins', '/read', 'GET', { origin: 'https://app.example.org, https://evil.example' }],
    ['null', '/read', 'GET', { origin: 'null' }],
  ]
  it('is answered 204 without the fields for what is not allowed', async (t) => {
    const { url } = await start(t, settings)
    for (const [what, path, method, more] of refused) {
      const answer = await preflight(url + path, method, more)
      assert.deepEqual([answer.status, allowed(answer), answer.headers.vary], [204, undefined, 'Origin'], what)
      assert.equal(answer.headers['access-control-allow-methods'], undefined, what)
    }
  })

  it('accepts an origin in upper case, and with the default port', async (t) => {
    const { url } = await start(t, { origins: ['https://APP.example.org:443'] })
    assert.equal(allowed(await preflight(`${url}/read`, 'GET')), origin)
    assert.equal(allowed(await preflight(`${url}/read`, 'GET', { origin: 'HTTPS://APP.EXAMPLE.ORG' })), 'HTTPS://APP.EXAMPLE.ORG')
  })

  it('is an ordinary OPTIONS if no route with SVC_MwCors takes the method', async (t) => {
    const { url } = await start(t, settings)
    const closed = await preflight(`${url}/closed`, 'GET')
    assert.deepEqual([closed.status, closed.headers.allow, allowed(closed)], [204, 'GET, HEAD, OPTIONS', undefined])
    assert.equal((await preflight(`${url}/read`, 'DELETE')).headers.allow, 'GET, HEAD, OPTIONS, POST, PUT')
    assert.equal((await preflight(`${url}/own`, 'POST')).text, 'an answer of its own')
    assert.equal((await request(`${url}/own`, { method: 'OPTIONS', headers: { origin } })).text, 'an answer of its own')
    assert.equal((await preflight(`${url}/nowhere`, 'GET')).status, 404)
    assert.equal((await preflight(`${url}/any/%zz`, 'GET')).status, 400)
    assert.equal(allowed(await preflight(`${url}/svc-status`, 'GET')), undefined)
  })

  it('with more header names than a header section may hold is 431', async (t) => {
    const { url } = await start(t, settings)
    const answer = await preflight(`${url}/read`, 'GET', { 'access-control-request-headers': Array.from({ length: 10_000 }, (_, at) => `x-${at}`).join(',') })
    assert.equal(answer.status, 431)
  })
})

describe('the responses of a route with SVC_MwCors', () => {
  it('have the fields for an allowed origin, and Vary for all', async (t) => {
    const { url } = await start(t, settings)
    const own = await request(`${url}/read`, { headers: { origin } })
    assert.deepEqual([own.status, allowed(own), own.headers.vary], [200, origin, 'Origin'])
    assert.equal(own.headers['access-control-expose-headers'], 'x-total')
    assert.equal(own.headers['access-control-allow-methods'], undefined)
    for (const other of [{}, { origin: 'null' }, { origin: 'https://evil.example' }] as Fields[]) {
      const answer = await request(`${url}/read`, { headers: other })
      assert.deepEqual([answer.status, allowed(answer), answer.headers.vary], [200, undefined, 'Origin'])
    }
    assert.equal((await request(`${url}/varies`, { headers: { origin } })).headers.vary, 'Accept, Origin')
    assert.equal(allowed(await request(`${url}/closed`, { headers: { origin } })), undefined)
  })

  it('have them on errors too, and on refusals by earlier middleware', async (t) => {
    const { url } = await start(t, settings)
    for (const [path, status] of [['/fails', 409], ['/throws', 500], ['/guarded', 401]] as const) {
      const answer = await request(url + path, { headers: { origin } })
      assert.deepEqual([answer.status, allowed(answer), answer.headers.vary], [status, origin, 'Origin'], path)
    }
  })

  it('without settings allow no origin', async (t) => {
    const { url } = await start(t, undefined)
    const answer = await request(`${url}/read`, { headers: { origin } })
    assert.deepEqual([answer.status, allowed(answer), answer.headers.vary], [200, undefined, 'Origin'])
    assert.equal((await preflight(`${url}/read`, 'GET')).status, 204)
  })
})

describe('setup.cors', () => {
  it('with * allows every origin but null', async (t) => {
    const { url } = await start(t, { origins: ['*'] })
    assert.equal(allowed(await request(`${url}/read`, { headers: { origin } })), '*')
    assert.equal(allowed(await preflight(`${url}/read`, 'GET')), '*')
    assert.equal(allowed(await request(`${url}/read`, { headers: { origin: 'null' } })), undefined)
  })

  it('with credentials warns of an origin that is not in server.trusted_origins', async (t) => {
    const { app, url } = await start(t, { ...settings, credentials: true }, { 'server.trusted_origins': ['https://APP.example.org'] })
    const [warning = '', ...others] = app.warnings()
    assert.match(warning, /setup\.cors\.origins has http:\/\/localhost:3000, with credentials, but server\.trusted_origins does not/)
    assert.deepEqual(others, [])
    assert.equal((await request(`${url}/read`, { headers: { origin } })).headers['access-control-allow-credentials'], 'true')
    const refused = await request(`${url}/read`, { headers: { origin: 'https://evil.example' } })
    assert.equal(refused.headers['access-control-allow-credentials'], undefined)
  })

  const wrong: readonly (readonly [cors: unknown, message: RegExp])[] = [
    [{ origins: ['*'], credentials: true }, /setup\.cors\.credentials must be false with the origin \*/],
    [{ origins: ['null'] }, /setup\.cors\.origins has a wrong entry 1: it must be the origin of a page or app/],
    [{ origins: ['https://a.example/'] }, /setup\.cors\.origins has a wrong entry 1/],
    [{ origins: 'https://a.example' }, /setup\.cors\.origins must be a list of strings/],
    [{ methods: 'GET POST' }, /setup\.cors\.methods has a wrong entry 1: it must be a name/],
    [{ methods: 'GET,,POST' }, /setup\.cors\.methods has a wrong entry 2/],
    [{ headers: '*' }, /setup\.cors\.headers has a wrong entry 1: .*but not "\*"/],
    [{ expose: 7 }, /setup\.cors\.expose must be a list of strings, or a text with commas: it is 7/],
    [{ max_age_s: -1 }, /setup\.cors\.max_age_s must be 0 to/],
  ]
  for (const [cors, message] of wrong) {
    it(`refuses ${JSON.stringify(cors)}`, async (t) => {
      await assert.rejects(start(t, cors), (error: Error) => message.test(error.message))
    })
  }
})
