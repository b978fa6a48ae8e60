import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { renderPrometheus } from '../../lib/metrics/prometheus.ts'
import { startCluster } from '../cluster/readings-cluster.ts'
import { busySources, code, makeSources, ownProcess, prometheusBy } from '../metrics/sources.ts'
import { startApplication } from '../support/application.ts'
import { request } from '../support/request.ts'

/** Prometheus' own check of its text format: Debian's package `prometheus`. */
function promtool(text: string): void {
  const options = { input: text, encoding: 'utf8' } as const
  const { status, error, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], options)
  if (error !== undefined) {
    assert.fail(`Cannot run promtool: ${error.message}. Install it: apt-get install --no-install-recommends prometheus`)
  }
  assert.deepEqual([stdout, stderr, status], ['', '', 0])
}

test('promtool has no complaint', () => {
  promtool(prometheusBy(ownProcess(busySources())))
})

test('promtool has no complaint before the first request', () => {
  promtool(prometheusBy(ownProcess(makeSources())))
})

test('promtool has no complaint about numbers that are none', () => {
  const total = ownProcess(busySources()).read('start')
  const memory = { memoryResident: NaN, heapUsed: Infinity, heapSize: -Infinity, memoryExternal: 1e300 }
  promtool(renderPrometheus(code, { pid: 1, total: { ...total, values: { ...total.values, ...memory } } }))
})

test('promtool has no complaint about several processes, of which one has ended', async (t) => {
  const { workers } = startCluster(t, 3)
  for (const [at, worker] of workers.entries()) worker.serve(at + 1)
  await workers[2]?.end()
  const text = renderPrometheus(code, (await workers[0]?.processes.read('start')) ?? assert.fail())
  assert.match(text, /^svc_process_requests_total\{process="2"\} 2$/m)
  promtool(text)
})

test('promtool has no complaint about a server that has served', async (t) => {
  const files = { 'routes/a.json': [{ name: 'odd "name" \\', url: '/a', action: 'a.html' }], 'a.html': 'a view' }
  const { url } = await startApplication(t, files, { 'app.env': 'dev' })
  for (const path of ['/a', '/a', '/nothing', '/svc-status', '/svc-bench-start']) await request(url + path)
  const { text } = await request(`${url}/svc-metrics`)
  assert.match(text, /svc_http_requests_total\{route="odd \\"name\\" \\\\",code="2xx"\} 2/)
  promtool(text)
})
