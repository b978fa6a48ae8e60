// Many publishers and clients of several servers with one engine, whose connections are cut at random.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { startSeveral } from '../cluster/several.ts'
import { deliverByChannel, deliverByQueue } from '../events/delivery.ts'
import { startApplication } from '../support/application.ts'
import { openBroker } from '../support/redis-broker.ts'
import { startRedis, type RedisServer } from '../support/redis-server.ts'
import { request } from '../support/request.ts'
import { Seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'

/** Cuts the connections that hear, again and again, while work is done. Returns what that came to, and how many were cut. */
async function whileHearingIsCut<T>(server: RedisServer, work: Promise<T>): Promise<T & { readonly cuts: number }> {
  let cuts = 0
  let isOver = false
  const over = (): void => void (isOver = true)
  work.then(over, over)
  while (!isOver) {
    cuts += Number(await server.ask('CLIENT', 'KILL', 'TYPE', 'pubsub'))
    await delay(20)
  }
  return { ...(await work), cuts }
}

// A server that could not hear for a second, or when it was to begin, says 503.
const run = { events: 3000, clients: 40, kept: 300, mayBeAway: true }

describe('events over Redis to clients of two processes that leave at random, while subscriptions are cut', () => {
  it('reach each client of a channel once and in order', async (t) => {
    const server = await startRedis(t)
    const brokers = [1, 2].map(() => openBroker(t, server.url).broker)
    const { left, cuts } = await whileHearingIsCut(server, deliverByChannel(t, { ...run, seed: 5, brokers }))
    t.diagnostic(`${left} times a client left, ${cuts} connections were cut`)
    assert.ok(left > 0 && cuts > 0)
  })

  it('reach one client of a queue each, except those on the wire when their client left', async (t) => {
    const server = await startRedis(t)
    const brokers = [1, 2].map(() => openBroker(t, server.url).broker)
    const { left, lost, cuts } = await whileHearingIsCut(server, deliverByQueue(t, { ...run, seed: 6, brokers }))
    t.diagnostic(`${left} times a client left, ${lost} events were on the wire, ${cuts} connections were cut`)
    assert.ok(left > 0 && lost <= left && cuts > 0)
  })
})

const files = {
  'routes/e.json': ['publish', 'push', 'poll', 'take'].map((name) => ({ name, url: `/${name}`, action: `e.mjs@${name}` })),
  'e.mjs': `const text = ({ query }) => query.get('text')
    export const publish = async (ctx) => ({ id: await ctx.channel('c', { events: 5000 }).publish(text(ctx)) })
    export const push = async (ctx) => { await ctx.queue('q', { events: 5000 }).push(text(ctx)); return { id: 0 } }
    export const poll = ({ channel, longPoll }) => longPoll(channel('c', { events: 5000 }), { timeout_s: 5 })
    export const take = ({ queue, longPoll }) => longPoll(queue('q', { events: 5000 }), { timeout_s: 1 })`,
}

/** What was acknowledged, by text with its id; and what may have been done. */
interface Sent {
  readonly acknowledged: Map<string, number>
  readonly doubtful: Set<string>
}

const publishers = 4
const eventsEach = 100
const cutsInAll = 12
const killedAt = 4
const pausedAt = 8

describe('events of three servers, while connections are cut and the engine is killed and paused', () => {
  for (const seed of [1, 2]) {
    it(`arrive exactly once when acknowledged, at most once otherwise (seed ${seed})`, async (t) => {
      const server = await startRedis(t, { args: ['--appendonly', 'yes', '--appendfsync', 'always'] })
      const config = { 'shared.url': server.url, 'log.level': 'error' }
      const places = [
        (await startApplication(t, files, config)).url,
        (await startApplication(t, files, config)).url,
        (await startSeveral(t, 2, files, { ...config, 'log.level': 'info' })).url,
      ]
      const random = new Seeded(seed)
      const [published, pushed] = [newSent(), newSent()]
      const start = (JSON.parse((await ask('/poll?since=0')).text) as { last_id: number }).last_id
      let isOver = false

      async function ask(path: string) {
        return request(random.pick(places) + path)
      }

      async function send(path: string, publisher: number, { acknowledged, doubtful }: Sent): Promise<void> {
        for (let count = 0; count < eventsEach; count++) {
          const text = `${publisher}-${count}`
          const answer = await ask(`${path}?text=${text}`)
          if (answer.status === 200) acknowledged.set(text, (answer.json() as { id: number }).id)
          else {
            assert.equal(answer.status, 503, answer.text)
            doubtful.add(text)
            await delay(random.integer(50))
          }
        }
      }

      /** Reads until it has what was published last. */
      async function read(): Promise<(readonly [id: number, text: string])[]> {
        const seen: (readonly [number, string])[] = []
        for (let since = start; seen.at(-1)?.[1] !== 'end'; ) {
          const answer = await ask(`/poll?since=${since}`)
          if (answer.status === 503) {
            await delay(random.integer(50))
            continue
          }
          const { events, last_id, gap } = answer.json() as { events: { id: number; data: string }[]; last_id: number; gap?: true }
          assert.equal(gap, undefined)
          for (const { id, data } of events) {
            if (data === 'end' && seen.at(-1)?.[1] === 'end') continue
            seen.push([id, data])
          }
          since = last_id
        }
        return seen
      }

      const received: string[] = []
      async function take(): Promise<void> {
        while (!isOver) {
          const answer = await ask('/take')
          if (answer.status === 503) await delay(random.integer(50))
          else {
            const { event } = answer.json() as { event: string | null }
            if (event !== null) received.push(event)
          }
        }
      }

      async function cut(): Promise<void> {
        const sent = (): number => [published, pushed].reduce((sum, { acknowledged, doubtful }) => sum + acknowledged.size + doubtful.size, 0)
        const total = 2 * publishers * eventsEach
        for (let count = 1; count <= cutsInAll; count++) {
          await until(() => sent() >= (total * count) / (cutsInAll + 1))
          if (count === killedAt) {
            await server.kill()
            await server.start()
            continue
          }
          if (count === pausedAt) {
            for (const place of places) await until(async () => (await request(`${place}/poll?since=0`)).status === 200)
            server.pause()
            await until(async () => (await ask('/poll?since=0')).status === 503)
            server.resume()
            continue
          }
          const kind = random.integer(3)
          if (kind !== 0) await server.ask('CLIENT', 'KILL', 'TYPE', 'normal')
          if (kind !== 1) await server.ask('CLIENT', 'KILL', 'TYPE', 'pubsub')
        }
      }

      const reading = Array.from({ length: 6 }, read)
      const taking = Array.from({ length: 6 }, take)
      const numbers = Array.from({ length: publishers }, (_, at) => at)
      await Promise.all([cut(), ...numbers.map((at) => send('/publish', at, published)), ...numbers.map((at) => send('/push', at, pushed))])
      await until(async () => (await ask('/publish?text=end')).status === 200)

      const lists = await Promise.all(reading)
      const [list] = lists as [(readonly [number, string])[]]
      for (const other of lists) assert.deepEqual(other, list, 'all have read the same')
      const ids = list.map(([id]) => id)
      assert.deepEqual(ids, [...new Set(ids)].sort((a, b) => a - b))
      const idOf = new Map(list.map(([id, text]) => [text, id]))
      assert.equal(idOf.size, list.length, 'nothing came twice')
      for (const [text, id] of published.acknowledged) assert.equal(idOf.get(text), id, text)
      for (const text of idOf.keys()) assert.ok(text === 'end' || published.acknowledged.has(text) || published.doubtful.has(text), text)

      await until(() => [...pushed.acknowledged.keys()].every((text) => received.includes(text)))
      isOver = true
      await Promise.all(taking)
      assert.equal(new Set(received).size, received.length, 'nothing was taken twice')
      for (const text of received) assert.ok(pushed.acknowledged.has(text) || pushed.doubtful.has(text), text)
      t.diagnostic(`of ${2 * publishers * eventsEach} events ${published.doubtful.size + pushed.doubtful.size} were not acknowledged`)
    })
  }
})

function newSent(): Sent {
  return { acknowledged: new Map(), doubtful: new Set() }
}
