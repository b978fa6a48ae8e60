// admin.metrics_token: who may read /svc-metrics without sign-in, and how wrong tokens count.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createMetricsToken } from '../../lib/access/metrics-token.ts'
import { createLoginThrottle } from '../../lib/access/throttle.ts'
import { parseConfig } from '../../lib/config/load.ts'
import type { CoreContext } from '../../lib/http/context.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { startApplication } from '../support/application.ts'
import { request } from '../support/request.ts'

const token = 'a-token-of-32-visible-characters'
const bearer = (text: string) => ({ headers: { authorization: `Bearer ${text}` } })
const credentials = { 'admin.user': 'ann', 'admin.password': '5ebe2294ecd0e0f08eab7690d2a6ee69', 'admin.secret': 'secret' }

describe('GET /svc-metrics', () => {
  for (const [when, config] of [['before the setup', {}], ['after it', credentials]] as const) {
    it(`accepts the token ${when}, and answers a wrong one 401, never 302`, async (t) => {
      const { url, lines } = await startApplication(t, {}, { 'admin.metrics_token': token, ...config })
      for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
        const answer = await request(`${url}/svc-metrics`, { headers: { authorization: `${scheme} ${token}` } })
        assert.equal(answer.status, 200, scheme)
        assert.match(answer.text, /^# HELP svc_build_info/)
      }
      for (const wrong of ['', 'x', token.slice(1), `${token}x`, token.toUpperCase()]) {
        const answer = await request(`${url}/svc-metrics`, bearer(wrong))
        assert.deepEqual([answer.status, answer.headers['www-authenticate'], answer.headers.location], [401, 'Bearer', undefined], wrong)
        assert.equal(answer.headers['cache-control'], 'no-store')
      }
      assert.equal((await request(`${url}/svc-metrics`, { method: 'HEAD', ...bearer(token) })).status, 200)
      const text = lines().join('\n')
      assert.match(text, /\[INFO \] \[server\] wrong metrics token by 127\.0\.0\.1/)
      assert.doesNotMatch(text, new RegExp(token))
    })
  }

  it('without the field, or with another scheme, is unchanged', async (t) => {
    const { url } = await startApplication(t, {}, { 'admin.metrics_token': token, ...credentials })
    for (const headers of [{}, { authorization: `Basic ${token}` }, { authorization: token }] as Record<string, string>[]) {
      const answer = await request(`${url}/svc-metrics`, { headers })
      assert.deepEqual([answer.status, answer.headers.location], [302, '/svc-login?next=/svc-metrics'])
    }
  })

  it('accepts no token if none is configured', async (t) => {
    const { url } = await startApplication(t, {}, credentials)
    for (const text of ['', token]) assert.equal((await request(`${url}/svc-metrics`, bearer(text))).status, 302)
  })

  it('is open in dev', async (t) => {
    const { url } = await startApplication(t, {}, { 'admin.metrics_token': token, 'app.env': 'dev' })
    for (const text of [token, 'wrong']) assert.equal((await request(`${url}/svc-metrics`, bearer(text))).status, 200)
  })

  it('does not exist without the panel', async (t) => {
    const { url } = await startApplication(t, {}, { 'admin.metrics_token': token, 'admin.enabled': false })
    assert.equal((await request(`${url}/svc-metrics`, bearer(token))).status, 404)
  })

  it('is the only path that the token opens', async (t) => {
    const { url } = await startApplication(t, {}, { 'admin.metrics_token': token, ...credentials })
    for (const path of ['/svc-status', '/svc-monitor', '/svc-stop', '/svc-routes/list']) {
      assert.equal((await request(url + path, bearer(token))).status, 302, path)
    }
  })
})

describe('a wrong token', () => {
  const of = (text: string): CoreContext => ({ ip: '192.0.2.1', header: () => `Bearer ${text}` }) as unknown as CoreContext // The part that is read.
  const retryAfter = (error: unknown): string | undefined => (error as HttpError).headers['Retry-After']

  it('counts with the failed sign-ins of its address; the correct one is always accepted, and resets nothing', async () => {
    const waits: number[] = []
    const throttle = createLoginThrottle({ now: () => 1000, wait: async (milliseconds) => void waits.push(milliseconds) })
    const check = createMetricsToken(token, throttle, () => {})
    for (let count = 1; count <= 100; count += 1) {
      assert.equal(check(of(token)), 'right')
      await assert.rejects(Promise.resolve(check(of('wrong'))), (error) => error instanceof HttpError && error.status === 401 && retryAfter(error) === undefined)
      assert.equal(waits.length, Math.max(0, count - 10))
    }
    await assert.rejects(Promise.resolve(check(of('wrong'))), (error) => retryAfter(error) === '60')
    assert.equal(throttle.begin('192.0.2.1'), 60, 'a sign-in from that address has to wait too')
    assert.equal(check(of(token)), 'right')
  })
})

describe('admin.metrics_token', () => {
  it('is empty or has at least 32 visible characters, and is never shown', () => {
    for (const right of ['', token, 'x'.repeat(500)]) {
      assert.equal(parseConfig({ 'admin.metrics_token': right }, '/').config['admin.metrics_token'], right)
    }
    for (const wrong of ['short-secret', token.slice(1), `${token.slice(1)} x`, `${token}\n`, `${token}ä`]) {
      assert.throws(() => parseConfig({ 'admin.metrics_token': wrong }, '/'), (error: Error) =>
        /admin\.metrics_token must be empty, or at least 32 visible ASCII/.test(error.message) && !error.message.includes(wrong))
    }
  })
})
