// What ends the connection of a client that does not do what is expected, and what does not. The clock is the test's.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { connectionOf } from '../../lib/core/connection.ts'
import { overdueOf, type Deadlines, type Overdue } from '../../lib/core/deadlines.ts'
import { until } from '../support/until.ts'

const deadlines: Deadlines = {
  headerTimeoutMs: 10_000,
  requestTimeoutMs: 300_000,
  keepAliveTimeoutMs: 65_000,
  bodyIdleTimeoutMs: 30_000,
  sendIdleTimeoutMs: 60_000,
}

/** The server's side of a connection, and its client. */
async function connection(t: TestContext) {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const client = connect((server.address() as { port: number }).port, '127.0.0.1')
  const [socket] = (await once(server, 'connection')) as [Socket]
  t.after(() => {
    client.destroy()
    socket.destroy()
    server.close()
  })
  const { bytesRead } = socket
  socket.resume()
  const startMs = Math.floor(performance.now()) // Sums of whole numbers are exact.
  /** What `overdueOf` says at this second of the test. */
  const at = (seconds: number): Overdue | undefined =>
    overdueOf(connectionOf(socket), startMs + seconds * 1000, deadlines)
  const send = async (bytes: number): Promise<void> => {
    const before = socket.bytesRead
    client.write('x'.repeat(bytes))
    await until(() => socket.bytesRead === before + bytes)
  }
  const request = { complete: false, readableLength: 0, readableHighWaterMark: 65_536 }
  /** Begins a request whose body has not come. */
  const serve = (): void => {
    const response = {} as ServerResponse
    connectionOf(socket).began({ request: request as IncomingMessage, response, needsClient: false, startedAt: startMs }, () => {})
  }
  const end = (): void => connectionOf(socket).ended(request as IncomingMessage)
  return { client, socket, bytesRead, at, send, serve, end, request }
}

describe('a body', () => {
  it('that is silent for too long ends its request, however much has come', async (t) => {
    const { at, send, serve } = await connection(t)
    serve()
    for (const second of [0, 29, 58]) {
      assert.equal(at(second), undefined)
      await send(2000)
    }
    assert.equal(at(59), undefined)
    assert.equal(at(88), undefined)
    assert.deepEqual(at(89), { status: 408, reason: "nothing more of the request's body came for 30 s" })
  })

  it('of which less than 1 KiB comes in a minute ends its request', async (t) => {
    const { at, send, serve } = await connection(t)
    serve()
    for (let second = 0; second < 60; second += 1) {
      assert.equal(at(second), undefined)
      await send(18) // 1,080 bytes in the first minute
    }
    for (let second = 60; second < 120; second += 1) {
      assert.equal(at(second), undefined)
      await send(1)
    }
    assert.deepEqual(at(120), { status: 408, reason: "less than 1 KiB of the request's body came in 60 s" })
  })

  it('may take as long as a whole request may, if it comes steadily', async (t) => {
    const { at, send, serve } = await connection(t)
    serve()
    for (let second = 0; second < 300; second += 20) {
      assert.equal(at(second), undefined)
      await send(1000)
    }
    assert.deepEqual(at(300), { status: 408, reason: 'the request took longer than 300 s to arrive' })
  })

  it('is not late while the server does not take it', async (t) => {
    const { at, serve, request } = await connection(t)
    serve()
    assert.equal(at(0), undefined)
    request.readableLength = request.readableHighWaterMark
    assert.equal(at(200), undefined)
    request.readableLength = 0
    assert.equal(at(201), undefined)
    assert.equal(at(230), undefined)
    assert.equal(at(231)?.status, 408)
  })

  it('of a request that was answered is cut without another answer', async (t) => {
    const { at, serve, end } = await connection(t)
    serve()
    end()
    assert.equal(at(0), undefined)
    assert.deepEqual(at(30), { status: undefined, reason: '' })
  })
})

describe('a response', () => {
  it('of which the client takes nothing for too long ends its connection, and a slow client does not', async (t) => {
    const { at, client, socket } = await connection(t)
    client.pause()
    socket.write('x'.repeat(30_000_000))
    assert.equal(at(0), undefined)
    let received = 0
    client.on('data', (piece: Buffer) => {
      received += piece.length
      client.pause()
    })
    for (let second = 50; second <= 150; second += 50) {
      const before = received
      // A step of the client is seen once the system has taken more from the server.
      await until(() => (client.resume(), received > before + 4_000_000))
      assert.equal(at(second), undefined)
    }
    assert.equal(at(209), undefined)
    assert.deepEqual(at(210), { status: undefined, reason: 'it took nothing of its response for 60 s' })
  })

  it('that the server has not made yet is waited for', async (t) => {
    const { at, serve, request } = await connection(t)
    serve()
    request.complete = true
    for (const second of [0, 1000, 100_000]) assert.equal(at(second), undefined)
  })
})

describe('an idle connection', () => {
  it('is cut a quarter of a second after its announced time, without a line', async (t) => {
    const { at } = await connection(t)
    assert.equal(at(0), undefined)
    assert.equal(at(65), undefined)
    assert.deepEqual(at(65.25), { status: undefined, reason: '' })
  })

  it('on which a request begins at the last moment has the time of a header', async (t) => {
    const { at, send } = await connection(t)
    assert.equal(at(0), undefined)
    await send(2)
    assert.equal(at(64), undefined)
    assert.equal(at(73), undefined)
    assert.deepEqual(at(74), { status: undefined, reason: '' })
  })

  it('on which empty lines come now and then is cut after its time', async (t) => {
    const { at, send } = await connection(t)
    for (const second of [0, 20, 40, 64]) {
      assert.equal(at(second), undefined)
      await send(2)
    }
    assert.deepEqual(at(65.25), { status: undefined, reason: '' })
  })

  it('whose header section was late before its turn gets the time of one from then on', async (t) => {
    const { at, socket, serve, end, request } = await connection(t)
    serve()
    request.complete = true
    connectionOf(socket).isHeaderLate = true
    assert.equal(at(1000), undefined)
    end()
    assert.equal(at(1001), undefined)
    assert.equal(at(1010), undefined)
    assert.deepEqual(at(1011), { status: 408, reason: 'its header section came too slowly' })
  })
})
