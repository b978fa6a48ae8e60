import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { request } from '../support/request.ts'
import { Seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'
import { handshakeText, openWebSocket, WebSocketClient } from '../support/websocket.ts'
import { clientFrame, closing, someMask } from './frames.ts'
import { serveEcho } from './hostile-support.ts'

describe('a message that is too large', () => {
  it('is refused at its header, before it arrives', async (t) => {
    const { port, clean, lines } = await serveEcho(t, { 'pool_ws.max_message_kb': 1024 })
    const client = await openWebSocket(t, port, '/ws')
    client.sendFrames({ opcode: 2, length: 16 * 2 ** 20, payload: 'the beginning' })
    assert.equal((await client.closing())[0], 1009)
    client.socket.end()
    await clean()
    assert.ok(lines().some((line) => line.includes('[worker_ws] WebSocket /ws (r0) of 127.0.0.1: closed with 1009: ')))
  })

  it('is refused when complete and in fragments, and ends the connection', async (t) => {
    const { port, clean } = await serveEcho(t, { 'pool_ws.max_message_kb': 1024 })
    const mebibyte = Buffer.alloc(2 ** 20, 'x')
    const whole = await openWebSocket(t, port, '/ws')
    whole.sendFrames({ opcode: 2, payload: Buffer.alloc(4 * 2 ** 20) })
    assert.equal((await whole.closing())[0], 1009)
    await whole.closed()

    const pieces = await openWebSocket(t, port, '/ws')
    pieces.sendFrames({ opcode: 2, payload: mebibyte, final: false }, { opcode: 0, payload: 'y', final: false })
    assert.equal((await pieces.closing())[0], 1009)
    pieces.socket.end()

    const exact = await openWebSocket(t, port, '/ws')
    exact.sendFrames({ opcode: 2, payload: mebibyte, final: false }, { opcode: 0, payload: '' })
    assert.ok((await exact.next())?.payload.equals(mebibyte))
    exact.socket.end()
    await clean()
  })

  it('of 4 MiB is accepted when pool_ws.max_message_kb allows it', async (t) => {
    const { port, clean } = await serveEcho(t, { 'pool_ws.max_message_kb': 4096 }, {
      message: (ws, data) => void ws.send(`${typeof data} ${data.length} ${data.at(-1)}`),
    })
    const client = await openWebSocket(t, port, '/ws')
    const payload = Buffer.alloc(4 * 2 ** 20, 'x')
    client.sendFrames({ opcode: 2, payload })
    assert.equal(await client.hear(), `object ${payload.length} 120`)
    client.sendFrames({ opcode: 1, payload })
    assert.equal(await client.hear(), `string ${payload.length} x`)
    client.sendFrames({ opcode: 2, length: payload.length + 1 })
    assert.equal((await client.closing())[0], 1009)
    client.socket.end()
    await clean()
  })
})

describe('a client that breaks the rules', () => {
  it('gets the matching close code, and the connection ends', async (t) => {
    const { port, clean } = await serveEcho(t)
    const rows: [string, Buffer, number][] = [
      ['not masked', clientFrame({ opcode: 1, payload: 'x', mask: undefined }), 1002],
      ['a reserved bit', clientFrame({ opcode: 1, payload: 'x', reserved: 4 }), 1002],
      ['an unknown opcode', clientFrame({ opcode: 5 }), 1002],
      ['a long ping', clientFrame({ opcode: 9, payload: 'x'.repeat(126) }), 1002],
      ['a ping in pieces', clientFrame({ opcode: 9, final: false }), 1002],
      ['a continuation of nothing', clientFrame({ opcode: 0, payload: 'x' }), 1002],
      ['a text that is none', clientFrame({ opcode: 1, payload: Buffer.of(0xc3, 0x28) }), 1007],
      ['a close code of one byte', clientFrame({ opcode: 8, payload: 'x' }), 1002],
      ['a close code that nobody sends', clientFrame({ opcode: 8, payload: closing(1005) }), 1002],
      ['a length of 63 bits', clientFrame({ opcode: 2, length: 2n ** 63n - 1n, lengthBytes: 8 }), 1009],
      ['a request', Buffer.from('GET /ws HTTP/1.1\r\nHost: h\r\n\r\n'), 1002],
    ]
    for (const [what, bytes, code] of rows) {
      const late = await openWebSocket(t, port, '/ws')
      late.socket.write(bytes)
      const early = await openWebSocket(t, port, '/ws', [], bytes)
      for (const client of [early, late]) {
        assert.equal((await client.closing())[0], code, what)
        assert.equal(await client.next(), undefined, what)
      }
    }
    await clean()
  })

  it('does no harm with any bytes', async (t) => {
    const seeded = new Seeded(5)
    const { port, clean, url } = await serveEcho(t)
    for (let round = 0; round < 60; round++) {
      const client = new WebSocketClient(t, port)
      client.socket.write(handshakeText('/ws'))
      const parts = Array.from({ length: 1 + seeded.integer(5) }, () => {
        const payload = seeded.bytes(seeded.pick([0, 1, 5, 125, 126, 300]))
        const opcode = seeded.pick([0, 1, 2, 8, 9, 10, 11])
        const frame = clientFrame({ opcode, payload, final: seeded.integer(3) > 0, mask: someMask })
        if (seeded.integer(3) === 0) frame[seeded.integer(frame.length)] = seeded.integer(256)
        return seeded.integer(4) === 0 ? seeded.bytes(40) : frame
      })
      for (const part of parts) {
        client.socket.write(part)
        if (seeded.integer(2) === 0) await nextTurn()
      }
      if (seeded.integer(2) === 0) client.socket.end()
      else await client.reset()
      await client.closed()
    }
    assert.equal((await request(`${url}/svc-ping`)).status, 200)
    await clean()
  })
})

describe('a client that is slow', () => {
  it('can send a frame byte by byte without blocking others', async (t) => {
    const { port, status, clean } = await serveEcho(t)
    const slow = await openWebSocket(t, port, '/ws')
    const other = await openWebSocket(t, port, '/ws')
    slow.socket.setNoDelay(true)
    const text = 'trickle ä€😀'.repeat(12)
    for (const [at, byte] of clientFrame({ opcode: 1, payload: text }).entries()) {
      await slow.send(Buffer.of(byte))
      if (at % 20 > 0) continue
      other.say(String(at))
      assert.equal(await other.hear(), String(at))
    }
    assert.equal(await slow.hear(), text)
    await slow.send(clientFrame({ opcode: 1, payload: 'never ends' }).subarray(0, 7))
    assert.equal((await status()).active, 2)
    await slow.reset()
    other.socket.end()
    await clean()
  })

  it('is cut, counted and logged when it does not read', async (t) => {
    const piece = Buffer.alloc(2 ** 18, 'x')
    const { port, status, clean, lines } = await serveEcho(t, { 'pool_ws.max_message_kb': 16 }, {
      message: async (ws) => {
        let count = 0
        while (ws.send(piece) && count < 400) {
          count += 1
          await nextTurn()
        }
        return ws.isOpen ? void ws.close(3000, String(count)) : undefined
      },
    })
    const deaf = await openWebSocket(t, port, '/ws')
    deaf.socket.pause()
    deaf.say('go')
    await until(async () => (await status()).slow === 1)
    assert.equal((await status()).active, 0)
    assert.ok(lines().some((line) => /\[WARN \] \[worker_ws\] WebSocket \/ws \(r0\) of 127\.0\.0\.1: cut, since/.test(line)))
    deaf.socket.resume()
    await deaf.closed()
    await clean()
  })
})

describe('many clients', () => {
  it('get the available WebSockets, the rest 503, and all are free after any kind of disconnect', async (t) => {
    const { port, status, clean } = await serveEcho(t, { 'pool_ws.workers': 25 })
    const clients = Array.from({ length: 100 }, () => new WebSocketClient(t, port))
    const answers = await Promise.all(clients.map((client) => client.handshake('/ws')))
    const taken = clients.filter((_, at) => answers[at]?.status === 101)
    assert.equal(taken.length, 25)
    assert.equal(answers.filter((answer) => answer.status === 503 && answer.headers['retry-after'] === '1').length, 75)
    assert.deepEqual(await status(), { workers: 25, active: 25, refused: 75, slow: 0 })
    for (const [at, client] of taken.entries()) {
      if (at % 4 === 0) client.socket.end()
      else if (at % 4 === 1) await client.reset()
      else if (at % 4 === 2) client.sendFrames({ opcode: 8, payload: closing(1001) })
      else client.sendFrames({ opcode: 7 })
    }
    await Promise.all(taken.map((client) => client.closed()))
    await clean()
    const again = await openWebSocket(t, port, '/ws')
    again.say('free')
    assert.equal(await again.hear(), 'free')
  })
})
