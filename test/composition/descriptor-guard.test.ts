import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { guardDescriptors } from '../../lib/composition/descriptor-guard.ts'
import { maxConnections } from '../../lib/composition/file-descriptors.ts'
import { connectionOf } from '../../lib/core/connection.ts'
import { silentLogger } from '../../lib/log/logger.ts'

/** The descriptors of a server without connections. */
const own = 16

test('makes room before Node resets new connections, however fast they come', () => {
  for (const limit of [160, 256, 400, 512, 640, 1024]) {
    const sockets = new Set<Socket>()
    const open = (): number => [...sockets].filter((socket) => !socket.destroyed).length
    const guard = guardDescriptors({ limit, count: () => own + open() }, sockets, silentLogger)
    const most = maxConnections({ limit })
    for (let count = 0; count < most; count += 1) {
      const socket = new Socket()
      connectionOf(socket)
      sockets.add(socket)
      guard.accepted()
    }
    assert.ok(open() < most, `limit ${limit}: ${open()} of ${most} connections`)
    assert.equal(guard.closed, sockets.size - open())
  }
})
