// What the engine sends and holds, damaged in one byte or of another shape: no process ends, and it works again afterwards.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { listIn, textIn } from '../../lib/redis/reply.ts'
import { changed } from '../fuzz/mutate.ts'
import { startApplication, type TestApplication } from '../support/application.ts'
import { isReady } from '../support/node-panel.ts'
import { openRedis, startRedis, type RedisServer } from '../support/redis-server.ts'
import { request } from '../support/request.ts'
import { Seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'

const files = {
  'routes/a.json': [
    { name: 'poll', url: '/poll', action: 'a.mjs' },
    { name: 'job', url: '/job', action: 'a.mjs@job' },
    { name: 'publish', url: '/publish', method: 'POST', action: 'a.mjs@publish' },
    { name: 'push', url: '/push', method: 'POST', action: 'a.mjs@push' },
    { name: 'in', url: '/in', action: 'a.mjs@into', middleware: 'SVC_MwSession' },
    { name: 'live', url: '/live', action: 'a.mjs@live' },
  ],
  'routes/middleware/config.json': { load: ['heard.js'] },
  'routes/middleware/heard.js': `
    const heard = []
    export const setup = (app) => { app.channel('news').subscribe(({ data }) => heard.push(data)) }
    export const Heard = (ctx, next) => { ctx.state.heard = heard; return next() }`,
  'a.mjs': `
    export default (ctx) => ctx.longPoll(ctx.channel('news'), { timeout_s: 0 })
    export const job = (ctx) => ctx.longPoll(ctx.queue('jobs'), { timeout_s: 0 })
    export const publish = async (ctx) => ({ id: await ctx.channel('news').publish(await ctx.readJson()) })
    export const push = async (ctx) => { await ctx.queue('jobs').push(await ctx.readJson()); return { ok: true } }
    export const into = (ctx) => { ctx.session.set('a', 1 + ctx.session.get('a', 0)); return {} }
    export const live = (ctx) => { ctx.presence(ctx.channel('news'), { id: 'ada' }); return ctx.sse(ctx.channel('news')) }`,
}

/** A way to a server that damages one byte now and then of what it says, while it is told to. */
async function damagingWay(t: TestContext, { port }: RedisServer, random: Seeded) {
  const way = { isDamaging: false, damaged: 0, port: 0 }
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const engine = connect(port, '127.0.0.1')
    for (const socket of [client, engine]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => [client, engine].forEach((each) => each.destroy()))
    }
    client.pipe(engine)
    engine.on('data', (chunk: Buffer) => {
      if (way.isDamaging && random.integer(3) === 0) {
        chunk[random.integer(chunk.length)] = random.integer(2) === 0 ? random.integer(256) : 0x30 + random.integer(10)
        way.damaged += 1
      }
      client.write(chunk)
    })
  }).listen(0, '127.0.0.1')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  await once(server, 'listening')
  way.port = (server.address() as AddressInfo).port
  return way
}

/** Uses every part that the engine holds. Answers of any status will do. */
async function useAll({ url }: TestApplication): Promise<void> {
  const post = (path: string) => request(url + path, { body: '"x"', headers: { 'content-type': 'application/json' } })
  await Promise.all([request(`${url}/poll?since=1`), request(`${url}/job`), request(`${url}/in`), post('/publish'), post('/push')])
}

/** That an event that is published now arrives, a queue gives what it is given, and the node is ready. */
async function assertWorks(one: TestApplication): Promise<void> {
  await until(() => isReady(one))
  const json = async (path: string, body?: string): Promise<Record<string, unknown>> => {
    const answer = await request(one.url + path, body === undefined ? {} : { body, headers: { 'content-type': 'application/json' } })
    assert.equal(answer.status, 200, `${path}: ${answer.text}`)
    return answer.json() as Record<string, unknown>
  }
  await until(async () => (await request(`${one.url}/publish`, { body: '"before"', headers: { 'content-type': 'application/json' } })).status === 200)
  const { last_id } = await json('/poll')
  const { id } = await json('/publish', '"whole"')
  assert.deepEqual((await json(`/poll?since=${String(last_id)}`))['events'], [{ id, data: 'whole' }])
  await json('/push', '"job"')
  for (let event: unknown; event !== 'job'; ) event = (await json('/job'))['event'] ?? assert.fail('the queue has lost it')
  const none = one.lines().filter((line) => line.includes('[FATAL]'))
  assert.deepEqual(none, [])
}

const settings = { 'app.env': 'dev' }

