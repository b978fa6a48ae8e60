import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { createRedisBuckets } from '../../lib/redis/buckets.ts'
import { takeTokens } from '../protection/take-tokens.ts'
import { startApplication, type TestApplication } from '../support/application.ts'
import { openRedis, startRedis } from '../support/redis-server.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'

const size = { burst: 32, intervalMs: 60_000 }

async function openBuckets(t: TestContext, given = size) {
  const server = await startRedis(t)
  return { server, buckets: createRedisBuckets(openRedis(t, server.url), 'app:', 'few', given) }
}

describe('a bucket in Redis', () => {
  it('has a burst of tokens, and none after they are taken', async (t) => {
    const { buckets } = await openBuckets(t)
    const first = await takeTokens(buckets, 'a', 30)
    assert.equal(first.granted, 30)
    assert.ok(first.fullInMs > 29 * 60_000 && first.fullInMs <= 30 * 60_000, String(first.fullInMs))
    assert.equal((await takeTokens(buckets, 'a', 30)).granted, 2)
    const empty = await buckets.take('a')
    assert.equal(empty.isGranted, false)
    assert.ok(empty.fullInMs > 31 * 60_000 && empty.fullInMs <= 32 * 60_000, String(empty.fullInMs))
    assert.equal((await buckets.take('b')).isGranted, true)
  })

  it('refills over time, and is removed by Redis when it is full', async (t) => {
    const { server, buckets } = await openBuckets(t, { burst: 2, intervalMs: 50 })
    assert.equal((await takeTokens(buckets, 'a', 2)).granted, 2)
    await until(async () => (await buckets.take('a')).isGranted)
    await until(async () => (await server.ask('DBSIZE')) === '0')
    assert.equal((await takeTokens(buckets, 'a', 5)).granted, 2)
  })

  it('is never emptier than empty, even when the clock of Redis goes back by a year', async (t) => {
    const { server, buckets } = await openBuckets(t)
    await server.ask('SET', 'app:limit:few:32:60000000:a', String((Date.now() + 365 * 86_400_000) * 1000))
    assert.deepEqual(await buckets.take('a'), { isGranted: false, fullInMs: 32 * 60_000 })
  })

  it('accepts any text as its key', async (t) => {
    const { buckets } = await openBuckets(t)
    for (const key of ['', '\ud800', 'ä ö\r\n', '\uffff']) assert.equal((await takeTokens(buckets, key, 40)).granted, 32)
  })
})

describe('a limit of two servers with one engine', () => {
  const start = (t: TestContext, url: string): Promise<TestApplication> =>
    startApplication(
      t,
      {
        'action.mjs': "export default () => 'passed'",
        'routes/limited.json': [{ name: 'a', url: '/a', action: 'action.mjs', middleware: 'SVC_MwLimit:hour' }],
        'routes/middleware/config.json': { setup: { limit: { hour: { count: 4, per_s: 3600 } } } },
      },
      { 'app.env': 'dev', 'shared.url': url, 'server.trusted_proxies': ['127.0.0.1'] },
    )

  async function passedOf(server: TestApplication, address: string, times: number): Promise<number> {
    let passed = 0
    for (let turn = 0; turn < times; turn += 1) {
      const { status } = await request(`${server.url}/a`, { headers: { 'x-forwarded-for': address } })
      if (status === 200) passed += 1
    }
    return passed
  }

  it('is shared; while the engine is away, each server counts alone and logs it', async (t) => {
    const engine = await startRedis(t)
    const [one, two] = [await start(t, engine.url), await start(t, engine.url)]
    assert.equal((await passedOf(one, '203.0.113.1', 3)) + (await passedOf(two, '203.0.113.1', 5)), 4)
    await engine.kill()
    const warning = 'limit hour: each process counts separately until the shared buckets can be reached'
    for (const server of [one, two]) {
      assert.equal(await passedOf(server, '203.0.113.2', 10), 4)
      assert.ok(server.app.warnings().some((text) => text.startsWith(warning)))
    }
    await engine.start()
    const again = 'limit hour: all processes are counted together again'
    let last = 0
    await until(async () => {
      await passedOf(two, `198.51.100.${(last += 1) % 250}`, 1)
      return two.lines().some((line) => line.endsWith(again))
    })
    assert.ok(!two.app.warnings().some((text) => text.startsWith(warning)))
    assert.equal(two.lines().filter((line) => line.includes(warning)).length, 1)
  })
})
