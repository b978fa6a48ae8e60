import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noFigures, withoutWindow, type Figures } from '../../lib/metrics/figures.ts'
import { boundRoutes, mergeFigures, mergeIntervals, sumOf } from '../../lib/metrics/merge.ts'
import { Metrics } from '../../lib/metrics/metrics.ts'
import { requestWindow } from '../../lib/metrics/request-figures.ts'
import { Seeded } from '../support/seeded.ts'

/** Metrics whose clocks stand still. */
function still(): Metrics {
  return new Metrics({ now: () => 5000, wallNow: () => 1_700_000_000_000 })
}

function figuresOf(metrics: Metrics, changes: Partial<Figures> = {}): Figures {
  return { ...noFigures, requests: metrics.figures(), ...changes }
}

/** Records requests in one of several metrics each, and all of them in one more. */
function record(seeded: Seeded, list: readonly Metrics[], all: Metrics, count: number): void {
  for (let turn = 0; turn < count; turn += 1) {
    const request = {
      method: 'GET',
      path: '/a',
      sentStatus: seeded.pick([101, 200, 200, 302, 404, 503]),
      sentBytes: seeded.integer(10_000),
      receivedBytes: seeded.integer(100),
      durationMs: 0.05 / (1 - seeded.next()),
      routeName: seeded.pick(['a', 'b', 'c', '', '__proto__']),
    }
    const timed = seeded.next() < 0.9
    all.record(request, timed)
    seeded.pick(list).record(request, timed)
  }
}

/** As JSON, with the routes by name, and sums of seconds without what the order of adding does to them. */
function comparable(figures: Figures): unknown {
  const routes = [...figures.requests.routes].sort((a, b) => (a.name < b.name ? -1 : 1))
  const text = JSON.stringify({ ...figures, requests: { ...figures.requests, routes } })
  return JSON.parse(text, (name, value: unknown) => (name === 'sumSeconds' ? Math.round(Number(value) * 1e6) : value))
}

for (let seed = 1; seed <= 10; seed += 1) {
  test(`the merged figures of the parts are those of one process that served all, seed ${seed}`, () => {
    const seeded = new Seeded(seed)
    const list = Array.from({ length: seed }, still)
    const all = still()
    record(seeded, list, all, 500)
    for (const each of [...list, all]) each.resetWindow()
    record(seeded, list, all, 3000)
    const merged = mergeFigures(list.map((each) => figuresOf(each)))
    assert.deepEqual(comparable(merged), comparable(figuresOf(all)))
    const { routes, ...window } = requestWindow(merged.requests)
    const { routes: expectedRoutes, ...expected } = all.snapshot()
    assert.deepEqual(window, expected)
    const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1)
    assert.deepEqual([...routes].sort(byName), [...expectedRoutes].sort(byName))
    const interval = mergeIntervals(
      list.map((each) => ({ requests: each.takeCounts(), eventLoop: noFigures.eventLoop.window })),
      0.001,
    )
    assert.deepEqual(interval.requests, all.takeCounts())
  })
}

test('figures of one process are left as they are, and figures of none are empty', () => {
  const figures = figuresOf(still())
  assert.equal(mergeFigures([figures]), figures)
  assert.equal(mergeFigures([]), noFigures)
})

test('the start is the first one that is known, uptime and window are the longest', () => {
  const at = (startedAtMs: number, uptimeSeconds: number, windowSeconds: number): Figures => ({
    ...noFigures,
    requests: { ...noFigures.requests, startedAtMs, uptimeSeconds, windowSeconds },
  })
  const { startedAtMs, uptimeSeconds, windowSeconds } = mergeFigures([at(0, 0, 0), at(900, 20, 3), at(800, 30, 1)]).requests
  assert.deepEqual([startedAtMs, uptimeSeconds, windowSeconds], [800, 30, 3])
})

test('each text of a warning is there once, and an alert of one is one of all', () => {
  const merged = mergeFigures([
    { ...noFigures, warnings: ['a', 'b'] },
    { ...noFigures, warnings: ['b', 'c'], now: { ...noFigures.now, alert: true } },
    { ...noFigures, warnings: ['a'] },
  ])
  assert.deepEqual([merged.warnings, merged.now.alert], [['a', 'b', 'c'], true])
})

test('the event loop of a primary is not in the sum', () => {
  const busy = { ...noFigures.eventLoop, window: { delay: { cells: [9, 2], sumUs: 18, maxUs: 9 }, activeUs: 5, idleUs: 7 } }
  const idle = { ...busy, window: { ...busy.window, activeUs: 0, idleUs: 1000 } }
  const merged = mergeFigures([
    { ...noFigures, eventLoop: idle, role: 'primary' },
    { ...noFigures, eventLoop: busy, role: 'worker' },
    { ...noFigures, eventLoop: busy, role: 'worker' },
  ])
  assert.deepEqual(merged.eventLoop.window, { delay: { cells: [9, 4], sumUs: 36, maxUs: 9 }, activeUs: 10, idleUs: 14 })
})

test('groups are added up number by number, however deep they lie', () => {
  const group = { a: 1, b: { c: 2, d: [3, 4] }, e: false }
  assert.deepEqual(sumOf([group, { ...group, e: true }, group]), { a: 3, b: { c: 6, d: [9, 12] }, e: true })
})

test('without its window a process has the same totals', () => {
  const metrics = still()
  record(new Seeded(7), [metrics], still(), 100)
  const before = figuresOf(metrics)
  metrics.resetWindow()
  assert.deepEqual(withoutWindow(before), figuresOf(metrics))
})

test('routes past the bound are one, and no request of theirs is lost', () => {
  const parts = [still(), still()]
  for (let turn = 0; turn < 15_000; turn += 1) {
    for (const [at, each] of parts.entries()) {
      each.record({ method: 'GET', path: '/a', sentStatus: 200, sentBytes: 1, durationMs: 1, routeName: `r.${at}.${turn}` })
    }
  }
  const { routes } = boundRoutes(mergeFigures(parts.map((each) => figuresOf(each)))).requests
  assert.equal(routes.length, 20_000)
  assert.equal(routes.reduce((sum, route) => sum + route.durations.count, 0), 30_000)
  assert.deepEqual([routes[0]?.name, routes.at(-1)?.name, routes.at(-1)?.window.count], ['r.0.0', '(other)', 10_001])
  const few = figuresOf(still())
  assert.equal(boundRoutes(few), few)
})
