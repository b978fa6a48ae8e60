import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { CoreContext } from '../../lib/http/context.ts'
import type { HttpError } from '../../lib/http/errors.ts'
import { HeaderList } from '../../lib/http/header-list.ts'
import { Buckets } from '../../lib/protection/buckets.ts'
import { createLimitRule } from '../../lib/protection/limit-rule.ts'
import { startApplication, type TestApplication } from '../support/application.ts'
import { hmacToken, secret } from '../jwt/tokens.ts'
import { keepingLogger } from '../support/log-lines.ts'
import { request, type Question } from '../support/request.ts'

const actions = `
  export default () => 'passed'
  export const enter = ({ params, signIn }) => { signIn({ id: params.name }) }
  export const fails = ({ fail }) => fail(409, 'conflict', 'No.')
  export const user = ({ headers, state }, next) => { state.user = JSON.parse(headers['x-user'] ?? 'null'); return next() }`

const routes = [
  { name: 'a', url: '/a', action: 'actions.mjs', middleware: 'SVC_MwLimit:few' },
  { name: 'b', url: '/b', action: 'actions.mjs', middleware: 'SVC_MwLimit:few' },
  { name: 'fails', url: '/fails', action: 'actions.mjs@fails', middleware: 'SVC_MwLimit:few' },
  { name: 'two', url: '/two', action: 'actions.mjs', middleware: 'SVC_MwLimit:few, SVC_MwLimit:hour' },
  { name: 'user', url: '/user', action: 'actions.mjs', middleware: 'user, SVC_MwLimit:user' },
  { name: 'enter', url: '/enter/:name', action: 'actions.mjs@enter', middleware: 'SVC_MwSession' },
  { name: 'own', url: '/own', action: 'actions.mjs', middleware: 'SVC_MwSession, SVC_MwLimit:user' },
  { name: 'token', url: '/token', action: 'actions.mjs', middleware: 'SVC_MwJwt, SVC_MwLimit:user' },
  { name: 'both', url: '/both', action: 'actions.mjs', middleware: 'SVC_MwSession, SVC_MwJwt, SVC_MwLimit:user' },
  { name: 'key', url: '/key', action: 'actions.mjs', middleware: 'SVC_MwLimit:key' },
  { name: 'json', url: '/json', action: 'actions.mjs', middleware: 'SVC_MwLimit:none', error_format: 'json' },
]

const limit = {
  few: { count: 2, per_s: 600 },
  hour: { count: 6, per_s: 3600, burst: 3 },
  user: { by: 'user', count: 1, per_s: 3600 },
  key: { by: 'header:X-Api-Key', count: 1, per_s: 3600 },
  none: { count: 1, per_s: 3600 },
}

function start(t: TestContext, config: object = {}, setup: object = { limit, jwt: { key: secret } }): Promise<TestApplication> {
  return startApplication(
    t,
    {
      'actions.mjs': actions,
      'routes/routes.json': routes,
      'routes/middleware/user.mjs': "export { user } from '../../actions.mjs'",
      'routes/middleware/config.json': { load: ['user.mjs'], setup },
    },
    { 'app.env': 'dev', ...config },
  )
}

const statusOf = async (url: string, question?: Question): Promise<number> => (await request(url, question)).status

