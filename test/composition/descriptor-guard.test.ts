import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { guardDescriptors } from '../../lib/composition/descriptor-guard.ts'
import { maxConnections } from '../../lib/composition/file-descriptors.ts'
import { connectionOf } from '../../lib/core/connection.ts'
import { silentLogger } from '../../lib/log/logger.ts'

/** The descriptors of a server without connections. */
const own = 16

test('says once that none can be closed, until there is room again', (t) => {
  let open = 90
  let nowMs = 0
  t.mock.method(performance, 'now', () => (nowMs += 500))
  const lines: string[] = []
  const log = { ...silentLogger, warn: (line: string) => void lines.push(line) }
  const guard = guardDescriptors({ limit: 1000, count: () => open }, new Set(), log)
  const check = (count: number): void => {
    open = count
    for (let checks = 0; checks < 30; checks += 1) guard.check()
  }
  check(500)
  assert.deepEqual([lines.length, guard.warnings()], [0, []])
  check(800)
  check(900)
  assert.deepEqual(guard.warnings().map((line) => line.slice(0, 40)), ['900 of 1000 file descriptors are open: c'])
  check(500)
  check(850)
  assert.deepEqual(lines.map((line) => line.slice(0, 40)), [
    '800 of 1000 file descriptors are open, w', '850 of 1000 file descriptors are open, w',
  ])
})

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
