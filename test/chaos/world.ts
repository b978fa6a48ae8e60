/**
 * A chaos run: three nodes, nginx before them and Redis behind, and clients of all kinds, while nodes are killed, stopped and
 * started and Redis is paused and killed, and its replica takes over. It rejects when anything that was acknowledged is lost, doubled or out of order, when
 * a client is told of a gap, or a session is another's.
 *
 * Surprise: trouble sets the pace. Events are published in as many parts as there are troubles, so that there is work under way
 * in each, however fast the machine.
 */
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { applicationFolder } from '../support/application-folder.ts'
import { keptNode, type Node } from '../support/nodes.ts'
import { startNginx } from '../support/proxies.ts'
import { failOver, startName, startPair, type EngineName } from '../support/redis-pair.ts'
import type { RedisServer } from '../support/redis-server.ts'
import { Seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'
import { files } from './application.ts'
import { createAsking } from './asking.ts'
import { follow, keepSession, publish, push, take, type Progress } from './clients.ts'
import { ChannelLedger, QueueLedger } from './ledger.ts'

export interface ChaosOptions {
  /** Events to be acknowledged. */
  readonly events: number
  /** Clients with cursors. */
  readonly clients: number
  /** How often one or two nodes are killed or stopped. */
  readonly troubles: number
  /** How often Redis is paused, among them; it is killed once, halfway. */
  readonly pauses: number
  /** How often its replica takes over, among them. */
  readonly failovers: number
  readonly seed: number
  /** Is told what is done. */
  readonly say: (line: string) => void
}

/** What was seen, when nothing was wrong. */
export interface ChaosReport {
  readonly acknowledged: number
  /** Events whose publisher got no id, and that were published all the same. */
  readonly unacknowledged: number
  readonly kills: number
  readonly stops: number
  /** Pushes that were acknowledged, and how many of them were on their way to a client or in a node when that was killed. */
  readonly pushed: number
  readonly lostOfQueue: number
  /** Steps that were answered in sessions. */
  readonly counted: number
  /** How often each kind of answer or failure came. */
  readonly outcomes: ReadonlyMap<string, number>
}

const publishers = 3
const pushers = 2
const takers = 20
const sessions = 20
/** `always`: what Redis has answered is on disk. */
const durable = ['--appendonly', 'yes', '--appendfsync', 'always']

export async function runChaos(t: Pick<TestContext, 'after'>, options: ChaosOptions): Promise<ChaosReport> {
  const { events, clients, troubles, seed } = options
  const random = new Seeded(seed)
  const pair = await startPair(t, durable)
  const name = await startName(t, pair[0])
  const engine: Engine = { name, master: pair[0], replica: pair[1] }
  const config = { 'server.trusted_proxies': ['127.0.0.1'], 'shared.url': `redis://127.0.0.1:${name.port}` }
  const nodes = await Promise.all([1, 2, 3].map(() => keptNode(t, applicationFolder(files, config))))
  await Promise.all(nodes.map((node) => node.start()))
  const proxy = await startNginx(t, 'svc-nodes.nginx', nodes.map(({ port }) => port))
  const asking = createAsking(proxy.url, random)
  t.after(() => asking.close())
  const { last_id: start } = JSON.parse((await asking.askUntilAnswered('/last')).text) as { last_id: number }

  const channel = new ChannelLedger(clients)
  const queue = new QueueLedger()
  let done = 0
  const progress: Progress = {
    allowed: () => Math.ceil((events * (done + 1)) / (troubles + 1)),
    enough: false,
    published: false,
    failed: false,
  }
  const tally = { kills: 0, stops: 0 }
  const makeTrouble = async (): Promise<void> => {
    for (; done < troubles && !progress.failed; done += 1) {
      await part(done)
      await trouble(done, { ...options, nodes, engine, random, tally })
    }
    await part(done)
    progress.enough = true
  }
  const publishAll = async (): Promise<void> => {
    await Promise.all(times(publishers, (number) => publish(number, asking, channel, progress, random)))
    progress.published = true
  }
  /** Waits until what may be published before a trouble nearly is. */
  async function part(number: number): Promise<void> {
    const wanted = progress.allowed() - random.integer(Math.ceil(events / (troubles + 1) / 2))
    const enough = number < troubles ? wanted : progress.allowed()
    while (channel.acknowledged < enough && !progress.failed) await delay(5)
  }

  const times = <Value>(count: number, work: (number: number) => Promise<Value>): Promise<Value>[] =>
    Array.from({ length: count }, (_, number) =>
      work(number).catch((error: unknown) => {
        progress.failed = true
        throw error
      }),
    )
  const [, counts] = await Promise.all([
    Promise.all(
      [
        times(1, makeTrouble),
        times(1, publishAll),
        times(clients, (number) => follow(number, start, asking, channel, progress)),
        times(pushers, (number) => push(number, asking, queue, progress, random)),
        times(takers, () => take(asking, queue, progress)),
      ].flat(),
    ),
    Promise.all(times(sessions, (number) => keepSession(number, asking, progress))),
  ])
  channel.settle()
  // Each of those who wait may have one on its way, and each kill cuts a third of them, or two.
  if (queue.missing > tally.kills * takers) throw new Error(`${queue.missing} of ${queue.acknowledged} are missing in the queue`)
  return {
    acknowledged: channel.acknowledged,
    unacknowledged: channel.unacknowledged,
    ...tally,
    pushed: queue.acknowledged,
    lostOfQueue: queue.missing,
    counted: counts.reduce((sum, count) => sum + count),
    outcomes: asking.outcomes,
  }
}

/** The two servers, and the name by which the nodes know the master. */
interface Engine {
  readonly name: EngineName
  master: RedisServer
  replica: RedisServer
}

interface Place extends ChaosOptions {
  readonly nodes: readonly Node[]
  readonly engine: Engine
  readonly random: Seeded
  readonly tally: { kills: number; stops: number }
}

/** Does one thing to nodes or to Redis, or to both, and puts it right. */
async function trouble(number: number, place: Place): Promise<void> {
  const { nodes, engine, random, tally, troubles, pauses, failovers, say } = place
  const redis = engine.master
  const works: Promise<void>[] = []
  const said: string[] = []
  const away = random.pick([[0], [1], [2], [0, 1], [1, 2], [0, 2]])
  for (const at of away) {
    const node = nodes[at] as Node // There are three.
    const kills = random.next() < 0.5
    const pauseMs = random.integer(700)
    said.push(`${kills ? 'kill' : 'stop'} node ${at + 1} for ${pauseMs} ms`)
    tally[kills ? 'kills' : 'stops'] += 1
    works.push(bringBack(node, kills, pauseMs))
  }
  if (number === Math.floor(troubles / 2)) {
    said.push('kill Redis')
    works.push(killRedis(redis, random.integer(1500)))
  } else if (number % Math.ceil(troubles / (pauses + 1)) === 1) {
    const pauseMs = 200 + random.integer(7000) // Up to, and beyond, the time at which a node takes it for gone.
    said.push(`pause Redis for ${pauseMs} ms`)
    works.push(pauseRedis(redis, pauseMs))
  } else if (number % Math.ceil(troubles / (failovers + 1)) === 2) {
    said.push('let the replica of Redis take over')
    works.push(exchange(engine))
  }
  say(said.join(', '))
  await Promise.all(works)
}

async function bringBack(node: Node, kills: boolean, pauseMs: number): Promise<void> {
  await (kills ? node.kill() : node.stop())
  await delay(pauseMs)
  await node.start()
}

async function killRedis(redis: RedisServer, pauseMs: number): Promise<void> {
  await redis.kill()
  await delay(pauseMs)
  await redis.start()
  await until(async () => (await redis.ask('PING')) === 'PONG')
}

async function exchange(engine: Engine): Promise<void> {
  const { master, replica, name } = engine
  await failOver(master, replica, name)
  engine.master = replica
  engine.replica = master
}

async function pauseRedis(redis: RedisServer, pauseMs: number): Promise<void> {
  redis.pause()
  await delay(pauseMs)
  redis.resume()
}
