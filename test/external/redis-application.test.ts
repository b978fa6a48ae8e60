// Servers that share their sessions by `shared.url`, and what they do while the engine is away.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { applicationFolder } from '../support/application-folder.ts'
import { startApplication, writeFiles, type TestApplication } from '../support/application.ts'
import { launch } from '../support/launch.ts'
import { startRedis } from '../support/redis-server.ts'
import { request, type Answer } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

const files = {
  'routes/a.json': [
    { name: 'in', url: '/in', action: 'a.mjs@begin', middleware: 'SVC_MwSession' },
    { name: 'out', url: '/out', action: 'a.mjs@end', middleware: 'SVC_MwSession' },
    { name: 'who', url: '/who', action: 'a.mjs@who', middleware: 'SVC_MwSession' },
    { name: 'saved', url: '/saved', action: 'a.mjs@save', middleware: 'SVC_MwSession' },
    { name: 'open', url: '/open', action: 'a.mjs@open', middleware: 'SVC_MwSession' },
    { name: 'plain', url: '/plain', action: 'a.mjs@plain' },
  ],
  'a.mjs': `export const begin = ({ session }) => { session.set('user', 'Ada'); session.regenerate(); return 'in' }
    export const end = ({ session }) => { session.destroy(); return 'out' }
    export const who = ({ session }) => ({ user: session.get('user', null) })
    export const save = async ({ session }) => { session.set('a', 1); await session.save(); return 'saved' }
    export const open = ({ longPoll, queue }) => longPoll(queue('q'), { timeout_s: 600 })
    export const plain = () => 'plain'`,
}

/** Keeps all it has answered over a kill. */
const durable = ['--appendonly', 'yes', '--appendfsync', 'always']

const cookieOf = (answer: Answer): string => answer.headers['set-cookie']?.at(-1)?.split(';')[0] ?? ''

async function who({ url }: { url: string }, cookie: string): Promise<unknown> {
  return (await request(`${url}/who`, { headers: { cookie } })).json()
}

/** What of an answer tells that the engine is away. */
const told = ({ status, headers, text }: Answer) => [status, headers['retry-after'], text]

