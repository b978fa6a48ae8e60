import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { describe, it } from 'node:test'
import { RedisAwayError } from '../../lib/redis/errors.ts'
import { openFake } from './fake-server.ts'

describe('a client of Redis', () => {
  it('refuses more than 100,000 pending commands', async (t) => {
    let socket: Socket | undefined
    const { redis } = await openFake(t, (command, from) => {
      socket = from
      return command === 'HANG' ? '' : undefined
    })
    await redis.ready
    const first = Array.from({ length: 100_000 }, () => redis.command('HANG'))
    await assert.rejects(redis.command('HANG'), (error) => error instanceof RedisAwayError && /is behind: 100000 commands wait/.test(error.message))
    assert.equal(redis.state, 'ready')
    socket?.write('+at last\r\n'.repeat(100_000))
    assert.ok((await Promise.all(first)).every((reply) => reply === 'at last'))
    assert.equal(await redis.command('PING'), 'PONG')
  })
})
