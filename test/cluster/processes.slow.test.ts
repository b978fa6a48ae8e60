import assert from 'node:assert/strict'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { Status } from '../../lib/panel/status.ts'
import { codeDigest } from '../../lib/proof/code-digest.ts'
import { readPage } from '../support/markdown.ts'
import { until } from '../support/until.ts'
import { waitingApplication } from '../support/waiting-application.ts'
import { agreed, changing, count, held, ProcessClient, startSeveral } from './several.ts'

const route = (name: string, action = 'pid.mjs@same'): string =>
  JSON.stringify({ name, method: 'GET', url: `/${name}`, action, middleware: '', scope: '' })

const sessions = {
  'routes/s.json': ['count', 'set', 'keys', 'end'].map((name) => {
    return { name, url: `/${name}`, action: `s.mjs@${name}`, middleware: 'SVC_MwSession' }
  }),
  's.mjs': `export const count = ({ session }) => {
      session.set('count', (session.get('count') ?? 0) + 1)
      return { count: session.get('count') }
    }
    export const set = ({ session, query }) => { session.set(query.get('key'), 1); return 'set' }
    export const keys = ({ session }) => {
      let keys = 0
      while (session.has('k' + keys)) keys += 1
      return { keys }
    }
    export const end = async ({ session }) => { await session.destroy(); return 'ended' }`,
}

