/** What becomes of the requests under way when nodes behind a proxy of docs/deploy are stopped and killed. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { startClient, type KeepAliveClient, type Tally } from '../support/keep-alive-client.ts'
import type { Nodes } from '../support/nodes.ts'
import type { Proxy } from '../support/proxies.ts'
import { openSockets, openStreams } from '../support/stream-clients.ts'
import { until } from '../support/until.ts'
import { ask } from './in-front.ts'

/** Requests of four kinds. */
interface Traffic {
  readonly plain: KeepAliveClient
  readonly posts: KeepAliveClient
  readonly polls: KeepAliveClient
  readonly sessions: KeepAliveClient
  /** Waits until each kind has had so many more answers. */
  more(count: number): Promise<void>
  stop(): Promise<Readonly<Record<'plain' | 'posts' | 'polls' | 'sessions', Tally>>>
}

/** So many requests of each kind may be under way at once. */
const connectionsOfEach = 8

async function beginTraffic(t: TestContext, { url }: Proxy): Promise<Traffic> {
  const cookie = String((await ask(`${url}/in`)).headers['set-cookie']).split(';')[0] ?? ''
  let number = 0
  const client = (path: string, more = {}): KeepAliveClient =>
    startClient({ url: url + path, connections: connectionsOfEach, pauseMs: 10, ...more })
  const clients = {
    plain: client('/'),
    posts: client('/add', { body: () => `note ${(number += 1)}` }),
    polls: client('/ask'),
    sessions: client('/user', { headers: { cookie } }),
  }
  const all = Object.values(clients)
  t.after(() => Promise.all(all.map((one) => one.stop())))
  return {
    ...clients,
    more: async (count) => {
      const before = all.map(({ tally }) => tally.answered)
      await until(() => all.every(({ tally }, at) => tally.answered >= (before[at] ?? 0) + count))
    },
    stop: async () => {
      const [plain, posts, polls, sessions] = await Promise.all(all.map((one) => one.stop()))
      return { plain, posts, polls, sessions } as Awaited<ReturnType<Traffic['stop']>> // As many as there are clients.
    },
  }
}

/** Stops each node and starts it again, under all kinds of requests: none fails, and every stream and WebSocket comes back. */
export async function losesNothingToStops(t: TestContext, proxy: Proxy, { nodes, added }: Nodes, rounds: number): Promise<void> {
  const traffic = await beginTraffic(t, proxy)
  const streams = openStreams(`${proxy.url}/events`, 6)
  const sockets = openSockets(`${proxy.url}/socket`, 6)
  t.after(() => [streams, sockets].forEach((clients) => clients.stop()))
  const areOpen = (): boolean => [...streams.opened, ...sockets.opened].every((count) => count > 0)
  await until(areOpen)
  for (let round = 0; round < rounds; round += 1) {
    for (const node of nodes) {
      await traffic.more(20)
      await node.stop()
      const pid = String(await node.start())
      await until(() => (traffic.plain.tally.bodies.get(pid) ?? 0) >= 20)
    }
  }
  await traffic.more(20)
  const { plain, posts, polls, sessions } = await traffic.stop()
  const counts = { plain, posts, polls, sessions }
  t.diagnostic(Object.entries(counts).map(([name, tally]) => `${name} ${tally.answered}, slowest ${tally.slowestMs.toFixed()} ms`).join('; '))
  const failed = Object.entries(counts).map(([name, tally]) => [name, tally.failed])
  assert.deepEqual(Object.fromEntries(failed), { plain: [], posts: [], polls: [], sessions: [] })
  assert.deepEqual([...sessions.bodies.keys()], ['Ada'])
  assert.equal(added().length, posts.answered)
  assert.equal(new Set(added()).size, posts.answered)
  assert.deepEqual([streams.failed, sockets.failed], [[], []])
  assert.ok([...streams.opened, ...sockets.opened].every((count) => count > 1), `${streams.opened} ${sockets.opened}`)
}

/** Kills each node and starts it again: what fails is what was under way there and must not be sent twice. */
export async function losesLittleToKills(t: TestContext, proxy: Proxy, { nodes, added }: Nodes): Promise<void> {
  const traffic = await beginTraffic(t, proxy)
  for (const node of nodes) {
    await traffic.more(20)
    await node.kill()
    const pid = String(await node.start())
    await until(() => (traffic.plain.tally.bodies.get(pid) ?? 0) >= 20)
  }
  const { plain, posts, polls, sessions } = await traffic.stop()
  t.diagnostic(`of ${posts.answered} posts, ${posts.failed.length} failed: ${posts.failed.join()}`)
  assert.deepEqual([plain.failed, polls.failed, sessions.failed], [[], [], []])
  assert.ok(posts.failed.length <= nodes.length * connectionsOfEach, `${posts.failed.length} posts failed`)
  assert.deepEqual(posts.failed.filter((problem) => problem !== 'status 502'), [])
  const notes = added()
  assert.equal(new Set(notes).size, notes.length)
  assert.deepEqual([...posts.bodies.keys()].filter((body) => body.startsWith('note ') && !notes.includes(body)), [])
}
