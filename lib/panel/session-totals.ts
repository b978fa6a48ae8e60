/**
 * Counters of the session stores of a server since its start, where a reload can exchange the store.
 *
 * A new store is recognized by a number that has decreased. Events of the old store after the last reading are lost.
 */
import type { StoreCounts } from '../session/store.ts'

const none: StoreCounts = { evicted: 0, damaged: 0 }

/**
 * Makes a function that reads the counters; they never decrease.
 * @param read returns the counters of the present store
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
