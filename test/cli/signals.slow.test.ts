import assert from 'node:assert/strict'
import { existsSync, readFileSync, renameSync } from 'node:fs'
import { request as httpRequest, Agent } from 'node:http'
import { once } from 'node:events'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { writeFiles } from '../support/application.ts'
import { launch, optionsOfTarget } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'
import { applicationFolder } from '../support/application-folder.ts'

const slow = {
  'home.mjs': `let go
    export default ({ log }) => { log('held'); return new Promise((resolve) => { go = () => resolve('held') }) }
    export const release = () => { go(); return 'released' }`,
  'routes/home.json': [
    { name: 'home', url: '/', action: 'home.mjs' },
    { name: 'release', url: '/release', action: 'home.mjs@release' },
  ],
}

const text = (folder: string, file: string): string => readFileSync(join(folder, '.logs', file), 'utf8')

describe('SIGTERM and SIGINT', () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`${signal} lets a running request finish, then the server exits with 0 and its log is complete`, async (t) => {
      const cwd = applicationFolder(slow)
      const server = launch(t, [], { cwd })
      const url = await server.listening()
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      t.after(() => agent.destroy())
      const other = httpRequest(`${url}/none`, { agent }).end()
      const [notFound] = await once(other, 'response')
      notFound.resume()
      await once(notFound, 'end')

      const held = request(url)
      await until(() => server.stdout().includes('[app] held'))
      server.child.kill(signal)
      await until(() => server.stdout().includes(`${signal}: stopping`))
      const release = httpRequest(`${url}/release`, { agent }).end()
      const [response] = await once(release, 'response')
      response.resume()
      assert.deepEqual([response.statusCode, response.headers.connection], [200, 'close'])
      assert.equal((await held).text, 'held')
      assert.equal(await server.ended, 0)
      assert.match(text(cwd, 'svc.log'), new RegExp(`${signal}: stopping\\n[^]*\\[server\\] stopped\\n$`))
      assert.equal(text(cwd, 'access.log').split('\n').length, 4)
    })
  }

  it('a second one exits at once, with 1, even if a request runs', async (t) => {
    const cwd = applicationFolder(slow)
    const server = launch(t, [], { cwd })
    const held = request(await server.listening()).catch((error: Error) => error)
    await until(() => server.stdout().includes('[app] held'))
    server.child.kill('SIGTERM')
    await until(() => server.stdout().includes('SIGTERM: stopping'))
    server.child.kill('SIGINT')
    assert.equal(await server.ended, 1)
    assert.ok((await held) instanceof Error)
    assert.match(text(cwd, 'svc.log'), /\[WARN \] \[server\] SIGINT again: exiting at once\n$/)
  })

  it('a stop takes no longer than server.stop_timeout_s', async (t) => {
    const cwd = applicationFolder(slow, { 'server.stop_timeout_s': 1 })
    const server = launch(t, [], { cwd })
    const held = request(await server.listening()).catch((error: Error) => error)
    await until(() => server.stdout().includes('[app] held'))
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
    assert.ok((await held) instanceof Error)
    assert.match(server.stdout(), /the stop took longer than 1 s: cut 1 request/)
  })

  it('stops a server whose start is blocked by a middleware', async (t) => {
    const cwd = applicationFolder(
      {
        'routes/middleware/config.json': { load: ['slow.mjs'] },
        'routes/middleware/slow.mjs': `export const setup = (app) => {
          app.logger('app')('held up')
          return new Promise((resolve) => setTimeout(resolve, 600_000))
        }`,
      },
      { 'server.stop_timeout_s': 1 },
    )
    const server = launch(t, [], { cwd })
    await until(() => server.stdout().includes('held up'))
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
    assert.doesNotMatch(server.stdout(), /listening|FATAL/)
  })
})

/**
 * A module that sends its own process a signal as soon as something listens for it, and prints how many listen for
 * SIGTERM by then: none before the server handles its signals.
 */
const impatient = (signal: NodeJS.Signals): string => `let sent = false
process.on('newListener', (name) => {
  if (name !== '${signal}' || sent) return
  sent = true
  queueMicrotask(() => {
    console.log('sent while SIGTERM has ' + process.listenerCount('SIGTERM') + ' listeners')
    process.kill(process.pid, '${signal}')
  })
})
`

