import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Pace } from './pace.ts'

const never = new AbortController().signal

test('turns come no faster than the pace', async () => {
  const pace = new Pace(100)
  const begin = performance.now()
  await Promise.all(Array.from({ length: 6 }, () => pace.turn(never)))
  assert.ok(performance.now() - begin > 49) // Five intervals, as far as numbers are exact.
})

test('who waits for a turn is let go when the signal aborts', async () => {
  const pace = new Pace(0.001)
  const over = new AbortController()
  await pace.turn(over.signal)
  const turn = pace.turn(over.signal)
  over.abort()
  await turn
})

test('without a pace nobody waits', async () => {
  const pace = new Pace(undefined)
  for (let turns = 0; turns < 1000; turns += 1) await pace.turn(AbortSignal.abort())
})
