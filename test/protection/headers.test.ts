// SVC_MwHeaders: the fields, the nonce, and where they are set.
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { ConfigError } from '../../lib/config/load.ts'
import { startApplication, type TestApplication } from '../support/application.ts'
import { request, type Answer } from '../support/request.ts'

const policy = "default-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'; object-src 'none'"
const defaults = {
  'content-security-policy': policy,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'strict-origin-when-cross-origin',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}
const files = {
  'a.mjs': `
    export const json = () => ({ a: 1 })
    export const own = ({ setHeader }) => (setHeader('x-frame-options', 'SAMEORIGIN'), { a: 1 })
    export const ownPolicy = (ctx) => (ctx.setHeader('Content-Security-Policy', "default-src 'none'"), ctx.cspNonce)
    export const writes = (ctx) => ctx.setHeader('Content-Security-Policy', "script-src 'nonce-" + ctx.cspNonce + "'")
    export const nonce = (ctx) => ctx.cspNonce + ' ' + ctx.cspNonce
    export const kept = (ctx) => (ctx.setHeader('Cache-Control', 'no-store'), ctx.cspNonce)
    export const fails = ({ fail }) => fail(409, 'taken', 'It is taken')
    export const throws = () => { throw new Error('no') }
    export const saved = async (ctx) => (ctx.session.set('a', 1), await ctx.session.save(), { nonce: ctx.cspNonce })
    export const early = (ctx, next) => (ctx.setHeader('Referrer-Policy', 'no-referrer'), next())`,
  'early.mjs': "export const early = (ctx, next) => (ctx.setHeader('Referrer-Policy', 'no-referrer'), next())",
  'page.html': '<script nonce="{{ csp_nonce }}"></script><style nonce="{{ csp_nonce }}"></style>',
  'public/a.txt': 'a file',
}
const names = ['json', 'own', 'ownPolicy', 'writes', 'nonce', 'kept', 'fails', 'throws']
const routes = [
  ...names.map((name) => ({ name, url: `/${name}`, method: 'GET', action: `a.mjs@${name}`, middleware: 'SVC_MwHeaders' })),
  { name: 'page', url: '/page', action: 'page.html', middleware: 'SVC_MwHeaders' },
  { name: 'plain', url: '/plain', action: 'page.html' },
  { name: 'saved', url: '/saved', action: 'a.mjs@saved', middleware: 'SVC_MwSession' },
  { name: 'after', url: '/after', action: 'a.mjs@json', middleware: 'early, SVC_MwHeaders' },
]
const config = { 'paths.public': 'public' }

/** Starts an application; without settings if undefined. */
function start(t: TestContext, headers?: unknown, more: Readonly<Record<string, unknown>> = {}): Promise<TestApplication> {
  const setup = headers === undefined ? {} : { headers }
  const middleware = { load: ['../../early.mjs'], setup }
  return startApplication(t, { ...files, 'routes/a.json': routes, 'routes/middleware/config.json': middleware, ...more }, config)
}

const fieldsOf = ({ headers }: Answer): Record<string, unknown> =>
  Object.fromEntries(Object.keys(defaults).map((name) => [name, headers[name]]))
const none = Object.fromEntries(Object.keys(defaults).map((name) => [name, undefined]))
/** Static files always have it. */
const ofFiles = { ...none, 'x-content-type-options': 'nosniff' }

