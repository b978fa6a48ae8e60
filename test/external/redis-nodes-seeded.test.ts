// Random changes on three nodes, with random cuts: in the end all serve the same, and what was acknowledged is there.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { startSeveral } from '../cluster/several.ts'
import { startApplication } from '../support/application.ts'
import { ask, isReady, nodeFiles, post, route, tableOf, type Node } from '../support/node-panel.ts'
import { startRedis, type RedisServer } from '../support/redis-server.ts'
import type { Answer } from '../support/request.ts'
import { Seeded } from '../support/seeded.ts'
import { until } from '../support/until.ts'

/** On each node, that were answered with something other than 503. */
const changes = 40

/** What must be there in the end: routes whose addition was answered, and that nobody has touched since. */
class Sure {
  readonly names = new Set<string>()
  /** Reloads that have begun and not ended, and how many there were. */
  #reloading = 0
  #reloads = 0

  async adding(name: string, add: () => Promise<number>): Promise<void> {
    const before = this.#reloads
    const status = await add()
    if (status === 200 && this.#reloads === before && this.#reloading === 0) this.names.add(name)
  }

  async reloading(reload: () => Promise<number>): Promise<void> {
    this.#reloading += 1
    this.#reloads += 1
    this.names.clear()
    await reload()
    this.#reloading -= 1
  }
}

/** Changes one node again and again. */
async function change({ url }: Node, at: number, random: Seeded, sure: Sure, onAnswer: (status: number) => void): Promise<void> {
  let done = 0
  const noted = async (asked: Promise<Answer>): Promise<number> => {
    const { status } = await asked
    if (status !== 503) done += 1
    onAnswer(status)
    return status
  }
  while (done < changes) {
    const name = `n${at}-${random.integer(8)}`
    const kind = random.next()
    if (kind < 0.55) {
      await sure.adding(name, () => noted(post(url, '/svc-routes/add', route(name, { url: '/:same' }))))
    } else if (kind < 0.95) {
      sure.names.delete(name)
      await noted(post(url, '/svc-routes/delete', { name }))
    } else await sure.reloading(() => noted(ask(url, '/svc-routes/reload')))
  }
}

/** Does something bad. */
async function harm(server: RedisServer, random: Seeded): Promise<void> {
  const kinds = ['pubsub', 'normal', 'all', 'flush'] as const
  const kind = random.pick(kinds)
  if (kind === 'flush') await server.ask('FLUSHALL')
  if (kind === 'pubsub' || kind === 'normal') await server.ask('CLIENT', 'KILL', 'TYPE', kind)
  if (kind === 'all') for (const type of ['pubsub', 'normal']) await server.ask('CLIENT', 'KILL', 'TYPE', type)
}

for (const seed of [1, 2]) {
  it(`nodes agree after random changes and cuts, seed ${seed}`, async (t) => {
    const server = await startRedis(t)
    const config = { 'shared.url': server.url, 'app.env': 'dev' }
    const nodes = [
      await startApplication(t, nodeFiles, config),
      await startApplication(t, nodeFiles, config),
      await startSeveral(t, 2, nodeFiles, config),
    ] as const
    const sure = new Sure()
    const statuses = new Map<number, number>()
    const random = new Seeded(seed)
    let pause = 10
    let harming = Promise.resolve()
    const onAnswer = (status: number): void => {
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (status === 200) pause -= 1
      if (pause > 0) return
      pause = 1 + random.integer(12)
      harming = harming.then(() => harm(server, random))
    }
    await Promise.all(nodes.map((node, at) => change(node, at, new Seeded(10 * seed + at), sure, onAnswer)))
    await harming
    t.diagnostic(`answers: ${JSON.stringify(Object.fromEntries(statuses))}`)
    const tables = async (): Promise<readonly string[]> => {
      const all = await Promise.all(nodes.map(tableOf))
      return all.map((table) => table.filter((line) => line !== 'pid /pid').join())
    }
    await until(async () => {
      const ready = await Promise.all(nodes.map(isReady))
      return ready.every((is) => is) && new Set(await tables()).size === 1
    })
    const names = (await tableOf(nodes[0])).map((line) => line.split(' ')[0] ?? '')
    assert.deepEqual([...sure.names].filter((name) => !names.includes(name)), [])
  })
}
