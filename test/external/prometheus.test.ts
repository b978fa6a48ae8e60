import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { DurationBuckets } from '../../lib/metrics/duration-buckets.ts'
import { Metrics } from '../../lib/metrics/metrics.ts'
import { renderPrometheus } from '../../lib/metrics/prometheus.ts'
import { totalsOf } from '../../lib/metrics/totals.ts'
import { startCluster } from '../cluster/figures-cluster.ts'
import { busyMetrics, inputOf } from '../metrics/prometheus-input.ts'
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
  promtool(renderPrometheus(inputOf(busyMetrics())))
})

test('promtool has no complaint before the first request, without pools and logs', () => {
  const eventLoop = { delay: new DurationBuckets().totals(), activeSeconds: 0 }
  promtool(renderPrometheus(inputOf(new Metrics(), { pools: [], logs: [], eventLoop })))
})

test('promtool has no complaint about numbers that are none', () => {
  const memory = { rss: NaN, heapUsed: Infinity, heapTotal: -Infinity, external: 1e300 }
  promtool(renderPrometheus(inputOf(busyMetrics(), { memory })))
})

test('promtool has no complaint about several processes, of which one has ended', async (t) => {
  const { workers } = startCluster(t, 3)
  for (const [at, worker] of workers.entries()) worker.serve(at + 1)
  await workers[2]?.end()
  const figures = await workers[0]?.processes.figures()
  const text = renderPrometheus(totalsOf(figures ?? []))
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
