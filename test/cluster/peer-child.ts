/** The process on the other side of `peer.slow.test.ts`. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Peer, workerPort } from '../../lib/cluster/peer.ts'

const peer = new Peer(workerPort())
const notes: unknown[] = []

peer.on('same', (taken) => taken)
peer.on('never', () => new Promise(() => {}))
peer.on('and back', async (taken) => `${String(await peer.call('here', taken))} there`)
peer.on('note', (taken) => void notes.push(taken))
peer.on('notes', () => notes)
peer.on('leave', () => void setImmediate(() => process.disconnect()))
peer.on('listen', async () => {
  const server = createServer((_request, response) => response.end('there')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
})