describe('SIGHUP and SIGUSR2', () => {
  for (const signal of ['SIGHUP', 'SIGUSR2'] as const) {
    it(`${signal} that arrives before the server handles signals does not end the start`, async (t) => {
      const cwd = applicationFolder({ 'impatient.mjs': impatient(signal) })
      const preload = ['--import', pathToFileURL(join(cwd, 'impatient.mjs')).href]
      const server = launch(t, [], { cwd, nodeOptions: [...optionsOfTarget(), ...preload] })
      assert.equal((await request(await server.listening())).text, 'home')
      assert.match(server.stdout(), /^sent while SIGTERM has 0 listeners\n/)
      server.child.kill('SIGTERM')
      assert.equal(await server.ended, 0) // Node may deliver the signal so late that the server handles it.
    })
  }

  const route = (name: string): object => ({ name, url: `/${name}`, action: 'home.mjs' })

  it('SIGHUP reloads the routes and reopens the log files', async (t) => {
    const cwd = applicationFolder()
    const server = launch(t, [], { cwd })
    const url = await server.listening()
    assert.equal((await request(`${url}/more`)).status, 404)
    for (const file of ['svc.log', 'access.log']) renameSync(join(cwd, '.logs', file), join(cwd, '.logs', `${file}.1`))
    writeFiles(cwd, { 'routes/more.json': [route('more')], 'home.mjs': "export default () => 'changed'" })
    server.child.kill('SIGHUP')
    await until(() => server.stdout().includes('routes reloaded: 1 removed, 2 loaded'))
    assert.equal((await request(`${url}/more`)).text, 'changed')
    assert.equal((await request(url)).text, 'changed')
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
    assert.match(text(cwd, 'svc.log.1'), /listening on/)
    assert.match(text(cwd, 'svc.log'), /routes reloaded/)
    assert.doesNotMatch(text(cwd, 'svc.log'), /listening on/)
    assert.match(text(cwd, 'access.log.1'), /"GET \/more HTTP\/1\.1" 404\n$/)
    assert.match(text(cwd, 'access.log'), /^[^\n]* "GET \/more HTTP\/1\.1" 200\n/)
  })

  it('SIGHUP with an invalid route file keeps the old routes, logs why, and reopens the log files', async (t) => {
    const cwd = applicationFolder()
    const server = launch(t, [], { cwd })
    const url = await server.listening()
    renameSync(join(cwd, '.logs/svc.log'), join(cwd, '.logs/old.log'))
    writeFiles(cwd, { 'routes/home.json': [], 'routes/wrong.json': '[{]' })
    server.child.kill('SIGHUP')
    await until(() => server.stdout().includes('[ERROR]'))
    assert.equal((await request(url)).text, 'home')
    assert.match(text(cwd, 'svc.log'), /\[ERROR\] \[server\] SIGHUP: Cannot reload the routes, so the old ones stay: wrong\.json: /)
    assert.doesNotMatch(text(cwd, 'svc.log'), /listening/)
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
  })

  it('SIGUSR2 only reopens the log files', async (t) => {
    const cwd = applicationFolder()
    const server = launch(t, [], { cwd })
    const url = await server.listening()
    for (const file of ['svc.log', 'access.log']) renameSync(join(cwd, '.logs', file), join(cwd, '.logs', `${file}.1`))
    writeFiles(cwd, { 'routes/home.json': [route('more')], 'home.mjs': "export default () => 'changed'" })
    server.child.kill('SIGUSR2')
    await until(() => existsSync(join(cwd, '.logs/access.log')))
    assert.equal((await request(url)).text, 'home')
    assert.equal((await request(`${url}/more`)).status, 404)
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0)
    assert.equal(text(cwd, 'access.log').split('\n').length, 3)
    assert.match(text(cwd, 'svc.log'), /\[server\] stopped\n$/)
    assert.doesNotMatch(text(cwd, 'svc.log'), /reloaded|listening/)
  })
})
