import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLoginThrottle } from '../../lib/access/throttle.ts'

test('waits a real second by default', async () => {
  const throttle = createLoginThrottle()
  for (let i = 0; i < 11; i++) throttle.begin('a')
  const start = performance.now()
  assert.equal(await throttle.failed('a'), 0)
  assert.ok(performance.now() - start >= 990)
})
