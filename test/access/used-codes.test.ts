import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  areUsedCodes,
  fingerprintOf,
  mergedCodes,
  usedRecoveryCodes,
  withUsed,
  type UsedCodes,
} from '../../lib/access/used-codes.ts'

/** Uses a code that is good. */
function used(codes: UsedCodes, secret: string, step: number): UsedCodes {
  return withUsed(codes, secret, { step }) ?? assert.fail(`${step} was used`)
}

test('a code is good once, and not after a later one', () => {
  const codes = used({}, 'one', 100)
  for (const step of [0, 99, 100]) assert.equal(withUsed(codes, 'one', { step }), undefined, String(step))
  assert.notEqual(withUsed(codes, 'one', { step: 101 }), undefined)
  assert.notEqual(withUsed({}, 'one', { step: 0 }), undefined)
})

test('a new secret begins anew, also after a clock was ahead', () => {
  const codes = used({}, 'old', 9_000_000)
  assert.notEqual(withUsed(codes, 'new', { step: 1 }), undefined)
  assert.equal(withUsed(used(codes, 'new', 1), 'old', { step: 9_000_000 }), undefined)
})

test('a recovery code is good once, and does not end codes', () => {
  const codes = withUsed(used({}, 'one', 100), 'one', { recoveryHash: 'a' }) as UsedCodes
  assert.equal(withUsed(codes, 'one', { recoveryHash: 'a' }), undefined)
  assert.equal(withUsed(codes, 'one', { step: 100 }), undefined)
  const both = withUsed(codes, 'one', { recoveryHash: 'b' }) as UsedCodes
  assert.deepEqual(usedRecoveryCodes(used(both, 'one', 101), 'one'), ['a', 'b'])
  assert.deepEqual(usedRecoveryCodes(both, 'other'), [])
})

test('keeps the codes of the last eight secrets', () => {
  let codes: UsedCodes = {}
  for (let at = 0; at < 20; at += 1) codes = used(codes, `secret ${at}`, at)
  assert.deepEqual(Object.keys(codes), Array.from({ length: 8 }, (_, at) => fingerprintOf(`secret ${at + 12}`)))
})

test('merges what two places know', () => {
  const here = withUsed(used({}, 'one', 5), 'one', { recoveryHash: 'a' }) as UsedCodes
  const there = withUsed(used(used({}, 'one', 7), 'two', 1), 'one', { recoveryHash: 'b' }) as UsedCodes
  for (const merged of [mergedCodes(here, there), mergedCodes(there, here)]) {
    assert.equal(merged[fingerprintOf('one')]?.step, 7)
    assert.deepEqual([...usedRecoveryCodes(merged, 'one')].sort(), ['a', 'b'])
    assert.equal(withUsed(merged, 'two', { step: 1 }), undefined)
  }
})

test('recognizes used codes', () => {
  for (const good of [{}, used({}, 'one', 5), { x: { step: -1, recovery: [] } }]) assert.equal(areUsedCodes(good), true)
  for (const wrong of [
    null, [], 'x', 5, { x: 5 }, { x: {} }, { x: { step: '5', recovery: [] } }, { x: { step: 5, recovery: [5] } },
    { x: { step: 0.5, recovery: [] } }, { x: { step: 5, recovery: 'a' } },
  ]) {
    assert.equal(areUsedCodes(wrong), false, JSON.stringify(wrong))
  }
})
