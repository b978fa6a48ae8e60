import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Broker } from '../../lib/events/broker.ts'
import type { Channel } from '../../lib/events/channel.ts'
import type { EventStatus } from '../../lib/events/events.ts'
import type { FullContext } from '../support/context.ts'
import { Seeded } from '../support/seeded.ts'
import { eventServer, type EventServer } from './event-server.ts'
import { PollClient, type PollAnswer } from './poll-client.ts'

/** The options of a run. */
export interface DeliveryOptions {
  readonly events: number
  readonly clients: number
  readonly seed: number
  /** One broker for each of the servers that the clients poll in turn; by default one server with its own broker. */
  readonly brokers?: readonly Broker[]
  /** The number of events that a channel keeps, so the most a client may be behind; 4000 by default. */
  readonly kept?: number
  /** How long a poll waits, in seconds; 0.5 by default. */
  readonly waitS?: number
  /** Whether a server may answer 503, after which a client retries; false by default. */
  readonly mayBeAway?: boolean
}

/** The result of a run. */
export interface Delivery {
  /** How often a client left while waiting or receiving a response. */
  readonly left: number
  /** How many events were sent but did not arrive; those of a channel are requested again. */
  readonly lost: number
}

/**
 * Publishes events in a channel and reads them by long polls with cursors, through clients that leave at random and
 * come back. Fails when one misses an event, or has one twice or out of order.
 */
