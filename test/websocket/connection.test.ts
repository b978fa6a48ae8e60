import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { Heartbeat } from '../../lib/base/heartbeat.ts'
import { beatMs, WebSocketConnection } from '../../lib/websocket/connection.ts'
import { until } from '../support/until.ts'
import { clientFrame, closing, type FrameFields } from './frames.ts'
import { Echo, startWebSocketServer } from './peer.ts'

type Ws = WebSocketConnection<string>

for (const length of [0, 1, 125, 126, 4096, 4097, 65_535, 65_536, 1 << 20]) {
  test(`echoes text and binary messages of ${length} bytes`, async (t) => {
    const { connect } = await startWebSocketServer(t, new Echo())
    const client = await connect()
    const payload = Buffer.alloc(length, 'abcdefg')
    for (const opcode of [1, 2]) {
      client.send({ opcode, payload })
      const frame = await client.next()
      assert.equal(frame?.opcode, opcode)
      assert.equal(frame.final, true)
      assert.ok(payload.equals(frame.payload))
    }
  })
}

test('receives and sends a frame of 4 MiB', async (t) => {
  const payload = Buffer.alloc(4 << 20, 'abcdefg')
  const limits = { maxMessageBytes: payload.length, maxBufferedBytes: 1 << 23 }
  const { connect, reported } = await startWebSocketServer(t, new Echo(), limits)
  const client = await connect()
  client.send({ opcode: 2, payload }, { opcode: 1, payload: 'after it' })
  assert.ok(payload.equals((await client.next())?.payload as Buffer))
  assert.equal((await client.next())?.payload.toString(), 'after it')
  assert.equal(reported.slow, 0)
})

test('passes text as a string and binary as a Buffer that is not reused', async (t) => {
  const echo = new Echo()
  const { connect } = await startWebSocketServer(t, echo)
  const client = await connect()
  for (let round = 0; round < 50; round += 1) {
    client.send({ opcode: 2, payload: `kept ${round}` }, { opcode: 1, payload: 'text' })
    await client.next()
    await client.next()
  }
  assert.deepEqual(
    echo.messages,
    Array.from({ length: 50 }, (_, round) => [Buffer.from(`kept ${round}`), 'text']).flat(),
  )
})

test('reads a trickle of single bytes', async (t) => {
  const { connect } = await startWebSocketServer(t, new Echo())
  const client = await connect()
  client.socket.setNoDelay(true)
  const bytes = Buffer.concat([
    clientFrame({ opcode: 1, payload: 'grü', final: false }),
    clientFrame({ opcode: 9, payload: 'ping' }),
    clientFrame({ opcode: 0, payload: 'ße' }),
  ])
  for (const byte of bytes) {
    client.socket.write(Buffer.from([byte]))
    await new Promise(setImmediate)
  }
  assert.deepEqual(await client.next(), { final: true, opcode: 10, payload: Buffer.from('ping') })
  assert.deepEqual(await client.next(), { final: true, opcode: 1, payload: Buffer.from('grüße') })
})

test('opens with the context, then reads data that arrived with the handshake', async (t) => {
  const order: string[] = []
  const { connect } = await startWebSocketServer(t, {
    open: (ws, context) => {
      ws.state['name'] = context
      order.push(`open ${context} ${ws.isOpen}`)
      ws.send('welcome')
    },
    message: (ws, data) => {
      order.push(`message ${String(data)} ${String(ws.state['name'])}`)
      ws.send('done')
    },
  })
  const client = await connect(clientFrame({ opcode: 1, payload: 'early' }))
  assert.equal((await client.next())?.payload.toString(), 'welcome')
  assert.equal((await client.next())?.payload.toString(), 'done')
  assert.deepEqual(order, ['open /chat true', 'message early /chat'])
})

test('reads nothing before a promise of open is fulfilled', async (t) => {
  let go = (): void => {}
  const echo = new Echo()
  const { connect } = await startWebSocketServer(t, {
    open: (ws) => {
      ws.send('opening')
      return new Promise<void>((resolve) => (go = resolve))
    },
    message: (ws, data) => echo.message(ws, data),
  })
  const client = await connect(clientFrame({ opcode: 1, payload: 'a' }))
  client.send({ opcode: 1, payload: 'b' })
  await client.next()
  await new Promise(setImmediate)
  assert.deepEqual(echo.messages, [])
  go()
  assert.equal((await client.next())?.payload.toString(), 'a')
  assert.equal((await client.next())?.payload.toString(), 'b')
})

