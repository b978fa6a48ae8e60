import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Seeded } from '../../support/seeded.ts'
import { median, medianInterval, medianRatio, percentile, ratios } from './statistics.ts'

test('the median is the middle of the sorted list, or the mean of the two middles', () => {
  const rows: [number[], number][] = [
    [[5], 5],
    [[3, 1], 2],
    [[9, 1, 5], 5],
    [[4, 1, 3, 2], 2.5],
    [[10, 9, 100], 10],
  ]
  for (const [values, expected] of rows) assert.equal(median(values), expected)
})

test('ratios are made pair by pair, and their median is not the ratio of the medians', () => {
  assert.deepEqual(ratios([1, 6, 9], [2, 3, 9]), [0.5, 2, 1])
  assert.equal(medianRatio([1, 6, 9], [2, 3, 9]), 1)
  assert.equal(medianRatio([10, 30, 20], [10, 20, 40]), 1)
})

/** How many values are cut from each end, by the tables of the sign test; undefined: too short a list. */
const cuts: readonly (readonly [count: number, cut: number | undefined])[] = [
  [1, undefined],
  [5, undefined],
  [6, 0],
  [7, 0],
  [8, 0],
  [9, 1],
  [11, 1],
  [12, 2],
  [15, 3],
  [20, 5],
  [25, 7],
  [50, 17],
]

test('the interval of the median has the ends that the tables of the sign test give', () => {
  for (const [count, cut] of cuts) {
    const values = Array.from({ length: count }, (_, at) => (at * 7) % count)
    const sorted = values.toSorted((a, b) => a - b)
    const expected = cut === undefined ? undefined : { low: sorted[cut], high: sorted[count - 1 - cut] }
    assert.deepEqual(medianInterval(values), expected, `${count} values`)
  }
})

test('the interval is wider where more confidence is asked for', () => {
  const values = Array.from({ length: 20 }, (_, at) => at)
  assert.deepEqual(medianInterval(values, 0.99), { low: 3, high: 16 })
  assert.deepEqual(medianInterval(values, 0.5), { low: 7, high: 12 })
})

test('the interval holds the true median as often as it promises', () => {
  const random = new Seeded(7)
  let held = 0
  const trials = 4000
  for (let trial = 0; trial < trials; trial += 1) {
    const interval = medianInterval(Array.from({ length: 11 }, () => random.next() ** 3))
    assert.ok(interval)
    if (interval.low <= 0.125 && interval.high >= 0.125) held += 1
  }
  assert.ok(held / trials > 0.95, `${held} of ${trials}`)
})

test('a percentile is the value below which that part of the list lies', () => {
  const values = Array.from({ length: 200 }, (_, at) => 199 - at)
  assert.equal(percentile(values, 50), 100)
  assert.equal(percentile(values, 99), 198)
  assert.equal(percentile(values, 100), 199)
})
