import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Metrics } from '../../lib/metrics/metrics.ts'
import type { ThisProcess } from '../../lib/metrics/processes.ts'
import { boundRoutes, difference, sumOf, withoutEventLoop, withoutGauges, type Reading } from '../../lib/metrics/reading.ts'
import type { MetricSources } from '../../lib/metrics/table.ts'
import { statusOf } from '../../lib/panel/status.ts'
import { endedRequest } from '../support/ended-request.ts'
import { Seeded } from '../support/seeded.ts'
import { busySources, code, makeSources, ownProcess } from './sources.ts'

interface Served {
  readonly metrics: Metrics
  readonly own: ThisProcess
}

/** A process with stopped clocks. */
function still(changes: Partial<MetricSources> = {}): Served {
  const metrics = new Metrics({ now: () => 5000, wallNow: () => 1_700_000_000_000 })
  return { metrics, own: ownProcess(makeSources({ metrics, ...changes })) }
}

/** Records each request in one of several processes, and all of them in another. */
function serve(seeded: Seeded, list: readonly Served[], all: Served, count: number): void {
  for (let turn = 0; turn < count; turn += 1) {
    const request = endedRequest({
      sentStatus: seeded.pick([101, 200, 200, 302, 404, 503]),
      sentBytes: seeded.integer(10_000),
      receivedBytes: seeded.integer(100),
      durationMs: 0.05 / (1 - seeded.next()),
      routeName: seeded.pick(['a', 'b', 'c', '', '__proto__']),
    })
    const timed = seeded.next() < 0.9
    all.metrics.record(request, timed, 1_700_000_000_000)
    seeded.pick(list).metrics.record(request, timed, 1_700_000_000_000)
  }
}

/** As JSON, with the routes by name, and without what differs from process to process. */
function comparable(reading: Reading): unknown {
  const routes = [...reading.routes].sort((a, b) => (a.name < b.name ? -1 : 1))
  const values = Object.entries(reading.values).filter(([name]) => !/^(?:cpu|memory|heap)/.test(name))
  return JSON.parse(JSON.stringify({ ...reading, routes, values: Object.fromEntries(values) }))
}

/** The same without the longest durations, which only a bench window knows exactly. */
function withoutLongest(reading: Reading): unknown {
  return JSON.parse(JSON.stringify(comparable(reading)), (name, value: unknown) => (name === 'maxUs' ? 0 : value))
}

for (let seed = 1; seed <= 10; seed += 1) {
  test(`the sum of the parts is the reading of one process that served all, seed ${seed}`, () => {
    const seeded = new Seeded(seed)
    const list = Array.from({ length: seed }, () => still())
    const all = still()
    serve(seeded, list, all, 500)
    const before = all.own.read('start')
    for (const { own } of [...list, all]) own.beginWindow()
    serve(seeded, list, all, 3000)
    for (const since of ['start', 'window'] as const) {
      const sum = sumOf(list.map(({ own }) => own.read(since)))
      assert.deepEqual(comparable(sum), comparable(all.own.read(since)))
      const { latency_ms, requests } = statusOf({ env: 'prod', code }, { pid: 1, total: sum })
      const expected = statusOf({ env: 'prod', code }, { pid: 1, total: all.own.read(since) })
      assert.deepEqual([latency_ms, requests], [expected.latency_ms, expected.requests])
    }
    const window = difference(all.own.read('start'), before)
    assert.deepEqual(comparable(window), comparable(all.own.read('window')))
  })

  test(`windows that follow each other are what was counted from the first to the last, seed ${seed}`, () => {
    const seeded = new Seeded(seed)
    const all = still()
    const readings = [all.own.read('start')]
    for (let turn = 0; turn < 5; turn += 1) {
      serve(seeded, [still()], all, seeded.integer(300))
      readings.push(all.own.read('start'))
    }
    const windows = readings.slice(1).map((reading, at) => difference(reading, readings[at]))
    assert.deepEqual(withoutLongest(sumOf(windows)), withoutLongest(difference(all.own.read('start'), readings[0])))
  })
}