test('ends without an error when the connection is cut before open is fulfilled', async (t) => {
  let go = (): void => {}
  const echo = new Echo()
  const server = await startWebSocketServer(t, {
    open: () => new Promise<void>((resolve) => (go = resolve)),
    close: (ws, code, reason) => echo.close(ws, code, reason),
  })
  await server.connect()
  server.connections[0]?.terminate()
  assert.deepEqual(await echo.ending(), [1006, ''])
  go()
  await new Promise(setImmediate)
  assert.deepEqual(echo.endings, [[1006, '']])
  assert.deepEqual(server.reported, { errors: [], violations: [], closed: [1006], slow: 0 })
})

test('works without any handler', async (t) => {
  const { connect, reported } = await startWebSocketServer(t, {})
  const client = await connect()
  client.send({ opcode: 1, payload: 'x' }, { opcode: 8, payload: closing(1000) })
  assert.deepEqual((await client.rest()).map(({ opcode }) => opcode), [8])
  await until(() => reported.closed.length === 1)
  assert.deepEqual(reported, { errors: [], violations: [], closed: [1000], slow: 0 })
})

test('sends strings, Buffers and views, and nothing else', async (t) => {
  const numbers = new Uint16Array([1, 2, 3])
  const server = await startWebSocketServer(t, {
    open: (ws) => {
      assert.equal(ws.send('é\ud800'), true)
      assert.equal(ws.send(Buffer.from('b')), true)
      assert.equal(ws.send(numbers.subarray(1)), true)
      assert.equal(ws.send(new DataView(numbers.buffer, 0, 1)), true)
      for (const wrong of [1, null, undefined, {}, new ArrayBuffer(1)]) {
        assert.throws(() => ws.send(wrong as string), /^TypeError: Cannot send: /)
      }
    },
  })
  const client = await server.connect()
  const frames = [await client.next(), await client.next(), await client.next(), await client.next()]
  assert.deepEqual(
    frames.map((frame) => [frame?.opcode, frame?.payload.toString('hex')]),
    [[1, 'c3a9efbfbd'], [2, '62'], [2, '02000300'], [2, '01']],
  )
  assert.deepEqual(server.reported.errors, [])
})

test('sends the short messages of a turn in one write, in order with long ones', async (t) => {
  let writes = 0
  const prepare = (socket: Socket): void => {
    const write = socket.write.bind(socket) as (...parts: unknown[]) => boolean
    socket.write = ((...parts: unknown[]) => {
      writes += 1
      return write(...parts)
    }) as typeof socket.write
  }
  const server = await startWebSocketServer(t, {}, { prepare })
  const client = await server.connect()
  const ws = server.connections[0] as Ws
  writes = 0
  for (let count = 0; count < 100; count += 1) ws.send(`message ${count}`)
  assert.equal(writes, 0)
  for (let count = 0; count < 100; count += 1) {
    assert.equal((await client.next())?.payload.toString(), `message ${count}`)
  }
  assert.equal(writes, 1)
  const sent = ['a', 'b'.repeat(5000), Buffer.alloc(6000, 'c'), 'd', 'e'.repeat(4000), 'f'.repeat(70_000), 'g']
  for (const message of sent) ws.send(message)
  for (const message of sent) assert.equal((await client.next())?.payload.toString(), message.toString())
})

test('answers pings with their payload, even between fragments, and accepts pongs', async (t) => {
  const { connect } = await startWebSocketServer(t, new Echo())
  const client = await connect()
  client.send(
    { opcode: 9 },
    { opcode: 9, payload: 'a' },
    { opcode: 10, payload: 'unasked' },
    { opcode: 1, payload: '1', final: false },
    { opcode: 9, payload: 'x'.repeat(125) },
    { opcode: 0, payload: '2' },
  )
  const payloads = [await client.next(), await client.next(), await client.next(), await client.next()]
  assert.deepEqual(
    payloads.map((frame) => [frame?.opcode, frame?.payload.toString()]),
    [[10, ''], [10, 'a'], [10, 'x'.repeat(125)], [1, '12']],
  )
})

