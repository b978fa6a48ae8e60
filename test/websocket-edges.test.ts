import assert from 'node:assert/strict'
import { it } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { makeCertificate } from './support/certificate.ts'
import { temporaryFolder } from './support/temporary-folder.ts'
import { until } from './support/until.ts'
import { handshakeText, openWebSocket, serveRoutes } from './support/websocket.ts'

it('sends over TLS what open sends', async (t) => {
  const { cert, key } = makeCertificate(temporaryFolder(t), 'tls')
  const { port } = await serveRoutes(
    t,
    { '/ws': { handlers: { open: (ws) => void ws.send('hello') } } },
    { 'server.tls.cert': cert, 'server.tls.key': key },
  )
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
  t.after(() => socket.destroy())
  let text = ''
  socket.setEncoding('latin1').on('data', (piece: string) => (text += piece))
  socket.write(handshakeText('/ws'))
  await until(() => text.endsWith('hello'))
})

it('ends when its client sent an end during open', async (t) => {
  let opened = (): void => {}
  const endings: number[] = []
  const { port, lines } = await serveRoutes(t, {
    '/ws': { handlers: { open: () => new Promise<void>((resolve) => (opened = resolve)), close: (_ws, code) => void endings.push(code) } },
  })
  const client = await openWebSocket(t, port, '/ws')
  client.socket.end()
  await new Promise((resolve) => setTimeout(resolve, 50))
  opened()
  await until(() => endings.length === 1)
  assert.deepEqual(endings, [1006])
  assert.ok(lines().length > 0)
})

it('calls the close handlers before the teardown of the application', async (t) => {
  const order: string[] = []
  Reflect.set(globalThis, 'orderOfStop', order)
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
