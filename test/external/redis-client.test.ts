import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { describe, it, type TestContext } from 'node:test'
import type { Redis } from '../../lib/redis/client.ts'
import { RedisAwayError, RedisReplyError, RedisUnknownOutcomeError } from '../../lib/redis/errors.ts'
import { integerIn, textIn, type Command } from '../../lib/redis/reply.ts'
import type { ChannelListener } from '../../lib/redis/subscriber.ts'
import { makeCertificate } from '../support/certificate.ts'
import { freePort } from '../support/free-port.ts'
import { optionsOfTarget, root } from '../support/launch.ts'
import { openRedis, startRedis } from '../support/redis-server.ts'
import { Seeded } from '../support/seeded.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

const isUnknown = (error: unknown): boolean => error instanceof RedisUnknownOutcomeError
const isAway = (error: unknown): boolean => error instanceof RedisAwayError && !isUnknown(error)

/** Resolves at the next change to a state. */
function become(redis: Redis, wanted: Redis['state']): Promise<void> {
  return new Promise((resolve) => {
    const stop = redis.onState((state) => {
      if (state !== wanted) return
      stop()
      resolve()
    })
  })
}

/** A listener that notes what it hears. */
function listener(): ChannelListener & { readonly heard: string[] } {
  const heard: string[] = []
  return {
    heard,
    onMessage: (message) => heard.push(message),
    onLost: () => heard.push('lost'),
    onReconnected: () => heard.push('reconnected'),
  }
}