const violations: readonly (readonly [string, readonly FrameFields[], number])[] = [
  ['a reserved bit', [{ opcode: 1, reserved: 4 }], 1002],
  ['a reserved data opcode', [{ opcode: 3 }], 1002],
  ['a reserved control opcode', [{ opcode: 11 }], 1002],
  ['a frame without a mask', [{ opcode: 1, payload: 'x', mask: undefined }], 1002],
  ['a ping in fragments', [{ opcode: 9, final: false }], 1002],
  ['a ping of 126 bytes', [{ opcode: 9, payload: 'x'.repeat(126) }], 1002],
  ['a length in too long a form', [{ opcode: 1, payload: 'x', lengthBytes: 8 }], 1002],
  ['a length of 64 bits', [{ opcode: 2, length: 2n ** 63n }], 1002],
  ['a continuation of nothing', [{ opcode: 0 }], 1002],
  ['a message within another', [{ opcode: 1, final: false }, { opcode: 2 }], 1002],
  ['a text that is not UTF-8', [{ opcode: 1, payload: Buffer.from([0xc0, 0x80]) }], 1007],
  ['half a character', [{ opcode: 1, payload: Buffer.from([0xc3]) }], 1007],
  ['a message past the limit', [{ opcode: 2, length: 1001 }], 1009],
  [
    'fragments past the limit',
    [{ opcode: 2, payload: 'x'.repeat(1000), final: false }, { opcode: 0, payload: 'x' }],
    1009,
  ],
  ['a message beyond 2^53 bytes', [{ opcode: 2, length: 2n ** 62n }], 1009],
  ['a close frame of one byte', [{ opcode: 8, payload: 'x' }], 1002],
  ['a close code that may not be sent', [{ opcode: 8, payload: closing(1006) }], 1002],
  ['a close reason that is not UTF-8', [{ opcode: 8, payload: closing(1000, Buffer.from([0xff])) }], 1007],
]

for (const [what, frames, code] of violations) {
  test(`fails the connection with ${code} for ${what}, and keeps serving the others`, async (t) => {
    const echo = new Echo()
    const server = await startWebSocketServer(t, echo, { maxMessageBytes: 1000 })
    const other = await server.connect()
    const client = await server.connect()
    client.send({ opcode: 1, payload: 'good' }, ...frames, { opcode: 1, payload: 'late' })
    const [good, close, ...more] = await client.rest()
    assert.equal(good?.payload.toString(), 'good')
    assert.equal(close?.opcode, 8)
    assert.equal(close.payload.readUInt16BE(), code)
    assert.deepEqual(more, [])
    assert.deepEqual(await echo.ending(), [code, close.payload.toString('utf8', 2)])
    assert.deepEqual(server.reported.violations.map((error) => error.code), [code])
    assert.deepEqual(echo.messages, ['good'])
    other.send({ opcode: 1, payload: 'still here' })
    assert.equal((await other.next())?.payload.toString(), 'still here')
  })
}

const failure = new Error('of the handler')
const failing: readonly (readonly [string, () => unknown])[] = [
  ['throws', () => { throw failure }],
  ['returns a promise that is rejected', () => Promise.reject(failure)],
]

for (const [what, fail] of failing) {
  test(`closes with 1011 when a message handler ${what}`, async (t) => {
    const echo = new Echo()
    const seen: unknown[] = []
    const message = (_ws: Ws, data: string | Buffer): unknown => {
      seen.push(data)
      return fail()
    }
    const server = await startWebSocketServer(t, { message, close: (...reported) => echo.close(...reported) })
    const client = await server.connect()
    client.send({ opcode: 1, payload: 'first' })
    const close = await client.next()
    assert.deepEqual([close?.opcode, close?.payload], [8, closing(1011)])
    client.send({ opcode: 1, payload: 'second' }, { opcode: 8, payload: closing(1011) })
    assert.deepEqual(await echo.ending(), [1011, ''])
    assert.deepEqual(server.reported.errors, [failure])
    assert.deepEqual(seen, ['first'])
  })

  test(`closes with 1011 when open ${what}`, async (t) => {
    const echo = new Echo()
    const handlers = { open: fail, message: () => assert.fail(), close: echo.close.bind(echo) }
    const server = await startWebSocketServer(t, handlers)
    const client = await server.connect(clientFrame({ opcode: 1, payload: 'early' }))
    const close = await client.next()
    assert.deepEqual([close?.opcode, close?.payload], [8, closing(1011)])
    client.send({ opcode: 8, payload: closing(1011) })
    assert.deepEqual(await echo.ending(), [1011, ''])
    assert.deepEqual(server.reported.errors, [failure])
  })

  test(`reports when a close handler ${what}, and the end of the connection`, async (t) => {
    const server = await startWebSocketServer(t, { close: fail })
    const client = await server.connect()
    client.socket.destroy()
    await until(() => server.reported.errors.length === 1 && server.reported.closed.length === 1)
    assert.deepEqual(server.reported.closed, [1006])
    assert.deepEqual(server.reported.errors, [failure])
  })
}

