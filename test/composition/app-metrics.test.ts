// `app.metrics` and `app.ready` of a running application, and what an operator sees of them.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { testApp } from '../../lib/testing/test-app.ts'
import { startApplication, testKey, writeFiles } from '../support/application.ts'
import { makeCertificate } from '../support/certificate.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

const token = 'a-token-of-thirty-two-characters!'
const authorization = `Bearer ${token}`

const shop = (size: number, more = ''): string => `
  export let orders
  export function setup(app) {
    orders = app.metrics.counter('orders_total', 'Orders\\nby \\\\ kind.', ['kind'])
    app.metrics.gauge('size', 'Size.', () => ${size})
    app.ready('shop', () => globalThis.shopIsOpen !== false)
    ${more}
  }`

const files = {
  'routes/middleware/config.json': { load: ['shop.mjs'] },
  'routes/middleware/shop.mjs': shop(1),
  'routes/order.json': [{ name: 'order', url: '/order', action: 'order.mjs' }],
  'order.mjs': "import { orders } from './routes/middleware/shop.mjs'\nexport default () => orders.add(1, { kind: 'book' })",
}

/** The lines of the application's metrics. */
async function metricsOf(url: string): Promise<string[]> {
  const { text } = await request(`${url}/svc-metrics`, { headers: { authorization } })
  return text.split('\n').filter((line) => line.startsWith('app_') || line.startsWith('# HELP app_'))
}

const config = { 'admin.metrics_token': token }

describe('app.metrics', () => {
  it('are in the Prometheus text, and go on over reloads', async (t) => {
    const { app, url, write } = await startApplication(t, files, config)
    app.metrics.gauge('outside', 'Of the program.', () => 7)
    await request(`${url}/order`)
    const help = '# HELP app_orders_total Orders\\nby \\\\ kind.'
    assert.deepEqual(await metricsOf(url), [
      help, 'app_orders_total{kind="book"} 1', '# HELP app_size Size.', 'app_size 1',
      '# HELP app_outside Of the program.', 'app_outside 7',
    ])
    write({ 'routes/middleware/shop.mjs': shop(2) })
    await app.control.apply({ type: 'routes.reload' })
    await request(`${url}/order`)
    const after = await metricsOf(url)
    assert.ok(after.includes('app_orders_total{kind="book"} 2') && after.includes('app_size 2'), after.join('\n'))

    write({ 'routes/middleware/shop.mjs': shop(3, "app.metrics.counter('outside', 'Taken.')") })
    await assert.rejects(app.control.apply({ type: 'routes.reload' }), /Cannot register a metric "outside": the name is taken/)
    assert.ok((await metricsOf(url)).includes('app_size 2'))

    // The metric moves to another module.
    write({
      'routes/middleware/config.json': { load: ['other.mjs'] },
      'routes/middleware/other.mjs': "export const setup = ({ metrics }) => metrics.gauge('size', 'Moved.', () => 5)",
      'order.mjs': 'export default () => 1',
    })
    await app.control.apply({ type: 'routes.reload' })
    assert.deepEqual((await metricsOf(url)).filter((line) => !/outside/.test(line)), ['# HELP app_size Moved.', 'app_size 5'])
  })

  it('exist in testApp', async (t) => {
    const folder = temporaryFolder()
    writeFiles(folder, { ...files, 'svc.json': { app_key: testKey } })
    const app = await testApp(folder, { config })
    t.after(() => app.close())
    app.metrics.counter('direct', 'Direct.').add(2)
    app.ready('direct', () => true)
    await app.client().get('/order')
    const text = await (await app.request('/svc-metrics', { headers: { authorization } })).text()
    assert.match(text, /^app_orders_total\{kind="book"\} 1\n/m)
    assert.match(text, /^app_direct 2\n/m)
    assert.equal((await app.request('/svc-ready')).status, 200)
  })
})

describe('app.ready', () => {
  it('makes /svc-ready 503, and names the check to those who may see the panel', async (t) => {
    t.after(() => delete (globalThis as { shopIsOpen?: boolean }).shopIsOpen)
    const ask = async (url: string): Promise<[number, unknown]> => {
      const { status, text } = await request(`${url}/svc-ready`)
      return [status, JSON.parse(text)]
    }
    const { app, url, lines } = await startApplication(t, files, config)
    const dev = await startApplication(t, files, { 'app.env': 'dev' })
    const hidden = await startApplication(t, files, { 'app.env': 'dev', 'admin.allow': ['10.0.0.1'] })
    assert.deepEqual(await ask(url), [200, { status: 'ready' }])
    Object.assign(globalThis, { shopIsOpen: false })
    assert.deepEqual(await ask(url), [503, { status: 'not ready' }])
    assert.deepEqual(await ask(hidden.url), [503, { status: 'not ready' }])
    const failed = [{ name: 'shop', reason: 'it returned false' }]
    assert.deepEqual(await ask(dev.url), [503, { status: 'not ready', failed }])

    const line = 'not ready: the check shop fails: it returned false'
    assert.ok(app.warnings().includes(line))
    assert.match(lines().join('\n'), new RegExp(`\\[WARN \\] \\[server\\] ${line}$`, 'm'))
    const { text } = await request(`${url}/svc-metrics`, { headers: { authorization } })
    assert.match(text, /^svc_ready 0$/m)
    const status = JSON.parse((await request(`${dev.url}/svc-status`)).text) as { ready: boolean; warnings: string[] }
    assert.deepEqual([status.ready, status.warnings.includes(line)], [false, true])
    Object.assign(globalThis, { shopIsOpen: true })
    assert.deepEqual(await ask(url), [200, { status: 'ready' }])
    assert.ok(!app.warnings().includes(line))
  })

  it('is as before while the server stops', async (t) => {
    const { app, url } = await startApplication(t, files, { 'server.drain_delay_s': 1 })
    void app.stop()
    const { status, text } = await request(`${url}/svc-ready`)
    assert.deepEqual([status, text], [503, '{"status":"stopping"}'])
  })
})

describe('what an operator watches', () => {
  it('is in the Prometheus text by the names of its conventions', async (t) => {
    const folder = temporaryFolder()
    const { cert, key } = makeCertificate(folder, 'own', { to: new Date('2031-05-06T07:08:09Z') })
    const { app } = await startApplication(t, {}, { ...config, 'server.tls': { cert, key } })
    const read = async (): Promise<Map<string, number>> => {
      const text = await (await app.request('https://localhost/svc-metrics', { headers: { authorization } })).text()
      return new Map(text.split('\n').map((line) => [line.split(' ')[0] ?? '', Number(line.split(' ')[1])]))
    }
    const before = await read()
    const of = (name: string): number => before.get(name) ?? assert.fail(name)
    assert.equal(of('svc_tls_certificate_not_after_seconds'), Date.parse('2031-05-06T07:08:09Z') / 1000)
    assert.ok(of('process_open_fds') > 5 && of('process_open_fds') < of('process_max_fds'))
    assert.ok(of('svc_memory_heap_used_bytes') < of('svc_memory_heap_limit_bytes'))
    assert.deepEqual([of('svc_sessions'), of('svc_ready')], [0, 1])
    await until(async () => ((await read()).get('process_cpu_seconds_total') ?? 0) > of('process_cpu_seconds_total'))
  })
})
