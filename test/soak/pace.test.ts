import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Pace } from './pace.ts'

const never = new AbortController().signal

test('turns come in the order in which they were asked for, no faster than the pace', async () => {
  const pace = new Pace(100)
  const begin = performance.now()
  const taken: number[] = []
  const ask = async (number: number): Promise<void> => {
    await pace.turn(never)
    taken.push(number)
  }
  await Promise.all([0, 1, 2, 3, 4, 5].map(ask))
  assert.deepEqual(taken, [0, 1, 2, 3, 4, 5])
  assert.ok(performance.now() - begin > 45) // Five intervals, less what a timer may round off.
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
