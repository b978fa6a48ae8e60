import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { createSampler, type Sample } from '../../lib/metrics/history.ts'
import { countOf, Histogram } from '../../lib/metrics/histogram.ts'
import { Metrics } from '../../lib/metrics/metrics.ts'
import type { EndedRequest } from '../../lib/base/ports.ts'
import type { Reading } from '../../lib/metrics/reading.ts'
import { endedRequest } from '../support/ended-request.ts'
import { Seeded } from '../support/seeded.ts'
import { makeSources, ownProcess, statusBy } from './sources.ts'

const none = { '1xx': 0, '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 0 }

/** Metrics with clocks that the test controls, and what their process reports. */
function held() {
  const clock = { ms: 5000, wallMs: 1_700_000_000_000 }
  const metrics = new Metrics({ now: () => clock.ms, wallNow: () => clock.wallMs })
  const own = ownProcess(makeSources({ metrics }))
  const sampler = createSampler(own.readWithoutRoutes)
  return {
    metrics,
    record: (changes: Partial<EndedRequest> = {}) => metrics.record(endedRequest(changes), true, clock.wallMs),
    clock,
    own,
    totals: () => own.read('start'),
    takeInterval: () => {
      const { requests, errors, bytes_out, p50_ms, p95_ms, p99_ms } = sampler() as Sample // It is synchronous.
      return { requests, errors, bytes_out, p50_ms, p95_ms, p99_ms }
    },
    snapshot: () => {
      const { uptime_s, window_s, requests: { active, ...requests }, latency_ms, routes } = statusBy(own)
      return { uptime_s, window_s, requests, latency_ms, routes }
    },
  }
}

/** The values that no bench window changes: all but the longest durations. */
function counted({ routes }: Reading): unknown {
  return JSON.parse(JSON.stringify(routes), (name, value: unknown) => (name === 'maxUs' ? undefined : value))
}

test('counts requests, errors, classes and bytes', () => {
  const { record, snapshot } = held()
  for (const sentStatus of [101, 200, 204, 304, 400, 404, 499, 500, 503]) {
    record({ sentStatus, receivedBytes: 3 })
  }
  record()
  assert.deepEqual(snapshot().requests, {
    total: 10,
    errors: 5,
    by_class: { '1xx': 1, '2xx': 3, '3xx': 1, '4xx': 3, '5xx': 2 },
    left: 0,
    bytes_in: 27,
    bytes_out: 100,
  })
})

test('a status outside all classes counts with the nearest', () => {
  const { record, snapshot } = held()
  for (const sentStatus of [0, 99, 600, 999]) record({ sentStatus })
  assert.deepEqual(snapshot().requests.by_class, { ...none, '1xx': 2, '5xx': 2 })
  assert.equal(snapshot().requests.errors, 2)
})

test('numbers that no request should have break nothing', () => {
  const { metrics, record, totals, snapshot } = held()
  for (const bad of [NaN, -1, -Infinity]) {
    record({ durationMs: bad, sentBytes: bad, receivedBytes: bad, sentStatus: bad })
  }
  record({ durationMs: Infinity })
  record({ durationMs: 4 })
  const { requests, latency_ms } = snapshot()
  assert.deepEqual([requests.total, requests.bytes_in, requests.bytes_out], [5, 0, 20])
  assert.deepEqual(latency_ms, { p50: 0, p95: 4, p99: 4, max: 4, mean: 0.8 })
  assert.equal(totals().routes[0]?.values.durations.sumUs, 4000)
  assert.doesNotMatch(JSON.stringify([snapshot(), totals(), metrics.recent()]), /null/)
})

test('latencies of all and of each route are those of the durations', () => {
  const { record, snapshot } = held()
  const seeded = new Seeded(3)
  const byRoute = new Map<string, number[]>([['area.a', []], ['area.b', []], ['area.c', []]])
  for (let turn = 0; turn < 6000; turn += 1) {
    const routeName = seeded.pick([...byRoute.keys()])
    const durationMs = 0.05 / (1 - seeded.next())
    byRoute.get(routeName)?.push(durationMs)
    record({ routeName, durationMs, sentStatus: turn % 2 === 0 ? 200 : 500 })
  }
  const near = (told: number, values: readonly number[], percent: number): void => {
    const exact = values.toSorted((a, b) => a - b)[Math.ceil((percent / 100) * values.length) - 1] as number
    assert.ok(Math.abs(told - exact) <= exact / 33 + 0.001, `p${percent} is ${exact}, told as ${told}`)
  }
  const { latency_ms, routes, requests } = snapshot()
  const all = [...byRoute.values()].flat()
  near(latency_ms.p50, all, 50)
  near(latency_ms.p95, all, 95)
  near(latency_ms.p99, all, 99)
  assert.equal(latency_ms.max, Math.round(Math.max(...all) * 1000) / 1000)
  assert.equal(routes.length, 3)
  for (const { name, count, p50_ms, p95_ms, p99_ms, max_ms } of routes) {
    const values = byRoute.get(name) as number[]
    assert.equal(count, values.length)
    near(p50_ms, values, 50)
    near(p95_ms, values, 95)
    near(p99_ms, values, 99)
    assert.equal(max_ms, Math.round(Math.max(...values) * 1000) / 1000)
  }
  assert.equal(routes.reduce((sum, route) => sum + route.errors, 0), requests.errors)
  assert.equal(requests.errors, 3000)
})

test('a new window begins at 0, while uptime, totals and the last requests stay', () => {
  const { metrics, record, clock, totals, snapshot, own } = held()
  clock.ms += 10_999
  record({ sentStatus: 500, receivedBytes: 7 })
  record({ routeName: 'area.b' })
  assert.equal(snapshot().window_s, 10.999)
  const before = counted(totals())
  own.beginWindow()
  clock.ms += 1500.4
  const empty = {
    uptime_s: 12,
    window_s: 1.5,
    requests: { total: 0, errors: 0, by_class: none, left: 0, bytes_in: 0, bytes_out: 0 },
    latency_ms: { p50: 0, p95: 0, p99: 0, max: 0, mean: 0 },
    routes: [],
  }
  assert.deepEqual(snapshot(), empty)
  assert.deepEqual(counted(totals()), before)
  assert.equal(metrics.recent().length, 2)

  record({ durationMs: 8, sentStatus: 404 })
  assert.deepEqual(snapshot(), {
    ...empty,
    requests: { total: 1, errors: 1, by_class: { ...none, '4xx': 1 }, left: 0, bytes_in: 0, bytes_out: 10 },
    latency_ms: { p50: 8, p95: 8, p99: 8, max: 8, mean: 8 },
    routes: [{ name: 'area.a', count: 1, errors: 1, p50_ms: 8, p95_ms: 8, p99_ms: 8, max_ms: 8, time_ms: 8 }],
  })
})

test('windows reset at any moment lose no request, and totals never go back', () => {
  const { record, totals, snapshot, own } = held()
  const seeded = new Seeded(11)
  let inWindows = 0
  let lastTotal = 0
  for (let turn = 0; turn < 20_000; turn += 1) {
    record({ routeName: `r.${seeded.integer(5)}`, sentStatus: seeded.pick([200, 404]) })
    if (seeded.integer(100) > 0) continue
    const { requests, routes } = snapshot()
    assert.equal(routes.reduce((sum, route) => sum + route.count, 0), requests.total)
    inWindows += requests.total
    own.beginWindow()
    const total = totals().routes.reduce((sum, { values }) => sum + countOf(values.durations), 0)
    assert.ok(total > lastTotal)
    lastTotal = total
  }
  assert.equal(inWindows + snapshot().requests.total, 20_000)
  const { routes } = totals()
  assert.equal(routes.reduce((sum, { values }) => sum + values.requests['2xx'] + values.requests['4xx'], 0), 20_000)
})

test('totals have each route since the start', () => {
  const { record, clock, totals } = held()
  record({ sentStatus: 200, receivedBytes: 5, durationMs: 2 })
  record({ sentStatus: 503, receivedBytes: 1, durationMs: 30_000 })
  clock.ms += 250
  const { startedAtMs, uptimeSeconds, routes } = totals()
  assert.deepEqual([startedAtMs, uptimeSeconds], [1_700_000_000_000, 0.25])
  assert.deepEqual(routes.map(({ name }) => name), ['area.a'])
  const { durations, requests, bytesIn, bytesOut } = routes[0]?.values ?? assert.fail()
  assert.deepEqual([requests, bytesIn, bytesOut], [{ ...none, left: 0, '2xx': 1, '5xx': 1 }, 6, 20])
  assert.deepEqual([countOf(durations), durations.sumUs], [2, 30_002_000])
})

test('requests without a route share one name, which a route may have as well', () => {
  const { record, snapshot } = held()
  record({ routeName: '' })
  record({ routeName: '(none)' })
  record({ routeName: '(other)' })
  record({ routeName: '__proto__' })
  const counts = snapshot().routes.map(({ name, count }) => [name, count])
  assert.deepEqual(counts, [['(none)', 2], ['(other)', 1], ['__proto__', 1]])
})

test('a window ignores routes that are not requested in it', () => {
  const { record, own, snapshot } = held()
  for (let turn = 0; turn < 1000; turn += 1) record({ routeName: `r.${turn}` })
  const read = mock.method(Histogram.prototype, 'read')
  own.beginWindow()
  const perWindow = read.mock.callCount()
  record({ routeName: 'r.7', durationMs: 3 })
  record({ routeName: 'r.7', durationMs: 1 })
  assert.deepEqual(snapshot().routes.map(({ name, count, max_ms }) => [name, count, max_ms]), [['r.7', 2, 3]])
  const calls = read.mock.callCount()
  read.mock.restore()
  assert.ok(perWindow < 10 && calls < 20, `${perWindow} and ${calls} histograms were read`)
})

test('the changes are the routes requested since the last call', () => {
  const { record, own } = held()
  const changes = () => own.takeChanges().routes.map(({ name, values }) => [name, values.requests['2xx']])
  for (const routeName of ['a', 'b', 'a']) record({ routeName })
  assert.deepEqual(changes(), [['a', 2], ['b', 1]])
  assert.deepEqual(changes(), [])
  record({ routeName: 'b' })
  own.beginWindow()
  assert.deepEqual(changes(), [['b', 2]])
})

test('names past the 20,000th share one entry, and known ones keep theirs', () => {
  const { record, totals, snapshot } = held()
  for (let turn = 0; turn < 25_000; turn += 1) record({ routeName: `r.${turn}` })
  for (let turn = 0; turn < 25_000; turn += 5000) record({ routeName: `r.${turn}` })
  const { routes, requests } = snapshot()
  assert.equal(requests.total, 25_005)
  assert.equal(routes.length, 19_999) // and `(none)`, which was not requested
  assert.equal(totals().routes.length, 19_999)
  const countOf = (name: string): number | undefined => routes.find((route) => route.name === name)?.count
  assert.deepEqual(['r.0', 'r.5000', 'r.1', 'r.24000', '(other)'].map(countOf), [2, 2, 1, undefined, 5003])
})

test('keeps the last 100 requests in the order in which they ended', () => {
  const { metrics, record, clock } = held()
  assert.deepEqual(metrics.recent(), [])
  const shown = (): number[] => metrics.recent().map((each) => each.status)
  for (let turn = 0; turn < 250; turn += 1) {
    clock.wallMs += 1000
    record({ sentStatus: 200 + turn, path: `/p/${turn}`, durationMs: turn + 0.1234 })
    const first = Math.max(0, turn - 99)
    assert.deepEqual(shown(), Array.from({ length: turn - first + 1 }, (_, at) => 200 + first + at))
  }
  assert.deepEqual(metrics.recent().at(-1), {
    time: clock.wallMs,
    method: 'GET',
    path: '/p/249',
    status: 449,
    duration_ms: 249.123,
    route: 'area.a',
  })
})

test('marks recent requests whose client disconnected while waiting', () => {
  const { metrics, record } = held()
  record({ sentStatus: 499, leftWait: true })
  record({ sentStatus: 499 })
  assert.deepEqual(metrics.recent().map(({ left }) => left), [true, undefined])
})

test('shows the request id of recent requests that have one', () => {
  const { metrics, record } = held()
  record({ sentStatus: 200 })
  record({ sentStatus: 500, idToSend: 'request-1' })
  assert.deepEqual(metrics.recent().map((each) => each.request_id), [undefined, 'request-1'])
})

test('shows 200 characters of a path', () => {
  const { metrics, record } = held()
  for (const length of [199, 200, 201, 16_000]) {
    record({ path: '/'.padEnd(length, 'x'), routeName: '' })
  }
  assert.deepEqual(metrics.recent().map(({ path }) => path.length), [199, 200, 200, 200])
  assert.deepEqual(metrics.recent().map(({ route }) => route), ['', '', '', ''])
})

test('an interval covers the time since the last, independent of the window', () => {
  const { record, clock, takeInterval, own } = held()
  for (let turn = 0; turn < 10; turn += 1) record({ sentStatus: turn < 2 ? 500 : 200, durationMs: 16 })
  own.beginWindow()
  clock.ms += 5000
  const first = takeInterval()
  assert.deepEqual([first.requests, first.errors, first.bytes_out], [2, 0.4, 20])
  for (const told of [first.p50_ms, first.p95_ms, first.p99_ms]) assert.ok(Math.abs(told - 16) <= 16 / 33)

  clock.ms += 5000
  const quiet = { requests: 0, errors: 0, bytes_out: 0, p50_ms: 0, p95_ms: 0, p99_ms: 0 }
  assert.deepEqual(takeInterval(), quiet)

  record({ durationMs: 0.03 })
  clock.ms += 600_000
  assert.deepEqual(takeInterval(), {
    ...{ requests: 1 / 600, errors: 0, bytes_out: 10 / 600 },
    ...{ p50_ms: 0.03, p95_ms: 0.03, p99_ms: 0.03 },
  })
})

test('a clock that stops or goes back gives finite rates and no negative time', () => {
  const { record, clock, totals, takeInterval, snapshot } = held()
  record()
  clock.ms -= 1000
  assert.equal(takeInterval().requests, 1000)
  record()
  assert.equal(takeInterval().requests, 1000)
  const { uptime_s, window_s } = snapshot()
  assert.deepEqual([uptime_s, window_s, totals().uptimeSeconds], [0, 0, 0])
})

test('uses the clocks of the process by default', () => {
  const before = Date.now()
  const metrics = new Metrics()
  assert.ok(metrics.startedAtMs >= before && metrics.startedAtMs <= Date.now())
  assert.equal(Math.floor(metrics.uptimeSeconds), 0)
})
