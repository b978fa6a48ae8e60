// Channels and queues of servers that share an engine, and what becomes of them while it is away.
import assert from 'node:assert/strict'
import { get as httpGet } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { startSeveral, type ProcessClient } from '../cluster/several.ts'
import { startApplication, type TestApplication } from '../support/application.ts'
import { startRedis } from '../support/redis-server.ts'
import { request, type Answer } from '../support/request.ts'
import { until } from '../support/until.ts'

const files = {
  'routes/e.json': ['publish', 'push', 'careless', 'poll', 'take', 'now', 'sse', 'heard'].map((name) => {
    return { name, url: `/${name}`, action: `e.mjs@${name}` }
  }),
  'e.mjs': `const heard = []
    const text = ({ query }) => query.get('text')
    export const publish = async (ctx) => ({ id: await ctx.channel('c').publish(text(ctx)) })
    export const push = async (ctx) => { await ctx.queue('q').push(text(ctx)); return 'pushed' }
    export const careless = (ctx) => { ctx.channel('c').publish(1); ctx.queue('q').push(1); return 'done' }
    export const poll = ({ channel, longPoll }) => longPoll(channel('c'), { timeout_s: 60 })
    export const take = ({ queue, longPoll }) => longPoll(queue('q'), { timeout_s: 60 })
    export const now = ({ queue, longPoll }) => longPoll(queue('q'), { timeout_s: 0 })
    export const sse = (ctx) => ctx.sse(ctx.channel('c'))
    export const hear = ({ channel }) => channel('c').subscribe(({ data }) => heard.push(data))
    export const heardSoFar = () => heard
    export { heardSoFar as heard }`,
  'routes/middleware/config.json': { load: ['m.mjs'] },
  'routes/middleware/m.mjs': `import { hear } from '../../e.mjs'
    export const setup = (app) => hear(app)`,
}

/** Keeps all it has answered over a kill. */
const durable = ['--appendonly', 'yes', '--appendfsync', 'always']

type Place = { readonly url: string }

interface Poll {
  readonly events: readonly { readonly id: number; readonly data: string }[]
  readonly last_id: number
  readonly gap?: true
}

const ask = ({ url }: Place, path: string): Promise<Answer> => request(url + path)
const poll = async (place: Place, since?: number): Promise<Poll> =>
  (await ask(place, since === undefined ? '/poll' : `/poll?since=${since}`)).json() as Poll
const publish = async (place: Place, text: string): Promise<number> =>
  ((await ask(place, `/publish?text=${text}`)).json() as { id: number }).id
const textsOf = ({ events }: Poll): string => events.map(({ data }) => data).join('')

/** An event of the queue that is there now; null: there is none. */
const now = async (place: Place): Promise<unknown> => ((await ask(place, '/now')).json() as { event: unknown }).event

/** Opens a stream; what came so far. */
function open(t: TestContext, { url }: Place, path: string): Promise<{ text: string; ended: boolean; status: number | undefined }> {
  return new Promise((resolve, reject) => {
    const sent = httpGet(url + path, { agent: false }, (response) => {
      const stream = { text: '', ended: false, status: response.statusCode }
      response.setEncoding('utf8').on('data', (text: string) => (stream.text += text))
      response.on('close', () => (stream.ended = true))
      response.on('error', () => {})
      resolve(stream)
    })
    t.after(() => sent.destroy())
    sent.on('error', reject)
  })
}

/** Two servers with one engine. */
async function begin(t: TestContext, args: readonly string[] = []) {
  const server = await startRedis(t, { args })
  const start = () => startApplication(t, files, { 'shared.url': server.url })
  const [one, two] = [await start(), await start()]
  return { server, one, two }
}

/** Sends requests, and goes on when so many of them wait. */
async function hold<T>(places: readonly TestApplication[], send: () => T): Promise<T> {
  const waits = (): number => places.flatMap((place) => place.lines()).filter((line) => line.includes(': parked (longpoll, working)')).length
  const before = waits()
  const sent = send()
  const count = Array.isArray(sent) ? sent.length : 1
  await until(() => waits() === before + count)
  return sent
}

