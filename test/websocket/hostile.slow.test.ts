import assert from 'node:assert/strict'
import { once } from 'node:events'
import { it } from 'node:test'
import { openWebSocket } from '../support/websocket.ts'
import { clientFrame } from './frames.ts'
import { serveEcho } from './hostile-support.ts'

it('a client that sends pings without reading gets only the last pong', async (t) => {
  const { port, clean } = await serveEcho(t)
  const client = await openWebSocket(t, port, '/ws')
  client.socket.pause()
  const ping = clientFrame({ opcode: 9, payload: 'x'.repeat(125) })
  const pings = Buffer.concat(Array.from({ length: 1000 }, () => ping))
  for (let round = 0; round < 40; round++) {
    if (!client.socket.write(pings)) await once(client.socket, 'drain')
  }
  client.sendFrames({ opcode: 9, payload: 'the last' })
  client.socket.resume()
  for (let payload = ''; payload !== 'the last'; ) {
    const frame = await client.next()
    assert.equal(frame?.opcode, 10)
    payload = String(frame?.payload)
  }
  client.say('and goes on')
  assert.equal(await client.hear(), 'and goes on')
  client.socket.end()
  await clean()
})
