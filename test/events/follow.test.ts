// `ws.follow` while the broker goes away and comes back. Over real sockets: test/live/follow.test.ts.
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { follow, type Sink } from '../../lib/events/follow.ts'
import { LocalBroker } from '../../lib/events/local-broker.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { DelayedBroker, turns } from './delayed-broker.ts'
import { eventServer } from './event-server.ts'

const away = new HttpError(503, 'shared_away', 'the engine is away')

async function begin(t: TestContext) {
  t.after(() => t.mock.timers.reset()) // Before the server is stopped.
  const broker = new DelayedBroker(new LocalBroker())
  const { events, logged } = await eventServer(t, {}, { broker })
  const channel = events.channel('c')
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const sent: string[] = []
  const drains: (() => void)[] = []
  const client = { bufferedAmount: 0 }
  const sink: Sink = {
    send: (text) => sent.push(text) > 0,
    get bufferedAmount() {
      return client.bufferedAmount
    },
    drained: () => new Promise((resolve) => void drains.push(resolve)),
  }
  const tick = async (ms: number): Promise<void> => {
    t.mock.timers.tick(ms)
    for (let times = 0; times < 10; times++) await turns()
  }
  return { broker, channel, logged, sent, client, drains, sink, tick }
}

describe('a WebSocket that follows a channel', () => {
  for (const [how, leave] of [
    ['is cut off', (broker: DelayedBroker) => broker.cutOff(away)],
    ['fails', (broker: DelayedBroker) => void (broker.broken = true)],
  ] as const) {
    it(`begins with the next event, not the oldest, if the broker ${how} as it begins`, async (t) => {
      const { broker, channel, sent, sink, tick } = await begin(t)
      await channel.publish('old')
      leave(broker)
      const end = follow(channel, undefined, sink)
      await tick(0)
      broker.broken = false
      broker.cutOff(undefined)
      await tick(1000)
      assert.deepEqual(sent, [])
      const id = await channel.publish('new')
      await tick(0)
      assert.deepEqual(sent, [`{"event":"message","id":${id},"data":"new"}`])
      end()
    })
  }

  it('reports the gap once the broker is back', async (t) => {
    const { broker, channel, sent, sink, tick } = await begin(t)
    const id = await channel.publish('old')
    broker.cutOff(away)
    const end = follow(channel, 'no id', sink)
    await tick(1000)
    assert.deepEqual(sent, [])
    broker.cutOff(undefined)
    await tick(1000)
    assert.deepEqual(sent, [`{"event":"gap","data":{"last_id":${id}}}`])
    end()
  })

  it('gets each event once if it read slowly while the broker was away', async (t) => {
    const { broker, channel, sent, client, drains, sink, tick } = await begin(t)
    const ids: number[] = []
    const filling = 'x'.repeat(70_000) // One piece each.
    for (let count = 0; count < 5; count++) ids.push(await channel.publish(filling))
    client.bufferedAmount = 100_000
    const end = follow(channel, (ids[0] as number) - 1, sink)
    await tick(0)
    assert.equal(sent.length, 1, 'it waits for the client')
    broker.cutOff(away)
    broker.cutOff(undefined)
    client.bufferedAmount = 0
    await tick(1000)
    for (const drained of drains) drained()
    await tick(0)
    assert.deepEqual(sent, ids.map((id) => `{"event":"message","id":${id},"data":"${filling}"}`))
    end()
  })

  it('is not kept if it ends before the broker has returned the newest id', async (t) => {
    const { channel, sink, tick } = await begin(t)
    const end = follow(channel, undefined, sink)
    end()
    await tick(0)
    assert.equal(channel.isIdle, true)
  })
})
