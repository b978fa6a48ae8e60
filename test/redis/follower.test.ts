// How a process follows a channel of the shared engine. Against a real engine: test/external/redis-broker.test.ts.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Calls } from '../../lib/events/calls.ts'
import { Follower } from '../../lib/redis/follower.ts'
import { until } from '../support/until.ts'

it('a follower that was away catches up with 200,000 events', async () => {
  const missed = Array.from({ length: 200_000 }, (_, at) => ({ id: at + 1, text: '1' }))
  const heard: number[] = []
  const follower = new Follower({
    calls: new Calls(),
    deliver: ({ id }) => void heard.push(id),
    read: async () => ({ events: missed, lastId: missed.length, gap: false }),
    onGap: () => assert.fail('nothing is lost'),
    onDamaged: () => assert.fail('nothing is damaged'),
  })
  follower.begin(0)
  follower.onLost()
  follower.onReconnected()
  await until(() => heard.length > 0)
  assert.deepEqual(heard, missed.map(({ id }) => id))
  follower.close()
})
