// Each alert of docs/deploy fires by its fault in a real server, and ends after it.
import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { startSeveral } from '../cluster/several.ts'
import { startApplication, type Files, type TestApplication } from '../support/application.ts'
import { applicationFolder } from '../support/application-folder.ts'
import { makeCertificate } from '../support/certificate.ts'
import { launch, optionsOfTarget } from '../support/launch.ts'
import { startRedis } from '../support/redis-server.ts'
import { request } from '../support/request.ts'
import { hasSqlite } from '../support/sqlite.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'
import { Scrapes } from './alert-faults.ts'

const names = ['fine', 'fails', 'slow', 'short', 'held', 'blocks', 'leak', 'close', 'fill', 'free', 'job']
const files: Files = {
  'routes/a.json': names.map((name) => ({ name, url: `/${name}`, action: `a.mjs@${name}` })),
  'jobs/j.json': hasSqlite ? [{ name: 'dies', action: 'a.mjs@dies', retries: 0 }] : [],
  'a.mjs': `
    import { openSync, closeSync } from 'node:fs'
    import { setTimeout } from 'node:timers/promises'
    import { getHeapStatistics } from 'node:v8'
    const opened = [], kept = []
    export const fine = () => 'fine'
    export const fails = () => { throw new Error('of a test') }
    export const slow = () => setTimeout(1200, 'slow')
    export const short = () => setTimeout(30, 'short')
    export const held = () => new Promise((resolve) => (globalThis.release = resolve))
    export const blocks = () => { for (const end = Date.now() + 400; Date.now() < end;); return 'blocked' }
    export const leak = () => { for (let at = 0; at < 430; at += 1) opened.push(openSync('a.mjs')); return 'leaked' }
    export const close = () => { for (const fd of opened.splice(0)) closeSync(fd); return 'closed' }
    const share = () => getHeapStatistics().used_heap_size / getHeapStatistics().heap_size_limit
    export const fill = () => { while (share() < 0.83) kept.push(new Array(1000).fill({})); return 'filled' }
    export const free = () => { kept.length = 0; gc(); return 'freed' }
    export const job = async (ctx) => { await ctx.enqueue('dies'); return 'added' }
    export const dies = () => { throw new Error('of a test') }`,
}
/** Ends the request of `/held`. */
const shared = globalThis as { release?: (value: string) => void }
const dev = { 'app.env': 'dev', 'dev.watch': false }

const start = (t: TestContext, config: Readonly<Record<string, unknown>> = {}): Promise<TestApplication> =>
  startApplication(t, files, { ...dev, ...config })

/** Requests a path several times at once. */
const ask = (url: string, path: string, times = 1): Promise<unknown> =>
  Promise.all(Array.from({ length: times }, () => request(url + path)))

