// The jobs of an application, as its author and its operator see them.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import type { TestApp } from 'svc'
import { ConfigError, testApp } from '../../lib/index.ts'
import { startApplication, writeFiles, type Files } from '../support/application.ts'
import { request } from '../support/request.ts'
import { hasSqlite } from '../support/sqlite.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

interface Seen {
  readonly job: string
  readonly [name: string]: unknown
}

const files: Files = {
  'svc.json': {},
  'routes/r.json': [
    { name: 'add', url: '/add', action: 'a.mjs@add', method: 'POST' },
    { name: 'wait', url: '/wait', action: 'a.mjs@wait' },
  ],
  'jobs/mail.json': [
    { name: 'mail', action: 'a.mjs@mail', retries: 2, backoff_s: 10 },
    { name: 'chain', action: 'a.mjs@chain' },
    { name: 'bad', action: 'a.mjs@bad' },
  ],
  'jobs/clock.json': { $schema: 'x', jobs: [
    { name: 'tick', action: 'a.mjs@tick', every: '15m' },
    { name: 'night', action: 'a.mjs@tick', cron: '0 3 * * *' },
  ] },
  'jobs/notes.txt': 'no job file',
  'a.mjs': `
    import { JobFailed } from 'svc'
    const seen = (globalThis.seenJobs ??= [])
    export const add = async (ctx) => {
      const { name, data, options } = await ctx.readJson()
      try {
        return { id: await ctx.enqueue(name, data, options) }
      } catch (error) {
        return { error: error.message }
      }
    }
    export const mail = ({ data, id, attempt, signal, log, settings, url }) => {
      seen.push({ job: 'mail', data, id, attempt, aborted: signal.aborted, path: url('add'), has: [typeof log.info, typeof settings] })
      if (data?.fails >= attempt) throw new Error('no connection')
    }
    export const chain = async ({ data = 3, enqueue }) => {
      seen.push({ job: 'chain', data })
      if (data > 1) await enqueue('chain', data - 1)
    }
    export const bad = () => { throw new JobFailed('no such address') }
    export const tick = () => void seen.push({ job: 'tick' })
    export const wait = (ctx) => ctx.longPoll(ctx.channel('x'), { timeout_s: 0 })`,
}

async function start(t: TestContext, more: Files = {}): Promise<{ app: TestApp; folder: string; seen: Seen[] }> {
  const folder = temporaryFolder()
  writeFiles(folder, { ...files, ...more })
  const seen: Seen[] = []
  Object.assign(globalThis, { seenJobs: seen })
  const app = (await testApp(folder, { config: { app: { env: 'dev' } } })) as TestApp // Its panel needs no sign-in.
  t.after(() => app.close())
  return { app, folder, seen }
}

const add = async (app: TestApp, name: string, data?: unknown, options?: object): Promise<{ id?: string; error?: string }> => {
  const answer = await app.client().post('/add', { json: { name, data, options } })
  return (await answer.json()) as { id?: string; error?: string }
}
const post = async (app: TestApp, path: string, body: object): Promise<[status: number, answer: unknown]> => {
  const answer = await app.client().post(path, { json: body })
  return [answer.status, await answer.json()]
}