describe('SVC_MwLimit', () => {
  it('passes as many requests as the rule allows, over all routes that use it, and refuses the next', async (t) => {
    const { url } = await start(t)
    const [first, second] = [await request(`${url}/a`), await request(`${url}/b`)]
    assert.deepEqual([first.text, second.text], ['passed', 'passed'])
    const third = await request(`${url}/a`, { headers: { accept: 'application/json' } })
    assert.equal(third.status, 429)
    assert.deepEqual(third.json(), { error: 'too_many_requests', detail: 'Too many requests: try again in 300 s' })
    assert.equal(third.headers['retry-after'], '300')
  })

  it('reports the remaining requests on every response of the route, also on errors', async (t) => {
    const { url } = await start(t)
    const fieldsOf = async (path: string): Promise<unknown[]> => {
      const { status, headers } = await request(url + path)
      return [status, headers['ratelimit-policy'], headers['ratelimit']]
    }
    const policy = '"few";q=2;w=600'
    assert.deepEqual(await fieldsOf('/fails'), [409, policy, '"few";r=1;t=300'])
    assert.deepEqual(await fieldsOf('/a'), [200, policy, '"few";r=0;t=600'])
    assert.deepEqual(await fieldsOf('/a'), [429, policy, '"few";r=0;t=600'])
  })

  it('reports each rule of a route in one field', async (t) => {
    const { url } = await start(t)
    const { headers } = await request(`${url}/two`)
    assert.equal(headers['ratelimit-policy'], '"few";q=2;w=600, "hour";q=3;w=3600')
    assert.equal(headers['ratelimit'], '"few";r=1;t=300, "hour";r=2;t=600')
  })

  it('answers in the error format of the route', async (t) => {
    const { url } = await start(t)
    await request(`${url}/json`)
    const refused = await request(`${url}/json`, { headers: { accept: 'text/html' } })
    assert.equal((refused.json() as { error: string }).error, 'too_many_requests')
  })

  it('counts by the id of the user, whatever else changes, or by the address', async (t) => {
    const { url } = await start(t)
    const as = (user: unknown): Promise<number> => statusOf(`${url}/user`, { headers: { 'x-user': JSON.stringify(user) } })
    assert.equal(await as({ id: 1, name: 'Ann' }), 200)
    assert.equal(await as({ id: 1, name: 'Anna' }), 429)
    assert.equal(await as({ id: '1' }), 200)
    assert.equal(await as('ann'), 200)
    assert.equal(await as('ann'), 429)
    assert.equal(await as(null), 200)
    assert.equal(await as(''), 429)
  })

  it('counts by the user of the session if nothing else names one', async (t) => {
    const { url } = await start(t)
    for (const name of ['ann', 'bob']) {
      const [cookie = ''] = (await request(`${url}/enter/${name}`)).headers['set-cookie'] ?? []
      const own = { headers: { cookie: cookie.split(';', 1)[0] ?? '' } }
      assert.deepEqual([await statusOf(`${url}/own`, own), await statusOf(`${url}/own`, own)], [200, 429])
    }
  })

  it('counts by sub of a bearer token unless a user is named otherwise, or by the address', async (t) => {
    const { url } = await start(t)
    const bearer = (claims: object) => ({ authorization: `Bearer ${hmacToken({ alg: 'HS256' }, claims)}` })
    const as = (claims: object): Promise<number> => statusOf(`${url}/token`, { headers: bearer(claims) })
    assert.deepEqual([await as({ sub: 'ann' }), await as({ sub: 'bob' }), await as({ sub: 'ann', n: 2 })], [200, 200, 429])
    assert.deepEqual([await as({}), await as({ sub: '' })], [200, 429])
    const [cookie = ''] = (await request(`${url}/enter/zoe`)).headers['set-cookie'] ?? []
    const both = (sub: string): Promise<number> => {
      return statusOf(`${url}/both`, { headers: { ...bearer({ sub }), cookie: cookie.split(';', 1)[0] ?? '' } })
    }
    assert.deepEqual([await both('cleo'), await both('dave'), await as({ sub: 'cleo' })], [200, 429, 200])
  })

  it('counts by a field from a trusted proxy, or by the address if the proxy is not trusted', async (t) => {
    const { url } = await start(t, { 'server.trusted_proxies': ['127.0.0.1'] })
    const withKey = (key: string): Promise<number> =>
      statusOf(`${url}/key`, { headers: { 'x-api-key': key, 'x-forwarded-for': '203.0.113.1' } })
    assert.deepEqual([await withKey('one'), await withKey('two'), await withKey('one')], [200, 200, 429])
    const direct = await start(t)
    const forged = (key: string): Promise<number> => statusOf(`${direct.url}/key`, { headers: { 'x-api-key': key } })
    assert.deepEqual([await forged('one'), await forged('two')], [200, 429])
  })

  it('counts an IPv6 network, and an address reported by a trusted proxy, as one client', async (t) => {
    const { url } = await start(t, { 'server.trusted_proxies': ['127.0.0.1'] })
    const from = (address: string): Promise<number> =>
      statusOf(`${url}/json`, { headers: { 'x-forwarded-for': address } })
    assert.deepEqual([await from('203.0.113.1'), await from('203.0.113.2'), await from('203.0.113.1')], [200, 200, 429])
    assert.deepEqual([await from('2001:db8::1'), await from('2001:db8::2'), await from('2001:db8:0:1::1')], [200, 429, 200])
  })

  it('warns once of an untrusted proxy on this machine', async (t) => {
    const { url, lines, app } = await start(t)
    const forwarded = { headers: { 'x-forwarded-for': '203.0.113.1' } }
    assert.deepEqual([await statusOf(`${url}/a`, forwarded), await statusOf(`${url}/a`, forwarded)], [200, 200])
    assert.equal(lines().filter((line) => line.includes('counts all clients behind a proxy as one')).length, 1)
    assert.equal(app.warnings().filter((warning) => warning.includes('server.trusted_proxies')).length, 1)
  })

  it('counts refused requests by rule in the status and for Prometheus', async (t) => {
    const { url } = await start(t)
    for (let turn = 0; turn < 5; turn += 1) await request(`${url}/a`)
    const status = (await request(`${url}/svc-status`)).json() as { limits: object }
    assert.deepEqual(status.limits, { refused: { few: 3, hour: 0, user: 0, key: 0, none: 0 } })
    assert.match((await request(`${url}/svc-metrics`)).text, /^svc_limit_refused_total\{rule="few"\} 3$/m)
  })
})

