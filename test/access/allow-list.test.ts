// admin.allow: who reaches the panel, and that others cannot find out whether there is one.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { allowWarning, createPanelFilter } from '../../lib/access/allow-list.ts'
import { ConfigError, parseConfig } from '../../lib/config/load.ts'
import { inconsistencyWarnings } from '../../lib/config/together.ts'
import { systemRoutes } from '../../lib/panel/table.ts'
import { cookieOf, nowSeconds, startPanel, type PanelServer } from '../panel/panel-server.ts'
import type { Answer } from '../support/request.ts'

const openNames: readonly string[] = ['svc.ping', 'svc.slow', 'svc.ready']
const token = 'a-token-of-32-visible-characters'
const behindProxy = { 'server.trusted_proxies': ['127.0.0.1'], 'admin.allow': ['192.0.2.0/24'] }
const inside = { 'x-forwarded-for': '192.0.2.7' }
const outside = { 'x-forwarded-for': '198.51.100.1' }

/** What a client can compare, without what differs by the path or the time. */
function comparable({ status, headers, text }: Answer, path: string): unknown {
  const { date, 'content-length': length, ...others } = headers
  return { status, others, text: text.replaceAll(path, 'PATH'), hasBody: length !== '0' }
}

async function looksLike(server: PanelServer, path: string, question: Parameters<PanelServer['ask']>[1]): Promise<void> {
  const answer = await server.ask(path, question)
  const usual = '/no-such-page'
  const expected = await server.ask(usual, question)
  assert.equal(expected.status, 404)
  assert.deepEqual(comparable(answer, path), comparable(expected, usual), `${question?.method} ${path}`)
}

describe('the list', () => {
  for (const [allowed, ip, isShutOut] of [
    [['10.0.0.0/8'], '10.1.2.3', false],
    [['10.0.0.0/8'], '11.1.2.3', true],
    [['10.1.2.3'], '10.1.2.3', false],
    [['10.1.2.3'], '10.1.2.4', true],
    [['::ffff:10.1.2.3'], '10.1.2.3', false],
    [['2001:db8::/32'], '2001:db8:1::5', false],
    [['2001:db8::/32'], '2001:db9::5', true],
    [['10.0.0.0/8'], '::1', true],
    [['0.0.0.0/0'], '8.8.8.8', false],
    [['0.0.0.0/0'], '2001:db8::1', true],
    [['10.0.0.0/8', '::1'], '::1', false],
    [['10.0.0.0/8'], 'not an address', true],
  ] as const) {
    it(`${allowed.join(' ')} ${isShutOut ? 'shuts out' : 'lets in'} ${ip}`, () => {
      assert.equal(createPanelFilter(allowed)?.({ path: '/svc-login', ip }), isShutOut)
    })
  }

  it('is about every path that begins with /svc-, however it is written, except for four', () => {
    const hides = createPanelFilter(['10.0.0.1']) as NonNullable<ReturnType<typeof createPanelFilter>>
    const isHidden = (path: string): boolean => hides({ path, ip: '10.0.0.2' })
    for (const { url, name } of systemRoutes) assert.equal(isHidden(url), !openNames.includes(name), url)
    for (const path of ['/svc-', '/svc-x', '/svc-routes/x/y', '/%73vc-status', '/svc%2Dlogin', '/svc-ping/x', '/svc-live.json']) {
      assert.equal(isHidden(path), true, path)
    }
    for (const path of ['/', '/svc', '/x/svc-status', '/SVC-status', '/svc-live.js', '/svc-ping/', '*']) {
      assert.equal(isHidden(path), false, path)
    }
  })

  it('is off while it is empty', () => assert.equal(createPanelFilter([]), undefined))
})

