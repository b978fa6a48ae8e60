import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it, type TestContext } from 'node:test'
import { HttpError } from '../../lib/http/errors.ts'
import { RedisReplyError } from '../../lib/redis/errors.ts'
import { RedisSessionStore } from '../../lib/redis/session-store.ts'
import { problemOfFields } from '../../lib/session/fields.ts'
import { testSessionStore } from '../session-stores/store-conformance.ts'
import { changes, contents, fields, id } from '../session-stores/store-values.ts'
import { openRedis, startRedis } from '../support/redis-server.ts'

const hour = 3_600_000

/** Lets every key of a server expire so many milliseconds sooner, as a clock would that moves on. */
const moveOn = `
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left > 0 then redis.call('PEXPIRE', key, left - ARGV[1]) end
end`

async function openStore(t: TestContext, problemOf: typeof problemOfFields = () => undefined) {
  const server = await startRedis(t)
  const redis = openRedis(t, server.url)
  const problems: string[] = []
  const onProblem = (message: string): unknown => problems.push(message)
  const store = new RedisSessionStore({ redis, prefix: 'app:', problemOf, onProblem })
  const clock = redis.script(moveOn)
  const advance = async (ms: number): Promise<void> => void (await clock.run([], ms))
  const keyOf = async (): Promise<string> => server.ask('KEYS', '*')
  return { server, redis, store, problems, keyOf, advance, expiresByItself: true as const }
}

const isAway = (error: unknown): boolean =>
  error instanceof HttpError && error.status === 503 && error.code === 'shared_away' && error.headers['Retry-After'] === '1'

testSessionStore('Redis', (t) => openStore(t))