export async function deliverByChannel(
  t: Pick<TestContext, 'after'>,
  { events: total, clients: count, seed, brokers, kept = 4000, waitS = 0.5, mayBeAway = false }: DeliveryOptions,
): Promise<Delivery> {
  const servers = await startServers(t, brokers, {
    '/poll': (ctx) => ctx.longPoll(ctx.channel('c'), { timeout_s: waitS }),
  })
  const channels = servers.map(({ events }) => events.channel('c', { events: kept }))
  const start = await (channels[0] as Channel).last_id // There is at least one server.
  const random = new Seeded(seed)
  /** How many events each client has. */
  const seen = new Array<number>(count).fill(0)
  let left = 0

  async function read(client: number): Promise<void> {
    const connections = new InTurn(servers.map(({ port }) => new PollClient(port)), client)
    let since = start
    for (let next = 0; next < total; seen[client] = next) {
      const answer = connections.one.ask(`/poll?since=${since}`)
      if (await leavesAtRandom(connections.one, random)) left += 1
      const answered = await answer
      if (answered === undefined) {
        connections.goOn()
        continue
      }
      if (mayBeAway && (await wasAway(answered))) continue
      const { events: list, last_id, gap } = resultIn(answered) as {
        events: { id: number; data: number }[]
        last_id: number
        gap?: true
      }
      assert.equal(gap, undefined, 'the publisher waits for the slowest')
      for (const { id, data } of list) {
        // Not by `assert.equal`: there are 20 million.
        if (id <= since || data !== next) assert.fail(`event ${data} with id ${id} came where ${next} was due`)
        since = id
        next += 1
      }
      assert.equal(last_id, since)
    }
    for (const connection of connections.all) connection.leave(false)
  }

  async function publish(): Promise<void> {
    const publishers = new InTurn(channels, 0)
    for (let published = 0; published < total; ) {
      const burst = Math.min(random.integer(400), total - published)
      if (published + burst - Math.min(...seen) < kept) {
        const ids: unknown[] = []
        for (const end = published + burst; published < end; published++) ids.push(publishers.one.publish(published))
        await Promise.all(ids)
        publishers.goOn()
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  await Promise.all([publish(), ...seen.map((_, client) => read(client))])
  const { published, delivered } = statusOf(servers)
  assert.equal(published, total)
  return { left, lost: delivered - total * count }
}

/**
 * Pushes events to a queue and takes them by long polls, through clients that leave at random. Fails when an event
 * arrives twice, is handed to a client known to have left, or is lost otherwise than with a client that left while it
 * was on the wire.
 */
export async function deliverByQueue(
  t: Pick<TestContext, 'after'>,
  { events: total, clients: count, seed, brokers, waitS = 0.5, mayBeAway = false }: DeliveryOptions,
): Promise<Delivery> {
  /** By event: the poll that got it. */
  const handedTo = new Map<number, string>()
  const servers = await startServers(t, brokers, {
    '/take': (ctx) => {
      const question = ctx.rawQuery
      const end = ctx.response.end.bind(ctx.response) as (body?: string) => typeof ctx.response
      ctx.response.end = ((body?: string) => {
        // A short response is written after its header section (see `one-write.ts`).
        const whole = `${String(Reflect.get(ctx.response, '_header'))}${body ?? ''}`
        const event = /"event":(\d+)/.exec(whole)?.[1]
        if (event !== undefined) {
          assert.equal(ctx.gone, false, 'handed to a client known to have left')
          assert.equal(handedTo.has(Number(event)), false, 'handed out twice')
          handedTo.set(Number(event), question)
        }
        return end(body)
      }) as typeof ctx.response.end
      return ctx.longPoll(ctx.queue('q'), { timeout_s: waitS })
    },
  })
  const queues = servers.map(({ events }) => events.queue('q', { events: total }))
  const random = new Seeded(seed)
  const received = new Set<number>()
  /** Polls whose clients left before they had the whole response. */
  const abandoned = new Set<string>()

  async function take(client: number): Promise<void> {
    const connections = new InTurn(servers.map(({ port }) => new PollClient(port)), client)
    for (let asked = 0; statusOf(servers).delivered < total; asked++) {
      const question = `?client=${client}&asked=${asked}`
      const answer = connections.one.ask(`/take${question}`)
      await leavesAtRandom(connections.one, random)
      const answered = await answer
      if (answered === undefined) {
        abandoned.add(question)
        connections.goOn()
        continue
      }
      if (mayBeAway && (await wasAway(answered))) continue
      const { event } = resultIn(answered) as { event: number | null }
      if (event === null) continue
      assert.equal(received.has(event), false, 'received twice')
      received.add(event)
    }
    for (const connection of connections.all) connection.leave(false)
  }

  async function push(): Promise<void> {
    const pushers = new InTurn(queues, 0)
    for (let pushed = 0; pushed < total; ) {
      const burst = Math.min(random.integer(100), total - pushed)
      const waiting = pushed - statusOf(servers).delivered
      // Often, but not always, the queue is empty and clients wait.
      if (waiting === 0 || (waiting < 2000 && random.integer(4) > 0)) {
        const kept: unknown[] = []
        for (const end = pushed + burst; pushed < end; pushed++) kept.push(pushers.one.push(pushed))
        await Promise.all(kept)
        pushers.goOn()
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  await Promise.all([push(), ...Array.from({ length: count }, (_, client) => take(client))])
  assert.deepEqual(statusOf(servers), { published: total, delivered: total, dropped: 0, slow: 0 })
  assert.equal(handedTo.size, total)
  for (const [event, question] of handedTo) {
    assert.ok(received.has(event) || abandoned.has(question), `event ${event} was lost, though its client stayed`)
  }
  return { left: abandoned.size, lost: total - received.size }
}

/** Whether a server answered that the engine is away; if so, waits for a moment. */
async function wasAway({ status }: PollAnswer): Promise<boolean> {
  if (status === 503) await delay(20)
  return status === 503
}

function resultIn({ status, body }: PollAnswer): unknown {
  assert.equal(status, 200, body)
  return JSON.parse(body)
}

/** Items that are used in turn. */
class InTurn<T> {
  readonly all: readonly T[]
  #at: number

  constructor(all: readonly T[], at: number) {
    this.all = all
    this.#at = at
  }

  get one(): T {
    return this.all[this.#at % this.all.length] as T // There is one.
  }

  goOn(): void {
    this.#at += 1
  }
}

function startServers(
  t: Pick<TestContext, 'after'>,
  brokers: readonly (Broker | undefined)[] = [undefined],
  actions: Readonly<Record<string, (ctx: FullContext) => unknown>>,
): Promise<EventServer[]> {
  return Promise.all(brokers.map((broker) => eventServer(t, actions, { broker })))
}

/** The sums of the counters of all servers. */
function statusOf(servers: readonly EventServer[]): EventStatus {
  const all = servers.map(({ events }) => events.status())
  const sum = (name: keyof EventStatus): number => all.reduce((total, status) => total + status[name], 0)
  return { published: sum('published'), delivered: sum('delivered'), dropped: sum('dropped'), slow: sum('slow') }
}

/** Makes a client leave, now, later, or in the middle of its response: once in 25 times. */
async function leavesAtRandom(client: PollClient, random: Seeded): Promise<boolean> {
  const dice = random.integer(100)
  if (dice >= 4) return false
  if (dice === 3) client.leaveAtFirstBytes()
  else {
    for (let turn = 0; turn < dice * random.integer(5); turn++) await new Promise((resolve) => setImmediate(resolve))
    client.leave(random.integer(2) === 0)
  }
  return true
}
