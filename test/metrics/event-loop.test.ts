import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEventLoopWatch, type EventLoopOptions, type EventLoopWatch } from '../../lib/metrics/event-loop.ts'
import { createSampler, type Sample } from '../../lib/metrics/history.ts'
import { bucketCounts, countOf } from '../../lib/metrics/histogram.ts'
import { until } from '../support/until.ts'
import { makeSources, ownProcess, statusBy } from './sources.ts'

/** How long the tests block the loop, and the least measured: part of it may pass before the next tick is due. */
const blockedMs = 200
const leastSeenMs = 140

/** A watch, and what its process reports of it. */
function watch(t: { after(work: () => void): void }, options: EventLoopOptions = {}) {
  const made: EventLoopWatch = createEventLoopWatch(options)
  const alive = setInterval(() => {}, 1000) // the watch keeps no process alive
  t.after(() => {
    clearInterval(alive)
    made.close()
  })
  const own = ownProcess(makeSources({ eventLoop: made }))
  const sampler = createSampler(own.readWithoutRoutes)
  return {
    watched: made,
    own,
    count: () => countOf(made.delay.read()),
    snapshot: () => statusBy(own).event_loop,
    takeInterval: () => sampler() as Sample, // It is synchronous.
  }
}

function block(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

function nextTick({ delay }: EventLoopWatch): Promise<void> {
  const count = countOf(delay.read())
  return until(() => countOf(delay.read()) > count)
}

test('reports a delay past the limit, and shows it in window, interval and totals', async (t) => {
  const lines: string[] = []
  const { watched, count, snapshot, takeInterval } = watch(t, { boundMs: 100, warn: (message) => lines.push(message) })
  block(blockedMs)
  await until(() => lines.length > 0)
  const told = /^the event loop was blocked for (\d+) ms$/.exec(lines[0] as string)
  assert.ok(Number(told?.[1]) >= leastSeenMs, lines[0])
  const { p50_ms, p99_ms, max_ms } = snapshot()
  assert.ok(max_ms >= leastSeenMs && p99_ms >= leastSeenMs && p50_ms <= p99_ms, JSON.stringify(snapshot()))
  assert.ok(takeInterval().loop_p99_ms >= leastSeenMs)
  assert.ok(count() - (bucketCounts(watched.delay.read())[6] as number) >= 1) // above 0.1 s
})

test('a delay right after an interval ends is in the next one', async (t) => {
  const { watched, takeInterval } = watch(t)
  await nextTick(watched)
  takeInterval()
  block(blockedMs)
  await nextTick(watched)
  assert.ok(takeInterval().loop_p99_ms >= leastSeenMs)
})

test('reports many delays in one line', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const lines: string[] = []
  let ms = 0
  const { count } = watch(t, { warn: (message) => lines.push(message), now: () => (ms += 1000) })
  t.mock.timers.tick(600)
  assert.equal(count(), 12)
  assert.match(lines[0] as string, /^the event loop was blocked for \d+ ms$/)
  assert.match(lines[1] as string, /^the event loop was blocked for \d+ ms \(and \d+ more since the last such line\)$/)
  assert.ok(lines.length < count() / 3)
})

test('reports nothing below the limit', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const lines: string[] = []
  let ms = 0
  const { count, snapshot } = watch(t, { boundMs: 250, warn: (message) => lines.push(message), now: () => (ms += 299) })
  t.mock.timers.tick(150)
  assert.equal(count(), 3)
  assert.deepEqual(lines, [])
  assert.equal(snapshot().max_ms, 249)
})

test('a clock that goes back counts as no delay', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  let ms = 0
  const { count, snapshot } = watch(t, { now: () => (ms -= 1000) })
  t.mock.timers.tick(150)
  assert.equal(count(), 3)
  const { p50_ms, p99_ms, max_ms } = snapshot()
  assert.deepEqual([p50_ms, p99_ms, max_ms], [0, 0, 0])
})

test('a reset begins a new window and keeps interval and totals', async (t) => {
  const { watched, own, count, snapshot, takeInterval } = watch(t)
  block(blockedMs)
  await nextTick(watched)
  const before = count()
  own.beginWindow()
  const { p50_ms, p99_ms, max_ms } = snapshot()
  assert.deepEqual([p50_ms, p99_ms, max_ms], [0, 0, 0])
  assert.ok(takeInterval().loop_p99_ms >= leastSeenMs)
  assert.equal(count(), before)
})

test('utilization is the share of active time, separately for the window and the interval', async (t) => {
  const { watched, own, count, snapshot, takeInterval } = watch(t)
  await nextTick(watched)
  own.beginWindow()
  takeInterval()
  const activeBefore = watched.activeSeconds
  block(blockedMs)
  await nextTick(watched)
  const busy = takeInterval().utilization
  assert.ok(busy > 0.5 && busy <= 1, `${busy}`)
  const still = count() + 4
  await until(() => count() >= still)
  const idle = takeInterval().utilization
  assert.ok(idle >= 0 && idle < busy, `${idle}`)
  const whole = snapshot().utilization
  assert.ok(whole > idle && whole <= busy, `${whole}`)
  assert.ok(watched.activeSeconds - activeBefore >= blockedMs / 1000)
})

test('is silent when it is closed', async (t) => {
  const { watched, count } = watch(t)
  await nextTick(watched)
  watched.close()
  const other = watch(t)
  const before = count()
  await until(() => other.count() >= 3)
  assert.equal(count(), before)
})
