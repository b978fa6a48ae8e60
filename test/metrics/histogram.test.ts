import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Histogram, toMicroseconds } from '../../lib/metrics/histogram.ts'
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
      const histogram = filled(values)
      const sorted = values.toSorted((a, b) => a - b)
      for (const percent of percents) {
        const exact = exactPercentile(sorted, percent)
        const told = histogram.percentile(percent)
        const allowed = exact / 33 + 0.000_6 // the second for rounding to microseconds
        assert.ok(Math.abs(told - exact) <= allowed, `p${percent} is ${exact}, told as ${told}`)
        assert.ok(told <= histogram.maxMs)
      }
      assert.equal(histogram.maxMs, Math.round(Math.max(...values) * 1000) / 1000)
      const mean = values.reduce((sum, value) => sum + value, 0) / count
      assert.ok(Math.abs(histogram.meanMs - mean) <= 0.000_6, `the mean is ${mean}, told as ${histogram.meanMs}`)
    })
  }
}

test('every power of two and its neighbours are told within 3.1 %, up to an hour', () => {
  for (let us = 1; us <= hourMs * 1000; us *= 2) {
    for (const each of [us - 1, us, us + 1]) {
      const told = filled([each / 1000, hourMs * 2]).percentile(50) * 1000
      assert.ok(Math.abs(told - each) <= each / 33, `${each} us is told as ${told} us`)
    }
  }
})

test('up to 32 microseconds the percentile is exact', () => {
  for (let us = 0; us < 32; us += 1) assert.equal(filled([us / 1000, 1]).percentile(50), us / 1000)
})

test('an empty histogram tells 0', () => {
  const histogram = new Histogram()
  assert.deepEqual([histogram.percentile(50), histogram.percentile(100)], [0, 0])
  assert.deepEqual([histogram.maxMs, histogram.meanMs], [0, 0])
})

test('what is longer than all cells is told as the longest', () => {
  const histogram = filled([1, 10 * hourMs, 20 * hourMs])
  assert.equal(histogram.percentile(100), 20 * hourMs)
  assert.equal(histogram.maxMs, 20 * hourMs)
  assert.ok(Math.abs(histogram.percentile(33) - 1) <= 1 / 33)
})

test('what only a broken clock gives counts as 0', () => {
  const histogram = filled([NaN, -1, -0, Infinity, -Infinity])
  assert.deepEqual([histogram.percentile(100), histogram.maxMs, histogram.meanMs], [0, 0, 0])
  histogram.record(8)
  assert.deepEqual([histogram.percentile(50), histogram.maxMs], [0, 8])
  assert.ok(Math.abs(histogram.meanMs - 8 / 6) < 1e-9)
  assert.deepEqual([NaN, -1, Infinity, 0.0004, 1.0006].map(toMicroseconds), [0, 0, 0, 0, 1001])
})

test('reset forgets everything, and what follows is counted alone', () => {
  const histogram = filled([100, 200, 300])
  histogram.reset()
  assert.deepEqual([histogram.percentile(99), histogram.maxMs, histogram.meanMs], [0, 0, 0])
  histogram.record(0.02)
  assert.deepEqual([histogram.percentile(99), histogram.maxMs, histogram.meanMs], [0.02, 0.02, 0.02])
})

test('a full cell halves all, which keeps percentiles, mean and longest', () => {
  const histogram = new Histogram(1000)
  for (let turn = 0; turn < 100_000; turn += 1) histogram.record(turn % 10 === 0 ? 16 : 1)
  assert.equal(histogram.percentile(85), filled([1, 9]).percentile(50))
  assert.ok(Math.abs(histogram.percentile(95) - 16) <= 16 / 33)
  assert.equal(histogram.maxMs, 16)
  assert.ok(Math.abs(histogram.meanMs - 2.5) < 0.05, `the mean is 2.5, told as ${histogram.meanMs}`)
})
