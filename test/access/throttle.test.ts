import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLoginThrottle } from '../../lib/access/throttle.ts'

/** A throttle with a clock and timers that a test controls. */
function held() {
  const waits: (() => void)[] = []
  const clock = { ms: 1000 }
  const throttle = createLoginThrottle({
    now: () => clock.ms,
    wait: (ms) => {
      assert.equal(ms, 1000)
      return new Promise<void>((resolve) => waits.push(resolve))
    },
  })
  return { throttle, clock, waits }
}

/** Begins and fails, without waiting. */
async function fail({ throttle, waits }: ReturnType<typeof held>, address: string, times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    assert.equal(throttle.begin(address), 0, `attempt ${i + 1}`)
    const answer = throttle.failed(address)
    waits.splice(0).forEach((resolve) => resolve())
    await answer
  }
}

test('answers ten failures at once, and the 11th a second later', async () => {
  const { throttle, waits } = held()
  for (let i = 0; i < 10; i++) {
    assert.equal(throttle.begin('a'), 0)
    assert.equal(await throttle.failed('a'), 0)
  }
  assert.equal(throttle.begin('a'), 0)
  const eleventh = throttle.failed('a')
  assert.equal(waits.length, 1)
  waits[0]?.()
  assert.equal(await eleventh, 0)
})

test('counts each address separately', async () => {
  const all = held()
  await fail(all, 'a', 20)
  assert.equal(all.throttle.begin('b'), 0)
  assert.equal(await all.throttle.failed('b'), 0)
})

test('after 100 failures there is no attempt until the first of them is a minute old', async () => {
  const all = held()
  await fail(all, 'a', 1)
  all.clock.ms += 20_500
  await fail(all, 'a', 99)
  assert.equal(all.throttle.begin('a'), 40)
  assert.equal(all.throttle.begin('b'), 0)
  all.clock.ms += 39_499
  assert.equal(all.throttle.begin('a'), 1)
  all.clock.ms += 1
  assert.equal(all.throttle.begin('a'), 0)
  assert.equal(all.throttle.begin('a'), 21, 'only one slot was free')
})

test('a failure counts for a minute', async () => {
  const all = held()
  await fail(all, 'a', 10)
  all.clock.ms += 60_000
  assert.equal(all.throttle.begin('a'), 0)
  assert.equal(await all.throttle.failed('a'), 0)
  assert.equal(all.waits.length, 0)
})

test('the correct password resets the count', async () => {
  const all = held()
  await fail(all, 'a', 99)
  assert.equal(all.throttle.begin('a'), 0)
  all.throttle.succeeded('a')
  assert.equal(all.throttle.begin('a'), 0)
  assert.equal(await all.throttle.failed('a'), 0)
})

test('concurrent attempts count before they have failed', () => {
  const { throttle } = held()
  const begun = Array.from({ length: 150 }, () => throttle.begin('a'))
  assert.equal(begun.filter((seconds) => seconds === 0).length, 100)
})

test('at most 50 responses wait; a freed slot is used again', async () => {
  const { throttle, waits } = held()
  for (let i = 0; i < 11; i++) throttle.begin('a')
  const waiting = Array.from({ length: 50 }, () => throttle.failed('a'))
  assert.equal(await throttle.failed('a'), 1)
  waits[0]?.()
  assert.equal(await waiting[0], 0)
  void throttle.failed('a')
  assert.equal(waits.length, 51)
  assert.equal(await throttle.failed('a'), 1)
})

test('an IPv6 client has one count for all addresses of its network', () => {
  const { throttle } = held()
  for (let i = 0; i < 100; i++) assert.equal(throttle.begin(`2001:db8::${(i + 1).toString(16)}`), 0)
  assert.equal(throttle.begin('2001:db8:0:0:5:6:7:8'), 60)
  assert.equal(throttle.begin('2001:db8:0:1::1'), 0)
  assert.equal(throttle.begin('::1'), 0)
  assert.equal(throttle.begin('fe80::'), 0)
})

test('forgets the address with the oldest last attempt beyond 10,000 addresses', () => {
  const { throttle } = held()
  for (let i = 0; i < 100; i++) throttle.begin('first')
  for (let i = 0; i < 100; i++) throttle.begin('second')
  for (let i = 0; i < 9998; i++) throttle.begin(`other ${i}`)
  assert.equal(throttle.begin('first'), 60)
  throttle.begin('one more')
  assert.equal(throttle.begin('first'), 0, 'forgotten')
})

test('from 100 failures of all addresses each is answered a second later, and while 50 wait there is no attempt', async () => {
  const { throttle, clock, waits } = held()
  for (let i = 1; i < 100; i++) {
    assert.equal(throttle.begin(`10.0.0.${i}`), 0)
    assert.equal(await throttle.failed(`10.0.0.${i}`), 0)
  }
  const later = Array.from({ length: 50 }, (_, i) => {
    assert.equal(throttle.begin(`10.0.1.${i}`), 0)
    return throttle.failed(`10.0.1.${i}`)
  })
  assert.equal(waits.length, 50)
  assert.equal(throttle.begin('10.0.2.1'), 1, 'no password is checked')
  assert.equal(throttle.begin('10.0.2.1', true), 0, 'except for a client with a valid cookie')
  waits[0]?.()
  assert.equal(await later[0], 0)
  assert.equal(throttle.begin('10.0.2.2'), 0, 'the correct password is accepted')
  throttle.succeeded('10.0.2.2')
  clock.ms += 60_000
  assert.equal(throttle.begin('10.0.3.1'), 0)
  assert.equal(await throttle.failed('10.0.3.1'), 0, 'a minute later it is over')
})

test('a client with a valid cookie may try at any count', async () => {
  const all = held()
  await fail(all, 'a', 100)
  assert.deepEqual([all.throttle.begin('a'), all.throttle.begin('a', true)], [60, 0])
})

test('successful logins do not count as failures', async () => {
  const { throttle, waits } = held()
  for (let i = 0; i < 200; i++) {
    throttle.begin(`10.0.0.${i}`)
    throttle.succeeded(`10.0.0.${i}`)
  }
  assert.equal(throttle.begin('a'), 0)
  assert.equal(await throttle.failed('a'), 0)
  assert.equal(waits.length, 0)
})
