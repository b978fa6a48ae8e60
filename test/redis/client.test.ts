import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Redis } from '../../lib/redis/client.ts'
import { RedisAwayError, RedisProtocolError, RedisReplyError, RedisUnknownOutcomeError } from '../../lib/redis/errors.ts'
import { until } from '../support/until.ts'
import { openFake } from './fake-server.ts'

/** Resolves with the problem once the client is away. */
function problemOf(redis: Redis): Promise<Error | undefined> {
  return new Promise((resolve) => redis.onState((state) => state === 'away' && resolve(redis.problem)))
}

describe('a client of Redis', () => {
  const wrongReplies: readonly (readonly [bytes: string, problem: RegExp])[] = [
    ['HTTP/1.1 400 Bad Request\r\n\r\n', /^Redis sent an invalid reply: "HTTP\/1\.1 400 Bad Request/],
    ['+ONE\r\n+TWO\r\n', /^Redis sent a reply without a command$/],
    [':1.5\r\n', /^Redis sent an invalid integer/],
  ]
  for (const [bytes, problem] of wrongReplies) {
    it(`ends the connection when the server sends ${JSON.stringify(bytes)}`, async (t) => {
      const { redis } = await openFake(t, (command) => (command === 'ASK' ? bytes : undefined))
      await redis.ready
      const away = problemOf(redis)
      const asked = redis.command('ASK').catch((error: unknown) => error)
      const found = await away
      assert.ok(found instanceof RedisProtocolError && problem.test(found.message), String(found))
      const reply = await asked
      assert.ok(reply === 'ONE' || reply instanceof RedisUnknownOutcomeError)
    })
  }

  const greetings: readonly (readonly [command: string, bytes: string, problem: RegExp])[] = [
    ['PING', '-LOADING Redis is loading the dataset in memory\r\n', /^LOADING .*\(it is starting and loading its data; /],
    ['PING', '-MASTERDOWN Link with MASTER is down\r\n', /^MASTERDOWN .*name the master\)$/],
    ['ROLE', '*1\r\n$5\r\nslave\r\n', /^it is a replica; name the master$/],
    ['ROLE', '*1\r\n$8\r\nsentinel\r\n', /^it is a sentinel; name the master$/],
    ['ROLE', '+master\r\n', /^Redis answered the status "master" instead of a list$/],
    ['ROLE', '*1\r\n:1\r\n', /^Redis answered an integer instead of a string$/],
    ['ROLE', '*0\r\n', /^Redis answered too few items instead of a string$/],
  ]
  for (const [command, bytes, problem] of greetings) {
    it(`is away while the reply to ${command} is ${JSON.stringify(bytes)}`, async (t) => {
      const { redis } = await openFake(t, (asked) => (asked === command ? bytes : undefined), { connectTimeoutMs: 100 })
      await until(() => redis.state === 'away')
      await until(() => problem.test(redis.problem?.message ?? ''))
    })
  }

  const claim = { key: 'k', marks: ['mine', 'before'], refusal: 'it is taken' }
  const refusals: readonly (readonly [bytes: string, problem: RegExp])[] = [
    ['-ERR max number of clients reached\r\n', /^ERR max number of clients reached \(raise its maxclients, or let fewer connect: /],
    ['-ERR max number of clients + cluster connections reached\r\n', /^ERR max number of clients \+ cluster .* \(raise its maxclients/],
    ['-DENIED Redis is running in protected mode\r\n', /^DENIED .*\(its protected mode accepts only local clients: /],
  ]
  for (const [bytes, problem] of refusals) {
    for (const when of ['at once', 'after a command']) {
      it(`reports the reason when the server sends ${JSON.stringify(bytes)} ${when} and closes the connection`, async (t) => {
        const isAtOnce = when === 'at once'
        const { redis } = await openFake(t, (_, socket) => void (isAtOnce || socket.end(bytes)), {}, (socket) => isAtOnce && socket.end(bytes))
        await until(() => redis.problem !== undefined)
        assert.match(redis.problem?.message ?? '', problem)
      })
    }
  }

  const claims: readonly (readonly [reply: string, problem: RegExp | undefined])[] = [
    [':1\r\n', undefined],
    [':0\r\n', /^it is taken$/],
    ['-NOPERM no\r\n', /^NOPERM/],
  ]
  for (const [reply, problem] of claims) {
    it(`${problem === undefined ? 'is ready' : 'is away'} when the reply to the claim is ${JSON.stringify(reply)}`, async (t) => {
      const { redis, commands } = await openFake(t, (command) => (command.startsWith('EVAL') ? reply : undefined), { claim, connectTimeoutMs: 5000 })
      if (problem === undefined) await redis.ready
      else await until(() => problem.test(redis.problem?.message ?? ''))
      assert.match(commands.find((command) => command.startsWith('EVAL')) ?? '', / 1 k mine before$/s)
      if (reply === ':0\r\n') await assert.rejects(redis.ready, { name: 'RedisAwayError', message: /is away: it is taken$/ })
    })
  }

  it('accepts a server that refuses CLIENT SETNAME and ROLE', async (t) => {
    const { redis } = await openFake(t, (command) => (/^(?:CLIENT|ROLE)/.test(command) ? '-NOPERM no\r\n' : undefined))
    assert.equal(await redis.command('PING'), 'PONG')
  })

  it('never shows the password, even when the server quotes it', async (t) => {
    const quoting = "-ERR unknown command 'AUTH', with args beginning with: 'ann' 'secret' \r\n"
    const { redis, commands } = await openFake(t, (command) => (command.startsWith('AUTH') ? quoting : undefined), {
      account: 'ann:secret@', connectTimeoutMs: 100,
    })
    await until(() => redis.state === 'away' && redis.problem instanceof RedisReplyError)
    assert.equal(commands[0], 'AUTH ann secret')
    await assert.rejects(redis.command('PING'), (error: Error) => {
      assert.match(error.message, /^redis:\/\/127\.0\.0\.1:\d+ is away: ERR unknown command 'AUTH'$/)
      assert.doesNotMatch(`${error.stack} ${String(error.cause)} ${(error.cause as Error).stack}`, /secret/)
      return true
    })
  })

  it('gives up on a server that accepts the connection and sends nothing', async (t) => {
    const { redis } = await openFake(t, () => '', { connectTimeoutMs: 50 })
    await assert.rejects(redis.ready, (error) => error instanceof RedisAwayError && /did not answer within 50 ms$/.test(error.message))
  })

  it('reads data that arrives together with the end of the connection', async (t) => {
    const { redis } = await openFake(t, (command, socket) => {
      if (command === 'LAST') socket.end('+said\r\n')
      return command === 'LAST' ? '' : undefined
    })
    assert.equal(await redis.command('LAST'), 'said')
  })

  it('reconnects after random pauses that grow to a second', async (t) => {
    const randoms: number[] = []
    const { redis, commands } = await openFake(t, (command, socket) => {
      if (command === 'ROLE' && commands.filter((each) => each === 'ROLE').length < 4) socket.destroy()
      return undefined
    }, { random: () => (randoms.push(0), 0) })
    await redis.ready
    assert.equal(randoms.length, 3)
  })
})

describe('an error reply', () => {
  const rows: readonly (readonly [text: string, code: string, message: RegExp])[] = [
    ['MOVED 3999 127.0.0.1:6381', 'MOVED', /^MOVED 3999 .* \(it is a node of a cluster; a single server is needed\)$/],
    ["READONLY You can't write against a read only replica.", 'READONLY', /\(it is a replica; name the master\)$/],
    ["OOM command not allowed when used memory > 'maxmemory'.", 'OOM', /\(its memory is full \(maxmemory\): /],
    ['ERR no such key', 'ERR', /^ERR no such key$/],
    ['no code', 'ERR', /^no code$/],
    ['', 'ERR', /^$/],
  ]
  for (const [text, code, message] of rows) {
    it(`is explained: ${text}`, () => {
      const error = new RedisReplyError(text)
      assert.equal(error.code, code)
      assert.match(error.message, message)
    })
  }
})