describe('an engine', () => {
  for (const seed of [1, 2, 3]) {
    it(`with damaged replies, seed ${seed}, ends no process`, async (t) => {
      const random = new Seeded(seed)
      const server = await startRedis(t, { tcp: true })
      const way = await damagingWay(t, server, random)
      const one = await startApplication(t, files, { ...settings, 'shared.url': `redis://127.0.0.1:${way.port}` })
      way.isDamaging = true
      for (let round = 0; way.damaged < 40 && round < 1000; round += 1) await useAll(one)
      way.isDamaging = false
      await assertWorks(one)
    })
  }

  it('with foreign messages neither silences listeners nor ends a process', async (t) => {
    const random = new Seeded(4)
    const server = await startRedis(t)
    const one = await startApplication(t, files, { ...settings, 'shared.url': server.url })
    const stream = await fetch(`${one.url}/live`)
    assert.equal(stream.status, 200)
    const reader = (stream.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader()
    t.after(() => reader.cancel())
    await useAll(one)
    const redis = openRedis(t, server.url)
    const channels = (await server.ask('PUBSUB', 'CHANNELS', '*')).split('\n')
    for (const name of ['news', 'svc.sessions', 'svc.presence']) assert.ok(channels.includes(`svc:0:channel:${name}`), name)
    const now = Date.now() * 1000
    const texts = [
      '', ' ', '{}', 'x', 'state', 'applied', '9007199254740000 t notjson', '9007199254740000 t "far"', `${now} t notjson`, `${now} t 1\n2`,
      'NaN t 1', '-1 t 1', '1.5 t 1', '1e300 t 1', `${'9'.repeat(40)} t 1`, `${now}`, `${now} t`, `${now} t `, `${now} t \uffff"`, `${now} t null`,
      ...['{}', '[]', 'null', '{"from":1}', '{"from":"a"}', '{"from":"a","type":"list","version":1}', '{"from":"a","type":"list","version":1,"rooms":[null]}',
        '{"from":"a","type":"change","version":1,"rooms":[{"channel":"news","joined":[{}],"left":[]}]}', '{"toString":1}'].map((text, at) => `${now + at + 1} t ${text}`),
    ]
    for (const channel of channels) {
      for (const text of texts) await redis.command('PUBLISH', channel, text)
      for (let round = 0; round < 20; round += 1) {
        const text = changed(random, `${Date.now() * 1000} tag {"from":"abc","type":"alive","version":1}`, 1)
        await redis.command('PUBLISH', channel, text)
      }
    }
    await assertWorks(one)
    let received = ''
    while (!received.includes('data: "whole"')) received += (await reader.read()).value ?? assert.fail('the stream has ended')
    assert.doesNotMatch(received, /notjson|"far"/)
    assert.match(one.lines().join('\n'), /\[WARN \] \[error\] channel ".*": a message of the shared engine is damaged/)
  })

  it('with tampered keys ends no process, and damaged data is skipped', async (t) => {
    const random = new Seeded(5)
    const server = await startRedis(t)
    const redis = openRedis(t, server.url)
    const one = await startApplication(t, files, { ...settings, 'shared.url': server.url })
    for (let round = 0; round < 40; round += 1) {
      await useAll(one)
      for (const key of listIn(await redis.command('KEYS', '*')).map(textIn)) {
        const type = await redis.command('TYPE', key)
        if (type === 'hash') {
          const field = random.pick(listIn(await redis.command('HKEYS', key)).map(textIn))
          const value = await redis.command('HGET', key, field)
          if (value !== null) await redis.command('HSET', key, field, changed(random, textIn(value), 1))
        } else if (type === 'list') {
          await redis.command('LPUSH', key, random.pick(['', 'junk', ' ', '5', '5 {', `${Date.now() * 1000} notjson`]))
        } else if (type === 'stream') {
          const added = redis.command('XADD', key, `${Date.now() * 1000}-0`, random.pick(['t', 'other']), random.pick(['', '{', '1']))
          await added.catch(() => {}) // A server has published a moment ago.
        } else if (type === 'zset') await redis.command('ZADD', key, random.integer(1e6), 'nobody')
      }
    }
    await server.ask('DEL', 'svc:channel:news', 'svc:channel-state:news')
    await assertWorks(one)
  })

  it('with foreign entries in a queue delivers the rest, and counts dropped entries', async (t) => {
    const server = await startRedis(t)
    const one = await startApplication(t, files, { ...settings, 'shared.url': server.url })
    for (const junk of ['junk', '', `${Date.now() * 1000} notjson`, `${Date.now() * 1000} 1\n2`]) await server.ask('RPUSH', 'svc:queue:jobs', junk)
    await assertWorks(one)
    assert.match((await request(`${one.url}/svc-status`, { headers: { accept: 'application/json' } })).text, /"dropped": ?4/)
    assert.match(one.lines().join('\n'), /queue "jobs": an event in the shared engine is damaged and was dropped/)
  })
})
