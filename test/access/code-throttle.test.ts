import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCodeThrottle } from '../../lib/access/code-throttle.ts'

/** A throttle with a clock and timers that a test controls. */
function held() {
  const waits: number[] = []
  const clock = { ms: 1000 }
  const wait = (ms: number): Promise<void> => {
    waits.push(ms)
    return Promise.resolve()
  }
  return { throttle: createCodeThrottle({ now: () => clock.ms, wait }), clock, waits }
}

/** Begins and fails. */
async function fail({ throttle }: ReturnType<typeof held>, times: number): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    assert.equal(throttle.begin(false), 0, `attempt ${time + 1}`)
    await throttle.failed()
  }
}

test('answers three wrong codes at once, and each further one a second late', async () => {
  const all = held()
  await fail(all, 3)
  assert.deepEqual(all.waits, [])
  await fail(all, 2)
  assert.deepEqual(all.waits, [1000, 1000])
})

test('refuses further attempts after ten wrong codes within ten minutes', async () => {
  const all = held()
  await fail(all, 9)
  all.clock.ms += 60_000
  await fail(all, 1)
  for (let time = 0; time < 90; time += 1) assert.equal(all.throttle.begin(false), 540)
  all.clock.ms += 539_999
  assert.equal(all.throttle.begin(false), 1)
  all.clock.ms += 1
  await fail(all, 9)
  assert.ok(Number(all.throttle.begin(false)) > 0)
})

test('counts attempts that have not ended yet', () => {
  const { throttle } = held()
  const begun = Array.from({ length: 100 }, () => throttle.begin(false))
  assert.deepEqual(begun.filter((seconds) => seconds === 0).length, 10)
})

test('never refuses a client that is known', async () => {
  const all = held()
  await fail(all, 10)
  assert.ok(Number(all.throttle.begin(false)) > 0)
  assert.equal(all.throttle.begin(true), 0)
})

test('a right code sets the count back', async () => {
  const all = held()
  await fail(all, 9)
  all.throttle.succeeded()
  await fail(all, 10)
  assert.ok(Number(all.throttle.begin(false)) > 0)
})

test('a ticket is used once while it could be valid, and at most 10,000 are remembered', () => {
  const { throttle, clock } = held()
  assert.equal(throttle.useTicket('a'), true)
  clock.ms += 299_999
  assert.equal(throttle.useTicket('a'), false)
  for (let at = 0; at < 9_999; at += 1) assert.equal(throttle.useTicket(String(at)), true)
  assert.equal(throttle.useTicket('a'), false)
  assert.equal(throttle.useTicket('one more'), true)
  assert.equal(throttle.useTicket('0'), false)
  clock.ms += 600_000
  assert.equal(throttle.useTicket('0'), true)
})