describe('the settings of SVC_MwLimit', () => {
  for (const [setup, said] of [
    [{ limit: { few: { count: 0 } } }, 'setup.limit.few.count must be 1 to 1000000: it is 0'],
    [{ limit: { few: { per_s: 0 } } }, 'setup.limit.few.per_s must be 1 to 86400: it is 0'],
    [{ limit: { few: { by: 'cookie' } } }, 'setup.limit.few.by must be "address", "user" or "header:"'],
    [{ limit: { few: { by: 'header:' } } }, 'setup.limit.few.by must be "address", "user" or "header:"'],
    [{ limit: { 'a b': {} } }, 'setup.limit must have names of 1 to 64 letters'],
    [{ limit: [] }, 'setup.limit must be an object: each member is a rule'],
    [{ limit: { few: 5 } }, 'setup.limit.few must be an object with by, count, per_s, burst'],
  ] as const) {
    it(`refuse ${JSON.stringify(setup)}`, async (t) => {
      await assert.rejects(start(t, {}, setup), (error: Error) => {
        assert.equal(error.name, 'MiddlewareError')
        assert.ok(error.message.includes(said), error.message)
        return true
      })
    })
  }

  it('leave out a route with an unknown rule, and name the known ones', async (t) => {
    const { url, lines } = await start(t, {}, { limit: { ...limit, key: undefined } })
    assert.equal(await statusOf(`${url}/key`), 404)
    const problem = lines().find((line) => line.includes('middleware "SVC_MwLimit:key" is not known'))
    assert.match(problem ?? '', /did you mean "SVC_MwLimit:few"\?|is not known/)
  })

  it('are applied by a reload: a changed rule starts over, the others continue', async (t) => {
    const { url, write } = await start(t)
    for (const path of ['/a', '/a', '/json']) assert.equal(await statusOf(url + path), 200)
    const changed = { ...limit, few: { count: 1, per_s: 600 } }
    write({ 'routes/middleware/config.json': { load: ['user.mjs'], setup: { limit: changed } } })
    assert.equal(await statusOf(`${url}/svc-routes/reload`), 200)
    assert.deepEqual([await statusOf(`${url}/a`), await statusOf(`${url}/a`), await statusOf(`${url}/json`)], [200, 429, 429])
  })
})

describe('a limit with shared buckets', () => {
  it('counts in this process while they cannot be reached, warns once, and then uses them again', async () => {
    const size = { burst: 2, intervalMs: 600_000 }
    const elsewhere = new Buckets(size)
    const lines: string[] = []
    let problem: Error | undefined
    const take = async (key: string) => {
      if (problem !== undefined) throw problem
      return elsewhere.take(key)
    }
    const rule = createLimitRule('few', { by: 'address', count: 2, per_s: 1200, burst: 0 }, {
      log: () => keepingLogger((line) => lines.push(line)),
      isTrusted: () => false,
      userOf: () => undefined,
      openBuckets: () => ({ take }),
      onRefused: () => {},
    })
    const passed = async (): Promise<boolean> => {
      const ctx = { ip: '192.0.2.1', header: () => undefined, outgoing: new HeaderList() } as unknown as CoreContext // The members it reads.
      let isPassed = false
      const outcome = (async () => rule.run(ctx, async () => void (isPassed = true)))()
      await outcome.catch((error: unknown) => assert.equal((error as HttpError).code, 'too_many_requests'))
      return isPassed
    }
    assert.deepEqual([await passed(), await passed(), await passed()], [true, true, false])
    problem = new Error('away')
    assert.deepEqual([await passed(), await passed(), await passed()], [true, true, false])
    assert.deepEqual(rule.warnings(), ['limit few: each process counts separately until the shared buckets can be reached: away'])
    problem = undefined
    assert.equal(await passed(), false)
    assert.deepEqual(rule.warnings(), [])
    assert.match(lines.join('\n'), /^.*each process counts separately.*: away\n.*all processes are counted together again$/)
  })
})
