import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Heartbeat } from '../../lib/base/heartbeat.ts'
import { closeBeats, type WebSocketConnection } from '../../lib/websocket/connection.ts'
import { until } from '../support/until.ts'
import { clientFrame, closing } from './frames.ts'
import { Echo, startWebSocketServer, type TestServer } from './peer.ts'

type Ws = WebSocketConnection<string>

/** A heartbeat that only the test triggers. */
function stillHeartbeat(): Heartbeat {
  return new Heartbeat(500_000)
}

function beat(heartbeat: Heartbeat, times: number): void {
  for (let count = 0; count < times; count += 1) heartbeat.beat()
}

function only({ connections }: TestServer): Ws {
  assert.equal(connections.length, 1)
  return connections[0] as Ws
}

for (const [payload, ending, answer] of [
  [Buffer.alloc(0), [1005, ''], Buffer.alloc(0)],
  [closing(1000), [1000, ''], closing(1000)],
  [closing(1001, 'going away'), [1001, 'going away'], closing(1001)],
  [closing(1014), [1014, ''], closing(1014)],
  [closing(4999, 'ü'.repeat(61)), [4999, 'ü'.repeat(61)], closing(4999)],
] as const) {
  test(`answers a close frame with ${ending[0]} and ends the connection first`, async (t) => {
    const echo = new Echo()
    const server = await startWebSocketServer(t, echo)
    const client = await server.connect()
    client.send({ opcode: 1, payload: 'last' }, { opcode: 8, payload }, { opcode: 1, payload: 'late' })
    const frames = await client.rest()
    assert.deepEqual(frames.map(({ opcode }) => opcode), [1, 8])
    assert.deepEqual(frames[1]?.payload, answer)
    assert.deepEqual(await echo.ending(), ending)
    assert.deepEqual(echo.messages, ['last'])
    assert.deepEqual(server.reported, { errors: [], violations: [], closed: [ending[0]], slow: 0 })
    assert.equal(server.heartbeat.size, 0)
  })
}

test('closes with code and reason, and ends when the peer has answered', async (t) => {
  const echo = new Echo()
  const server = await startWebSocketServer(t, echo)
  const client = await server.connect()
  const ws = only(server)
  ws.send('before')
  ws.close(4000, 'enough')
  assert.equal(ws.isOpen, false)
  assert.equal(ws.send('after'), false)
  ws.close(4001)
  assert.equal((await client.next())?.payload.toString(), 'before')
  assert.deepEqual((await client.next())?.payload, closing(4000, 'enough'))
  client.send({ opcode: 1, payload: 'not given out' }, { opcode: 9 }, { opcode: 8, payload: closing(4000) })
  assert.deepEqual(await client.rest(), [])
  assert.deepEqual(await echo.ending(), [4000, ''])
  assert.deepEqual(echo.messages, [])
  ws.close(4002)
  assert.equal(ws.send('later still'), false)
  assert.deepEqual(echo.endings, [[4000, '']])
})

test('closes with 1000 by default', async (t) => {
  const server = await startWebSocketServer(t, {})
  const client = await server.connect()
  only(server).close()
  assert.deepEqual((await client.next())?.payload, closing(1000))
})

test('refuses invalid codes and reasons in any state', async (t) => {
  const server = await startWebSocketServer(t, {})
  const client = await server.connect()
  const ws = only(server)
  for (const code of [0, 999, 1004, 1005, 1006, 1015, 5000, 1000.5]) {
    assert.throws(() => ws.close(code), RangeError)
  }
  assert.throws(() => ws.close(1000, 'x'.repeat(124)), RangeError)
  assert.equal(ws.isOpen, true)
  ws.terminate()
  assert.throws(() => ws.close(1006), RangeError)
  client.socket.destroy()
})

test('ends with 1006 when the client disconnects without a Close frame', async (t) => {
  for (const leave of ['destroy', 'resetAndDestroy', 'end'] as const) {
    const echo = new Echo()
    const server = await startWebSocketServer(t, echo)
    const client = await server.connect(clientFrame({ opcode: 1, payload: 'x' }))
    await client.next()
    client.socket[leave]()
    assert.deepEqual(await echo.ending(), [1006, ''], leave)
    assert.equal(only(server).isOpen, false)
    assert.deepEqual(server.reported, { errors: [], violations: [], closed: [1006], slow: 0 })
  }
})

