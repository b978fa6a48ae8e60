/**
 * What the session stores of a server counted since its start, one after the other.
 *
 * Surprise: a store that takes the place of another is known by a number that has fallen. What the old one counted
 * after the last reading is not in the sum.
 */
import type { StoreCounts } from '../session/store.ts'

const none: StoreCounts = { evicted: 0, damaged: 0 }

/**
 * Makes a reading of which no number goes back.
 * @param read what the store in use counted
 */
export function createSessionTotals(read: () => StoreCounts): () => StoreCounts {
  let earlier = none
  let last = none
  return () => {
    const { evicted, damaged } = read()
    if (evicted < last.evicted || damaged < last.damaged) earlier = sum(earlier, last)
    last = { evicted, damaged }
    return sum(earlier, last)
  }
}

function sum(a: StoreCounts, b: StoreCounts): StoreCounts {
  return { evicted: a.evicted + b.evicted, damaged: a.damaged + b.damaged }
}
