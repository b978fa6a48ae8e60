import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSessionTotals } from '../../lib/panel/session-totals.ts'

/** What the store in use counted at each reading, and what the totals are then. */
const rows = [
  ['nothing', [[0, 0]], [0, 0]],
  ['one store', [[1, 0], [1, 2], [5, 2]], [5, 2]],
  ['a store that came after it', [[5, 2], [0, 0]], [5, 2]],
  ['what that one counted', [[5, 2], [0, 0], [1, 3]], [6, 5]],
  ['a store that has counted more in one, and less in the other', [[5, 2], [9, 1]], [14, 3]],
  ['a store that has counted as much as the one before', [[5, 2], [1, 0], [5, 2]], [10, 4]],
  ['three stores', [[5, 2], [4, 2], [3, 1]], [12, 5]],
] as const

for (const [what, readings, expected] of rows) {
  test(`has the sum of ${what}`, () => {
    let inUse = { evicted: 0, damaged: 0 }
    const totals = createSessionTotals(() => inUse)
    let before = totals()
    for (const [evicted, damaged] of readings) {
      inUse = { evicted, damaged }
      const now = totals()
      assert.ok(now.evicted >= before.evicted && now.damaged >= before.damaged)
      assert.deepEqual(totals(), now)
      before = now
    }
    assert.deepEqual([before.evicted, before.damaged], expected)
  })
}
