import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PeerHeartbeat } from '../../lib/websocket/connection.ts'
import { Echo, startWebSocketServer } from './peer.ts'

function beat(heartbeat: PeerHeartbeat, times: number): void {
  for (let count = 0; count < times; count += 1) heartbeat.beat()
}

test('refuses times that are not above 0', () => {
  for (const options of [{ silenceMs: 0 }, { closeTimeoutMs: 0 }, { silenceMs: -1 }, { silenceMs: Number.NaN }]) {
    assert.throws(() => new PeerHeartbeat(options), /^RangeError: A heartbeat needs times above 0: /)
  }
})

test('pings after 30 s and cuts after 60, by default', () => {
  const { silentBeats, closeBeats } = new PeerHeartbeat()
  assert.deepEqual([silentBeats, closeBeats], [60, 4])
})

test('beats as long as there is somebody to look after', async () => {
  const heartbeat = new PeerHeartbeat({ silenceMs: 100, closeTimeoutMs: 4 })
  const seen = await new Promise<number>((resolve) => {
    const one = { beat: (now: number) => now === 3 && (heartbeat.remove(one), resolve(now)), close: () => {} }
    heartbeat.add(one)
    setImmediate(function wait() {
      if (heartbeat.size > 0) setImmediate(wait) // The heartbeat itself keeps no process alive.
    })
  })
  assert.equal(seen, 3)
  assert.equal(heartbeat.size, 0)
  await new Promise((resolve) => setTimeout(resolve, 10))
  assert.equal(heartbeat.now, 3)
})

test('pings who is silent, once, and cuts who stays so', async (t) => {
  const heartbeat = new PeerHeartbeat({ silenceMs: 10_000_000, closeTimeoutMs: 4_000_000 })
  assert.equal(heartbeat.silentBeats, 10)
  const echo = new Echo()
  const server = await startWebSocketServer(t, echo, { heartbeat })
  const client = await server.connect()
  beat(heartbeat, 9)
  client.send({ opcode: 1, payload: 'a' })
  assert.equal((await client.next())?.opcode, 1)
  beat(heartbeat, 9)
  client.send({ opcode: 1, payload: 'b' })
  assert.equal((await client.next())?.payload.toString(), 'b')
  beat(heartbeat, 10)
  assert.deepEqual(await client.next(), { final: true, opcode: 9, payload: Buffer.alloc(0) })
  client.send({ opcode: 10 }, { opcode: 1, payload: 'c' })
  assert.equal((await client.next())?.payload.toString(), 'c')
  beat(heartbeat, 10)
  assert.equal((await client.next())?.opcode, 9)
  beat(heartbeat, 9)
  client.send({ opcode: 1, payload: 'just in time' })
  assert.equal((await client.next())?.payload.toString(), 'just in time')
  beat(heartbeat, 19)
  assert.equal((await client.next())?.opcode, 9)
  assert.deepEqual(echo.endings, [])
  beat(heartbeat, 1)
  assert.deepEqual(await client.rest(), [])
  assert.deepEqual(await echo.ending(), [1006, ''])
  assert.equal(server.told.slow, 0)
})

test('pings and cuts by its own timer', async (t) => {
  const echo = new Echo()
  const heartbeat = new PeerHeartbeat({ silenceMs: 40, closeTimeoutMs: 40 })
  const server = await startWebSocketServer(t, echo, { heartbeat })
  const client = await server.connect()
  assert.deepEqual((await client.rest()).map(({ opcode }) => opcode), [9])
  assert.deepEqual(await echo.ending(), [1006, ''])
})

test('cuts nobody whose pongs are not read yet, since open is pending', async (t) => {
  const heartbeat = new PeerHeartbeat({ silenceMs: 10_000_000, closeTimeoutMs: 4_000_000 })
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
  beat(heartbeat, 35)
  for (let count = 0; count < 3; count += 1) assert.equal((await client.next())?.opcode, 9)
  client.send({ opcode: 10 }, { opcode: 1, payload: 'here' })
  go()
  assert.equal((await client.next())?.payload.toString(), 'here')
})
