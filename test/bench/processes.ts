/**
 * `npm run bench -- processes`: what the channel between a primary and its workers costs. Three tables: how messages are
 * written, JSON against `serialization: 'advanced'`; a session that is read and saved, in the memory of this process
 * against that of the primary; an event from its publisher to a listener, in one process against from worker to worker.
 *
 *   npm run bench -- processes [NAME ...]     some of serialization, sessions, events
 *
 * Surprise: processor time is that of both processes, since what the primary spends is not there for a worker either.
 * Rounds alternate, each with fresh processes; a ratio is the median of those within a round. BENCH_ROUNDS changes how
 * many there are.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { cpus } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { ClusterBroker, hostBroker } from '../../lib/cluster/events.ts'
import { Peer, portOf, workerPort } from '../../lib/cluster/peer.ts'
import { createClusterSessionStore, hostSessions } from '../../lib/cluster/sessions.ts'
import type { Broker } from '../../lib/events/broker.ts'
import { createEvents } from '../../lib/events/events.ts'
import { LocalBroker } from '../../lib/events/local-broker.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import { createMemoryStore } from '../../lib/session-stores/memory-store.ts'
import type { SessionStore } from '../../lib/session/store.ts'
import { median, medianRatio, percentile } from './support/statistics.ts'

/** What was measured of one thing in one round, by title. */
type Figures = ReadonlyMap<string, number>
type Measure = () => Promise<Figures>

interface Published {
  /** When, in nanoseconds. */
  readonly at: number
  readonly text: string
}

/** Publishes and listens, here or in another process. */
interface EventUser {
  listen(): Promise<void>
  /** Publishes events one after the other, each alone in its turn. */
  publishApart(count: number): Promise<void>
  /** Publishes 100 events in each turn. */
  publishTogether(turns: number): Promise<void>
  /** Waits for so many; their ways, in nanoseconds. */
  heard(count: number): Promise<number[]>
  close(): Promise<void>
}

const rounds = Number(process.env['BENCH_ROUNDS'] ?? 7)
const file = fileURLToPath(import.meta.url)
const perTurn = [1, 10, 30, 100]
const apart = 1000
const turns = 200
const inTurn = 100
const text = 'x'.repeat(100)
const sessionId = 'A'.repeat(43)
/** A session of 300 characters: a user, a cart, a token, two flash bags. */
const sessionFields = new Map([
  ['key:user', '{"id":4711,"name":"Grace Hopper"}'],
  ['key:cart', JSON.stringify([1, 2, 3].map((product) => ({ product, count: 2, note: 'gift' })))],
  ['_csrf', '"Zk3vY1bqXo8m5u2rT7wQ9aEhJ4sLcN6d"'],
  ['flash:order', '{"step":2}'],
  ['flash:login', '{"next":"/orders"}'],
])
const tables: Readonly<Record<string, Readonly<Record<string, Measure>>>> = {
  serialization: { json: () => callMany('json'), advanced: () => callMany('advanced') },
  sessions: { here: sessionsHere, primary: sessionsInPrimary },
  events: { here: eventsHere, primary: eventsOverPrimary },
}

const [first, ...rest] = process.argv.slice(2)
if (first === 'child') beChild(new Peer(workerPort()))
else {
  console.log(`Node ${process.versions.node}, ${cpus()[0]?.model ?? '?'}, ${cpus().length} cores, ${rounds} rounds`)
  for (const name of first === undefined ? Object.keys(tables) : [first, ...rest]) await compare(name)
}

