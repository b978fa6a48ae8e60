// Another server becomes the engine under load: nobody is deaf afterwards, and what was acknowledged arrives or is told as a gap.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { startApplication } from '../support/application.ts'
import { freePort } from '../support/free-port.ts'
import { isReady } from '../support/node-panel.ts'
import { failOver, startName, startPair } from '../support/redis-pair.ts'
import type { RedisServer } from '../support/redis-server.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

const files = {
  'routes/a.json': [
    { name: 'poll', url: '/poll', action: 'a.mjs' },
    { name: 'stream', url: '/stream', action: 'a.mjs@stream' },
    { name: 'publish', url: '/publish', method: 'POST', action: 'a.mjs@publish' },
  ],
  'a.mjs': `
    const limits = { events: 20_000, age_s: 3600 }
    export default (ctx) => ctx.longPoll(ctx.channel('c', limits), { timeout_s: 2 })
    export const stream = (ctx) => ctx.sse(ctx.channel('c', limits), { retry_ms: 50 })
    export const publish = async (ctx) => ({ id: await ctx.channel('c', limits).publish(await ctx.readJson()) })`,
}

/** What a client got: events, and how far the gaps went that it was told of. */
class Received {
  readonly ids = new Map<string, number>()
  readonly gaps: number[] = []
  cursor: number
  readonly #what: string

  constructor(what: string, cursor: number) {
    this.#what = what
    this.cursor = cursor
  }

  event(id: number, data: string): void {
    assert.ok(id > this.cursor, `${this.#what} got ${data} as ${id} behind ${this.cursor}`)
    assert.equal(this.ids.has(data), false, `${this.#what} got ${data} twice`)
    this.ids.set(data, id)
    this.cursor = id
  }

  gap(lastId: number): void {
    this.gaps.push(lastId)
    this.cursor = lastId
  }

  /** Acknowledged events that it did not get and was told nothing of. */
  missing(acknowledged: ReadonlyMap<string, number>): string[] {
    const isMissing = ([data, id]: [string, number]): boolean => !this.ids.has(data) && !this.gaps.some((gap) => gap >= id)
    return [...acknowledged].filter(isMissing).map(([data, id]) => `${this.#what}: ${data} as ${id}`)
  }
}

/** Three nodes with publishers and 36 clients, half of them polls and half streams. */
async function startLoad(t: TestContext, url: string) {
  const nodes: string[] = []
  while (nodes.length < 3) nodes.push((await startApplication(t, files, { 'shared.url': url, 'app.env': 'dev' })).url)
  const acknowledged = new Map<string, number>()
  const load = { isPublishing: true, isOver: false }
  const { last_id: start } = (await request(`${nodes[0]}/poll?since=0`)).json() as { last_id: number }
  const abort = new AbortController()

  async function publish(name: string, node: string): Promise<void> {
    for (let number = 0; load.isPublishing; number += 1) {
      const data = `${name}:${number}`
      const answer = await request(`${node}/publish`, { body: JSON.stringify(data), headers: { 'content-type': 'application/json' } })
      if (answer.status === 200) acknowledged.set(data, (answer.json() as { id: number }).id)
      await delay(5)
    }
  }
  async function poll(client: Received, node: string): Promise<void> {
    while (!load.isOver) {
      const answer = await request(`${node}/poll?since=${client.cursor}`)
      if (answer.status !== 200) {
        await delay(50)
        continue
      }
      const { events, last_id, gap } = answer.json() as { events: { id: number; data: string }[]; last_id: number; gap?: true }
      if (gap) client.gap(events[0] === undefined ? last_id : events[0].id - 1)
      for (const { id, data } of events) client.event(id, data)
    }
  }
  async function stream(client: Received, node: string): Promise<void> {
    while (!load.isOver) {
      try {
        const headers = { accept: 'text/event-stream', 'last-event-id': `${client.cursor}` }
        const answer = await fetch(`${node}/stream`, { headers, signal: abort.signal })
        let text = ''
        if (answer.status === 200) {
          for await (const piece of (answer.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
            text += piece
            for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
              frame(client, text.slice(0, end))
              text = text.slice(end + 2)
            }
          }
        }
      } catch (error) {
        if ((error as Error).name === 'AssertionError') throw error
      }
      if (!load.isOver) await delay(50)
    }
  }
  function frame(client: Received, text: string): void {
    const fields = new Map(text.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]))
    const id = Number(fields.get('id'))
    if (fields.get('event') === 'gap') client.gap(id)
    else if (fields.has('data')) client.event(id, JSON.parse(fields.get('data') ?? '') as string)
  }

  const clients = nodes.flatMap((_, node) => Array.from({ length: 12 }, (_, at) => new Received(`client ${at} of node ${node}`, start)))
  const following = Promise.all(clients.map((client, at) => (at % 2 === 0 ? poll : stream)(client, nodes[Math.floor(at / 12)] ?? '')))
  const publishing = Promise.all(nodes.flatMap((node, at) => [publish(`${at}a`, node), publish(`${at}b`, node)]))
  await until(() => acknowledged.size > 200)

  return {
    acknowledged,
    clients,
    /** Publishes for a while, then ends, and checks what everybody has. */
    settle: async (): Promise<void> => {
      const before = acknowledged.size
      await until(() => acknowledged.size > before + 200)
      load.isPublishing = false
      await publishing
      for (const node of nodes) await until(() => isReady({ url: node }))
      const last = await request(`${nodes[0]}/publish`, { body: '"last"', headers: { 'content-type': 'application/json' } })
      assert.equal(last.status, 200, last.text)
      const deaf = (): number => clients.filter(({ ids }) => !ids.has('last')).length
      await until(() => deaf() === 0).catch(() => assert.fail(`${deaf()} clients are deaf`))
      load.isOver = true
      abort.abort()
      await following
      const missing = clients.flatMap((client) => client.missing(acknowledged))
      t.diagnostic(`${acknowledged.size} acknowledged, ${Math.max(...clients.map(({ gaps }) => gaps.length))} gaps at most`)
      assert.deepEqual(missing.slice(0, 5), [], `${missing.length} missing`)
    },
  }
}

