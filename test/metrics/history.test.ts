import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createHistory, sampleFields } from '../../lib/metrics/history.ts'
import type { History, HistoryOptions, Sample } from '../../lib/metrics/history.ts'
import { until } from '../support/until.ts'

const minute = 60_000

function sampleOf(value: number): Sample {
  return Object.fromEntries(sampleFields.map((field, at) => [field, value + at])) as Sample // an entry per field
}

interface Clock {
  wallMs: number
}

/** A history whose clocks and samples the test controls; its own timer never fires. */
function held(
  t: { after(work: () => void): void },
  options: Partial<HistoryOptions> = {},
): { history: History; clock: Clock; take: (afterMs: number) => void } {
  const clock = { wallMs: 1_700_000_000_000 }
  let count = 0
  const history = createHistory({
    ...{ sample: () => sampleOf((count += 1) * 100), everyMs: minute, keep: 15 },
    now: () => clock.wallMs,
    ...options,
  })
  t.after(() => history.close())
  const take = (afterMs: number): void => {
    clock.wallMs += afterMs
    history.take()
  }
  return { history, clock, take }
}

test('returns a list for each number and the times', (t) => {
  const { history, clock, take } = held(t)
  const start = clock.wallMs
  take(minute)
  take(minute)
  const { time, ...series } = history.snapshot()
  assert.deepEqual(time, [start + minute, start + 2 * minute])
  assert.deepEqual(Object.keys(series), [...sampleFields])
  sampleFields.forEach((field, at) => assert.deepEqual(series[field], [100 + at, 200 + at]))
})

test('is empty before the first sample', (t) => {
  const { history } = held(t)
  for (const list of Object.values(history.snapshot())) assert.deepEqual(list, [])
})

test('keeps only the last samples', (t) => {
  const { history, clock, take } = held(t)
  for (let turn = 1; turn <= 40; turn += 1) {
    take(minute)
    const kept = Math.min(turn, 15)
    const { time, requests } = history.snapshot()
    assert.deepEqual(requests, Array.from({ length: kept }, (_, at) => (turn - kept + at + 1) * 100))
    assert.deepEqual(time, Array.from({ length: kept }, (_, at) => clock.wallMs - (kept - 1 - at) * minute))
  }
})

test('numbers are rounded, and non-finite ones are 0', (t) => {
  const numbers = { ...sampleOf(0), requests: NaN, errors: Infinity, p50_ms: 1.23456 }
  const { history, take } = held(t, { sample: () => numbers })
  take(minute)
  const { requests, errors, p50_ms, p95_ms } = history.snapshot()
  assert.deepEqual([requests, errors, p50_ms, p95_ms], [[0], [0], [1.235], [3]])
})

test('when the clock is set back, samples in the future are dropped', (t) => {
  const { history, clock, take } = held(t)
  take(minute)
  take(minute)
  take(-30_000)
  take(minute)
  const now = clock.wallMs
  assert.deepEqual(history.snapshot().time, [now - 90_000, now - minute, now])
  take(-60 * minute)
  assert.deepEqual(history.snapshot().time, [clock.wallMs])
})

test('leaves a gap where the machine slept, and drops samples that are too old', (t) => {
  const { history, clock, take } = held(t)
  take(minute)
  take(minute)
  take(10 * minute)
  const now = clock.wallMs
  assert.deepEqual(history.snapshot().time, [now - 11 * minute, now - 10 * minute, now])
  take(10 * minute)
  assert.deepEqual(history.snapshot().time, [now, now + 10 * minute])
  take(24 * 60 * minute)
  assert.deepEqual(history.snapshot().requests, [500])
})

test('an asynchronous sample is added when it arrives, and no other is requested before', async (t) => {
  const given: ((sample: Sample) => void)[] = []
  const { history, clock, take } = held(t, { sample: () => new Promise((resolve) => given.push(resolve)) })
  take(minute)
  take(minute)
  assert.deepEqual([given.length, history.snapshot().time], [1, []])
  clock.wallMs += 1000
  given[0]?.(sampleOf(300))
  await Promise.resolve()
  assert.deepEqual([history.snapshot().time, history.snapshot().requests], [[clock.wallMs], [300]])
  take(minute)
  assert.equal(given.length, 2)
})

test('continues after a sample that fails, synchronously or later', async (t) => {
  const outcomes = [() => { throw new Error('at once') }, () => Promise.reject(new Error('later')), () => sampleOf(1)]
  const history = createHistory({ sample: () => (outcomes.shift() as () => Sample)() })
  t.after(() => history.close())
  for (const kept of [0, 0, 1]) {
    history.take()
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(history.snapshot().requests.length, kept)
  }
})

test('takes samples with its own timer until it is closed', async (t) => {
  let samples = 0
  const history = createHistory({ sample: () => sampleOf((samples += 1)), everyMs: 1, keep: 5 })
  t.after(() => history.close())
  const alive = setInterval(() => {}, 1000) // its own timer keeps no process alive
  await until(() => samples >= 8).finally(() => clearInterval(alive))
  history.close()
  const { requests } = history.snapshot()
  assert.equal(requests.at(-1), samples)
  assert.ok(requests.length <= 5)
})

test('holds 15 minutes of 5 seconds in less than 1 MiB', (t) => {
  setFlagsFromString('--expose-gc')
  const collectGarbage: () => void = runInNewContext('gc')
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  const history = createHistory({ sample: () => sampleOf(0.123) })
  t.after(() => history.close())
  for (let turn = 0; turn < 400; turn += 1) history.take()
  collectGarbage()
  const grown = process.memoryUsage().heapUsed - before
  assert.ok(grown < 2 ** 20, `${grown} bytes`)
  assert.equal(history.snapshot().time.length, 180)
})