/** Runs all of a table, in turn, and prints it. */
async function compare(name: string): Promise<void> {
  const table = tables[name]
  if (table === undefined) throw new Error(`There is no ${name}: there are ${Object.keys(tables).join(', ')}`)
  const [base = '', other = ''] = Object.keys(table)
  const found = new Map<string, Map<string, number[]>>([[base, new Map()], [other, new Map()]])
  for (let round = 0; round < rounds; round++) {
    for (const which of round % 2 === 0 ? [base, other] : [other, base]) {
      for (const [title, value] of await (table[which] as Measure)()) {
        const values = found.get(which)?.get(title) ?? []
        values.push(value)
        found.get(which)?.set(title, values)
      }
    }
  }
  console.log(`\n| ${name} | ${base} | ${other} | times |\n| --- | --- | --- | --- |`)
  for (const [title, values] of found.get(base) ?? []) {
    const others = found.get(other)?.get(title) ?? []
    const [one, two, times] = [median(values), median(others), medianRatio(others, values)].map((value) => value.toFixed(2))
    console.log(`| ${title} | ${one} | ${two} | ${times} |`)
  }
}

/** Calls with a small answer and one as long as a session, 1, 10, 30 and 100 in a turn, and a megabyte. */
async function callMany(serialization: 'json' | 'advanced'): Promise<Figures> {
  const { child, peer } = startChild(serialization)
  const figures = new Map<string, number>()
  for (const [what, answer] of [['small', 1], ['a session', { fields: [...sessionFields], remainingMs: 3_599_999.5 }]]) {
    await peer.call('answer with', answer)
    const ask = (): Promise<unknown> => peer.call('ask', [100_000, sessionId])
    for (const count of perTurn) await measure(figures, peer, `${what}, ${count} a turn`, count, 12_000, ask)
  }
  const text = 'x'.repeat(2 ** 20)
  await measure(figures, peer, '1 MiB there and back', 1, 40, () => peer.call('echo', text))
  child.kill()
  return figures
}

function sessionsHere(): Promise<Figures> {
  return useSessions(createMemoryStore({ max: 100_000, onFull: () => {} }), undefined)
}

async function sessionsInPrimary(): Promise<Figures> {
  const { child, peer } = startChild('json')
  const figures = await useSessions(createClusterSessionStore(peer, { store: 'memory', max: 100_000 }), peer)
  child.kill()
  return figures
}

async function useSessions(store: SessionStore, peer: Peer | undefined): Promise<Figures> {
  const figures = new Map<string, number>()
  const changes = { set: new Map([['key:cart', sessionFields.get('key:cart') as string]]), removed: new Set<string>() }
  await store.create(sessionId, sessionFields, 3_600_000)
  for (const count of perTurn) {
    await measure(figures, peer, `read, ${count} a turn`, count, 12_000, async () => store.read(sessionId))
  }
  for (const count of perTurn) {
    const save = async (): Promise<unknown> => store.merge(sessionId, changes, 3_600_000)
    await measure(figures, peer, `save, ${count} a turn`, count, 12_000, save)
  }
  return figures
}

async function eventsHere(): Promise<Figures> {
  const user = makeUser(undefined)
  await user.listen()
  const figures = await useEvents(user, user, () => Promise.resolve(spent()))
  await user.close()
  return figures
}

/** This process is the primary of one that publishes and one that listens. */
async function eventsOverPrimary(): Promise<Figures> {
  const host = hostBroker(new LocalBroker())
  const workers = [startChild('json'), startChild('json')] as const
  for (const { peer } of workers) host.attach(peer)
  const [publisher, listener] = workers.map(({ peer }) => userAt(peer)) as [EventUser, EventUser]
  await listener.listen()
  const figures = await useEvents(publisher, listener, async () => {
    const there = await Promise.all(workers.map(({ peer }) => peer.call('spent') as Promise<number>))
    return there.reduce((sum, value) => sum + value, spent())
  })
  for (const { child } of workers) child.kill()
  host.close()
  return figures
}