test('a reading survives JSON, and its difference from nothing is itself', () => {
  const reading = ownProcess(busySources()).read('start')
  assert.deepEqual(JSON.parse(JSON.stringify(reading)), reading)
  assert.equal(difference(reading, undefined), reading)
  assert.deepEqual(sumOf([reading]), reading)
})

test('a difference has the growth of each counter, and the current gauges', () => {
  const sources = busySources()
  const before = ownProcess(sources).read('start')
  const pool = { ...sources.restPool.sse, refused: 50, busy: 60 }
  const later = ownProcess({ ...sources, restPool: { ...sources.restPool, sse: pool }, views: { hits: 13, misses: 3 } })
  const { values, routes } = difference(later.read('start'), before)
  assert.deepEqual(values.poolRefused, { http: 0, ws: 0, sse: 50, longpoll: 0 })
  assert.deepEqual(values.poolBusy, { http: 3, ws: 0, sse: 60, longpoll: 700 })
  assert.deepEqual([values.viewHits, values.viewMisses, values.connectionsOpen], [1, 0, 17])
  assert.deepEqual(routes.map(({ values: { requests } }) => Object.values(requests)), routes.map(() => [0, 0, 0, 0, 0, 0]))
})

test('routes that are the same object in both readings are not in the difference', () => {
  const before = ownProcess(busySources()).read('start')
  const [first = assert.fail(), ...others] = before.routes
  const now = { ...before, routes: [...others, { ...first }] }
  assert.deepEqual(difference(now, before).routes.map(({ name }) => name), [first.name])
})

test('the start is the first one, uptime and window are the longest', () => {
  const at = (startedAtMs: number, uptimeSeconds: number, seconds: number): Reading => ({
    ...still().own.read('start'),
    ...{ startedAtMs, uptimeSeconds, seconds },
  })
  const { startedAtMs, uptimeSeconds, seconds } = sumOf([at(900, 20, 3), at(800, 30, 1)])
  assert.deepEqual([startedAtMs, uptimeSeconds, seconds], [800, 30, 3])
})

test('each warning occurs once', () => {
  const { warnings } = sumOf([['a', 'b'], ['b', 'c'], ['a']].map((list) => ({ ...still().own.read('start'), warnings: list })))
  assert.deepEqual(warnings, ['a', 'b', 'c'])
})

test('without its event loop a process still adds everything else', () => {
  const busy = ownProcess(busySources()).read('start')
  const { loopDelay, loopActive, loopIdle, ...others } = sumOf([withoutEventLoop(busy), busy, busy]).values
  assert.deepEqual([loopDelay.cells[1], loopDelay.sumUs, loopActive, loopIdle], [2, 6000, 3, 4])
  assert.deepEqual([others.eventsPublished, others.connectionsOpen], [93, 51])
})

test('without its gauges a process still adds its counters', () => {
  const busy = ownProcess(busySources()).read('start')
  const { values, warnings } = withoutGauges(busy)
  assert.deepEqual([values.requests, values.durations, values.linesLost], [busy.values.requests, busy.values.durations, busy.values.linesLost])
  assert.deepEqual([values.connectionsOpen, values.memoryResident, warnings], [0, 0, []])
  assert.deepEqual([values.poolWorkers, values.poolRefused], [{ http: 0, ws: 0, sse: 0, longpoll: 0 }, busy.values.poolRefused])
})

test('routes past the limit become one, and none of their requests is lost', () => {
  const parts = [still(), still()]
  for (let turn = 0; turn < 15_000; turn += 1) {
    for (const [at, { metrics }] of parts.entries()) {
      metrics.record(endedRequest({ routeName: `r.${at}.${turn}` }), true, 1_700_000_000_000)
    }
  }
  const { routes } = boundRoutes(sumOf(parts.map(({ own }) => own.read('start'))))
  assert.equal(routes.length, 20_000)
  assert.equal(routes.reduce((sum, { values }) => sum + values.requests['2xx'], 0), 30_000)
  assert.deepEqual([routes[0]?.name, routes.at(-1)?.name, routes.at(-1)?.values.requests['2xx']], ['r.0.0', '(other)', 10_001])
  const few = still().own.read('start')
  assert.equal(boundRoutes(few), few)
})