describe('two servers with one engine', () => {
  it('deliver events published on one to polls and streams of the other, in the order of ids', async (t) => {
    const { one, two } = await begin(t)
    const start = (await ask(one, '/poll?since=0')).json() as Poll
    assert.equal(start.gap, true)
    const streams = [await open(t, one, `/sse?since=${start.last_id}`), await open(t, two, `/sse?since=${start.last_id}`)]
    const ids: number[] = []
    let cursor = start.last_id
    for (const place of [one, two, one, two]) {
      const waiting = await hold([one, two], () => [poll(one, cursor), poll(two, cursor)])
      ids.push(await publish(place, 'x'))
      cursor = ids.at(-1) as number
      for (const answer of await Promise.all(waiting)) {
        assert.deepEqual(answer, { events: [{ id: cursor, data: 'x' }], last_id: cursor })
      }
    }
    ids.push(...(await Promise.all(Array.from({ length: 50 }, (_, at) => publish(at % 2 === 0 ? one : two, 'x')))))
    ids.sort((a, b) => a - b)
    for (const stream of streams) {
      await until(() => stream.text.includes(`id: ${ids.at(-1)}\n`))
      assert.deepEqual([...stream.text.matchAll(/^id: (\d+)\ndata: /gm)].map(([, id]) => Number(id)), ids)
    }
    assert.deepEqual((await poll(two, start.last_id)).events.map(({ id }) => id), ids)
    await until(async () => ((await ask(two, '/heard')).json() as unknown[]).length === 54)
  })

  it('deliver each event of a queue to one client of either', async (t) => {
    const { one, two } = await begin(t)
    const waiting = await hold([one, two], () => Array.from({ length: 20 }, (_, at) => ask(at % 2 === 0 ? one : two, '/take')))
    for (let at = 0; at < 20; at++) await ask(at % 3 === 0 ? one : two, `/push?text=${at}`)
    const events = (await Promise.all(waiting)).map((answer) => Number((answer.json() as { event: string }).event))
    assert.deepEqual(events.sort((a, b) => a - b), Array.from({ length: 20 }, (_, at) => at))
    assert.deepEqual([await now(one), await now(two)], [null, null])
  })

  it('do not receive events of another database', async (t) => {
    const server = await startRedis(t)
    const [one, other] = [
      await startApplication(t, files, { 'shared.url': server.url }),
      await startApplication(t, files, { 'shared.url': `${server.url}?db=1` }),
    ]
    const { last_id } = (await ask(one, '/poll?since=0')).json() as Poll
    const [waiting] = await hold([one], () => [poll(one, last_id)] as const)
    await publish(other, 'theirs')
    await publish(one, 'ours')
    assert.equal(textsOf(await waiting), 'ours')
    await until(async () => ((await ask(one, '/heard')).json() as unknown[]).length === 1)
  })

  it('share events with the workers of a multi-process server', async (t) => {
    const server = await startRedis(t)
    const several = await startSeveral(t, 2, files, { 'shared.url': server.url, 'log.console': true })
    const one = await startApplication(t, files, { 'shared.url': server.url })
    const { last_id } = (await ask(one, '/poll?since=0')).json() as Poll
    const clients = [...(await several.clients()).values()] as ProcessClient[]
    const waiting = [poll(one, last_id), ...clients.map(async (client) => (await client.json(`/poll?since=${last_id}`)) as Poll)]
    const id = await publish(one, 'x')
    for (const answer of await Promise.all(waiting)) assert.deepEqual(answer, { events: [{ id, data: 'x' }], last_id: id })
    const next = ((await (clients[0] as ProcessClient).json('/publish?text=y')) as { id: number }).id
    assert.deepEqual(await poll(one, id), { events: [{ id: next, data: 'y' }], last_id: next })
    await (clients[1] as ProcessClient).ask('/push?text=z')
    assert.equal(await now(one), 'z')
  })
})

