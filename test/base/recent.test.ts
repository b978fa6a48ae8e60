import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Recent } from '../../lib/base/recent.ts'

test('keeps the last entries, oldest first', () => {
  const recent = new Recent<number>(5)
  assert.deepEqual(recent.list(), [])
  for (let entry = 1; entry <= 23; entry += 1) {
    recent.add(entry)
    const kept = Math.min(entry, 5)
    assert.deepEqual(recent.list(), Array.from({ length: kept }, (_, at) => entry - kept + 1 + at))
  }
})

test('keeps one if the size is one', () => {
  const recent = new Recent<string>(1)
  for (const entry of ['a', 'b']) recent.add(entry)
  assert.deepEqual(recent.list(), ['b'])
})