describe('commands', () => {
  it('are answered in order, 10,000 of one turn', async (t) => {
    const redis = openRedis(t, (await startRedis(t)).url)
    const replies = await Promise.all(Array.from({ length: 10_000 }, () => redis.command('INCR', 'count')))
    assert.deepEqual(replies, Array.from({ length: 10_000 }, (_, at) => at + 1))
  })

  it('carry any text', async (t) => {
    const redis = openRedis(t, (await startRedis(t)).url)
    const seeded = new Seeded(3)
    for (const length of [0, 1, 100, 70_000, 3_000_000]) {
      const large = seeded.bytes(Math.min(length, 1000)).toString('latin1').repeat(Math.ceil(length / 1000))
      const key = `\u00ff\0\r\n${length}`
      await redis.command('SET', key, large)
      assert.ok(textIn(await redis.command('GET', key)) === large, `${length} characters`)
    }
    await redis.command('SET', 'é', '😀\r\n')
    assert.equal(textIn(await redis.command('GET', 'é')), '😀\r\n')
    assert.equal(await redis.command('GET', 'nothing'), null)
    await assert.rejects(redis.command('HGET', 'é', 'a'), (error) => error instanceof RedisReplyError && error.code === 'WRONGTYPE')
  })

  it('of one turn are sent in one write', async (t) => {
    const server = await startRedis(t)
    const redis = openRedis(t, server.url)
    await redis.command('PING')
    const reads = async (): Promise<number> => Number(/total_reads_processed:(\d+)/.exec(await server.ask('INFO', 'stats'))?.[1])
    const before = await reads()
    await Promise.all(Array.from({ length: 50 }, () => redis.command('PING')))
    // Two of them are those of redis-cli, and a PING of an idle connection may have come between.
    assert.ok((await reads()) - before <= 5, `${(await reads()) - before} reads`)
  })

  it('wait for the first connection', async (t) => {
    const server = await startRedis(t)
    await server.kill()
    const redis = openRedis(t, server.url)
    const replies = ['1', '2'].map((text) => redis.command('APPEND', 'a', text))
    const subscribed = redis.subscribe('c', listener())
    await until(() => redis.problem !== undefined)
    assert.equal(redis.state, 'connecting')
    await server.start()
    assert.deepEqual(await Promise.all(replies), [1, 2])
    await subscribed
    await redis.ready
  })

  it('fail when there is no first connection in time, and work once it exists', async (t) => {
    const server = await startRedis(t)
    await server.kill()
    const redis = openRedis(t, server.url, { connectTimeoutMs: 50 })
    const waiting = [redis.command('PING'), redis.subscribe('c', listener()), redis.ready]
    for (const each of waiting) await assert.rejects(each, isAway)
    assert.equal(redis.state, 'away')
    await assert.rejects(redis.command('PING'), isAway)
    // On a slow machine an attempt may run out of time before it hears the reason.
    const reason = (): Promise<string> => redis.command('PING').then(String, String)
    await until(async () => /redis\.sock is away: connect E/.test(await reason()))
    const back = become(redis, 'ready')
    await server.start()
    await back
    assert.equal(await redis.command('PING'), 'PONG')
  })

  it('get their first connection even when this process was suspended meanwhile', async (t) => {
    const server = await startRedis(t)
    const redis = openRedis(t, server.url, { connectTimeoutMs: 200, commandTimeoutMs: 200 })
    await new Promise(setImmediate)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600) // The answer comes meanwhile, and lies unread.
    await redis.ready
  })

  it('sent before the server dies have an unknown outcome, later ones fail at once, and none is resent', async (t) => {
    const server = await startRedis(t, { args: ['--appendonly', 'yes', '--appendfsync', 'always'] })
    const redis = openRedis(t, server.url)
    await redis.command('SET', 'count', 0)
    server.pause()
    const sent = Array.from({ length: 100 }, () => redis.command('INCR', 'count'))
    const all = Promise.allSettled(sent)
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    const away = become(redis, 'away')
    await server.kill()
    for (const outcome of await all) assert.ok(outcome.status === 'rejected' && isUnknown(outcome.reason))
    await away
    await assert.rejects(redis.command('INCR', 'count'), isAway)
    const back = become(redis, 'ready')
    await server.start()
    await back
    assert.equal(textIn(await redis.command('GET', 'count')), '0')
  })

  it('wait while the server pauses, and continue in order', async (t) => {
    const server = await startRedis(t)
    const redis = openRedis(t, server.url)
    await redis.command('CLIENT', 'PAUSE', 100, 'ALL')
    const paused = Array.from({ length: 3 }, () => redis.command('INCR', 'count'))
    assert.deepEqual(await Promise.all(paused), [1, 2, 3])
    server.pause()
    const stopped = Array.from({ length: 3 }, () => redis.command('INCR', 'count'))
    await new Promise((resolve) => setImmediate(resolve))
    server.resume()
    assert.deepEqual(await Promise.all(stopped), [4, 5, 6])
    assert.equal(redis.state, 'ready')
  })

  it('fail when the server hangs, as do idle connections, and recover when it resumes', async (t) => {
    const server = await startRedis(t)
    const redis = openRedis(t, server.url, { commandTimeoutMs: 200 })
    const heard = listener()
    await redis.subscribe('c', heard)
    for (const command of [['INCR', 'count'], undefined] as const) {
      const away = become(redis, 'away')
      server.pause()
      if (command !== undefined) {
        await assert.rejects(redis.command(...command), (error) => isUnknown(error) && /did not answer within 200 ms/.test(String(error)))
      }
      await away
      await until(() => heard.heard.at(-1) === 'lost')
      const back = become(redis, 'ready')
      server.resume()
      await back
      await until(() => heard.heard.at(-1) === 'reconnected')
    }
    assert.ok(integerIn(await redis.command('GET', 'count')) <= 1)
  })
})

