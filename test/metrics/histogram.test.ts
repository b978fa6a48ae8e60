import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  addDurations,
  bucketBoundsSeconds,
  bucketCounts,
  countOf,
  Histogram,
  meanMs,
  noDurations,
  percentileMs,
  subtractDurations,
  toMicroseconds,
  type Durations,
} from '../../lib/metrics/histogram.ts'
import { Seeded } from '../support/seeded.ts'

const percents = [1, 10, 25, 50, 75, 90, 95, 99, 99.9, 100]
const hourMs = 3_600_000

/** By nearest rank, of values in ascending order. */
function exactPercentile(sorted: readonly number[], percent: number): number {
  return sorted[Math.ceil((percent / 100) * sorted.length) - 1] as number
}

function filled(values: readonly number[]): Histogram {
  const histogram = new Histogram()
  for (const value of values) histogram.record(value)
  return histogram
}

function durationsOf(values: readonly number[]): Durations {
  return filled(values).read()
}

const shapes: readonly (readonly [string, (seeded: Seeded) => number])[] = [
  ['the same from 1 microsecond to 1 hour on a logarithmic scale', (seeded) => 0.001 * 3.6e9 ** seeded.next()],
  ['the same from 0 to 100 ms', (seeded) => seeded.next() * 100],
  ['most at 0.2 ms with a long tail', (seeded) => 0.2 / (1 - seeded.next()) ** 1.5],
  ['two heaps', (seeded) => (seeded.next() < 0.95 ? 1 : 500) + seeded.next()],
  ['whole milliseconds', (seeded) => seeded.integer(50)],
]

for (const [name, draw] of shapes) {
  for (const count of [1, 2, 7, 100, 20_000]) {
    test(`percentiles of ${count} durations, ${name}, are within 3.1 %`, () => {
      const seeded = new Seeded(count)
      const values = Array.from({ length: count }, () => draw(seeded))
      const durations = durationsOf(values)
      const sorted = values.toSorted((a, b) => a - b)
      for (const percent of percents) {
        const exact = exactPercentile(sorted, percent)
        const told = percentileMs(durations, percent)
        const allowed = exact / 33 + 0.000_6 // the second for rounding to microseconds
        assert.ok(Math.abs(told - exact) <= allowed, `p${percent} is ${exact}, told as ${told}`)
        assert.ok(told <= durations.maxUs / 1000)
      }
      assert.equal(durations.maxUs, Math.round(Math.max(...values) * 1000))
      assert.equal(countOf(durations), count)
      const mean = values.reduce((sum, value) => sum + value, 0) / count
      assert.ok(Math.abs(meanMs(durations) - mean) <= 0.000_6, `the mean is ${mean}, told as ${meanMs(durations)}`)
    })
  }

  test(`the sum of parts is the histogram of all, and the difference to a part is the rest: ${name}`, () => {
    for (let seed = 1; seed <= 10; seed += 1) {
      const seeded = new Seeded(seed)
      const parts = Array.from({ length: seed }, () => new Histogram())
      const all = new Histogram()
      for (let turn = seeded.integer(5000); turn >= 0; turn -= 1) {
        const ms = draw(seeded)
        all.record(ms)
        seeded.pick(parts).record(ms)
      }
      const [first = noDurations, ...others] = parts.map((each) => each.read())
      const rest = others.reduce(addDurations, noDurations)
      assert.deepEqual(addDurations(first, rest), all.read())
      const difference = subtractDurations(all.read(), first)
      assert.deepEqual([difference.cells, difference.sumUs], [rest.cells, rest.sumUs])
      assert.ok(Math.abs(difference.maxUs - rest.maxUs) <= rest.maxUs / 16, `${difference.maxUs}, not ${rest.maxUs}`)
    }
  })
}

test('every power of two and its neighbours are accurate within 3.1 %, up to an hour', () => {
  for (let us = 1; us <= hourMs * 1000; us *= 2) {
    for (const each of [us - 1, us, us + 1]) {
      const told = percentileMs(durationsOf([each / 1000, hourMs * 2]), 50) * 1000
      assert.ok(Math.abs(told - each) <= each / 33, `${each} us is told as ${told} us`)
    }
  }
})

test('up to 32 microseconds the percentile is exact', () => {
  for (let us = 0; us < 32; us += 1) assert.equal(percentileMs(durationsOf([us / 1000, 1]), 50), us / 1000)
})

