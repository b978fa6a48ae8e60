import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Heartbeat } from '../../lib/base/heartbeat.ts'
import { beatMs, closeBeats, silentBeats } from '../../lib/websocket/connection.ts'
import { Echo, startWebSocketServer } from './peer.ts'

function beat(heartbeat: Heartbeat, times: number): void {
  for (let count = 0; count < times; count += 1) heartbeat.beat()
}

test('pings after 30 s and cuts after 60; closing takes 2 s at most', () => {
  assert.deepEqual([silentBeats * beatMs, closeBeats * beatMs], [30_000, 2000])
})

test('pings a silent peer once, and cuts it when it stays silent', async (t) => {
  const heartbeat = new Heartbeat(1_000_000)
  const echo = new Echo()
  const server = await startWebSocketServer(t, echo, { heartbeat })
  const client = await server.connect()
  beat(heartbeat, silentBeats - 1)
  client.send({ opcode: 1, payload: 'a' })
  assert.equal((await client.next())?.opcode, 1)
  beat(heartbeat, silentBeats - 1)
  client.send({ opcode: 1, payload: 'b' })
  assert.equal((await client.next())?.payload.toString(), 'b')
  beat(heartbeat, silentBeats)
  assert.deepEqual(await client.next(), { final: true, opcode: 9, payload: Buffer.alloc(0) })
  client.send({ opcode: 10 }, { opcode: 1, payload: 'c' })
  assert.equal((await client.next())?.payload.toString(), 'c')
  beat(heartbeat, silentBeats)
  assert.equal((await client.next())?.opcode, 9)
  beat(heartbeat, silentBeats - 1)
  client.send({ opcode: 1, payload: 'just in time' })
  assert.equal((await client.next())?.payload.toString(), 'just in time')
  beat(heartbeat, 2 * silentBeats - 1)
  assert.equal((await client.next())?.opcode, 9)
  assert.deepEqual(echo.endings, [])
  beat(heartbeat, 1)
  assert.deepEqual(await client.rest(), [])
  assert.deepEqual(await echo.ending(), [1006, ''])
  assert.equal(server.reported.slow, 0)
})

test('pings and cuts by its own timer', async (t) => {
  const echo = new Echo()
  const heartbeat = new Heartbeat(1)
  const server = await startWebSocketServer(t, echo, { heartbeat })
  const client = await server.connect()
  assert.deepEqual((await client.rest()).map(({ opcode }) => opcode), [9])
  assert.deepEqual(await echo.ending(), [1006, ''])
})

test('does not cut a peer whose pongs are unread because open is pending', async (t) => {
  const heartbeat = new Heartbeat(1_000_000)
  let go = (): void => {}
  const echo = new Echo()
  const server = await startWebSocketServer(
    t,
    {
      open: () => new Promise<void>((resolve) => (go = resolve)),
      message: (ws, data) => echo.message(ws, data),
    },
    { heartbeat },
  )
  const client = await server.connect()
  beat(heartbeat, 3.5 * silentBeats)
  for (let count = 0; count < 3; count += 1) assert.equal((await client.next())?.opcode, 9)
  client.send({ opcode: 10 }, { opcode: 1, payload: 'here' })
  go()
  assert.equal((await client.next())?.payload.toString(), 'here')
})