describe('scripts', () => {
  const script = "return {KEYS[1], ARGV[1], 7, {}, {ok = 'fine'}, {err = 'BAD luck'}, false}"

  it('are sent with their source once per connection, and again when the server has dropped them', async (t) => {
    const server = await startRedis(t)
    const redis = openRedis(t, server.url)
    const { run } = redis.script(script)
    const calls = async (): Promise<string[]> => {
      const found = [...(await server.ask('INFO', 'commandstats')).matchAll(/cmdstat_(eval\w*):calls=(\d+)/g)]
      return found.map(([, name, count]) => `${name} ${count}`).sort()
    }
    const replies = await Promise.all(Array.from({ length: 5 }, () => run(['k'], 'v')))
    const [key, value, seven, empty, fine, bad, nothing] = replies[4] as unknown[]
    assert.deepEqual([String(key), String(value), seven, empty, fine, nothing], ['k', 'v', 7, [], 'fine', null])
    assert.ok(bad instanceof RedisReplyError && bad.code === 'BAD')
    assert.deepEqual(await calls(), ['eval 1', 'evalsha 4'])
    await server.ask('SCRIPT', 'FLUSH')
    await Promise.all([run(['k'], 'v'), run(['k'], 'v')])
    assert.deepEqual(await calls(), ['eval 3', 'evalsha 6'])
    await run(['k'], 'v')
    assert.deepEqual(await calls(), ['eval 3', 'evalsha 7'])
  })

  it('keep their position among the commands of a turn', async (t) => {
    const redis = openRedis(t, (await startRedis(t)).url)
    const append = redis.script("return redis.call('APPEND', KEYS[1], ARGV[1])")
    await Promise.all([append.run(['a'], 1), redis.command('APPEND', 'a', 2), append.run(['a'], 3), redis.command('APPEND', 'a', 4)])
    assert.equal(textIn(await redis.command('GET', 'a')), '1234')
  })

  it('reject with their error', async (t) => {
    const redis = openRedis(t, (await startRedis(t)).url)
    await assert.rejects(redis.script('return nothing()').run([]), (error) => error instanceof RedisReplyError && /nothing/.test(error.message))
  })
})