describe('SVC_MwHeaders', () => {
  it('sets its fields on the responses of a route that uses it, without any settings', async (t) => {
    const { url } = await start(t)
    const answer = await request(`${url}/json`)
    assert.deepEqual(fieldsOf(answer), defaults)
    assert.equal(answer.headers['strict-transport-security'], undefined)
    assert.equal(answer.headers['permissions-policy'], undefined)
    assert.deepEqual(fieldsOf(await request(`${url}/plain`)), none)
  })

  it('keeps a field that the application sets, before or after it', async (t) => {
    const { url } = await start(t)
    assert.deepEqual(fieldsOf(await request(`${url}/own`)), { ...defaults, 'x-frame-options': 'SAMEORIGIN' })
    assert.deepEqual(fieldsOf(await request(`${url}/after`)), { ...defaults, 'referrer-policy': 'no-referrer' })
  })

  it('sets them on errors too; the built-in page has its own policy', async (t) => {
    const { url } = await start(t)
    const accept = { headers: { accept: 'application/json' } }
    const failed = await request(`${url}/fails`, accept)
    assert.deepEqual([failed.status, fieldsOf(failed)], [409, defaults])
    assert.deepEqual(fieldsOf(await request(`${url}/throws`, accept)), defaults)
    const page = fieldsOf(await request(`${url}/throws`))
    assert.match(String(page['content-security-policy']), /^default-src 'none'; style-src 'sha256-/)
    assert.equal(page['x-frame-options'], 'DENY')
  })

  it('does nothing outside its routes until the configuration has its group', async (t) => {
    const { url } = await start(t)
    for (const path of ['/nowhere', '/a.txt']) assert.equal((await request(url + path)).headers['x-frame-options'], undefined)
  })

  it('with the group, sets them on static files and on responses without a route, never below /svc-', async (t) => {
    const { url } = await start(t, {})
    const file = await request(`${url}/a.txt`)
    assert.deepEqual([file.text, fieldsOf(file)], ['a file', defaults])
    const cached = await request(`${url}/a.txt`, { headers: { 'if-none-match': String(file.headers.etag) } })
    assert.deepEqual([cached.status, fieldsOf(cached)], [304, defaults])
    const accept = { headers: { accept: 'application/json' } }
    for (const path of ['/nowhere', '/json/', '/%zz']) {
      assert.equal((await request(url + path, accept)).headers['x-frame-options'], 'DENY', path)
    }
    const wrongMethod = await request(`${url}/json`, { method: 'DELETE' })
    assert.deepEqual([wrongMethod.status, wrongMethod.headers['x-frame-options']], [405, 'DENY'])
    const options = await request(`${url}/json`, { method: 'OPTIONS' })
    assert.deepEqual([options.status, fieldsOf(options)], [204, defaults])
    for (const path of ['/svc-ping', '/svc-nothing', '/svc-login']) {
      assert.equal((await request(url + path)).headers['cross-origin-resource-policy'], undefined, path)
    }
    assert.deepEqual(fieldsOf(await request(`${url}/plain`)), none) // A route must use it explicitly.
  })

  it('with everywhere false, applies to its routes only', async (t) => {
    const { url } = await start(t, { everywhere: false })
    assert.deepEqual(fieldsOf(await request(`${url}/a.txt`)), ofFiles)
    assert.deepEqual(fieldsOf(await request(`${url}/json`)), defaults)
  })

  it('follows its settings', async (t) => {
    const { url, app } = await start(t, {
      csp: "default-src 'none'", nosniff: false, referrer: '', frame: 'SAMEORIGIN', opener: 'unsafe-none',
      resource: 'cross-origin', permissions: 'camera=()', report_only: true, hsts_s: 60,
    })
    const { headers } = await request(`${url}/json`)
    assert.equal(headers['content-security-policy'], undefined)
    assert.equal(headers['content-security-policy-report-only'], "default-src 'none'")
    assert.equal(headers['x-content-type-options'], undefined)
    assert.equal(headers['referrer-policy'], undefined)
    assert.deepEqual([headers['x-frame-options'], headers['permissions-policy']], ['SAMEORIGIN', 'camera=()'])
    assert.equal(headers['strict-transport-security'], undefined) // Over plain HTTP.
    assert.match(String((await request(`${url}/page`)).headers['content-security-policy-report-only']), /'nonce-/)
    assert.deepEqual(app.warnings(), [])
  })

  it('sends HSTS if the request came over HTTPS', async (t) => {
    const middleware = { setup: { headers: { hsts_s: 60 } } }
    const { url } = await startApplication(
      t, { ...files, 'routes/a.json': routes.slice(0, 1), 'routes/middleware/config.json': middleware },
      { 'server.trusted_proxies': ['127.0.0.1'] },
    )
    const answer = await request(`${url}/json`, { headers: { 'x-forwarded-proto': 'https' } })
    assert.equal(answer.headers['strict-transport-security'], 'max-age=60')
  })

  it('applies new settings at a reload, and drops them with the group', async (t) => {
    const { url, app, write } = await start(t, {})
    write({ 'routes/middleware/config.json': { load: ['../../early.mjs'], setup: { headers: { frame: '' } } } })
    await app.control.apply({ type: 'routes.reload' })
    assert.deepEqual(fieldsOf(await request(`${url}/json`)), { ...defaults, 'x-frame-options': undefined })
    write({ 'routes/middleware/config.json': { load: ['../../early.mjs'] } })
    await app.control.apply({ type: 'routes.reload' })
    assert.deepEqual(fieldsOf(await request(`${url}/json`)), defaults)
    assert.deepEqual(fieldsOf(await request(`${url}/a.txt`)), ofFiles)
  })

  const wrong: readonly (readonly [settings: unknown, message: RegExp])[] = [
    [{ csp: "default-src 'self'\r\nX: y" }, /setup\.headers\.csp must be of visible ASCII/],
    [{ csp: "default-src 'self', script-src x" }, /a comma would begin a second one/],
    [{ csp: "'self'" }, /must be directives separated by ";": "'self'" is not one/],
    [{ frame: 'ALLOW' }, /setup\.headers\.frame must be DENY, SAMEORIGIN, or empty: it is "ALLOW"/],
    [{ opener: 'Same-Origin' }, /setup\.headers\.opener must be same-origin/],
    [{ hsts_s: -1 }, /setup\.headers\.hsts_s must be 0 to/],
    [[], /setup\.headers must be an object with csp/],
  ]
  for (const [settings, message] of wrong) {
    it(`refuses ${JSON.stringify(settings)}`, async (t) => {
      await assert.rejects(start(t, settings), (error: Error) => message.test(error.message) && !(error instanceof ConfigError))
    })
  }

  it('warns of a nonce in its settings, and accepts it', async (t) => {
    const { url, app } = await start(t, { csp: "script-src 'nonce-abc'" })
    assert.match(app.warnings().join(), /setup\.headers\.csp has a fixed nonce, which anyone can read/)
    assert.match(String((await request(`${url}/page`)).headers['content-security-policy']), /^script-src 'nonce-abc' 'nonce-[\w-]{22}'$/)
  })
})

describe('the nonce of a response', () => {
  const inPolicy = ({ headers }: Answer): string[] =>
    [...String(headers['content-security-policy']).matchAll(/'nonce-([\w-]{22})'/g)].map(([, nonce]) => String(nonce))

  it('is the same in the page, script-src and style-src, and new each time', async (t) => {
    const { url } = await start(t)
    const [one, two] = [await request(`${url}/page`), await request(`${url}/page`)]
    const [nonce = ''] = inPolicy(one)
    assert.equal(one.headers['content-security-policy'], `${policy}; script-src 'self' 'nonce-${nonce}'; style-src 'self' 'nonce-${nonce}'`)
    assert.equal(one.text, `<script nonce="${nonce}"></script><style nonce="${nonce}"></style>`)
    assert.notEqual(inPolicy(two)[0], nonce)
    assert.equal(one.headers['cache-control'], 'private, no-cache')
    assert.equal(inPolicy(await request(`${url}/nonce`)).length, 2)
  })

  it('is not in a response that does not use it', async (t) => {
    const { url } = await start(t)
    const { headers } = await request(`${url}/json`)
    assert.deepEqual([headers['content-security-policy'], headers['cache-control']], [policy, undefined])
  })

  it('is empty if the middleware did not run', async (t) => {
    const { url } = await start(t, {})
    const { text, headers } = await request(`${url}/plain`)
    assert.equal(text, '<script nonce=""></script><style nonce=""></style>')
    assert.deepEqual([headers['content-security-policy'], headers['cache-control']], [undefined, undefined])
    const saved = await request(`${url}/saved`)
    assert.deepEqual([saved.json(), saved.headers['cache-control']], [{ nonce: '' }, 'private'])
  })

  it('keeps a Cache-Control and a policy that the application set', async (t) => {
    const { url } = await start(t)
    assert.equal((await request(`${url}/kept`)).headers['cache-control'], 'no-store')
    const own = await request(`${url}/ownPolicy`)
    assert.deepEqual([own.headers['content-security-policy'], own.text.length], ["default-src 'none'", 22])
    const writes = await request(`${url}/writes`)
    assert.match(String(writes.headers['content-security-policy']), /^script-src 'nonce-[\w-]{22}'$/)
  })

  it('is passed to the application\'s own error pages, with and without a route', async (t) => {
    const { url } = await start(t, {}, { 'routes/errors/error.html': '{{ status }} {{ csp_nonce }}' })
    for (const [path, status] of [['/fails', 409], ['/throws', 500], ['/nowhere', 404]] as const) {
      const answer = await request(url + path)
      assert.equal(answer.text, `${status} ${inPolicy(answer)[0]}`)
      assert.equal(answer.headers['cache-control'], 'private, no-cache')
    }
    assert.doesNotMatch((await request(`${url}/svc-nothing`)).text, /^404 /)
  })
})
