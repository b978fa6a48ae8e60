// What times out a connection, and what does not. The test controls the clock.
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
  const startMs = Math.floor(performance.now()) // Sums of integers are exact.
  /** Returns the result of `overdueOf` at this second of the test. */
  const at = (seconds: number): Overdue | undefined =>
    overdueOf(connectionOf(socket), startMs + seconds * 1000, deadlines)
  const send = async (bytes: number): Promise<void> => {
    const before = socket.bytesRead
    client.write('x'.repeat(bytes))
    await until(() => socket.bytesRead === before + bytes)
  }
  const request = { complete: false, readableLength: 0, readableHighWaterMark: 65_536 }
  /** Begins a request without sending its body. */
  const serve = (requestTimeoutMs?: number): void => {
    const response = {} as ServerResponse
    const known = { response, needsClient: false, startedAt: startMs, sentBytes: 0 }
    const served = { request: request as IncomingMessage, ...known, requestTimeoutMs }
    connectionOf(socket).began(served, () => {})
  }
  const end = (): void => connectionOf(socket).ended(request as IncomingMessage)
  return { client, socket, bytesRead, at, send, serve, end, request }
}

describe('a body', () => {
  it('that stalls for too long ends its request, however much has arrived', async (t) => {
    const { at, send, serve } = await connection(t)
    serve()
    for (const second of [0, 29, 58]) {
      assert.equal(at(second), undefined)
      await send(2000)
    }
    assert.equal(at(59), undefined)
    assert.equal(at(88), undefined)
    assert.deepEqual(at(89), { status: 408, reason: 'no more of the request body arrived for 30 s' })
  })

  it('with less than 1 KiB per minute ends its request', async (t) => {
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
    assert.deepEqual(at(120), { status: 408, reason: 'less than 1 KiB of the request body arrived in 60 s' })
  })

  it('may take as long as a whole request if it arrives steadily', async (t) => {
    const { at, send, serve } = await connection(t)
    serve()
    for (let second = 0; second < 300; second += 20) {
      assert.equal(at(second), undefined)
      await send(1000)
    }
    assert.deepEqual(at(300), { status: 408, reason: 'the request took longer than 300 s to arrive' })
  })

  it('may take as long as its route allows, longer or shorter', async (t) => {
    for (const seconds of [3600, 100]) {
      const { at, send, serve } = await connection(t)
      serve(seconds * 1000)
      for (let second = 0; second < seconds; second += 20) {
        assert.equal(at(second), undefined)
        await send(1000)
      }
      assert.deepEqual(at(seconds), { status: 408, reason: `the request took longer than ${seconds} s to arrive` })
    }
  })

  it('does not time out while the server does not read it', async (t) => {
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

  it('of an answered request is cut without another response', async (t) => {
    const { at, serve, end } = await connection(t)
    serve()
    end()
    assert.equal(at(0), undefined)
    assert.deepEqual(at(30), { status: undefined, reason: '' })
  })
})

describe('a response', () => {
  it('that the client stops reading ends its connection; a slow client does not', async (t) => {
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
      // Progress of the client is seen once the system has accepted more from the server.
      await until(() => (client.resume(), received > before + 4_000_000))
      assert.equal(at(second), undefined)
    }
    assert.equal(at(209), undefined)
    assert.deepEqual(at(210), { status: undefined, reason: 'it read nothing of its response for 60 s' })
  })

  it('that the server has not produced yet does not time out', async (t) => {
    const { at, serve, request } = await connection(t)
    serve()
    request.complete = true
    for (const second of [0, 1000, 100_000]) assert.equal(at(second), undefined)
  })
})

describe('an idle connection', () => {
  it('is cut a quarter of a second after its announced time, without a log line', async (t) => {
    const { at } = await connection(t)
    assert.equal(at(0), undefined)
    assert.equal(at(65), undefined)
    assert.deepEqual(at(65.25), { status: undefined, reason: '' })
  })

  it('with a request at the last moment gets the header time-out', async (t) => {
    const { at, send } = await connection(t)
    assert.equal(at(0), undefined)
    await send(2)
    assert.equal(at(64), undefined)
    assert.equal(at(73), undefined)
    assert.deepEqual(at(74), { status: undefined, reason: '' })
  })

  it('with occasional empty lines is cut after its time', async (t) => {
    const { at, send } = await connection(t)
    for (const second of [0, 20, 40, 64]) {
      assert.equal(at(second), undefined)
      await send(2)
    }
    assert.deepEqual(at(65.25), { status: undefined, reason: '' })
  })

  it('gets a new header time-out if the header section was late before its turn', async (t) => {
    const { at, socket, serve, end, request } = await connection(t)
    serve()
    request.complete = true
    connectionOf(socket).isHeaderLate = true
    assert.equal(at(1000), undefined)
    end()
    assert.equal(at(1001), undefined)
    assert.equal(at(1010), undefined)
    assert.deepEqual(at(1011), { status: 408, reason: 'its header section arrived too slowly' })
  })
})
