import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bucketBoundsSeconds, DurationBuckets } from '../../lib/metrics/duration-buckets.ts'
import { Seeded } from '../support/seeded.ts'

test('a duration equal to a bound is within it, one a microsecond longer is not', () => {
  bucketBoundsSeconds.forEach((bound, at) => {
    for (const [ms, first] of [[bound * 1000, at], [bound * 1000 + 0.001, at + 1]] as const) {
      const buckets = new DurationBuckets()
      buckets.record(ms)
      const expected = bucketBoundsSeconds.map((_, index) => (index >= first ? 1 : 0))
      assert.deepEqual(buckets.totals().cumulative, expected, `${ms} ms`)
      assert.equal(buckets.totals().count, 1)
    }
  })
})

test('counts are those of the durations, one by one', () => {
  const seeded = new Seeded(7)
  const values = Array.from({ length: 5000 }, () => Math.round(1000 * 0.01 * 4e6 ** seeded.next()) / 1000)
  const buckets = new DurationBuckets()
  for (const value of values) buckets.record(value)
  const { cumulative, count, sumSeconds } = buckets.totals()
  const within = (bound: number): number => values.filter((value) => value <= bound * 1000).length
  assert.deepEqual(cumulative, bucketBoundsSeconds.map(within))
  assert.equal(count, 5000)
  assert.ok(Math.abs(sumSeconds - values.reduce((sum, value) => sum + value, 0) / 1000) < 1e-6)
})

test('what only a broken clock gives counts as 0 and leaves the sum alone', () => {
  const buckets = new DurationBuckets()
  for (const value of [NaN, -5, Infinity]) buckets.record(value)
  assert.deepEqual(buckets.totals(), { cumulative: bucketBoundsSeconds.map(() => 3), count: 3, sumSeconds: 0 })
})