describe('an application with job files', () => {
  it('starts where Node has SQLite, and names the Nodes that have it elsewhere', async (t) => {
    if (hasSqlite) {
      const { app } = await start(t)
      assert.equal(typeof (await app.enqueue('mail')), 'string')
      return
    }
    await assert.rejects(start(t), (error: Error) => {
      assert.ok(error instanceof ConfigError)
      assert.match(error.message, /paths\.jobs: paths\.data needs node:sqlite, .* run Node 22\.13 or later/)
      return true
    })
  })

  it('starts without jobs that are all optional, where they cannot be stored, and logs why', async (t) => {
    const optional = { name: 'tidy', action: 'a.mjs@tick', every: '1h', optional: true }
    const parts = { 'routes/r.json': files['routes/r.json'], 'a.mjs': files['a.mjs'], 'data': 'not a folder' }
    const config = { 'paths.data': 'data' }
    const { url, lines } = await startApplication(t, { ...parts, 'jobs/a.json': [optional] }, config)
    const said = lines().filter((line) => line.includes('without jobs'))
    assert.equal(said.length, 1)
    assert.match(said[0] ?? '', /\[WARN \] \[server\] runs without jobs, which are optional: .*(?:\/data|node:sqlite)/)
    const body = '{"name":"tidy"}'
    const answer = await request(`${url}/add`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    assert.match((answer.json() as { error: string }).error, /no job file has a job of this name/)

    const needed = { ...optional, name: 'mail', optional: false }
    await assert.rejects(startApplication(t, { ...parts, 'jobs/a.json': [optional, needed] }, config), /\/data|node:sqlite/)
  })

  if (!hasSqlite) return

  it('runs a job with its data, and the rest of the context', async (t) => {
    const { app, seen } = await start(t)
    const { id } = await add(app, 'mail', { to: 'ann' })
    assert.deepEqual(seen, [
      { job: 'mail', data: { to: 'ann' }, id, attempt: 1, aborted: false, path: '/add', has: ['function', 'object'] },
    ])
    assert.deepEqual(await app.jobs.list(), [])
  })

  it('tries a job again when its time has come, and at last leaves it dead', async (t) => {
    const { app, seen } = await start(t)
    await app.enqueue('mail', { fails: 9 })
    assert.equal(seen.length, 1)
    await app.jobs.advance(9)
    assert.equal(seen.length, 1)
    for (const seconds of [10, 30]) await app.jobs.advance(seconds)
    assert.deepEqual(seen.map(({ attempt }) => attempt), [1, 2, 3])
    const [dead] = await app.jobs.list()
    assert.match(dead?.error ?? '', /^Error: no connection\n/)
    assert.deepEqual([dead?.state, dead?.attempt], ['dead', 3])
  })

  it('does not try a job again that throws JobFailed', async (t) => {
    const { app } = await start(t)
    await app.enqueue('bad')
    const [dead] = await app.jobs.list()
    assert.deepEqual([dead?.name, dead?.state, dead?.attempt], ['bad', 'dead', 1])
  })

  it('runs a job later: after a delay, at a time, and what a job enqueues', async (t) => {
    const { app, seen } = await start(t)
    await app.enqueue('mail', 'delayed', { delay_s: 60 })
    await app.enqueue('mail', 'timed', { at: new Date(Date.now() + 7_200_000) })
    await app.enqueue('chain')
    assert.deepEqual(seen.map(({ job, data }) => [job, data]), [['chain', 3], ['chain', 2], ['chain', 1]])
    await app.jobs.advance(60)
    assert.equal(seen.at(-1)?.data, 'delayed')
    await app.jobs.advance(7200)
    assert.deepEqual(seen.filter(({ job }) => job === 'mail').map(({ data }) => data), ['delayed', 'timed'])
  })

  it('adds one job for a key while it waits', async (t) => {
    const { app, seen } = await start(t)
    const options = { delay_s: 5, key: 'ann' }
    const first = await add(app, 'mail', 1, options)
    assert.deepEqual(await add(app, 'mail', 2, options), first)
    assert.notDeepEqual(await add(app, 'mail', 3, { ...options, key: 'bob' }), first)
    await app.jobs.advance(5)
    assert.deepEqual(seen.map(({ data }) => data), [1, 3])
    assert.notDeepEqual(await add(app, 'mail', 4, { key: 'ann' }), first)
  })

  it('runs schedules by the clock', async (t) => {
    const { app, seen } = await start(t)
    await app.jobs.advance(899)
    const before = seen.length // The night may have been in between.
    await app.jobs.advance(1)
    assert.ok(seen.length > before)
    seen.length = 0
    await app.jobs.advance(86_400)
    assert.equal(seen.length, 2) // Missed times are made up for once.
  })

  it('refuses a job that no file has, and data that is too large', async (t) => {
    const { app } = await start(t)
    assert.deepEqual(await add(app, 'mial'), {
      error: 'Cannot enqueue "mial": no job file has a job of this name: did you mean "mail"?',
    })
    assert.match((await add(app, 'mail', 'x'.repeat(262_144))).error ?? '', /must be at most 262144 bytes of JSON: it is 262146/)
  })

  it('shows the jobs in the panel, and retries, discards and runs them', async (t) => {
    const { app, seen } = await start(t)
    await app.enqueue('bad')
    await app.enqueue('mail', 1, { delay_s: 100, key: 'k' })
    const client = app.client()
    const read = async (query = ''): Promise<{ names: Record<string, unknown>[]; jobs: Record<string, unknown>[] }> =>
      (await (await client.get(`/svc-jobs?format=json${query}`)).json()) as never
    const { names, jobs } = await read()
    assert.deepEqual(names.map(({ name }) => name), ['bad', 'chain', 'mail', 'night', 'tick'])
    assert.deepEqual({ ...names[2], next: 0 }, { name: 'mail', action: 'a.mjs@mail', waiting: 1, running: 0, dead: 0, done: 0, next: 0 })
    assert.deepEqual(names.map(({ next }) => typeof next), ['object', 'object', 'object', 'number', 'number'])
    assert.deepEqual(jobs.map(({ name, state, key }) => [name, state, key]), [['bad', 'dead', null], ['mail', 'waiting', 'k']])
    assert.deepEqual((await read('&state=waiting')).jobs.map(({ name }) => name), ['mail'])
    assert.deepEqual((await read('&name=bad')).jobs.map(({ name }) => name), ['bad'])
    const page = await (await client.get('/svc-jobs')).text()
    assert.match(page, /JobFailed: no such address/)
    const [dead, waiting] = jobs.map(({ id }) => id)
    assert.deepEqual(await post(app, '/svc-jobs/run', { id: waiting }), [200, { ok: true, id: waiting }])
    assert.deepEqual(seen.map(({ data }) => data), [1])
    assert.deepEqual(await post(app, '/svc-jobs/discard', { id: dead }), [200, { ok: true, id: dead }])
    assert.deepEqual(await post(app, '/svc-jobs/retry', { id: dead }), [
      404, { ok: false, error: `There is no job "${String(dead)}" that is dead or waits`, id: dead },
    ])
    const [status, answer] = await post(app, '/svc-jobs/run', { name: 'tick' })
    assert.deepEqual([status, (answer as { name: string }).name, seen.at(-1)?.job], [200, 'tick', 'tick'])
    assert.equal((await post(app, '/svc-jobs/run', { name: 'tock' }))[0], 404)
    assert.equal((await post(app, '/svc-jobs/run', {}))[0], 400)
    assert.equal((await post(app, '/svc-jobs/retry', {}))[0], 400)
    const changes = (await (await client.get('/svc-changes?format=json')).json()) as { what: string }[]
    assert.deepEqual(changes.map(({ what }) => what), ['job "tick" run', `job ${String(dead)} discarded`, `job ${String(waiting)} retried`])
    const metrics = await (await client.get('/svc-metrics')).text()
    assert.match(metrics, /svc_jobs_total\{end="done"\} 2/)
    assert.match(metrics, /svc_jobs_total\{end="dead"\} 1/)
  })

  it('retries and discards all dead jobs of a name, with a button too', async (t) => {
    const { app } = await start(t)
    const client = app.client()
    for (const count of [1, 2, 3]) await app.enqueue('bad', count)
    await app.enqueue('mail', 1, { delay_s: 100 })
    const dead = async (): Promise<number> => (await app.jobs.list()).filter(({ state }) => state === 'dead').length
    const triesBefore = await (await client.get('/svc-metrics')).text()
    assert.match(triesBefore, /svc_jobs_total\{end="dead"\} 3/)
    assert.deepEqual(await post(app, '/svc-jobs/retry', { name: 'bad' }), [200, { ok: true, name: 'bad', count: 3 }])
    assert.match(await (await client.get('/svc-metrics')).text(), /svc_jobs_total\{end="dead"\} 6/, 'each was tried again')
    assert.equal(await dead(), 3)
    assert.doesNotMatch(await (await client.get('/svc-jobs?name=bad')).text(), /all dead/)
    assert.match(await (await client.get('/svc-jobs?name=bad&state=dead')).text(), /Retry all dead[^]*Discard all dead/)
    const discarded = await client.post('/svc-jobs/discard', { form: { page: '1', name: 'bad' } })
    assert.deepEqual([discarded.status, discarded.headers.get('location')], [303, '/svc-jobs'])
    assert.match(await (await client.get('/svc-jobs')).text(), /Dead jobs bad removed: 3\./)
    assert.equal(await dead(), 0)
    for (const name of ['bad', 'mail', 'none']) {
      assert.deepEqual(await post(app, '/svc-jobs/discard', { name }), [404, { ok: false, error: `There is no dead job "${name}"`, name }])
    }
    assert.equal((await app.jobs.list()).length, 1, 'the waiting one stays')
    const changes = (await (await client.get('/svc-changes?format=json')).json()) as { what: string; to: unknown }[]
    assert.deepEqual(changes.map(({ what, to }) => [what, to]), [['dead jobs "bad" discarded', 3], ['dead jobs "bad" retried', 3]])
  })

  it('reloads its jobs with its routes, and refuses both when one is wrong', async (t) => {
    const { app, folder } = await start(t)
    const reload = (): Promise<[number, unknown]> => post(app, '/svc-routes/reload', {})
    writeFiles(folder, { 'jobs/mail.json': [{ name: 'late', action: 'a.mjs@chain' }, { name: 'mail', action: 'a.mjs@mail', retires: 1 }] })
    const [status, answer] = await reload()
    assert.equal(status, 200)
    assert.match(JSON.stringify(answer), /jobs\/mail\.json.*retires.*retries/)
    await app.enqueue('late', 1)
    assert.match((await add(app, 'bad')).error ?? '', /no job file has/)
    writeFiles(folder, { 'jobs/clock.json': [{ name: 'late', action: 'a.mjs@tick' }, { name: 'x', action: 'a.mjs@none', cron: '* * *' }] })
    const [refused, problems] = await reload()
    assert.equal(refused, 409)
    const { errors } = problems as { errors: { file: string; name: string; error: string }[] }
    assert.deepEqual(errors.map(({ file, name }) => [file, name]), [['jobs/clock.json', 'x'], ['jobs/mail.json', 'late']])
    await app.enqueue('late', 1)
  })

  it('does not enqueue the jobs of a reload whose setup was refused', async (t) => {
    const { app, folder } = await start(t)
    writeFiles(folder, {
      'jobs/late.json': [{ name: 'late', action: 'a.mjs@chain' }],
      'routes/middleware/config.json': { load: ['broken.mjs'] },
      'routes/middleware/broken.mjs': "export const setup = () => { throw new Error('not now') }\nexport default (ctx, next) => next()",
    })
    assert.equal((await post(app, '/svc-routes/reload', {}))[0], 409)
    assert.match((await add(app, 'late', 1)).error ?? '', /no job file has a job of this name/)
    assert.equal(typeof (await add(app, 'mail')).id, 'string')
  })

  it('keeps the jobs of a name that has gone from the files', async (t) => {
    const { app, folder } = await start(t)
    await app.enqueue('mail', 1, { delay_s: 10 })
    writeFiles(folder, { 'jobs/mail.json': [] })
    await post(app, '/svc-routes/reload', {})
    await app.jobs.advance(20)
    assert.deepEqual((await app.jobs.list()).map(({ name, state }) => [name, state]), [['mail', 'waiting']])
  })

  it('tries a job whose module is broken again, like one that throws', async (t) => {
    const { app } = await start(t, { 'jobs/gone.json': [{ name: 'gone', action: 'gone.mjs', retries: 1, backoff_s: 1 }] })
    await app.enqueue('gone')
    const [waiting] = await app.jobs.list()
    assert.deepEqual([waiting?.state, waiting?.attempt], ['waiting', 2])
    assert.match(waiting?.error ?? '', /gone\.mjs/)
  })
})

describe('an application without job files', () => {
  it('opens no database, and refuses to enqueue', async (t) => {
    const { app, folder } = await start(t, { 'jobs/mail.json': '[]', 'jobs/clock.json': '[]' })
    assert.match((await add(app, 'mail')).error ?? '', /^Cannot enqueue "mail": no job file has a job of this name/)
    assert.deepEqual(await (await app.client().get('/svc-jobs?format=json')).json(), { names: [], jobs: [] })
    assert.equal(existsSync(join(folder, '.data')), false)
  })
})