describe('a session in Redis', () => {
  it('has a key that does not reveal its id, and an expiry', async (t) => {
    const { server, store, keyOf } = await openStore(t)
    await store.create(id(1), fields({ 'key:user': '"ann"' }), hour)
    assert.equal(await keyOf(), `app:session:${createHash('sha256').update(id(1)).digest('base64url')}`)
    const left = Number(await server.ask('PTTL', await keyOf()))
    assert.ok(left > 0 && left <= hour, `${left} ms are left`)
    assert.deepEqual((await server.ask('HGETALL', await keyOf())).split('\n').sort(), ['"ann"', '1', ':key:user', 'v'])
  })

  it('is removed by Redis when it expires', async (t) => {
    const { server, redis, store } = await openStore(t)
    await server.ask('CONFIG', 'SET', 'notify-keyspace-events', 'Ex')
    const nothing = (): void => {}
    const expired = new Promise<string>((resolve) => {
      void redis.subscribe('__keyevent@0__:expired', { onMessage: resolve, onLost: nothing, onReconnected: nothing })
        .then(() => store.create(id(1), fields({ a: '1' }), 20))
    })
    assert.match(await expired, /^app:session:/)
    assert.equal(await store.read(id(1)), undefined)
    assert.equal(await server.ask('DBSIZE'), '0')
  })

  it('is read with one command and saved with another', async (t) => {
    const { server, store } = await openStore(t)
    await store.create(id(1), fields({ a: '1' }), hour)
    await store.read(id(1))
    await store.merge(id(1), changes({ a: '2' }), hour)
    await server.ask('CONFIG', 'RESETSTAT')
    for (let count = 0; count < 10; count += 1) {
      await store.read(id(1))
      await store.merge(id(1), changes({ a: `${count}`, b: 'x' }, ['c']), hour)
    }
    const statistics = await server.ask('INFO', 'commandstats')
    const counted = new Map([...statistics.matchAll(/cmdstat_([\w|]+):calls=(\d+)/g)].map(([, name, calls]) => [name, Number(calls)]))
    assert.equal(counted.get('evalsha'), 20)
    // What a script calls is counted too; a PING may come in a pause.
    const ofScripts = ['hgetall', 'pttl', 'exists', 'hset', 'hdel', 'pexpire']
    const others = [...counted.keys()].filter((name) => !['evalsha', 'config|resetstat', 'ping', ...ofScripts].includes(name ?? ''))
    assert.deepEqual(others, [])
  })

  it('can have any number of fields and of changes at once', async (t) => {
    const { store } = await openStore(t)
    const many = (first: number) => Object.fromEntries(Array.from({ length: 9001 }, (_, at) => [`name ${first + at}`, `${at}`]))
    await store.create(id(1), fields(many(0)), hour)
    assert.equal(await store.merge(id(1), changes(many(9001), Object.keys(many(0))), hour), true)
    assert.deepEqual(await contents(store, id(1)), many(9001))
  })

  it('is visible to another process at once, and ends there too', async (t) => {
    const { server, store } = await openStore(t)
    const other = new RedisSessionStore({
      redis: openRedis(t, server.url), prefix: 'app:', problemOf: () => undefined, onProblem: () => {},
    })
    await store.create(id(1), fields({ a: '1' }), hour)
    assert.deepEqual(await contents(other, id(1)), { a: '1' })
    await other.merge(id(1), changes({ b: '2' }), hour)
    assert.deepEqual(await contents(store, id(1)), { a: '1', b: '2' })
    await store.destroy(id(1))
    assert.equal(await other.read(id(1)), undefined)
  })

  it('is ignored, counted and reported when damaged', async (t) => {
    const { server, store, problems, keyOf } = await openStore(t, problemOfFields)
    const damages: readonly (readonly [command: readonly string[], problem: RegExp])[] = [
      [['HDEL', 'KEY', 'v'], /its version is not 1$/],
      [['HSET', 'KEY', 'v', '2'], /its version is not 1$/],
      [['HSET', 'KEY', 'stranger', '1'], /it has an unknown field$/],
      [['HSET', 'KEY', ':a', '\uffff{'], /it has an unknown field$/],
      [['HSET', 'KEY', ':\uffff1', '1'], /it has an unknown field$/],
      [['HSET', 'KEY', ':key:a', 'no JSON'], /it has a value that is not JSON$/],
      [['PERSIST', 'KEY'], /it has no expiry$/],
    ]
    for (const [at, [command, problem]] of damages.entries()) {
      await store.create(id(at), fields({ 'key:a': '1' }), hour)
      const key = await keyOf()
      await server.ask(...command.map((word) => (word === 'KEY' ? key : word)))
      assert.equal(await store.read(id(at)), undefined)
      assert.match(problems.at(-1) ?? '', problem)
      assert.match(problems.at(-1) ?? '', /^the session under the key app:session:[\w-]{43} is damaged and was ignored: /)
      assert.deepEqual(store.counts, { evicted: 0, damaged: at + 1 })
      await store.destroy(id(at))
    }
  })

  it('fails permanently when its key holds something else', async (t) => {
    const { server, store, keyOf } = await openStore(t)
    await store.create(id(1), fields({}), hour)
    await server.ask('SET', await keyOf(), 'a text')
    await assert.rejects(Promise.resolve(store.read(id(1))), (error) => error instanceof RedisReplyError && error.code === 'WRONGTYPE')
  })

  it('can be read and ended while Redis is out of memory, and changes completely or not at all', async (t) => {
    const { server, store, problems } = await openStore(t)
    await store.create(id(1), fields({ a: '1', b: '2' }), hour)
    await server.ask('CONFIG', 'SET', 'maxmemory', '1')
    await assert.rejects(Promise.resolve(store.create(id(2), fields({ a: '1' }), hour)), isAway)
    await assert.rejects(Promise.resolve(store.merge(id(1), changes({ a: '3' }, ['b']), hour)), isAway)
    await assert.rejects(Promise.resolve(store.rename(id(1), id(2), changes({ a: '3' }), hour)), isAway)
    assert.match(problems.at(-1) ?? '', /^the shared engine refuses a session: OOM .*maxmemory/)
    assert.deepEqual(await contents(store, id(1)), { a: '1', b: '2' })
    assert.equal(await store.read(id(2)), undefined)
    assert.equal(await store.merge(id(1), changes({}, ['b']), hour), true)
    assert.equal(await store.rename(id(1), id(3), changes({}), hour), true)
    assert.deepEqual(await contents(store, id(3)), { a: '1' })
    await store.destroy(id(3))
    assert.equal(await store.read(id(3)), undefined)
  })

  it('needs no more rights than docs/security.md grants', async (t) => {
    const server = await startRedis(t)
    const rules = '~svc:* &svc:* +@all -@admin -@dangerous +role'.split(' ')
    await server.ask('ACL', 'SETUSER', 'svc', 'on', '>secret', ...rules)
    const url = server.url.replace('redis+unix://', 'redis+unix://svc:secret@')
    const [allowed, refused] = ['svc:', 'other:'].map((prefix) =>
      new RedisSessionStore({ redis: openRedis(t, url), prefix, problemOf: () => undefined, onProblem: () => {} }),
    )
    assert.ok(allowed !== undefined && refused !== undefined)
    await allowed.create(id(1), fields({ a: '1' }), hour)
    assert.equal(await allowed.rename(id(1), id(2), changes({ b: '2' }), hour), true)
    assert.deepEqual(await contents(allowed, id(2)), { a: '1', b: '2' })
    await assert.rejects(Promise.resolve(refused.read(id(1))), (error) => error instanceof RedisReplyError && /NOPERM/.test(error.message))
  })

  it('is absent, without an error, on an emptied server', async (t) => {
    const { server, redis, store } = await openStore(t)
    await store.create(id(1), fields({ a: '1' }), hour)
    await server.kill()
    await assert.rejects(async () => store.read(id(1)), isAway)
    const back = new Promise<void>((resolve) => redis.onState((state) => state === 'ready' && resolve()))
    await server.start()
    await back
    assert.equal(await store.read(id(1)), undefined)
    assert.equal(await store.merge(id(1), changes({ a: '2' }), hour), false)
    await store.create(id(2), fields({ a: '1' }), hour)
    assert.deepEqual(await contents(store, id(2)), { a: '1' })
  })
})
