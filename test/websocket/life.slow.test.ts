// WebSockets and stops that wait half a second and more for them.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it, type TestContext } from 'node:test'
import type { FullContext } from '../support/context.ts'
import type { WebSocketConnection } from '../../lib/websocket/connection.ts'
import { Connection } from '../support/connection.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'
import { echo, handshakeText, openWebSocket, serveRoutes, WebSocketClient } from '../support/websocket.ts'
import { activeOn, gate, heldUpMs, linesOf } from './life-support.ts'

describe('a client that disconnects', () => {
  it('before its handshake is answered leaves no request that would block the stop', async (t) => {
    const { app, port, url, lines } = await serveRoutes(t, { '/ws': { handlers: echo } }, { 'app.env': 'dev' })
    for (let round = 0; round < 30; round++) {
      const client = new Connection(t, port)
      if (round % 2 === 0) await once(client.socket, 'connect')
      client.socket.write(handshakeText('/ws'))
      if (round % 3 === 0) client.socket.destroy()
      else await client.reset()
    }
    await openWebSocket(t, port, '/ws')
    await until(async () => (await activeOn(url)) === 1)
    const { requests } = (await request(`${url}/svc-status`)).json() as { requests: { active: number } }
    assert.equal(requests.active, 1)
    // A request that was reset before it was read has no line; one that was read has a line.
    const opened = linesOf('worker_ws', lines()).filter((line) => line.endsWith(': open')).length
    assert.equal(lines('access.log').filter((line) => line.endsWith('"GET /ws HTTP/1.1" 101')).length, opened)
    const before = performance.now()
    await app.stop()
    assert.ok(performance.now() - before < heldUpMs)
  })
})

describe('the stop', () => {
  /** Opens WebSockets; the last one neither reads nor answers. */
  async function openSome(t: TestContext, port: number): Promise<WebSocketClient[]> {
    const clients = []
    for (let at = 0; at < 20; at++) clients.push(await openWebSocket(t, port, '/ws'))
    clients.at(-1)?.socket.pause()
    return clients
  }

  it('closes all with 1001, notifies the application, and waits half a second for those that do not answer', async (t) => {
    const endings: number[] = []
    const { app, port, lines } = await serveRoutes(t, {
      '/ws': { handlers: { ...echo, close: (_ws, code) => void endings.push(code) } },
    })
    const clients = await openSome(t, port)
    const before = performance.now()
    const stopped = app.stop()
    for (const client of clients.slice(0, 10)) {
      assert.deepEqual(await client.closing(), [1001, 'The server is being stopped'])
      client.sendFrames({ opcode: 8, payload: Buffer.from([0x03, 0xe9]) })
      assert.equal(await client.next(), undefined)
    }
    await stopped
    const took = performance.now() - before
    assert.ok(took < heldUpMs, `${took} ms`)
    await until(() => endings.length === 20)
    assert.deepEqual(endings.toSorted(), [...Array(10).fill(1001), ...Array(10).fill(1006)])
    assert.ok(!linesOf('server', lines()).some((line) => line.includes('took longer')))
  })

  it('closes WebSockets of pending handshakes, and those still opening, at once', async (t) => {
    const middle = gate()
    const opening = gate()
    const endings: [number, boolean][] = []
    const late: number[] = []
    const { app, port, lines } = await serveRoutes(
      t,
      {
        '/held': { middleware: 'hold', handlers: { close: (_ws, code) => void late.push(code) } },
        '/opening': {
          handlers: {
            open: () => opening.opened,
            close: (ws: WebSocketConnection<FullContext>, code) => void endings.push([code, ws.isOpen]),
          },
        },
      },
      {},
      {
        middleware: {
          hold: async (ctx, next) => {
            ctx.log('held')
            await middle.opened
            await next()
          },
        },
      },
    )
    const [held, silent] = [new WebSocketClient(t, port), new WebSocketClient(t, port)]
    for (const one of [held, silent]) await one.send(handshakeText('/held'))
    const client = await openWebSocket(t, port, '/opening')
    await until(() => linesOf('app', lines()).length === 2)
    const stopped = app.stop()
    assert.deepEqual((await client.closing())[0], 1001)
    middle.open()
    for (const one of [held, silent]) {
      assert.equal((await one.answer()).status, 101)
      assert.deepEqual(await one.closing(), [1001, 'The server is being stopped'])
    }
    held.sendFrames({ opcode: 8, payload: Buffer.from([0x03, 0xe9]) })
    await stopped
    assert.deepEqual(late, [1001, 1006])
    await until(() => endings.length === 1)
    assert.deepEqual(endings, [[1006, false]])
    opening.open()
  })

  it('keeps WebSockets and accepts new ones during the drain delay', async (t) => {
    const { app, port, lines } = await serveRoutes(t, { '/ws': { handlers: echo } }, { 'server.drain_delay_s': 1 })
    const old = await openWebSocket(t, port, '/ws')
    const before = performance.now()
    const stopped = app.stop()
    old.say('still there')
    assert.equal(await old.hear(), 'still there')
    const fresh = await openWebSocket(t, port, '/ws')
    fresh.say('taken')
    assert.equal(await fresh.hear(), 'taken')
    for (const client of [old, fresh]) {
      assert.equal((await client.closing())[0], 1001)
      client.sendFrames({ opcode: 8, payload: Buffer.from([0x03, 0xe9]) })
      client.socket.end()
    }
    await stopped
    assert.ok(performance.now() - before >= 1000)
    await until(() => linesOf('worker_ws', lines()).filter((line) => line.endsWith('closed with 1001')).length === 2)
  })

  it('calls the close handlers before the teardown of the application', async (t) => {
    const order: string[] = []
    Reflect.set(globalThis, 'orderOfStop', order)
    t.after(() => Reflect.deleteProperty(globalThis, 'orderOfStop'))
    const { app, port, lines } = await serveRoutes(
      t,
      { '/ws': { handlers: { close: (_ws, code) => void order.push(String(code)) } } },
      {},
      {
        files: {
          'routes/middleware/config.json': { load: ['down.mjs'] },
          'routes/middleware/down.mjs': "export const setup = () => () => void globalThis.orderOfStop.push('teardown')\n",
        },
      },
    )
    const polite = await openWebSocket(t, port, '/ws')
    await openWebSocket(t, port, '/ws')
    const stopped = app.stop()
    await polite.closing()
    polite.sendFrames({ opcode: 8, payload: Buffer.from([0x03, 0xe9]) })
    await stopped
    assert.deepEqual(order, ['1001', '1006', 'teardown'])
    assert.equal(lines().filter((line) => /worker_ws.*closed with/.test(line)).length, 2)
  })
})