test('no durations are 0, alone, added or subtracted', () => {
  const one = durationsOf([3])
  for (const empty of [
    new Histogram().read(),
    addDurations(noDurations, noDurations),
    subtractDurations(noDurations, noDurations),
    subtractDurations(one, one),
  ]) {
    assert.deepEqual(empty, noDurations)
    assert.deepEqual([countOf(empty), meanMs(empty), percentileMs(empty, 50), percentileMs(empty, 100)], [0, 0, 0, 0])
    assert.deepEqual(bucketCounts(empty), bucketBoundsSeconds.map(() => 0))
  }
})

test('durations beyond all cells count as the longest, of all parts in a sum', () => {
  const durations = durationsOf([1, 10 * hourMs, 20 * hourMs])
  assert.equal(percentileMs(durations, 100), 20 * hourMs)
  assert.equal(durations.maxUs, 20 * hourMs * 1000)
  assert.ok(Math.abs(percentileMs(durations, 33) - 1) <= 1 / 33)
  const sum = addDurations(durationsOf([2 * hourMs]), durationsOf([3 * hourMs]))
  assert.equal(percentileMs(sum, 50), 3 * hourMs)
})

test('values that only a broken clock returns count as 0 and do not change the sum', () => {
  const histogram = filled([NaN, -1, -0, Infinity, -Infinity])
  assert.deepEqual(histogram.read(), { cells: [0, 5], sumUs: 0, maxUs: 0 })
  histogram.record(8)
  assert.deepEqual([percentileMs(histogram.read(), 50), percentileMs(histogram.read(), 100)], [0, 8])
  assert.ok(Math.abs(meanMs(histogram.read()) - 8 / 6) < 1e-9)
  assert.deepEqual([NaN, -1, Infinity, 0.0004, 1.0006].map(toMicroseconds), [0, 0, 0, 0, 1001])
})

test('a snapshot does not change with its histogram, and survives JSON', () => {
  const histogram = filled([3])
  const read = histogram.read()
  histogram.record(5)
  assert.deepEqual([countOf(read), percentileMs(read, 100)], [1, 3])
  assert.deepEqual(JSON.parse(JSON.stringify(read)), read)
})

test('a window has the counts since it began, and its own longest', () => {
  const histogram = filled([100, 200, 300])
  const before = histogram.read()
  histogram.beginWindow()
  assert.deepEqual(subtractDurations(histogram.read(), before), noDurations)
  for (const ms of [0.02, 7.777]) histogram.record(ms)
  const window = subtractDurations(histogram.read(), before)
  assert.deepEqual([countOf(window), window.sumUs, window.maxUs], [2, 7797, 7777])
  assert.deepEqual([percentileMs(window, 50), percentileMs(window, 100)], [0.02, 7.777])
  assert.equal(countOf(histogram.read()), 5)
})

test('the longest between two readings is within 3.1 % if a window began in between', () => {
  const histogram = filled([5000])
  const before = histogram.read()
  histogram.record(16)
  histogram.beginWindow()
  assert.ok(Math.abs(subtractDurations(histogram.read(), before).maxUs - 16_000) <= 16_000 / 33)
  histogram.record(1)
  assert.ok(Math.abs(subtractDurations(histogram.read(), before).maxUs - 16_000) <= 16_000 / 33)
})

test('a cell counts more than 32 bits hold', () => {
  const half = { cells: [3, 2 ** 31], sumUs: 3 * 2 ** 31, maxUs: 3 }
  assert.deepEqual(addDurations(half, half), { cells: [3, 2 ** 32], sumUs: 3 * 2 ** 32, maxUs: 3 })
})

test('a duration is in the buckets of the bounds that it does not pass, within 3.1 %', () => {
  bucketBoundsSeconds.forEach((bound, at) => {
    for (const [ms, first] of [[(bound * 1000) / 1.031, at], [bound * 1000 * 1.031, at + 1]] as const) {
      const expected = bucketBoundsSeconds.map((_, index) => (index >= first ? 1 : 0))
      assert.deepEqual(bucketCounts(durationsOf([ms])), expected, `${ms} ms`)
    }
  })
})

test('bucket counts are right within 3.1 % of their bounds, one by one', () => {
  const seeded = new Seeded(7)
  const values = Array.from({ length: 5000 }, () => Math.round(1000 * 0.01 * 4e6 ** seeded.next()) / 1000)
  const durations = durationsOf(values)
  const within = (ms: number): number => values.filter((value) => value <= ms).length
  bucketCounts(durations).forEach((count, at) => {
    const boundMs = (bucketBoundsSeconds[at] as number) * 1000
    assert.ok(count >= within(boundMs / 1.031) && count <= within(boundMs * 1.031), `${count} up to ${boundMs} ms`)
  })
  assert.equal(countOf(durations), 5000)
  assert.ok(Math.abs(durations.sumUs / 1000 - values.reduce((sum, value) => sum + value, 0)) < 1e-3)
})
