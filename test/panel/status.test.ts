import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseConfig } from '../../lib/config/load.ts'
import { createEventLoopWatch } from '../../lib/metrics/event-loop.ts'
import { Histogram } from '../../lib/metrics/histogram.ts'
import { createSampler, sampleFields, type Sample } from '../../lib/metrics/history.ts'
import { Metrics } from '../../lib/metrics/metrics.ts'
import type { MetricSources } from '../../lib/metrics/table.ts'
import { code, ownProcess, prometheusBy, statusBy } from '../metrics/sources.ts'
import { endedRequest } from '../support/ended-request.ts'

/** Sources with distinct figures, so that none can be mistaken for another. */
function makeSources(t: { after(close: () => void): void }) {
  const eventLoop = createEventLoopWatch({ warn: () => {} })
  t.after(() => eventLoop.close())
  const figures = {
    connections: { open: 21, refused: 22, stalled: 23, failed: 23 },
    httpPool: { workers: 31, queueSize: 32, busy: 33, waiting: 34, refused: 35, alert: true },
    webSockets: { pool: { workers: 71, queueSize: 0, busy: 72, waiting: 73, refused: 74 }, slow: 75 },
    restPool: {
      longpoll: { workers: 81, queueSize: 88, busy: 82, waiting: 83, refused: 84 },
      sse: { workers: 85, queueSize: 88, busy: 86, waiting: 87, refused: 89 },
    },
    events: { published: 101, delivered: 102, dropped: 103, slow: 104 },
    sessions: { stored: 113, evicted: 111, damaged: 112 },
    limits: { login: 121, search: 122 },
    views: { hits: 41, misses: 42 },
    log: { written: 51, lost: 52 },
    accessLog: { written: 61, lost: 62 },
  }
  const sources: MetricSources = {
    config: parseConfig({ pool_rest: { queue_size: 88 } }, '/').config,
    metrics: new Metrics(),
    eventLoop,
    activeRequests: () => 11,
    queueWaits: new Histogram(),
    restQueueWaits: new Histogram(),
    ...figures,
    events: () => figures.events,
    sessions: () => figures.sessions,
    jobs: () => ({ done: 0, failed: 0, dead: 0, running: 0 }),
    limits: () => figures.limits,
    connections: () => figures.connections,
    descriptors: () => ({ open: 131, limit: 132 }),
    replaced: () => ({}),
    isReloadRefused: () => false,
    isReady: () => false,
    appMetrics: () => [
      { name: 'app_a', kind: 'counter', help: 'A.', labels: [], value: { '': 141 } },
      { name: 'app_b', kind: 'gauge', help: 'B.', labels: ['l'], value: { 'l="x"': 142 } },
    ],
    warnings: () => ['one', 'two'],
  }
  return { sources, figures }
}