describe('the sign-in', () => {
  it('authenticates, selects the database and sets the name', async (t) => {
    const server = await startRedis(t, { args: ['--requirepass', 'p@:/ é'] })
    await server.ask('-a', 'p@:/ é', '--no-auth-warning', 'ACL', 'SETUSER', 'ann', 'on', '>other', '+@all', '~*')
    for (const account of [`:${encodeURIComponent('p@:/ é')}`, 'ann:other']) {
      const redis = openRedis(t, `${server.url.replace('://', `://${account}@`)}?db=5`, { name: 'by-name' })
      assert.equal(await redis.command('SET', 'a', 1), 'OK')
      const listed = textIn(await redis.command('CLIENT', 'LIST'))
      assert.match(listed, /name=by-name .* db=5 /)
      assert.match(listed, new RegExp(` user=${account.startsWith(':') ? 'default' : 'ann'} `))
    }
  })

  it('reports a refusal clearly, without the password', async (t) => {
    const server = await startRedis(t, { args: ['--requirepass', 'right'] })
    const rows: readonly (readonly [account: string, query: string, problem: RegExp])[] = [
      ['', '', /is away: NOAUTH .*\(it requires a password\)$/],
      [':wrong@', '', /is away: WRONGPASS .*\(the user or the password is wrong\)$/],
      ['ann:wrong@', '', /is away: WRONGPASS /],
      [':right@', '?db=999', /is away: ERR DB index is out of range$/],
    ]
    for (const [account, query, problem] of rows) {
      const redis = openRedis(t, server.url.replace('://', `://${account}`) + query, { connectTimeoutMs: 100 })
      await until(() => redis.state === 'away')
      await until(() => redis.problem instanceof RedisReplyError)
      await assert.rejects(redis.command('PING'), (error) => isAway(error) && problem.test(String(error)) && !/wrong@|right/.test(String(error)))
    }
  })

  it('is repeated until the server accepts the password', async (t) => {
    const server = await startRedis(t)
    const redis = openRedis(t, server.url.replace('://', '://:late@'))
    await until(() => /without any password/.test(redis.problem?.message ?? ''))
    await server.ask('CONFIG', 'SET', 'requirepass', 'late')
    await redis.ready
  })

  it('refuses a replica, and leaves a master that becomes one', async (t) => {
    const [master, server] = [await startRedis(t, { tcp: true }), await startRedis(t)]
    const redis = openRedis(t, server.url, { connectTimeoutMs: 100 })
    await until(() => redis.state === 'ready')
    const away = become(redis, 'away')
    await server.ask('REPLICAOF', '127.0.0.1', `${master.port}`)
    await assert.rejects(redis.command('SET', 'a', 1), (error) => error instanceof RedisReplyError && /it is a replica/.test(error.message))
    await away
    await until(() => /it is a replica; name the master/.test(redis.problem?.message ?? ''))
    const back = become(redis, 'ready')
    await server.ask('REPLICAOF', 'NO', 'ONE')
    await back
    assert.equal(await redis.command('SET', 'a', 1), 'OK')
  })

  it('waits for a server that is loading its data', async (t) => {
    const slow = ['--key-load-delay', '100000', '--loading-process-events-interval-bytes', '1024', '--rdbcompression', 'no']
    const server = await startRedis(t, { args: slow })
    const redis = openRedis(t, server.url)
    await Promise.all(Array.from({ length: 300 }, (_, at) => redis.command('SET', `key ${at}`, 'x'.repeat(2000))))
    await redis.command('SAVE')
    await server.kill()
    const started = server.start()
    await until(() => /^LOADING .*it answers when that is done/.test(redis.problem?.message ?? ''))
    const back = become(redis, 'ready')
    await server.ask('CONFIG', 'SET', 'key-load-delay', '0')
    await Promise.all([started, back])
    assert.equal(await redis.command('DBSIZE'), 300)
  })

  it('uses TLS only with a server whose certificate is trusted', async (t) => {
    const folder = temporaryFolder()
    const { cert, key } = makeCertificate(folder, 'redis')
    const port = await freePort()
    const certificate = ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', cert, '--tls-auth-clients', 'no']
    await startRedis(t, { args: ['--tls-port', `${port}`, ...certificate] })
    const redis = openRedis(t, `rediss://127.0.0.1:${port}`, { connectTimeoutMs: 100 })
    await until(() => redis.state === 'away' && /self-signed certificate/.test(redis.problem?.message ?? ''))
    assert.equal(await pingOfProcess(`rediss://127.0.0.1:${port}`, { NODE_EXTRA_CA_CERTS: cert }), 'PONG')
  })

  it('works over TCP', async (t) => {
    const redis = openRedis(t, (await startRedis(t, { tcp: true })).url)
    assert.equal(await redis.command('PING'), 'PONG')
  })
})

/** What a process of its own is answered, since Node reads its authorities at the start. */
async function pingOfProcess(url: string, env: Readonly<Record<string, string>>): Promise<string> {
  const target = process.env['SVC_TEST_TARGET'] === 'dist' ? ['dist', 'js'] : ['lib', 'ts']
  const path = (file: string): string => JSON.stringify(`${root}${target[0]}/${file}.${target[1]}`)
  const program = `const { Redis } = await import(${path('redis/client')})
    const { parseRedisUrl } = await import(${path('config/redis-url')})
    const redis = new Redis({ target: parseRedisUrl(${JSON.stringify(url)}), name: 'x', connectTimeoutMs: 60000 })
    console.log(await redis.command('PING'))
    await redis.close()`
  const args = [...optionsOfTarget(), '--input-type=module', '--eval', program]
  const child = spawn(process.execPath, args, { cwd: root, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] })
  const [output] = await Promise.all([text(child.stdout), once(child, 'exit')])
  return output.trim()
}

