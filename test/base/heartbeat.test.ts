import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Heartbeat } from '../../lib/base/heartbeat.ts'
import { until } from '../support/until.ts'

test('calls all members with one interval, as long as there are any', async () => {
  const heartbeat = new Heartbeat(1)
  const beats = { a: 0, b: 0 }
  const a = { beat: () => void (beats.a += 1) }
  const b = { beat: () => void (beats.b += 1) }
  heartbeat.add(a)
  heartbeat.add(b)
  heartbeat.add(a)
  await until(() => beats.b >= 2)
  assert.equal(beats.a, beats.b)
  heartbeat.remove(a)
  const before = { ...beats }
  await until(() => beats.b > before.b)
  assert.deepEqual([beats.a, heartbeat.running], [before.a, true])
  heartbeat.remove(b)
  heartbeat.remove(b)
  assert.equal(heartbeat.running, false)
})