describe('an alert fires by its fault and ends after it', () => {
  it('SvcDown', async (t) => {
    const { app, url } = await start(t)
    const scrapes = new Scrapes()
    await scrapes.take(url, 3)
    await app.stop()
    await scrapes.take(url, 4)
    await scrapes.take((await start(t)).url, 3)
    scrapes.assertFiring('SvcDown', { 2: false, 6: true, 9: false })
  })

  it('SvcNotReady, SvcWarnings', async (t) => {
    const { app, url } = await start(t)
    let isReady = true
    app.ready('test', () => isReady)
    const scrapes = new Scrapes()
    const probe = (): Promise<unknown> => ask(url, '/svc-ready')
    await scrapes.take(url, 3, probe)
    isReady = false
    await scrapes.take(url, 1, probe)
    scrapes.stay(35)
    isReady = true
    await scrapes.take(url, 3, probe)
    scrapes.assertFiring('SvcNotReady', { 2: false, 10: true, 41: false })
    scrapes.assertFiring('SvcWarnings', { 10: false, 38: true, 41: false })
  })

  it('SvcErrors', async (t) => {
    const { url } = await start(t)
    const scrapes = new Scrapes()
    await ask(url, '/fails')
    await scrapes.take(url, 6, () => ask(url, '/fine', 20))
    await scrapes.take(url, 12, async () => (await ask(url, '/fine', 20), await ask(url, '/fails', 5)))
    await scrapes.take(url, 12, () => ask(url, '/fine', 20))
    scrapes.assertFiring('SvcErrors', { 5: false, 17: true, 29: false })
  })

  it('SvcSlow', async (t) => {
    const { url } = await start(t)
    const scrapes = new Scrapes()
    await ask(url, '/slow')
    await scrapes.take(url, 6, () => ask(url, '/fine', 20))
    await scrapes.take(url, 14, () => ask(url, '/slow', 10))
    await scrapes.take(url, 8, () => ask(url, '/fine', 20))
    scrapes.assertFiring('SvcSlow', { 5: false, 19: true, 27: false })
  })

  it('SvcRefused', async (t) => {
    const { url } = await start(t, { 'pool_http.workers': 1, 'pool_http.queue_size': 1 })
    const scrapes = new Scrapes()
    await scrapes.take(url, 3, () => ask(url, '/short'))
    await scrapes.take(url, 4, () => ask(url, '/short', 10))
    await scrapes.take(url, 8, () => ask(url, '/short'))
    scrapes.assertFiring('SvcRefused', { 2: false, 6: true, 14: false })
  })

  it('SvcQueue', async (t) => {
    const { url } = await start(t, { 'pool_http.workers': 1, 'pool_http.queue_size': 10, 'pool_http.max_wait_ms': 60_000 })
    const scrapes = new Scrapes()
    await scrapes.take(url, 3)
    const held = ask(url, '/held')
    await until(() => shared.release !== undefined)
    const waiting = ask(url, '/fine', 8)
    await until(async () => (await request(`${url}/svc-metrics`)).text.includes('svc_pool_queue_waiting{pool="http"} 8'))
    await scrapes.take(url, 4)
    shared.release?.('held')
    await Promise.all([held, waiting])
    await scrapes.take(url, 3)
    scrapes.assertFiring('SvcQueue', { 2: false, 6: true, 9: false })
  })

  it('SvcEventLoop', async (t) => {
    const { url } = await start(t)
    const scrapes = new Scrapes()
    const pause = (): Promise<unknown> => ask(url, '/short', 5)
    await scrapes.take(url, 6, pause)
    await scrapes.take(url, 11, () => ask(url, '/blocks'))
    await scrapes.take(url, 12, async () => (await pause(), await pause()))
    scrapes.assertFiring('SvcEventLoop', { 5: false, 16: true, 28: false })
  })

  it('SvcFileDescriptors', async (t) => {
    const folder = applicationFolder(files, dev)
    // A shell sets the limit, and becomes Node.
    const nodeOptions = ['-c', 'ulimit -n 512; exec "$0" "$@"', process.execPath, ...optionsOfTarget()]
    const { listening } = launch(t, ['start'], { cwd: folder, program: 'sh', nodeOptions })
    const url = await listening()
    const scrapes = new Scrapes()
    await scrapes.take(url, 3)
    await ask(url, '/leak')
    await scrapes.take(url, 4)
    await ask(url, '/close')
    await until(async () => !/^process_open_fds 4\d\d$/m.test((await request(`${url}/svc-metrics`)).text))
    await scrapes.take(url, 3)
    scrapes.assertFiring('SvcFileDescriptors', { 2: false, 6: true, 9: false })
  })

  it('SvcCertificate', async (t) => {
    const folder = temporaryFolder()
    const inDays = (days: number): Date => new Date(Date.now() + days * 86_400_000)
    const certificate = makeCertificate(folder, 'own', { to: inDays(60) })
    const { app } = await start(t, { 'server.tls': certificate })
    const scrapes = new Scrapes()
    const url = 'https://localhost'
    const read = async (): Promise<string> => (await app.request(`${url}/svc-metrics`)).text()
    const renew = async (days: number): Promise<void> => {
      makeCertificate(folder, 'own', { to: inDays(days) })
      await app.control.apply({ type: 'certificates.reload' })
    }
    await scrapes.takeFrom(read, 3)
    await renew(13)
    await scrapes.takeFrom(read, 1)
    scrapes.stay(65)
    await renew(90)
    await scrapes.takeFrom(read, 3)
    scrapes.assertFiring('SvcCertificate', { 2: false, 66: true, 71: false })
  })

  it('SvcReloadRefused', async (t) => {
    const { app, url, write } = await start(t)
    const scrapes = new Scrapes()
    await scrapes.take(url, 3)
    write({ 'routes/b.json': '{' })
    await assert.rejects(app.control.apply({ type: 'routes.reload' }))
    await scrapes.take(url, 8)
    write({ 'routes/b.json': '[]' })
    await app.control.apply({ type: 'routes.reload' })
    await scrapes.take(url, 3)
    scrapes.assertFiring('SvcReloadRefused', { 2: false, 10: true, 13: false })
  })

  it('SvcProcessReplaced, SvcProcessMissing', async (t) => {
    const { url, clients, stdout } = await startSeveral(t, 2)
    const [first = 0, second = 0] = (await clients()).keys()
    const scrapes = new Scrapes()
    await scrapes.take(url, 3)
    process.kill(first, 'SIGSTOP')
    await scrapes.take(url, 4)
    process.kill(first, 'SIGCONT')
    await until(async () => !/^svc_process_up.* 0$/m.test((await request(`${url}/svc-metrics`)).text))
    await scrapes.take(url, 3)
    scrapes.assertFiring('SvcProcessMissing', { 2: false, 6: true, 9: false })
    process.kill(second, 'SIGKILL')
    await until(() => (stdout().match(/process \d of 2 serves/g) ?? []).length === 3)
    await scrapes.take(url, 3)
    scrapes.assertFiring('SvcProcessReplaced', { 9: false, 12: true })
    scrapes.stay(20)
    scrapes.assertFiring('SvcProcessReplaced', { 31: false })
  })

  it('SvcRestarts', async (t) => {
    const scrapes = new Scrapes()
    for (let starts = 0; starts < 4; starts += 1) {
      const { app, url } = await start(t)
      await scrapes.take(url, 2)
      await app.stop()
    }
    scrapes.stay(40)
    scrapes.assertFiring('SvcRestarts', { 3: false, 7: true, 45: false })
  })

  it('SvcHeap', async (t) => {
    const nodeOptions = ['--max-old-space-size=100', '--max-semi-space-size=1', '--expose-gc', ...optionsOfTarget()]
    const { listening } = launch(t, ['start'], { cwd: applicationFolder(files, dev), nodeOptions })
    const url = await listening()
    const scrapes = new Scrapes()
    await ask(url, '/free')
    await scrapes.take(url, 3)
    await ask(url, '/fill')
    await scrapes.take(url, 1)
    scrapes.stay(13)
    await ask(url, '/free')
    await scrapes.take(url, 3)
    scrapes.assertFiring('SvcHeap', { 2: false, 16: true, 19: false })
  })

  it('SvcJobsDead', { skip: hasSqlite ? false : 'This Node has no SQLite' }, async (t) => {
    const { url } = await start(t)
    const scrapes = new Scrapes()
    await scrapes.take(url, 3)
    await ask(url, '/job')
    await until(async () => (await request(`${url}/svc-metrics`)).text.includes('svc_jobs_total{end="dead"} 1'))
    await scrapes.take(url, 3)
    scrapes.stay(20)
    scrapes.assertFiring('SvcJobsDead', { 2: false, 5: true, 25: false })
  })

  it('SvcLogLinesLost', async (t) => {
    const folder = applicationFolder({ ...files, '.logs/svc.log/in-the-way': '' })
    const { app, url } = await startApplication(t, {}, dev, { folder })
    const scrapes = new Scrapes()
    await scrapes.take(url, 3)
    const log = app.logger('app')
    await scrapes.take(url, 3, () => {
      for (let line = 0; line < 100; line += 1) log('x'.repeat(60_000))
    })
    rmSync(join(folder, '.logs/svc.log'), { recursive: true })
    scrapes.stay(20)
    scrapes.assertFiring('SvcLogLinesLost', { 2: false, 5: true, 25: false })
  })

  it('SvcNodeMissing', async (t) => {
    const config = { 'shared.url': (await startRedis(t)).url }
    const { url } = await start(t, config)
    const other = await start(t, config)
    const live = (count: number): Promise<unknown> =>
      until(async () => (await request(`${url}/svc-metrics`)).text.includes(`svc_nodes_live ${count}\n`))
    await live(2)
    const scrapes = new Scrapes()
    await scrapes.take(url, 3)
    await other.app.stop()
    await live(1)
    await scrapes.take(url, 8)
    await start(t, config)
    await live(2)
    await scrapes.take(url, 3)
    scrapes.assertFiring('SvcNodeMissing', { 2: false, 10: true, 13: false })
  })
})
