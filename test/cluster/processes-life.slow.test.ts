import assert from 'node:assert/strict'
import { readFileSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { describe, it, test } from 'node:test'
import type { Status } from '../../lib/panel/status.ts'
import { testKey, writeFiles } from '../support/application.ts'
import { launch, root, runLauncher } from '../support/launch.ts'
import { listen } from '../support/listen.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'
import { waitingApplication } from '../support/waiting-application.ts'
import { agreed, changing, count, held, ProcessClient, startSeveral } from './several.ts'

describe('the lifecycle of several processes', () => {
  for (const how of ['SIGTERM', 'SIGINT', '/svc-stop'] as const) {
    it(`ends on ${how} with status 0, and answers waiting polls`, async (t) => {
      const server = await startSeveral(t, count, waitingApplication)
      const clients = [...(await server.clients()).values()]
      const polls = clients.map((client) => client.json('/poll') as Promise<{ events: unknown[] }>)
      await held(server.url, count)
      if (how === '/svc-stop') await new ProcessClient(server.url).ask('/svc-stop')
      else server.child.kill(how)
      for (const poll of await Promise.all(polls)) assert.deepEqual(poll.events, [])
      assert.equal(await server.ended, 0)
      assert.match(server.stdout(), /all processes have stopped\n$/)
    })
  }

  it('applies SIGHUP in all processes', async (t) => {
    const server = await startSeveral(t, count, changing)
    const clients = await server.clients()
    const more = [{ name: 'more', url: '/more', action: 'pid.mjs@same' }]
    writeFiles(server.folder, { 'routes/more.json': more })
    server.child.kill('SIGHUP')
    await until(async () => (await agreed(clients, '/more')).join() === '200 same')
    writeFiles(server.folder, { 'routes/more.json': '{' })
    server.child.kill('SIGHUP')
    await until(() => server.stdout().includes('[ERROR] [server] SIGHUP: Cannot reload the routes'))
    assert.deepEqual(await agreed(clients, '/more'), ['200 same'])
    const records = (): string[] => readFileSync(join(server.folder, '.logs/audit.log'), 'utf8').split('\n').slice(0, -1)
    await until(() => records().length > 2) // It is written after the line of the general log.
    const changes = records().map((line) => JSON.parse(line) as Record<string, unknown>).map(({ by, what }) => [by, what])
    assert.deepEqual(changes, [['server', 'start'], ['SIGHUP', 'routes and certificates reloaded'], ['SIGHUP', 'reload refused']])
  })

  it('restarts a process that SIGTERM stopped gracefully', async (t) => {
    const server = await startSeveral(t, count)
    const clients = await server.clients()
    const [pid, one] = [...clients][0] as [number, ProcessClient]
    for (let asked = 0; asked < 50; asked += 1) await one.ask('/nowhere')
    process.kill(pid, 'SIGTERM')
    await until(() => /process \d has stopped: restarting/.test(server.stdout()))
    const after = await server.clients()
    assert.equal(after.has(pid), false)
    const [other] = [...after.values()] as [ProcessClient]
    const { requests, processes_ended: ended } = (await other.json('/svc-status')) as Status
    assert.equal(ended?.count, 1)
    assert.ok(requests.by_class['4xx'] >= 50, 'what the ended one counted is counted')
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
  })

  it('keeps serving while the primary hangs: log lines are buffered, and the excess is counted as lost', async (t) => {
    const server = await startSeveral(t, count)
    const [client] = [...(await server.clients()).values()] as [ProcessClient]
    const path = `/${'n'.repeat(1000)}`
    server.child.kill('SIGSTOP')
    for (let asked = 0; asked < 1500; asked += 1) await client.ask(path) // 1.6 MB of lines; the pipe takes some 200 KB.
    server.child.kill('SIGCONT')
    await until(() => server.lines('access.log').filter((line) => line.includes(path)).length === 1500)

    const long = `/${'l'.repeat(10_000)}`
    server.child.kill('SIGSTOP')
    for (let asked = 0; asked < 700; asked += 1) await client.ask(long) // 7 MB, where 4 MiB may wait.
    server.child.kill('SIGCONT')
    const lost = async (): Promise<number> => ((await client.json('/svc-status')) as Status).access_log.lost
    const written = (): number => server.lines('access.log').filter((line) => line.includes(long)).length
    await until(async () => written() > 350 && written() + (await lost()) === 700)
    assert.ok((await lost()) > 100)
    await until(() => server.stdout().includes('is writable again. Lines lost: '))
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
  })

  it('ends when the primary is killed, after answering running requests', async (t) => {
    const server = await startSeveral(t, count, {
      'routes/orphan.json': [{ name: 'orphan', url: '/orphan', action: 'orphan.mjs' }],
      'orphan.mjs': `export default ({ log, channel }) => {
        log('held')
        return new Promise((resolve) => process.once('disconnect', () => {
          setTimeout(() => {
            channel('c').publish('nobody waits for this')
            setImmediate(resolve, 'answered')
          }, 10)
        }))
      }`,
    })
    const clients = await server.clients()
    const [one] = [...clients.values()] as [ProcessClient]
    const answer = one.ask('/orphan')
    await until(() => server.lines().some((line) => line.endsWith('held')))
    server.child.kill('SIGKILL')
    assert.equal((await answer).text, 'answered')
    await until(() => [...clients.keys()].every((pid) => !isAlive(pid)))
  })

  it('keeps serving when a process hangs, which is logged, killed and replaced', async (t) => {
    const server = await startSeveral(t, count, changing, { 'server.hang_timeout_s': 5 })
    const clients = await server.clients()
    const [pid, other] = [...clients.keys()] as [number, number]
    const one = clients.get(other) as ProcessClient
    process.kill(pid, 'SIGSTOP')
    try {
      const { processes = [] } = (await one.json('/svc-status')) as Status
      assert.equal(processes.find((each) => each.pid === pid)?.responding, false)
      await until(() => /process \d has not answered for 5 s: killing it\n/.test(server.stdout()))
      await until(() => /process \d ended: by SIGKILL; restarting\n/.test(server.stdout()))
    } finally {
      if (isAlive(pid)) process.kill(pid, 'SIGKILL') // It would keep open what it has of this process.
    }
    const after = await server.clients()
    assert.equal(after.has(pid), false)
    assert.ok(after.has(other))
  })

  it('survives a 20 MB log line of one process', async (t) => {
    const files = {
      'routes/write.json': [{ name: 'long', url: '/long', action: 'write.mjs' }],
      'write.mjs': `export default ({ log }) => { log('x'.repeat(20_000_000)); return 'long' }`,
    }
    const server = await startSeveral(t, count, files, { 'log.max_size_mb': 100 })
    const [one] = [...(await server.clients()).values()] as [ProcessClient]
    assert.equal((await one.ask('/long')).text, 'long')
    await until(() => statSync(join(server.folder, '.logs', 'svc.log')).size > 20_000_000)
    assert.equal((await one.ask('/pid')).status, 200)
  })

  it('keeps a replacement from serving while it cannot load a module that the others serve', async (t) => {
    const server = await startSeveral(t, count, {
      'routes/more.json': [
        { name: 'deep', url: '/deep', action: 'deep.mjs' },
        { name: 'absent', url: '/absent', action: 'absent.mjs' },
      ],
      'deep.mjs': "export default () => 'deep'",
    })
    const clients = await server.clients()
    const [pid] = [...clients.keys()] as [number]
    writeFiles(server.folder, { 'deep.mjs': 'export default () => {' })
    process.kill(pid, 'SIGKILL')
    await until(() => /process \d ended: it cannot load what the others serve: .*route "deep".*in 200 ms\n/.test(server.stdout()))
    for (let asked = 0; asked < 20; asked += 1) {
      const client = new ProcessClient(server.url)
      assert.equal((await client.ask('/deep')).text, 'deep')
      client.close()
    }
    const status = async (): Promise<Status> => {
      const client = new ProcessClient(server.url)
      const document = (await client.json('/svc-status')) as Status
      client.close()
      return document
    }
    const { warnings, processes = [] } = await status()
    assert.match(warnings.join('\n'), /^process \d does not serve: it cannot load what the others serve: .*deep/m)
    assert.deepEqual(processes.map(({ id, responding }) => [id, responding]).sort(), [
      ...['1', '2'].map((id) => [id, !warnings.some((warning) => warning.startsWith(`process ${id} `))]),
      ['primary', true],
    ])
    writeFiles(server.folder, { 'deep.mjs': "export default () => 'mended'" })
    const after = await server.clients()
    assert.equal(after.has(pid), false)
  })

  it('applies a SIGHUP received during the start once a process serves', async (t) => {
    const server = await startSeveral(t, count, {
      'routes/middleware/config.json': { load: ['m.mjs'] },
      'routes/middleware/m.mjs': `export const setup = (app) => {
        if (app.process.number === 1 && globalThis.asked !== true) {
          globalThis.asked = true
          process.kill(process.ppid, 'SIGHUP')
        }
      }`,
    })
    await until(() => server.stdout().includes('routes reloaded'))
    assert.doesNotMatch(server.stdout(), /ERROR/)
  })
})

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('a fault that keeps one process from starting ends all with its status', async (t) => {
  const folder = temporaryFolder()
  const port = await listen(t, createServer())
  const rows: readonly (readonly [files: Record<string, unknown>, config: Record<string, unknown>, status: number, said: RegExp])[] = [
    [{ 'routes/a.json': '{' }, {}, 78, /a\.json/],
    [{ 'routes/a.json': [] }, { 'server.port': port }, 1, /EADDRINUSE/],
    [{}, { 'server.tls.cert': 'no.pem', 'server.tls.key': 'no.pem' }, 78, /FATAL\] \[server\] Cannot load .* server\.tls\.cert/],
  ]
  for (const [files, config, status, said] of rows) {
    writeFiles(folder, { 'svc.json': { app_key: testKey, 'server.processes': 2, 'server.port': 0, ...config }, ...files })
    const ended = await runLauncher(t, ['start'], { cwd: folder })
    assert.equal(ended.status, status, ended.stdout)
    assert.match(ended.stdout, said)
    assert.match(ended.stdout, new RegExp(`FATAL\\] \\[server\\] process \\d ended before all served: with status ${status}: stopping the server`))
  }
})