test('ends with 1006 when the client disconnects after half a message', async (t) => {
  const echo = new Echo()
  const server = await startWebSocketServer(t, echo)
  const client = await server.connect()
  client.socket.end(clientFrame({ opcode: 2, payload: Buffer.alloc(70_000) }).subarray(0, 60_000))
  assert.deepEqual(await echo.ending(), [1006, ''])
  assert.deepEqual(echo.messages, [])
})

test('terminates at once with 1006', async (t) => {
  const echo = new Echo()
  const handlers = { message: (ws: Ws) => ws.terminate(), close: echo.close.bind(echo) }
  const server = await startWebSocketServer(t, handlers)
  const client = await server.connect()
  client.send({ opcode: 1 }, { opcode: 1 })
  assert.deepEqual(await client.rest(), [])
  assert.deepEqual(await echo.ending(), [1006, ''])
})

test('cuts a peer that does not answer a close frame within the close time-out', async (t) => {
  const echo = new Echo()
  const heartbeat = stillHeartbeat()
  const server = await startWebSocketServer(t, echo, { heartbeat })
  const client = await server.connect()
  only(server).close(1000)
  await client.next()
  beat(heartbeat, closeBeats - 1)
  client.send({ opcode: 9 }, { opcode: 1, payload: 'still here, not closing' })
  await new Promise(setImmediate)
  assert.deepEqual(echo.endings, [])
  beat(heartbeat, 1)
  assert.deepEqual(await echo.ending(), [1006, ''])
})

test('cuts a peer that answers but keeps the connection, with its code', async (t) => {
  const echo = new Echo()
  const heartbeat = stillHeartbeat()
  const server = await startWebSocketServer(t, echo, { heartbeat })
  const client = await server.connect()
  client.socket.allowHalfOpen = true
  client.send({ opcode: 8, payload: closing(1000) })
  assert.equal((await client.rest()).length, 1)
  await new Promise(setImmediate)
  assert.deepEqual(echo.endings, [])
  beat(heartbeat, closeBeats)
  assert.deepEqual(await echo.ending(), [1000, ''])
  client.socket.destroy()
})

test('delivers the reason to a refused client that keeps sending', async (t) => {
  const echo = new Echo()
  const server = await startWebSocketServer(t, echo, { maxMessageBytes: 1000 })
  const client = await server.connect()
  client.socket.allowHalfOpen = true
  client.socket.write(clientFrame({ opcode: 2, payload: Buffer.alloc(8 << 20) }))
  const frames = await client.rest()
  assert.deepEqual(frames.map(({ payload }) => payload.readUInt16BE()), [1009])
  client.socket.end()
  assert.deepEqual((await echo.ending())?.[0], 1009)
})

test('keeps its code when the peer breaks the protocol while closing', async (t) => {
  const echo = new Echo()
  const server = await startWebSocketServer(t, echo)
  const client = await server.connect()
  only(server).close(4000)
  await client.next()
  client.send({ opcode: 3 })
  assert.deepEqual(await client.rest(), [])
  assert.deepEqual(await echo.ending(), [1006, ''])
  assert.deepEqual(server.reported.violations.map(({ code }) => code), [1002])
})

test('closes 100 connections with 1001 when the server stops', async (t) => {
  const server = await startWebSocketServer(t, {})
  const clients = await Promise.all(Array.from({ length: 100 }, () => server.connect()))
  assert.equal(server.heartbeat.size, 100)
  for (const ws of server.connections) ws.close(1001, 'The server stops')
  for (const client of clients) {
    assert.deepEqual((await client.next())?.payload, closing(1001, 'The server stops'))
    client.send({ opcode: 8, payload: closing(1001) })
  }
  await Promise.all(clients.map(({ socket }) => (socket.closed ? undefined : once(socket, 'close'))))
  await until(() => server.reported.closed.length === 100)
  assert.ok(server.reported.closed.every((code) => code === 1001))
  assert.equal(server.heartbeat.size, 0)
})

test('lets the application close, send and terminate from within its handlers', async (t) => {
  const echo = new Echo()
  const server = await startWebSocketServer(t, {
    message: (ws) => {
      ws.close(4000)
      ws.terminate()
      ws.terminate()
      ws.close(4001)
    },
    close: (ws, code, reason) => {
      ws.close()
      ws.terminate()
      assert.equal(ws.send('x'), false)
      echo.close(ws, code, reason)
    },
  })
  const client = await server.connect()
  client.send({ opcode: 1 })
  assert.deepEqual(await echo.ending(), [1006, ''])
  await client.rest()
  assert.deepEqual(server.reported, { errors: [], violations: [], closed: [1006], slow: 0 })
})