describe('several processes', () => {
  it('act as one server: changes apply in every process before the response', async (t) => {
    const server = await startSeveral(t, count, changing)
    const clients = await server.clients()
    const [one, two] = [...clients.values()] as [ProcessClient, ProcessClient]
    assert.equal((await agreed(clients, '/a'))[0]?.slice(0, 3), '404')

    assert.equal((await one.ask('/svc-routes/add', { body: route('a') })).status, 200)
    assert.deepEqual(await agreed(clients, '/a'), ['200 same'])
    assert.equal((await two.ask('/svc-routes/add', { body: route('a') })).status, 409)
    const kept = { ...(JSON.parse(route('kept')) as object), persist: true }
    assert.equal((await two.ask('/svc-routes/add', { body: JSON.stringify(kept) })).status, 200)
    assert.deepEqual(await agreed(clients, '/kept'), ['200 same'])
    assert.equal((await one.ask('/svc-routes/delete', { body: '{"name":"a"}' })).status, 200)
    assert.equal((await agreed(clients, '/a'))[0]?.slice(0, 3), '404')

    assert.equal((await one.ask('/svc-routes/add', { body: route('b') })).status, 200)
    writeFileSync(join(server.folder, 'pid.mjs'), changing['pid.mjs'].replace("'same'", "'renewed'"))
    const { total_deleted, removed } = (await two.json('/svc-routes/reload')) as Record<string, unknown>
    assert.deepEqual([total_deleted, removed], [3, ['b']])
    assert.deepEqual(await agreed(clients, '/kept'), ['200 renewed'])
    assert.equal((await agreed(clients, '/b'))[0]?.slice(0, 3), '404')

    writeFileSync(join(server.folder, 'routes', 'pid.json'), '[{"name": 1}]')
    assert.equal((await one.ask('/svc-routes/reload')).status, 409)
    assert.deepEqual(await agreed(clients, '/kept'), ['200 renewed'])
    assert.deepEqual(await server.clients().then((now) => [...now.keys()].sort()), [...clients.keys()].sort())
  })

  for (const session of [{ store: 'memory' }, { store: 'file', path: 'sessions' }]) {
    it(`share the sessions of the store ${session.store}`, async (t) => {
      const server = await startSeveral(t, count, { ...sessions, 'routes/middleware/config.json': { setup: { session } } })
      const [one, two] = [...(await server.clients()).values()] as [ProcessClient, ProcessClient]
      const { cookie } = await one.ask('/count')
      const headers = { cookie }
      const counts: unknown[] = []
      for (const client of [one, two, two, one]) counts.push(await client.json('/count', { headers }))
      assert.deepEqual(counts, [2, 3, 4, 5].map((number) => ({ count: number })))
      const keys = Array.from({ length: 20 }, (_, key) => key)
      await Promise.all(keys.map((key) => [one, two][key % 2]?.ask(`/set?key=k${key}`, { headers })))
      assert.deepEqual(await two.json('/keys', { headers }), { keys: 20 })
      assert.equal((await one.ask('/end', { headers })).text, 'ended')
      assert.deepEqual(await two.json('/count', { headers }), { count: 1 })
    })
  }

  it('close the open streams of a session in one process when it ends in another', async (t) => {
    const files = {
      ...sessions,
      'routes/open.json': [{ name: 'open', url: '/open', action: 'open.mjs', middleware: 'SVC_MwSession' }],
      'open.mjs': "export default ({ sse, channel }) => sse(channel('c'))",
    }
    const server = await startSeveral(t, count, files)
    const [one, two] = [...(await server.clients()).values()] as [ProcessClient, ProcessClient]
    const { cookie } = await one.ask('/count')
    const other = await one.ask('/count')
    const isOpen = async (streams: number): Promise<void> =>
      until(async () => ((await two.json('/svc-status')) as Status).pool_rest.sse === streams)
    const ended = one.ask('/open', { headers: { cookie } })
    const kept = new ProcessClient(server.url)
    t.after(() => kept.close())
    const stays = kept.ask('/open', { headers: { cookie: other.cookie } }).catch(() => {}) // Cut at the end.
    await isOpen(2)
    assert.equal((await two.ask('/end', { headers: { cookie } })).text, 'ended')
    assert.match((await ended).text, /^retry: 2000/)
    await isOpen(1)
    kept.close()
    await stays
  })

  it('share the trace switches', async (t) => {
    const server = await startSeveral(t, count)
    const all = [...(await server.clients()).values()]
    await (all[1] as ProcessClient).ask('/svc-trace?mod=pool&on=0&ttl=1')
    for (const client of all) assert.equal(((await client.json('/svc-trace')) as { pool: boolean }).pool, false)
    const backOn = async (): Promise<boolean> => {
      const states = await Promise.all(all.map((client) => client.json('/svc-trace') as Promise<{ pool: boolean }>))
      return states.every(({ pool }) => pool)
    }
    await until(backOn)
    const resets = (): number => server.lines().filter((line) => line.includes('trace of pool reverted to on')).length
    await until(() => resets() > 0) // The primary logs it, at an independent time.
    assert.equal(resets(), 1)
    for (const client of all) {
      const change = async (): Promise<unknown> => ((await client.json('/svc-changes?format=json')) as unknown[])[0]
      await until(async () => (await change()) !== undefined) // The primary writes it, at a time of its own.
      const { process, what } = (await change()) as { process: number; what: string }
      assert.ok(what === 'trace of pool set' && process >= 1 && process <= count, `${what} in ${process}`)
    }
  })

  it('deliver events to waiting clients in other processes, each event of a queue to one', async (t) => {
    const files = {
      ...waitingApplication,
      'routes/q.json': [
        { name: 'push', url: '/push', action: 'q.mjs@push' },
        { name: 'take', url: '/take', action: 'q.mjs@take' },
      ],
      'q.mjs': `export const push = async ({ queue, query }) => { await queue('q').push(query.get('n')); return 'pushed' }
        export const take = ({ queue, longPoll }) => longPoll(queue('q'), { timeout_s: 60 })`,
    }
    const server = await startSeveral(t, count, files)
    const clients = await server.clients()
    const waiting = [...(await server.clients()).values()]
    const publisher = new ProcessClient(server.url)
    t.after(() => {
      for (const client of [...clients.values(), publisher]) client.close()
    })
    const polls = waiting.map((client) => client.json('/poll') as Promise<{ events: { data: unknown }[] }>)
    await held(server.url, count)
    const id = Number((await publisher.ask('/say')).text)
    for (const poll of await Promise.all(polls)) assert.deepEqual(poll.events, [{ id, data: 'news' }])
    assert.ok(Number((await publisher.ask('/say')).text) > id)

    const takes = waiting.map((client) => client.json('/take') as Promise<{ event: unknown }>)
    await held(server.url, count)
    for (let n = 0; n < count; n += 1) await publisher.ask(`/push?n=${n}`)
    const taken = (await Promise.all(takes)).map(({ event }) => event)
    assert.deepEqual(taken.sort(), ['0', '1'])
  })

  it('run the once-only work of docs/scaling.md in one process, or in its replacement', async (t) => {
    const snippet = readPage('docs/scaling.md').blocks.find(({ text }) => text.includes('setup(app)'))?.text
    assert.ok(snippet !== undefined)
    const server = await startSeveral(t, count, {
      'routes/middleware/config.json': { load: ['feed.mjs'] },
      'routes/middleware/feed.mjs': snippet,
      'routes/time.json': [{ name: 'time', url: '/time', action: 'time.mjs' }],
      'time.mjs': "export default ({ channel, longPoll }) => longPoll(channel('time'), { timeout_s: 60 })",
    })
    const clients = await server.clients()
    const told: { id: number; data: number }[] = []
    const hear = async (client: ProcessClient): Promise<void> => {
      const { events } = (await client.json(`/time?since=${told.at(-1)?.id ?? 0}`)) as { events: typeof told }
      told.push(...events)
    }
    while (told.length < 3) await hear([...clients.values()][told.length % count] as ProcessClient)
    // Two publishers would publish moments apart; the timer of one is never early.
    for (const [at, { data }] of told.slice(1).entries()) assert.ok(data - (told[at]?.data ?? 0) >= 900)
    const first = Number(/process 1 of 2 serves: (\d+)/.exec(server.stdout())?.[1])
    process.kill(first, 'SIGKILL')
    const [other] = [...clients].filter(([pid]) => pid !== first).map(([, client]) => client) as [ProcessClient]
    const before = told.length
    while (told.length < before + 2) await hear(other)
  })

  it('share the admin: setup, cookie, secret and the count of failed logins', async (t) => {
    const server = await startSeveral(t, count, {}, { 'app.env': 'prod', 'app_key': '' })
    const clients = [...(await server.clients()).values()] as [ProcessClient, ProcessClient]
    const form = (fields: Record<string, string>) => ({
      body: new URLSearchParams(fields).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', origin: server.url },
    })
    for (const client of clients) assert.equal((await client.ask('/svc-status')).location, '/svc-setup')
    const credentials = { user: 'root', password: 'secret1' }
    assert.equal((await clients[0].ask('/svc-setup', form({ ...credentials, password2: 'secret1' }))).location, '/svc-login')
    const login = await clients[1].ask('/svc-login', form(credentials))
    assert.equal(login.location, '/svc-status')
    for (const client of clients) {
      assert.equal((await client.ask('/svc-status', { headers: { cookie: login.cookie } })).status, 200)
      assert.equal((await client.ask('/svc-status')).location, '/svc-login?next=/svc-status')
    }

    const wrong = form({ user: 'root', password: 'wrong' })
    const statuses: number[] = []
    for (let at = 0; at < 10; at += 1) statuses.push((await (clients[at % count] as ProcessClient).ask('/svc-login', wrong)).status)
    assert.deepEqual(statuses, Array(10).fill(401))
    const began = performance.now()
    assert.equal((await clients[1].ask('/svc-login', wrong)).status, 401)
    assert.ok(performance.now() - began >= 990, 'the 11th failure of all processes together is answered a second later')

    const saved = /\[INFO \] \[config\] wrote admin\.user, admin\.password, admin\.secret, app_key into .*svc\.json$/
    assert.equal(server.lines().filter((line) => saved.test(line)).length, 1)
    const served = (): string[] => server.lines().filter((line) => line.includes('process 1 of 2 serves: '))
    process.kill(Number(/serves: (\d+)/.exec(served().join())?.[1]), 'SIGKILL')
    await until(() => served().length === 2)
    for (const warning of ['the admin panel is not set up', 'app_key is empty']) {
      assert.equal(server.lines().filter((line) => line.includes(warning)).length, 1, warning)
    }
  })

  it('appear as one server in the panel: total, each process and one bench window', async (t) => {
    const server = await startSeveral(t, count, { ...changing, 'routes/same.json': [{ name: 'same', url: '/same', action: 'pid.mjs@same' }] })
    const clients = await server.clients()
    const [one, two] = [...clients.values()] as [ProcessClient, ProcessClient]
    const [first, second] = [...clients.keys()] as [number, number]
    assert.deepEqual(await one.json('/svc-bench-start'), { bench: 'start' })
    await one.ask('/same')
    for (let turn = 0; turn < 3; turn += 1) await two.ask('/same')
    const { pid, code, routes, processes = [], log } = (await one.json('/svc-status')) as Status
    assert.equal(pid, server.child.pid)
    const { warnings, ...own } = codeDigest()
    assert.deepEqual([code, warnings], [own, []])
    assert.deepEqual((await two.json('/svc-status') as Status).code, code)
    assert.deepEqual(server.lines().filter((line) => line.includes(code.digest)), [server.lines()[0]])
    assert.deepEqual(routes.map(({ name, count: times }) => [name, times]), [['same', 4]])
    const each = processes.map((process) => [process.id, process.pid, process.responding && process.requests.total])
    const numberOf = (of: number): string => processes.find((process) => process.pid === of)?.id ?? ''
    const expected = [['primary', pid, 0], [numberOf(first), first, 1], [numberOf(second), second, 3]]
    assert.deepEqual(each.sort(), expected.sort())
    assert.ok(log.written > 0, 'the bench line is one of the window')

    const { text } = await two.ask('/svc-metrics')
    assert.match(text, /^svc_http_requests_total\{route="same",code="2xx"\} 4$/m)
    assert.match(text, new RegExp(`^svc_process_requests_total\\{process="${numberOf(second)}"\\} \\d+$`, 'm'))

    interface Monitor {
      monitor: { requests: { path: string }[]; lines: { message: string }[] }
    }
    const { monitor } = (await one.json('/svc-status?monitor=1')) as Monitor
    assert.equal(monitor.requests.filter(({ path }) => path === '/same').length, 4)
    assert.equal(monitor.lines.filter(({ message }) => message.startsWith('listening on ')).length, 1)
    assert.equal(monitor.lines.filter(({ message }) => /^process \d of 2 serves: /.test(message)).length, 2)

    await two.ask('/svc-bench-start')
    await one.ask('/same')
    const { metrics } = (await one.json('/svc-bench-stop')) as { metrics: Status }
    assert.equal(metrics.requests.total, 1)
  })

  it('replace one that ends, with the same state and without losing a log line', async (t) => {
    const files = {
      ...changing,
      'routes/crash.json': [{ name: 'crash', url: '/crash', action: 'crash.mjs' }],
      'crash.mjs': `export default ({ log }) => {
        setImmediate(() => { log('the last line'); throw new Error('on purpose') })
        return 'soon'
      }`,
    }
    const server = await startSeveral(t, count, files)
    const before = await server.clients()
    const [pid, one] = [...before][0] as [number, ProcessClient]
    assert.equal((await one.ask('/svc-routes/add', { body: route('a') })).status, 200)
    await one.ask('/crash')
    await until(() => server.lines().some((line) => /process \d of 2 serves: /.test(line) && isAfterEnd(server.lines(), line)))
    const after = await server.clients()
    assert.equal(after.has(pid), false)
    assert.equal([...after.keys()].filter((id) => before.has(id)).length, count - 1)
    assert.deepEqual(await agreed(after, '/a'), ['200 same'])
    const lines = server.lines()
    assert.ok(lines.some((line) => line.endsWith('[app] the last line')))
    assert.ok(lines.some((line) => line.includes('[FATAL] [error] uncaughtException: on purpose')))
    assert.equal(lines.filter((line) => /\[ERROR\] \[server\] process \d ended: with status 1; restarting/.test(line)).length, 1)
  })

  it('keep a route that was deleted and added again to last, when a process is replaced', async (t) => {
    const server = await startSeveral(t, count, changing)
    const before = await server.clients()
    const [one] = [...before.values()] as [ProcessClient]
    const kept = { body: JSON.stringify({ ...(JSON.parse(route('kept')) as object), persist: true }) }
    const name = { body: JSON.stringify({ name: 'kept' }) }
    for (const [path, asked] of [['add', kept], ['delete', name], ['add', kept]] as const) {
      assert.equal((await one.ask(`/svc-routes/${path}`, asked)).status, 200)
    }
    process.kill([...before.keys()][1] as number, 'SIGKILL')
    await until(() => server.stdout().includes('restarting'))
    const after = await server.clients()
    assert.deepEqual(await agreed(after, '/kept'), ['200 same'])
    assert.match(readFileSync(join(server.folder, 'routes', 'admin.json'), 'utf8'), /"kept"/)
  })

  it('write every log line once into one file, even across an external rotation', async (t) => {
    const server = await startSeveral(t, count)
    const clients = [...(await server.clients()).values()]
    const many = 300
    const askAll = (from: number) =>
      Promise.all(
        clients.map(async (client, at) => {
          for (let n = 0; n < many; n += 1) await client.ask(`/${from + n}-${at}`)
        }),
      )
    await askAll(0)
    renameSync(join(server.folder, '.logs', 'access.log'), join(server.folder, '.logs', 'access.log.1'))
    server.child.kill('SIGUSR2')
    await until(() => server.stdout().includes('Reopened'))
    await askAll(many)
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
    const lines = [...server.lines('access.log.1'), ...server.lines('access.log')]
    const paths = lines.map((line) => /^\S+ - - \[[^\]]+\] "GET (\S+) HTTP\/1\.1" (?:200|404)$/.exec(line)?.[1])
    assert.ok(!paths.includes(undefined))
    const asked = paths.filter((path) => path !== '/pid')
    assert.equal(asked.length, 2 * many * count)
    assert.equal(new Set(asked).size, 2 * many * count)
  })
})

/** Whether a line follows the one about the end of a process. */
function isAfterEnd(lines: readonly string[], line: string): boolean {
  const end = lines.findIndex((each) => each.includes('restarting'))
  return end >= 0 && lines.indexOf(line) > end
}