test('a replacement worker runs the code of its primary, even when the link leads elsewhere by now', async (t) => {
  const folder = temporaryFolder()
  const link = join(folder, 'current')
  writeFiles(folder, {
    'svc.json': { app_key: testKey, 'server.processes': 2, 'server.port': 0 },
    'routes/pid.json': [{ name: 'pid', url: '/pid', action: 'pid.mjs' }],
    'pid.mjs': 'export default () => String(process.pid)',
    'newer/bin/svc.js': "console.log('the newer version')",
  })
  symlinkSync(root, link)
  const server = launch(t, ['start'], { cwd: folder, launcher: join(link, 'bin/svc.js') })
  const url = await server.listening()
  rmSync(link)
  symlinkSync('newer', link)
  const client = new ProcessClient(url)
  const pid = Number((await client.ask('/pid')).text)
  client.close()
  process.kill(pid, 'SIGKILL')
  await until(() => [...server.stdout().matchAll(/process \d of 2 serves/g)].length === 3)
  assert.doesNotMatch(server.stdout(), /the newer version/)
})

test('the environment alone does not make a process a worker', async (t) => {
  const folder = temporaryFolder()
  const launched = launch(t, ['start'], { cwd: folder, env: { SVC_PROCESS: '1' } })
  assert.equal(await launched.ended, 2)
  assert.match(launched.stderr(), /^SVC_PROCESS is set, /)
})