test('closes with 1011 when there is no memory for a message', async (t) => {
  const echo = new Echo()
  const server = await startWebSocketServer(t, echo)
  const client = await server.connect()
  const failed = new RangeError('Array buffer allocation failed')
  const bytes = clientFrame({ opcode: 2, payload: Buffer.alloc(500_000) })
  const { allocUnsafe } = Buffer
  t.mock.method(Buffer, 'allocUnsafe', (size: number) => {
    if (size > 100_000) throw failed
    return allocUnsafe(size)
  })
  client.socket.write(bytes)
  const close = await client.next()
  assert.deepEqual([close?.opcode, close?.payload], [8, closing(1011)])
  assert.deepEqual(await echo.ending(), [1011, ''])
  assert.deepEqual(server.reported.errors, [failed])
})

test('cuts a peer that never reads once the buffer limit is exceeded', async (t) => {
  const echo = new Echo()
  const server = await startWebSocketServer(t, echo, { maxBufferedBytes: 1 << 20 })
  const client = await server.connect()
  client.socket.pause()
  const ws = server.connections[0] as Ws
  const message = Buffer.alloc(100_000)
  let sent = 0
  while (ws.send(message)) {
    sent += 1
    assert.ok(ws.bufferedAmount <= (1 << 20) + 100_010)
    if (sent % 10 === 0) await new Promise(setImmediate)
  }
  assert.ok(sent >= 10)
  assert.equal(ws.isOpen, false)
  assert.equal(ws.send('more'), false)
  assert.deepEqual(await echo.ending(), [1006, ''])
  assert.deepEqual(server.reported, { errors: [], violations: [], closed: [1006], slow: 1 })
  client.socket.destroy()
})

test('answers only the last ping of a peer that did not read, and batches short messages for it', async (t) => {
  const server = await startWebSocketServer(t, new Echo(), { maxBufferedBytes: 1 << 30 })
  const client = await server.connect()
  client.socket.pause()
  const ws = server.connections[0] as Ws
  // More than the system keeps for a connection; it may take some of it a moment later.
  for (let count = 0; count < 32; count += 1) ws.send(Buffer.alloc(1 << 20))
  let waiting = Infinity
  await until(() => waiting === (waiting = ws.bufferedAmount))
  client.send(...Array.from({ length: 50_000 }, (_, at) => ({ opcode: 9, payload: String(at) })))
  client.send({ opcode: 1, payload: 'echo' })
  await until(() => ws.bufferedAmount > waiting)
  assert.equal(ws.bufferedAmount - waiting, 6)
  for (let count = 0; count < 10_000; count += 1) ws.send('x')
  assert.equal(ws.bufferedAmount - waiting, 6 + 30_000)
  client.socket.resume()
  let frame = await client.next()
  while (frame?.payload.length === 1 << 20) frame = await client.next()
  assert.equal(frame?.payload.toString(), 'echo')
  for (let count = 0; count < 10_000; count += 1) assert.equal((await client.next())?.payload.toString(), 'x')
  assert.deepEqual(await client.next(), { final: true, opcode: 10, payload: Buffer.from('49999') })
})

test('calls no handler for a socket that closed before it was started', async () => {
  const socket = new Socket()
  socket.destroy()
  await once(socket, 'close')
  const reported: number[] = []
  const heartbeat = new Heartbeat(beatMs)
  const ignore = (): void => {}
  const limits = { heartbeat, maxMessageBytes: 1, maxBufferedBytes: 1 }
  const onClosed = (_ws: Ws, code: number): unknown => reported.push(code)
  const services = { ...limits, onError: ignore, onProtocolError: ignore, onSlow: ignore, onClosed }
  const handlers = { open: () => assert.fail(), close: () => assert.fail() }
  new WebSocketConnection<string>(socket, services, handlers, '').start(Buffer.alloc(0))
  assert.deepEqual(reported, [1006])
  assert.equal(heartbeat.size, 0)
})
