// Servers with jobs on one engine, each a process of its own or two.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { applicationFolder } from '../support/application-folder.ts'
import { launch, runLauncher } from '../support/launch.ts'
import { startRedis, type RedisServer } from '../support/redis-server.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

/** A job that notes `process begin DATA`, and `process end DATA` when its action returns. */
const action = (notes: string): string => `
  import { appendFileSync } from 'node:fs'
  import { JobFailed } from 'svc'
  const note = (text) => appendFileSync(${JSON.stringify(notes)}, process.pid + ' ' + text + '\\n')
  export default async ({ data }) => {
    note('begin ' + data)
    if (data === 'wrong') throw new JobFailed('no')
    if (data === 'hang') await new Promise((resolve) => setTimeout(resolve, 3_600_000))
    note('end ' + data)
  }
  export const tick = () => note('tick')
  export const add = async ({ query, enqueue, text }) => text(await enqueue('work', query.get('data')))`

interface Note {
  readonly pid: number
  readonly text: string
}

interface Served {
  readonly folder: string
  readonly url: string
  readonly server: ReturnType<typeof launch>
  add(data: string): Promise<string>
  /** What `/svc-jobs` says. */
  jobs(): Promise<{ readonly names: readonly Record<string, unknown>[]; readonly jobs: readonly Record<string, unknown>[] }>
  post(path: string, body: object): Promise<unknown>
}

/** Servers on one engine, and what their jobs have noted. */
async function begin(t: TestContext, configs: readonly Readonly<Record<string, unknown>>[], schedule: object = {}, work: object = {}) {
  const redis = await startRedis(t)
  const file = join(temporaryFolder(), 'notes')
  const nodes = await Promise.all(configs.map((config) => start(t, redis, file, config, schedule, work)))
  const notes = (): Note[] => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []).map((line) => {
    const [pid, ...words] = line.split(' ')
    return { pid: Number(pid), text: words.join(' ') }
  })
  return { redis, nodes: nodes as [Served, Served], notes }
}

async function start(t: TestContext, redis: RedisServer, notes: string, config: object, schedule: object, work: object): Promise<Served> {
  const files = {
    'jobs/work.json': [{ name: 'work', action: 'work.mjs', timeout_s: 86_400, ...work }, { name: 'tick', action: 'work.mjs@tick', ...schedule }],
    'routes/add.json': [{ name: 'add', url: '/add', action: 'work.mjs@add' }],
    'work.mjs': action(notes),
  }
  const folder = applicationFolder(files, { 'app.env': 'dev', 'dev.watch': false, 'shared.url': redis.url, ...config })
  const server = launch(t, ['start'], { cwd: folder })
  const url = await server.listening()
  const post = async (path: string, body: object): Promise<unknown> => {
    const headers = { 'Content-Type': 'application/json', Origin: url }
    return (await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })).json()
  }
  return {
    folder,
    url,
    server,
    add: async (data) => {
      const response = await fetch(`${url}/add?data=${data}`)
      assert.equal(response.status, 200)
      return response.text()
    },
    jobs: async () => (await fetch(`${url}/svc-jobs?format=json`)).json() as ReturnType<Served['jobs']>,
    post,
  }
}

const countsOf = async (node: Served): Promise<Record<string, unknown> | undefined> =>
  (await node.jobs()).names.find(({ name }) => name === 'work')

const metricOf = async ({ url }: Served): Promise<number> => {
  const text = await (await fetch(`${url}/svc-metrics?format=prometheus`)).text()
  return Number(/^svc_jobs_total\{[^}]*end="done"[^}]*\} (\d+)$/m.exec(text)?.[1])
}