describe('while the engine is away', () => {
  for (const how of ['is killed', 'hangs'] as const) {
    it(`because it ${how}, waits end, new ones get 503, and no acknowledged event is lost`, async (t) => {
      const { server, one, two } = await begin(t, durable)
      const first = await publish(one, 'a')
      for (const text of ['1', '2']) await ask(one, `/push?text=${text}`)
      assert.equal(await now(two), '1')
      assert.equal(await now(two), '2')
      const queued = await hold([one, two], () => [ask(one, '/take'), ask(two, '/take')])
      const stream = await open(t, one, '/sse')
      const second = await publish(two, 'b')
      const again = await hold([one, two], () => [poll(one, second), poll(two, second)])
      await until(() => stream.text.includes(`id: ${second}\n`))
      if (how === 'is killed') await server.kill()
      else server.pause()
      const empty = { events: [], last_id: second }
      assert.deepEqual(await Promise.all(again), [empty, empty])
      assert.deepEqual((await Promise.all(queued)).map(({ text }) => text), Array(2).fill('{"ok":true,"event":null}'))
      await until(() => stream.ended)
      for (const place of [one, two]) {
        await until(() => place.app.warnings().length > 0)
        for (const path of ['/poll', `/poll?since=${second}`, '/take', '/now', '/sse', `/sse?since=${second}`, '/publish?text=c', '/push?text=3']) {
          const answer = await request(place.url + path, { headers: { accept: 'application/json' } })
          assert.deepEqual([path, answer.status, answer.headers['retry-after']], [path, 503, '1'])
          assert.equal((answer.json() as { error: string }).error, 'shared_away')
        }
        assert.equal((await ask(place, '/careless')).text, 'done')
        assert.equal((await ask(place, '/heard')).status, 200)
        assert.equal((await ask(place, '/svc-ready')).status, 503)
      }
      if (how === 'is killed') await server.start()
      else server.resume()
      for (const place of [one, two]) await until(async () => (await ask(place, `/poll?since=${first}`)).status === 200)
      const third = await publish(one, 'd')
      for (const place of [one, two]) {
        const answer = await poll(place, first)
        assert.deepEqual([answer.events.map(({ id }) => id), answer.gap], [[second, third], undefined])
      }
      await ask(one, '/push?text=4')
      assert.equal(await now(two), '4')
      assert.equal(await now(one), null)
      for (const place of [one, two]) {
        const heard = async () => (await ask(place, '/heard')).json() as unknown[]
        await until(async () => (await heard()).includes('d'))
        assert.deepEqual((await heard()).filter((text) => text !== 'a'), ['b', 'd'], 'the first one may have been too early')
        const errors = place.lines().filter((line) => line.includes('[ERROR]'))
        assert.ok(errors.length > 0 && errors.every((line) => /\[error\] (channel "c": an event was not published|queue "q": an event was not pushed): /.test(line)), errors.join('\n'))
      }
    })
  }

  it('a client gets a gap when the engine has lost its events', async (t) => {
    const { server, one, two } = await begin(t)
    const id = await publish(one, 'a')
    const [waiting] = await hold([one], () => [poll(one, id)] as const)
    await server.ask('FLUSHALL')
    const next = await publish(two, 'b')
    assert.deepEqual(await waiting, { events: [{ id: next, data: 'b' }], last_id: next })
    assert.deepEqual(await poll(two, id), { events: [{ id: next, data: 'b' }], last_id: next, gap: true })
    await server.ask('FLUSHALL')
    const { events, last_id, gap } = await poll(one, next)
    assert.deepEqual([events, gap], [[], true])
    const after = poll(one, last_id)
    const last = await publish(two, 'c')
    assert.deepEqual(await after, { events: [{ id: last, data: 'c' }], last_id: last })
  })

  it('polls continue when only the subscription connection is cut', async (t) => {
    const { server, one, two } = await begin(t)
    let cursor = await publish(one, 'a')
    for (let round = 0; round < 5; round++) {
      const waiting = await hold([one, two], () => [poll(one, cursor), poll(two, cursor)])
      await server.ask('CLIENT', 'KILL', 'TYPE', 'pubsub')
      cursor = await publish(round % 2 === 0 ? one : two, 'x')
      for (const answer of await Promise.all(waiting)) assert.deepEqual(answer, { events: [{ id: cursor, data: 'x' }], last_id: cursor })
    }
  })

  it('a server that starts meanwhile subscribes once it is available', async (t) => {
    const server = await startRedis(t)
    await server.kill()
    const one = await startApplication(t, files, { 'shared.url': server.url })
    assert.equal((await ask(one, '/poll')).status, 503)
    assert.equal((await ask(one, '/careless')).text, 'done')
    await server.start()
    await until(async () => {
      await ask(one, '/publish?text=x')
      return ((await ask(one, '/heard')).json() as unknown[]).length > 0
    })
    assert.equal((await ask(one, '/poll?since=0')).status, 200)
  })
})