describe('a client that is not on the list', () => {
  it('gets the 404 of an unknown path, for every system route, method and unknown path', async (t) => {
    const server = await startPanel(t, { ...behindProxy, 'admin.metrics_token': token })
    const cookie = cookieOf(nowSeconds())
    for (const { url } of systemRoutes.filter(({ name }) => !openNames.includes(name))) {
      for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS', 'DELETE', 'PURGE']) {
        await looksLike(server, url, { method, headers: { ...outside, cookie } })
      }
    }
    for (const path of ['/svc-', '/svc-unknown', '/svc-routes/unknown', '/%73vc-status', '/svc-status/']) {
      await looksLike(server, path, { method: 'GET', headers: outside })
      await looksLike(server, path, { method: 'GET', headers: { ...outside, accept: 'application/json' } })
    }
    await looksLike(server, '/svc-metrics', { method: 'GET', headers: { ...outside, authorization: `Bearer ${token}` } })
    const preflight = { ...outside, origin: 'https://a.example', 'access-control-request-method': 'POST' }
    await looksLike(server, '/svc-login', { method: 'OPTIONS', headers: preflight })
    const handshake = { ...outside, connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
    await looksLike(server, '/svc-status', {
      method: 'GET',
      headers: { ...handshake, 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' },
    })
  })

  it('gets the error view of the application, and its header fields', async (t) => {
    const server = await startPanel(t, behindProxy, {
      'routes/errors/404.html': '<h1>Lost: {{ detail }}</h1>',
      'routes/middleware/config.json': { setup: { headers: { everywhere: true } } },
    })
    await looksLike(server, '/svc-monitor', { method: 'GET', headers: { ...outside, accept: 'text/html' } })
    const answer = await server.ask('/svc-monitor', { headers: { ...outside, accept: 'text/html' } })
    assert.match(answer.text, /<h1>Lost: /)
    assert.notEqual(answer.headers['content-security-policy'], undefined)
    const own = await server.askSignedIn('/svc-unknown', { headers: { ...inside, accept: 'text/html' } })
    assert.doesNotMatch(own.text, /Lost/)
  })

  it('gets no route and no file of the application below /svc- either', async (t) => {
    const server = await startPanel(t, { ...behindProxy, 'paths.public': 'public', 'static.fallback': 'index.html' }, {
      'routes/a.json': [{ name: 'all', url: '/*rest', method: '*', action: 'a.mjs' }],
      'a.mjs': "export default () => 'the application'",
      'public/index.html': 'fallback',
      'public/svc-file.txt': 'file',
    })
    const accept = { accept: 'text/html' }
    for (const path of ['/svc-status', '/svc-other', '/svc-file.txt']) {
      assert.equal((await server.ask(path, { headers: { ...outside, ...accept } })).status, 404, path)
    }
    assert.equal((await server.ask('/other', { headers: outside })).text, 'the application')
    assert.equal((await server.ask('/svc-other', { headers: inside })).text, 'the application')
  })

  it('may check the health, and read the script of live pages', async (t) => {
    const server = await startPanel(t, behindProxy)
    for (const path of ['/svc-ping', '/svc-ready', '/svc-live.js']) {
      assert.equal((await server.ask(path, { headers: outside })).status, 200, path)
    }
    assert.equal((await server.ask('/svc-ping', { method: 'POST', headers: outside })).status, 405)
  })

  it('stays out after a reload, and in dev', async (t) => {
    const server = await startPanel(t, { ...behindProxy, 'app.env': 'dev' })
    for (const when of ['before', 'after']) {
      assert.equal((await server.ask('/svc-status', { headers: outside })).status, 404, when)
      assert.equal((await server.ask('/svc-dev.js', { headers: outside })).status, 404, when)
      assert.equal((await server.ask('/svc-routes/reload', { method: 'POST', headers: inside })).status, 200)
    }
  })
})

describe('a client on the list', () => {
  it('reaches the panel as without a list', async (t) => {
    const server = await startPanel(t, { ...behindProxy, 'admin.metrics_token': token })
    assert.equal((await server.ask('/svc-login', { headers: inside })).status, 200)
    assert.equal((await server.ask('/svc-status', { headers: inside })).status, 302)
    assert.equal((await server.askSignedIn('/svc-status', { headers: inside })).status, 200)
    const asProgram = { headers: { ...inside, authorization: `Bearer ${token}` } }
    assert.equal((await server.ask('/svc-metrics', asProgram)).status, 200)
    assert.equal((await server.ask('/svc-stop', { method: 'HEAD', headers: inside })).status, 405)
  })

  it('cannot be a client that only claims its address', async (t) => {
    const server = await startPanel(t, { 'admin.allow': ['192.0.2.0/24', '10.0.0.1'] })
    assert.equal((await server.ask('/svc-login', { headers: inside })).status, 404)
    const proxied = await startPanel(t, behindProxy)
    const forged = { 'x-forwarded-for': '192.0.2.7, 198.51.100.1' }
    assert.equal((await proxied.ask('/svc-login', { headers: forged })).status, 404)
  })
})

describe('the configuration', () => {
  it('refuses what is no address and no block, and says which', () => {
    for (const [entry, rule] of [
      ['localhost', 'must be an IP address or a block such as 10.0.0.0/8'],
      ['10.0.0.0/33', 'must have a prefix length of 0 to 32'],
      ['fe80::1%eth0', 'must be an IP address or a block such as 10.0.0.0/8'],
      ['', 'must be an IP address or a block such as 10.0.0.0/8'],
    ] as const) {
      assert.throws(() => parseConfig({ 'admin.allow': ['127.0.0.1', entry] }, '/'), (error: unknown) => {
        assert.ok(error instanceof ConfigError)
        assert.match(error.message, /admin\.allow/)
        assert.ok(error.message.includes(rule), error.message)
        assert.ok(error.message.includes(JSON.stringify(entry)), error.message)
        return true
      })
    }
  })

  it('warns of a list that shuts everybody out', () => {
    for (const [keys, isWarned] of [
      [{ 'admin.allow': ['192.0.2.1'] }, true],
      [{ 'admin.allow': ['192.0.2.1'], 'server.host': 'localhost' }, true],
      [{ 'admin.allow': ['192.0.2.1'], 'server.host': '::1' }, true],
      [{ 'admin.allow': ['192.0.2.1', '127.0.0.1'] }, false],
      [{ 'admin.allow': ['::1'] }, false],
      [{ 'admin.allow': ['0.0.0.0/0'] }, false],
      [{ 'admin.allow': ['192.0.2.1'], 'server.host': '0.0.0.0' }, false],
      [{ 'admin.allow': ['192.0.2.1'], 'server.trusted_proxies': ['127.0.0.1'] }, false],
      [{}, false],
    ] as const) {
      const loaded = parseConfig(keys, '/nowhere')
      assert.equal(allowWarning(loaded.config) !== undefined, isWarned, JSON.stringify(keys))
      assert.equal(inconsistencyWarnings(loaded).some((line) => line.startsWith('admin.allow ')), isWarned)
    }
  })

  it('shows that warning at start and in the warnings', async (t) => {
    const server = await startPanel(t, { 'admin.allow': ['192.0.2.1'] })
    const warning = 'admin.allow has no loopback address, and server.host is 127.0.0.1'
    assert.ok(server.lines().some((line) => line.startsWith(`WARN config ${warning}`)), server.lines().join('\n'))
    assert.ok(server.app.warnings().some((line) => line.startsWith(warning)))
  })
})
