import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countOf, meanMs, mergeDurations, noDurations, percentileMs } from '../../lib/metrics/duration-cells.ts'
import { Histogram } from '../../lib/metrics/histogram.ts'
import { Seeded } from '../support/seeded.ts'

const percents = [1, 10, 25, 50, 75, 90, 95, 99, 99.9, 100]

/** Histograms of a list of parts, and one of all that they counted. */
function divided(seed: number, parts: number, draw: (seeded: Seeded) => number): { list: Histogram[]; all: Histogram } {
  const seeded = new Seeded(seed)
  const list = Array.from({ length: parts }, () => new Histogram())
  const all = new Histogram()
  for (let turn = seeded.integer(5000); turn >= 0; turn -= 1) {
    const ms = draw(seeded)
    all.record(ms)
    seeded.pick(list).record(ms)
  }
  return { list, all }
}

const shapes: readonly (readonly [string, (seeded: Seeded) => number])[] = [
  ['from a microsecond to three days', (seeded) => 0.001 * 2.6e11 ** seeded.next()],
  ['most at 0.2 ms with a long tail', (seeded) => 0.2 / (1 - seeded.next()) ** 1.5],
  ['whole milliseconds', (seeded) => seeded.integer(50)],
]

for (const [name, draw] of shapes) {
  for (let seed = 1; seed <= 10; seed += 1) {
    test(`the merged parts are the histogram of all: ${name}, seed ${seed}`, () => {
      const { list, all } = divided(seed, seed, draw)
      const merged = mergeDurations(list.map((each) => each.toCells()))
      assert.deepEqual(merged, all.toCells())
      assert.equal(countOf(merged), all.count)
      assert.equal(meanMs(merged), all.meanMs)
      for (const percent of percents) assert.equal(percentileMs(merged, percent), all.percentile(percent), `p${percent}`)
    })
  }
}

test('what is longer than all cells is told as the longest of all parts', () => {
  const hourMs = 3_600_000
  const list = [2 * hourMs, 3 * hourMs].map((ms) => {
    const histogram = new Histogram()
    histogram.record(ms)
    return histogram.toCells()
  })
  assert.equal(percentileMs(mergeDurations(list), 50), 3 * hourMs)
})

test('no durations are 0, alone or merged', () => {
  for (const empty of [noDurations, new Histogram().toCells(), mergeDurations([]), mergeDurations([noDurations, noDurations])]) {
    assert.deepEqual(empty, noDurations)
    assert.deepEqual([countOf(empty), meanMs(empty), percentileMs(empty, 50), percentileMs(empty, 100)], [0, 0, 0, 0])
  }
})

test('cells do not change with their histogram, and are the same after a way as JSON', () => {
  const histogram = new Histogram()
  histogram.record(3)
  const cells = histogram.toCells()
  histogram.record(5)
  assert.deepEqual([countOf(cells), percentileMs(cells, 100)], [1, 3])
  assert.deepEqual(JSON.parse(JSON.stringify(cells)), cells)
})
