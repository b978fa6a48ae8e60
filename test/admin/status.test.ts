import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  noCounters,
  readCounters,
  readStatus,
  readTotals,
  takeSample,
  type StatusSources,
} from '../../lib/admin/status.ts'
import { parseConfig } from '../../lib/config/load.ts'
import { createEventLoopWatch } from '../../lib/metrics/event-loop.ts'
import { Histogram } from '../../lib/metrics/histogram.ts'
import { sampleFields } from '../../lib/metrics/history.ts'
import { Metrics } from '../../lib/metrics/metrics.ts'

/** Sources with figures that are all different, so that none can be taken for another. */
function makeSources(t: { after(close: () => void): void }) {
  const eventLoop = createEventLoopWatch({ warn: () => {} })
  t.after(() => eventLoop.close())
  const figures = {
    connections: { open: 21, refused: 22 },
    httpPool: { workers: 31, queueSize: 32, busy: 33, waiting: 34, refused: 35, alert: true },
    views: { hits: 41, misses: 42 },
    log: { written: 51, lost: 52 },
    accessLog: { written: 61, lost: 62 },
  }
  const sources: StatusSources = {
    config: parseConfig(
      { pool_ws: { workers: 71 }, pool_rest: { workers_sse: 72, workers_longpoll: 73, queue_size: 74 } },
      '/',
    ).config,
    metrics: new Metrics(),
    eventLoop,
    activeRequests: () => 11,
    queueWaits: new Histogram(),
    ...figures,
    connections: () => figures.connections,
    warnings: () => ['one', 'two'],
  }
  return { sources, figures }
}

test('the status has each figure in its place', (t) => {
  const { sources, figures } = makeSources(t)
  sources.queueWaits.record(1.23456)
  sources.metrics.record({
    method: 'GET',
    path: '/a',
    sentStatus: 503,
    sentBytes: 5,
    receivedBytes: 3,
    durationMs: 2,
    routeName: 'a',
  })
  const status = readStatus(sources, noCounters)
  assert.deepEqual(status.requests, {
    total: 1,
    errors: 1,
    by_class: { '1xx': 0, '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 1 },
    bytes_in: 3,
    bytes_out: 5,
    active: 11,
  })
  assert.deepEqual(status.connections, { active: 21, refused: 22 })
  const { waits, ...pool } = status.pool_http
  assert.deepEqual(pool, { workers: 31, busy: 33, queue: 34, queue_size: 32, refused: 35, alert: true })
  assert.equal(waits.count, 1)
  assert.ok(Math.abs(waits.max_ms - 1.235) < 0.01)
  assert.deepEqual(status.pool_ws, { workers: 71, active: 0 })
  assert.deepEqual(status.pool_rest, {
    workers_sse: 72,
    sse: 0,
    workers_longpoll: 73,
    longpoll: 0,
    queue: 0,
    queue_size: 74,
  })
  assert.deepEqual([status.views, status.log, status.access_log], [figures.views, figures.log, figures.accessLog])
  assert.deepEqual(
    [status.env, status.pid, status.node, status.warnings],
    ['prod', process.pid, process.versions.node, ['one', 'two']],
  )
})

test('what was counted before the bench window is left out of the status, and kept in the totals', (t) => {
  const { sources, figures } = makeSources(t)
  const before = readCounters(sources)
  figures.connections.refused += 1
  figures.httpPool.refused += 2
  figures.views.hits += 3
  figures.views.misses += 4
  figures.log.written += 5
  figures.log.lost += 6
  figures.accessLog.written += 7
  figures.accessLog.lost += 8
  const { connections, pool_http: pool, views, log, access_log: accessLog } = readStatus(sources, before)
  assert.deepEqual([connections, pool.refused], [{ active: 21, refused: 1 }, 2])
  assert.deepEqual(
    [views, log, accessLog],
    [
      { hits: 3, misses: 4 },
      { written: 5, lost: 6 },
      { written: 7, lost: 8 },
    ],
  )
  const totals = readTotals(sources)
  assert.deepEqual(
    [totals.connections, totals.pools[0]?.refused, totals.viewCache],
    [{ open: 21, refused: 23 }, 37, { hits: 44, misses: 46 }],
  )
  assert.deepEqual(totals.logs, [
    { name: 'general', written: 56, lost: 58 },
    { name: 'access', written: 68, lost: 70 },
  ])
})

test('the totals have each figure in its place', (t) => {
  const totals = readTotals(makeSources(t).sources)
  assert.deepEqual(totals.pools, [{ name: 'http', workers: 31, busy: 33, waiting: 34, queueSize: 32, refused: 35 }])
  assert.deepEqual([totals.activeRequests, totals.warnings, totals.nodeVersion], [11, 2, process.versions.node])
})

test('a sample has all of its fields, and those of the interval begin anew', (t) => {
  const { sources } = makeSources(t)
  sources.metrics.record({ method: 'GET', path: '/a', sentStatus: 200, sentBytes: 5, durationMs: 2, routeName: 'a' })
  const first = takeSample(sources)
  assert.deepEqual(
    sampleFields.filter((field) => !Number.isFinite(first[field])),
    [],
  )
  assert.deepEqual(
    [first.busy_http, first.queue_http, first.connections, first.ws, first.sse, first.longpoll],
    [33, 34, 21, 0, 0, 0],
  )
  assert.ok(first.requests > 0 && first.rss_mb > first.heap_mb)
  assert.equal(takeSample(sources).requests, 0)
})