/** Starts two sentinels that watch over a master. Resolves when they know its replica. */
async function startSentinels(t: TestContext, { port }: RedisServer): Promise<{ ask(...command: string[]): Promise<string> }> {
  const ports = [await freePort(), await freePort()]
  for (const own of ports) {
    const file = join(temporaryFolder(), 'sentinel.conf')
    writeFileSync(file, `port ${own}\nbind 127.0.0.1\nsentinel monitor svc 127.0.0.1 ${port} 2\nsentinel down-after-milliseconds svc 1000\nsentinel failover-timeout svc 5000\n`)
    const child = spawn('redis-server', [file, '--sentinel'], { stdio: 'ignore' })
    t.after(() => child.kill('SIGKILL'))
  }
  const { execFile } = await import('node:child_process')
  const ask = (...command: string[]): Promise<string> =>
    new Promise((resolve) => execFile('redis-cli', ['-p', `${ports[0]}`, ...command], (_, stdout) => resolve(stdout.trimEnd())))
  await until(async () => /num-slaves\n1\n[^]*num-other-sentinels\n1\n/.test(await ask('SENTINEL', 'MASTER', 'svc')))
  return { ask }
}

describe('an engine that is replaced under load', () => {
  it('by REPLICAOF: both connections follow', async (t) => {
    const [one, two] = await startPair(t)
    const name = await startName(t, one)
    const load = await startLoad(t, `redis://127.0.0.1:${name.port}`)
    await two.ask('REPLICAOF', 'NO', 'ONE')
    await one.ask('REPLICAOF', '127.0.0.1', `${two.port}`)
    name.to = two.port
    await load.settle()
  })

  it('by REPLICAOF, with writes that the replica does not have: every cursor gets a gap', async (t) => {
    const [one, two] = await startPair(t)
    const name = await startName(t, one)
    const load = await startLoad(t, `redis://127.0.0.1:${name.port}`)
    await two.ask('REPLICAOF', 'NO', 'ONE')
    const before = load.acknowledged.size
    await until(() => load.acknowledged.size > before + 100)
    await one.ask('REPLICAOF', '127.0.0.1', `${two.port}`)
    name.to = two.port
    await load.settle()
    assert.ok(load.clients.every(({ gaps }) => gaps.length > 0))
  })

  it('by FAILOVER: nothing is lost, and no client gets a gap', async (t) => {
    const [one, two] = await startPair(t)
    const name = await startName(t, one)
    const load = await startLoad(t, `redis://127.0.0.1:${name.port}`)
    await failOver(one, two, name)
    await load.settle()
    assert.ok(load.clients.every(({ gaps }) => gaps.length === 0))
  })

  it('by DNS, when the old engine is killed', async (t) => {
    const [one, two] = await startPair(t)
    const name = await startName(t, one)
    const load = await startLoad(t, `redis://127.0.0.1:${name.port}`)
    await two.ask('REPLICAOF', 'NO', 'ONE')
    name.to = two.port
    await one.kill()
    await load.settle()
  })

  it('by DNS, for one of the two connections of a node', async (t) => {
    const [one, two] = await startPair(t)
    const name = await startName(t, one)
    const load = await startLoad(t, `redis://127.0.0.1:${name.port}`)
    await two.ask('REPLICAOF', 'NO', 'ONE')
    name.to = two.port
    await one.ask('CLIENT', 'KILL', 'TYPE', 'normal') // The other connections stay with a server that is still a master.
    await load.settle()
  })

  it('by Sentinel', async (t) => {
    const [one, two] = await startPair(t)
    const sentinels = await startSentinels(t, one)
    const name = await startName(t, one)
    const load = await startLoad(t, `redis://127.0.0.1:${name.port}`)
    assert.equal(await sentinels.ask('SENTINEL', 'FAILOVER', 'svc'), 'OK')
    await until(async () => (await sentinels.ask('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'svc')).endsWith(`${two.port}`))
    name.to = two.port
    await load.settle()
  })
})