describe('servers with one shared engine', () => {
  it('see sign-ins and sign-outs on another server at once', async (t) => {
    const server = await startRedis(t)
    const config = { 'shared.url': server.url }
    const [one, two] = [await startApplication(t, files, config), await startApplication(t, files, config)]
    for (const [here, there] of [[one, two], [two, one]] as [TestApplication, TestApplication][]) {
      const cookie = cookieOf(await request(`${here.url}/in`))
      assert.deepEqual(await who(there, cookie), { user: 'Ada' })
      await request(`${there.url}/out`, { headers: { cookie } })
      assert.deepEqual(await who(here, cookie), { user: null })
    }
  })

  it('close the open streams of a session on another server', async (t) => {
    const server = await startRedis(t)
    const config = { 'shared.url': server.url, 'app.env': 'dev' }
    const [one, two] = [await startApplication(t, files, config), await startApplication(t, files, config)]
    const cookie = cookieOf(await request(`${one.url}/in`))
    const poll = request(`${one.url}/open`, { headers: { cookie } })
    await until(async () => {
      const status = (await request(`${one.url}/svc-status`)).json() as { pool_rest: { longpoll: number } }
      return status.pool_rest.longpoll === 1
    })
    await request(`${two.url}/out`, { headers: { cookie } })
    assert.equal((await poll).text, '{"ok":true,"event":null}')
  })

  it('answer 503 when a session is needed while it is away, and serve the rest', async (t) => {
    const server = await startRedis(t, { args: durable })
    const application = await startApplication(t, files, { 'shared.url': server.url, 'app.env': 'dev' })
    const { url, app, lines } = application
    const cookie = cookieOf(await request(`${url}/in`))
    assert.equal((await request(`${url}/svc-ready`)).status, 200)
    await server.kill()
    await until(() => app.warnings().length > 0)
    for (const path of ['/who', '/in', '/out', '/saved']) {
      const answer = await request(url + path, { headers: { cookie, accept: 'application/json' } })
      assert.deepEqual(told(answer).slice(0, 2), [503, '1'], path)
      assert.equal((answer.json() as { error: string }).error, 'shared_away')
      assert.equal(answer.headers['set-cookie'], undefined)
    }
    assert.deepEqual(told(await request(`${url}/plain`)), [200, undefined, 'plain'])
    assert.deepEqual(await who(application, ''), { user: null })
    assert.equal((await request(`${url}/svc-ready`)).status, 503)
    assert.match(app.warnings().join(), /^the shared engine redis\+unix:\/\/\S+ is away: /)
    await server.start()
    await until(async () => (await request(`${url}/svc-ready`)).status === 200)
    assert.deepEqual(await who(application, cookie), { user: 'Ada' })
    await until(() => app.warnings().length === 0) // The connection for messages is a separate one.
    const engine = lines().filter((line) => /shared engine/.test(line)).map((line) => line.slice(26))
    assert.match(engine.join('\n'), /^\[INFO \] \[server\] connected to .*\n\[WARN \] \[server\] .* is away: .*\n\[INFO \] \[server\] connected to .*$/)
    assert.deepEqual(lines().filter((line) => line.includes('[ERROR]')), [])
  })

  it('answer a request whose engine stops midway', async (t) => {
    const server = await startRedis(t)
    const application = await startApplication(t, files, { 'shared.url': server.url })
    const cookie = cookieOf(await request(`${application.url}/in`))
    server.pause()
    const waiting = request(`${application.url}/who`, { headers: { cookie } })
    assert.equal((await request(`${application.url}/plain`)).text, 'plain')
    server.resume()
    assert.deepEqual((await waiting).json(), { user: 'Ada' })
  })

  it('start without it, not ready, and connect when it is available', async (t) => {
    const server = await startRedis(t)
    await server.kill()
    const application = await startApplication(t, files, { 'shared.url': server.url })
    assert.equal((await request(`${application.url}/plain`)).text, 'plain')
    assert.equal((await request(`${application.url}/svc-ready`)).status, 503)
    assert.equal((await request(`${application.url}/in`)).status, 503)
    await server.start()
    await until(async () => (await request(`${application.url}/in`)).status === 200)
  })

  it('keep a configured store, with a warning', async (t) => {
    const server = await startRedis(t)
    for (const store of ['memory', 'file']) {
      const setup = { session: { store, ...(store === 'file' && { path: 'sessions' }) } }
      const application = await startApplication(
        t,
        { ...files, 'routes/middleware/config.json': { setup } },
        { 'shared.url': server.url },
      )
      const cookie = cookieOf(await request(`${application.url}/in`))
      assert.deepEqual(await who(application, cookie), { user: 'Ada' })
      assert.equal(await server.ask('KEYS', 'svc:session:*'), '')
      assert.match(application.app.warnings().join(), new RegExp(`sessions are not shared, since setup.session.store is "${store}"`))
    }
  })

  it('read the password from the variable, else from the credential, and never show it', async (t) => {
    const server = await startRedis(t, { args: ['--requirepass', 'in redis: 100%'] })
    const url = server.url.replace('redis+unix://', 'redis+unix://:wrong@')
    const cwd = applicationFolder(files, { 'shared.url': url })
    const credentials = temporaryFolder()
    writeFiles(credentials, { shared_password: 'in redis: 100%\n' })
    const rows: readonly (readonly [env: Record<string, string>, from: RegExp, answer: string])[] = [
      [{ CREDENTIALS_DIRECTORY: credentials }, /comes from the credential .*shared_password/, 'in'],
      [{ CREDENTIALS_DIRECTORY: credentials, SVC_SHARED_PASSWORD: 'in redis: 100%' }, /comes from the environment variable SVC_SHARED_PASSWORD/, 'in'],
      [{ CREDENTIALS_DIRECTORY: credentials, SVC_SHARED_PASSWORD: 'wrong' }, /is away: WRONGPASS/, ''],
      [{}, /is away: WRONGPASS/, ''],
    ]
    for (const [env, line, text] of rows) {
      const launched = launch(t, [], { cwd, env })
      const answer = await request(`${await launched.listening()}/in`)
      assert.deepEqual([answer.status, answer.text], text === '' ? [503, answer.text] : [200, text])
      assert.match(launched.stdout(), line)
      launched.child.kill('SIGTERM')
      assert.equal(await launched.ended, 0)
      assert.doesNotMatch(launched.stdout() + launched.stderr(), /in redis|:wrong/)
    }
  })
})