test('the status has each figure in its place', (t) => {
  const { sources, figures } = makeSources(t)
  sources.queueWaits.record(1.23456)
  for (const waitedMs of [20, 20, 40]) sources.restQueueWaits.record(waitedMs)
  const request = endedRequest({ sentStatus: 503, sentBytes: 5, receivedBytes: 3, routeName: 'a' })
  sources.metrics.record(request, true, Date.now())
  const status = statusBy(ownProcess(sources))
  assert.deepEqual(status.code, { version: code.version, digest: code.digest, tier1: code.tier1 })
  assert.deepEqual(status.requests, {
    total: 1,
    errors: 1,
    by_class: { '1xx': 0, '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 1 },
    left: 0,
    bytes_in: 3,
    bytes_out: 5,
    active: 11,
  })
  assert.deepEqual(status.connections, { active: 21, refused: 22, stalled: 23, tls_failed: 23 })
  const { waits, ...pool } = status.pool_http
  assert.deepEqual(pool, { workers: 31, busy: 33, queue: 34, queue_size: 32, refused: 35, alert: true })
  assert.equal(waits.count, 1)
  assert.ok(Math.abs(waits.max_ms - 1.235) < 0.01)
  assert.deepEqual(status.pool_ws, { workers: 71, active: 72, refused: 74, slow: 75 })
  const { waits: restWaits, ...restPool } = status.pool_rest
  assert.deepEqual(restPool, {
    workers_sse: 85,
    sse: 86,
    workers_longpoll: 81,
    longpoll: 82,
    queue: 170,
    queue_size: 88,
    refused: 173,
  })
  assert.equal(restWaits.count, 3)
  for (const [is, expected] of [[restWaits.p50_ms, 20], [restWaits.p99_ms, 40], [restWaits.max_ms, 40]] as const) {
    assert.ok(Math.abs(is / expected - 1) < 0.031, `${is}`)
  }
  assert.deepEqual([status.events, status.sessions], [figures.events, figures.sessions])
  assert.deepEqual(status.limits, { refused: figures.limits })
  assert.deepEqual([status.views, status.log, status.access_log], [figures.views, figures.log, figures.accessLog])
  assert.deepEqual([status.descriptors, status.ready], [{ open: 131, limit: 132 }, false])
  assert.deepEqual(status.app, { app_a: 141, app_b: { 'l="x"': 142 } })
  assert.ok(status.cpu_s > 0 && status.memory.heap_limit_mb > status.memory.heap_used_mb)
  assert.equal(status.routes[0]?.time_ms, status.latency_ms.mean)
  assert.deepEqual(
    [status.env, status.pid, status.node, status.warnings],
    ['prod', process.pid, process.versions.node, ['one', 'two']],
  )
})

test('counts from before the bench window are left out of the status, and kept in the totals', (t) => {
  const { sources, figures } = makeSources(t)
  const own = ownProcess(sources)
  own.beginWindow()
  figures.connections.refused += 1
  figures.httpPool.refused += 2
  figures.views.hits += 3
  figures.views.misses += 4
  figures.log.written += 5
  figures.log.lost += 6
  figures.accessLog.written += 7
  figures.accessLog.lost += 8
  figures.webSockets.pool.refused += 9
  figures.webSockets.slow += 10
  figures.restPool.sse.refused += 5
  figures.restPool.longpoll.refused += 6
  figures.events = { published: 113, delivered: 115, dropped: 117, slow: 119 }
  figures.sessions = { stored: 114, evicted: 127, damaged: 129 }
  figures.limits = { login: 125, search: 122 }
  const status = statusBy(own)
  const { connections, pool_http: pool, views, log, access_log: accessLog } = status
  assert.deepEqual([connections, pool.refused], [{ active: 21, refused: 1, stalled: 0, tls_failed: 0 }, 2])
  assert.deepEqual(status.pool_ws, { workers: 71, active: 72, refused: 9, slow: 10 })
  assert.equal(status.pool_rest.refused, 11)
  assert.deepEqual(status.events, { published: 12, delivered: 13, dropped: 14, slow: 15 })
  assert.deepEqual(status.sessions, { stored: 114, evicted: 16, damaged: 17 })
  assert.deepEqual(status.limits, { refused: { login: 4, search: 0 } })
  assert.deepEqual(
    [views, log, accessLog],
    [
      { hits: 3, misses: 4 },
      { written: 5, lost: 6 },
      { written: 7, lost: 8 },
    ],
  )
  const text = prometheusBy(own)
  for (const line of [
    'svc_connections_open 21',
    'svc_connections_refused_total 23',
    'svc_pool_refused_total{pool="http"} 37',
    'svc_pool_refused_total{pool="ws"} 83',
    'svc_pool_refused_total{pool="sse"} 94',
    'svc_view_cache_hits_total 44',
    'svc_view_cache_misses_total 46',
    'svc_events_published_total 113',
    'svc_streams_slow_total{kind="sse"} 119',
    'svc_streams_slow_total{kind="ws"} 85',
    'svc_sessions_evicted_total 127',
    'svc_limit_refused_total{rule="login"} 125',
    'svc_sessions_damaged_total 129',
    'svc_log_lines_written_total{log="general"} 56',
    'svc_log_lines_lost_total{log="general"} 58',
    'svc_log_lines_written_total{log="access"} 68',
    'svc_log_lines_lost_total{log="access"} 70',
  ]) assert.ok(text.includes(`\n${line}\n`), line)
})

test('the Prometheus text has each figure in its place', (t) => {
  const text = prometheusBy(ownProcess(makeSources(t).sources))
  const pools = ['http', 'ws', 'sse', 'longpoll'].map((pool) =>
    ['workers', 'workers_busy', 'queue_waiting', 'queue_size', 'refused_total'].map((name) =>
      Number(new RegExp(`^svc_pool_${name}\\{pool="${pool}"\\} (\\d+)$`, 'm').exec(text)?.[1]),
    ),
  )
  assert.deepEqual(pools, [
    [31, 33, 34, 32, 35],
    [71, 72, 73, 0, 74],
    [85, 86, 87, 88, 89],
    [81, 82, 83, 88, 84],
  ])
  for (const line of [
    'svc_events_published_total 101',
    'svc_events_delivered_total 102',
    'svc_events_dropped_total 103',
    'svc_streams_slow_total{kind="sse"} 104',
    'svc_streams_slow_total{kind="ws"} 75',
    'svc_sessions_evicted_total 111',
    'svc_sessions_damaged_total 112',
    'svc_http_requests_active 11',
    'svc_warnings 2',
  ]) assert.ok(text.includes(`\n${line}\n`), line)
})

test('a sample has all its fields, and those of the interval start over', (t) => {
  const { sources } = makeSources(t)
  sources.metrics.record(endedRequest(), true, Date.now())
  const takeSample = createSampler(ownProcess(sources).readWithoutRoutes) as () => Sample // It is synchronous.
  const first = takeSample()
  assert.deepEqual(
    sampleFields.filter((field) => !Number.isFinite(first[field])),
    [],
  )
  assert.deepEqual(
    [first.busy_http, first.queue_http, first.connections, first.ws, first.sse, first.longpoll],
    [33, 34, 21, 72, 86, 82],
  )
  assert.ok(first.requests > 0 && first.rss_mb > first.heap_mb)
  assert.equal(takeSample().requests, 0)
})