async function useEvents(publisher: EventUser, listener: EventUser, spentByAll: () => Promise<number>): Promise<Figures> {
  await publisher.publishApart(200)
  await listener.heard(200)
  await publisher.publishApart(apart)
  const latencies = await listener.heard(apart)
  await publisher.publishTogether(20)
  await listener.heard(20 * inTurn)
  const [before, started] = [await spentByAll(), performance.now()]
  await publisher.publishTogether(turns)
  await listener.heard(turns * inTurn)
  const events = turns * inTurn
  return new Map([
    ['publish to wake, one at a time, us', median(latencies) / 1000],
    ['99th percentile, us', percentile(latencies, 99) / 1000],
    ['100 a turn, us', ((performance.now() - started) * 1000) / events],
    ['100 a turn: processor time, us', ((await spentByAll()) - before) / events],
  ])
}

/** Uses events here. */
function makeUser(broker: Broker | undefined): EventUser {
  const events = createEvents({ log: () => silentLogger, broker })
  const channel = events.channel('c')
  let latencies: number[] = []
  let onHeard = (): void => {}
  return {
    listen: async () => {
      channel.subscribe(({ data }) => {
        latencies.push(nanoseconds() - (data as Published).at)
        onHeard()
      })
      await channel.listen()
    },
    publishApart: async (count) => {
      for (let published = 0; published < count; published++) {
        await channel.publish({ at: nanoseconds(), text })
        await delay(1)
      }
    },
    publishTogether: async (turns) => {
      for (let turn = 0; turn < turns; turn++) {
        await Promise.all(Array.from({ length: inTurn }, () => channel.publish({ at: nanoseconds(), text })))
        await new Promise((resolve) => setImmediate(resolve))
      }
    },
    heard: async (count) => {
      while (latencies.length < count) await new Promise<void>((resolve) => (onHeard = resolve))
      const found = latencies
      latencies = []
      return found
    },
    close: () => events.close(),
  }
}

/** Uses events in another process. */
function userAt(peer: Peer): EventUser {
  return {
    listen: async () => void (await peer.call('listen')),
    publishApart: async (count) => void (await peer.call('publish apart', count)),
    publishTogether: async (turns) => void (await peer.call('publish together', turns)),
    heard: async (count) => (await peer.call('heard', count)) as number[],
    close: () => Promise.resolve(),
  }
}

/** The process on the other side: a primary for sessions, a worker for events. */
function beChild(peer: Peer): void {
  let answer: unknown
  peer.on('answer with', (taken) => void (answer = taken))
  peer.on('ask', () => answer)
  peer.on('echo', (taken) => taken)
  peer.on('spent', spent)
  hostSessions({ onProblem: console.error }).attach(peer)
  const user = makeUser(new ClusterBroker(peer))
  peer.on('listen', () => user.listen())
  peer.on('publish apart', (taken) => user.publishApart(taken as number))
  peer.on('publish together', (taken) => user.publishTogether(taken as number))
  peer.on('heard', (taken) => user.heard(taken as number))
}

function startChild(serialization: 'json' | 'advanced'): { child: ChildProcess; peer: Peer } {
  const child = fork(file, ['child'], { serialization })
  return { child, peer: new Peer(portOf(child)) }
}

/** Does something so many times, `count` in a turn, after a tenth of it unmeasured. */
async function measure(
  figures: Map<string, number>,
  peer: Peer | undefined,
  title: string,
  count: number,
  total: number,
  work: () => Promise<unknown>,
): Promise<void> {
  const run = async (times: number): Promise<void> => {
    for (let done = 0; done < times; done += count) await Promise.all(Array.from({ length: count }, work))
  }
  const spentByBoth = async (): Promise<number> => spent() + (((await peer?.call('spent')) as number | undefined) ?? 0)
  await run(total / 10)
  const [before, started] = [await spentByBoth(), performance.now()]
  await run(total)
  figures.set(`${title}, us`, ((performance.now() - started) * 1000) / total)
  figures.set(`${title}: processor time, us`, ((await spentByBoth()) - before) / total)
}

/** The processor time of this process so far, in microseconds. */
function spent(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** The same clock in all processes of a machine. */
function nanoseconds(): number {
  return Number(process.hrtime.bigint())
}