describe('the jobs of servers with one engine', () => {
  it('are each done once, wherever they were enqueued', async (t) => {
    const { nodes, notes } = await begin(t, [{}, { 'server.processes': 2 }])
    const texts = Array.from({ length: 200 }, (_, at) => `n${at}`)
    const ids = await Promise.all(texts.map((text, at) => (nodes[at % 2] as Served).add(text)))
    assert.equal(new Set(ids).size, 200)
    const ended = (): Note[] => notes().filter(({ text }) => text.startsWith('end '))
    await until(() => ended().length >= 200)
    for (const node of nodes) {
      await until(async () => (await countsOf(node))?.['done'] === 200)
      assert.deepEqual((await node.jobs()).jobs, [])
    }
    assert.deepEqual(ended().map(({ text }) => text.slice(4)).sort(), texts.sort())
    const pids = new Set(ended().map(({ pid }) => pid))
    assert.ok(pids.size > 1, 'more than one process has run some')
    const done = await Promise.all(nodes.map(metricOf))
    assert.equal(done.reduce((sum, count) => sum + count), 200)
  })

  it('are given back by a server that stops, and run again about 20 seconds after one was killed', async (t) => {
    const { redis, nodes: [one, two], notes } = await begin(t, [{ 'server.stop_timeout_s': 1 }, { 'server.stop_timeout_s': 1 }])
    await one.add('hang')
    await until(() => notes().length === 1)
    const first = notes()[0]?.pid === one.server.child.pid ? one : two
    const second = first === one ? two : one
    first.server.child.kill('SIGKILL')
    await first.server.ended
    assert.equal((await second.jobs()).jobs[0]?.['state'], 'running')
    await until(() => notes().length === 2)
    assert.deepEqual(notes()[1], { pid: second.server.child.pid, text: 'begin hang' })
    second.server.child.kill('SIGTERM')
    await second.server.ended
    const key = 'svc:jobs:job:0000000000000001'
    assert.equal(await redis.ask('HMGET', key, 'state', 'tries', 'ends'), 'waiting\n0\n1')
    assert.equal(await redis.ask('ZCARD', 'svc:jobs:owners'), '0')
  })

  it('run again when their time is over, if that is sooner', async (t) => {
    const { redis, nodes: [one, two], notes } = await begin(t, [{}, {}], {}, { timeout_s: 3 })
    await one.add('hang')
    await until(() => notes().length === 1)
    const first = notes()[0]?.pid === one.server.child.pid ? one : two
    const second = first === one ? two : one
    first.server.child.kill('SIGKILL')
    await until(() => notes().length === 2)
    assert.deepEqual(notes()[1], { pid: second.server.child.pid, text: 'begin hang' })
    assert.equal(await redis.ask('ZCARD', 'svc:jobs:owners'), '2', 'the killed one still has its term')
  })

  it('make one run of a schedule', async (t) => {
    const { notes } = await begin(t, [{}, { 'server.processes': 2 }], { every: '1s' })
    const before = notes().length
    const begun = performance.now()
    await until(() => notes().length >= before + 8)
    const passedS = (performance.now() - begun) / 1000
    const runs = notes().length - before
    assert.ok(runs <= passedS + 2, `${runs} runs in ${passedS} s`)
  })

  it('are shown, tried again, discarded and run by the panel of any', async (t) => {
    const { nodes: [one, two], notes } = await begin(t, [{}, { 'pool_jobs.workers': 0 }])
    const [first, second] = [await one.add('wrong'), await one.add('wrong')]
    await until(async () => (await countsOf(two))?.['dead'] === 2)
    const [listed] = (await two.jobs()).jobs
    assert.deepEqual([listed?.['id'], listed?.['state'], listed?.['attempt']], [second, 'dead', 1])
    assert.match(String(listed?.['error']), /no/)
    assert.deepEqual(await two.post('/svc-jobs/retry', { id: first }), { ok: true, id: first })
    await until(() => notes().length === 3)
    assert.deepEqual(await two.post('/svc-jobs/discard', { id: second }), { ok: true, id: second })
    await until(async () => (await countsOf(two))?.['dead'] === 1)
    assert.deepEqual(await two.post('/svc-jobs/run', { name: 'tick' }), { ok: true, id: '3', name: 'tick' })
    await until(() => notes().at(-1)?.text === 'tick')
    const pid = one.server.child.pid
    assert.ok(notes().every((note) => note.pid === pid))
  })

  it('need no database', async (t) => {
    const { nodes: [one] } = await begin(t, [{}])
    await one.add('x')
    assert.equal(existsSync(join(one.folder, '.data')), false)
    const { status, stdout, stderr } = await runLauncher(t, ['check'], { cwd: one.folder })
    assert.equal(status, 0, stderr)
    assert.doesNotMatch(stdout, /svc\.db/)
  })
})