describe('a subscription', () => {
  async function open(t: TestContext) {
    const server = await startRedis(t)
    const redis = openRedis(t, server.url)
    const publish = (...args: [string, string]) => redis.command('PUBLISH', ...args)
    return { server, redis, publish }
  }

  it('receives messages in order from its confirmation until it ends', async (t) => {
    const { redis, publish } = await open(t)
    const [one, two] = [listener(), listener()]
    await publish('c', 'too early')
    const end = await redis.subscribe('c', one)
    await Promise.all(['1', 'é\r\n'].map((message) => publish('c', message)))
    await until(() => one.heard.length === 2)
    const endTwo = await redis.subscribe('c', two)
    assert.equal(await publish('c', '3'), 1)
    await publish('other', 'not for these')
    await until(() => two.heard.length === 1)
    end()
    end()
    await publish('c', '4')
    await until(() => two.heard.length === 2)
    endTwo()
    assert.deepEqual([one.heard, two.heard], [['1', 'é\r\n', '3'], ['3', '4']])
    await until(async () => (await publish('c', '5')) === 0)
  })

  it('can end and restart in one turn', async (t) => {
    const { redis, publish } = await open(t)
    const [one, two] = [listener(), listener()]
    const end = await redis.subscribe('c', one)
    end()
    const again = redis.subscribe('c', two)
    await again
    await publish('c', '1')
    await until(() => two.heard.length === 1)
    assert.deepEqual([one.heard, two.heard], [[], ['1']])
  })

  it('is restored after its connection was cut, without affecting commands', async (t) => {
    const { server, redis, publish } = await open(t)
    const [one, two] = [listener(), listener()]
    await redis.subscribe('c', one)
    const end = await redis.subscribe('d', two)
    await server.ask('CLIENT', 'KILL', 'TYPE', 'pubsub')
    await until(() => one.heard.includes('reconnected') && two.heard.includes('reconnected'))
    assert.equal(redis.state, 'ready')
    await publish('c', '1')
    await publish('d', '1')
    await until(() => one.heard.length === 3 && two.heard.length === 3)
    assert.deepEqual(one.heard, ['lost', 'reconnected', '1'])
    end()
    await server.ask('CLIENT', 'KILL', 'TYPE', 'pubsub')
    await until(() => one.heard.length === 5)
    assert.equal(two.heard.length, 3)
  })

  it('is restored after a restart of the server', async (t) => {
    const { server, redis, publish } = await open(t)
    const one = listener()
    await redis.subscribe('c', one)
    await server.kill()
    await until(() => one.heard.length === 1)
    await assert.rejects(redis.subscribe('d', listener()), (error) => error instanceof RedisAwayError)
    await server.start()
    await until(() => one.heard.length === 2 && redis.state === 'ready')
    await publish('c', '1')
    await until(() => one.heard.length === 3)
    assert.deepEqual(one.heard, ['lost', 'reconnected', '1'])
  })

  it('rejects with the reason when the server refuses it', async (t) => {
    const server = await startRedis(t)
    await server.ask('ACL', 'SETUSER', 'svc', 'on', '>p', '+@all', '~*', '&mine:*')
    const redis = openRedis(t, server.url.replace('://', '://svc:p@'))
    const mine = listener()
    await redis.subscribe('mine:1', mine)
    await assert.rejects(redis.subscribe('yours', listener()), (error) => error instanceof RedisReplyError && error.code === 'NOPERM')
    await redis.command('PUBLISH', 'mine:1', '1')
    await until(() => mine.heard.length === 1)
    assert.deepEqual(mine.heard, ['1'])
  })
})

describe('close', () => {
  it('waits for pending replies, and accepts no more commands', async (t) => {
    const server = await startRedis(t)
    const redis = openRedis(t, server.url)
    const heard = listener()
    await redis.subscribe('c', heard)
    const commands: readonly Command[] = [['SET', 'a', 1], ['GET', 'a']]
    const replies = commands.map((command) => redis.command(...command))
    const closed = redis.close()
    assert.equal(redis.state, 'closed')
    for (const late of [redis.command('PING'), redis.subscribe('d', listener())]) {
      await assert.rejects(late, (error) => isAway(error) && /is closed$/.test(String(error)))
    }
    assert.deepEqual((await Promise.all(replies)).map(String), ['OK', '1'])
    await closed
    await redis.close()
    await until(async () => !(await server.ask('CLIENT', 'LIST')).includes('name=svc-test'))
    assert.deepEqual(heard.heard, [])
  })

  it('stops the attempts of a client without a connection', async (t) => {
    const server = await startRedis(t)
    await server.kill()
    const redis = openRedis(t, server.url)
    const waiting = [redis.command('PING'), redis.ready, redis.subscribe('c', listener())]
    const all = Promise.allSettled(waiting)
    await redis.close()
    for (const outcome of await all) assert.ok(outcome.status === 'rejected' && isAway(outcome.reason))
  })
})
