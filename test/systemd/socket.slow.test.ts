import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { text } from 'node:stream/consumers'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { applicationFolder } from '../support/application-folder.ts'
import { optionsOfTarget, root } from '../support/launch.ts'
import { request } from '../support/request.ts'
import { serviceManager } from '../support/service-manager.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const environment = `export default ({ ip }) => [ip, process.env.LISTEN_FDS ?? '', process.env.LISTEN_PID ?? '']`

/** Runs the server with descriptor 3 not being a valid listening socket. */
async function runWith(t: TestContext, count: string, third: 'ignore' | 'pipe') {
  const script = `export LISTEN_PID=$$ LISTEN_FDS=${count}; exec "$@"`
  const args = ['-c', script, 'sh', process.execPath, ...optionsOfTarget(), `${root}bin/svc.js`]
  const child = spawn('sh', args, { cwd: applicationFolder(), stdio: ['ignore', 'pipe', 'pipe', third] })
  t.after(() => child.kill('SIGKILL'))
  const output = Promise.all([child.stdout, child.stderr].map((stream) => text(stream as NodeJS.ReadableStream)))
  const [status] = (await once(child, 'exit')) as [number]
  return { status, output: (await output).join('') }
}

/** Sends a request over a Unix socket. */
async function ask(socketPath: string, headers: Readonly<Record<string, string>> = {}): Promise<unknown> {
  const sent = httpRequest({ socketPath, path: '/', headers, agent: false }).end()
  const [response] = await once(sent, 'response')
  return JSON.parse(await text(response))
}

describe('a listening socket that the service manager passes', () => {
  it('overrides server.host and server.port, and a log line reports it', async (t) => {
    const cwd = applicationFolder({ 'home.mjs': environment }, { 'server.host': '192.0.2.1', 'server.port': 1 })
    const service = await serviceManager(t, { cwd })
    await service.start()
    const unused = 'the service manager passed a socket: server.host 192.0.2.1 and server.port 1 are not used'
    assert.ok(service.output().includes(`[INFO ] [server] ${unused}\n`))
    assert.ok(service.output().includes(`[INFO ] [server] listening on http://127.0.0.1:${service.port}\n`))
    assert.deepEqual((await request(`http://127.0.0.1:${service.port}/`)).json(), ['127.0.0.1', '', ''])
  })

  it('keeps connections that arrive while no server runs, for the next one', async (t) => {
    const service = await serviceManager(t, { cwd: applicationFolder() })
    const early = request(`http://127.0.0.1:${service.port}/`)
    await service.start()
    assert.equal((await early).text, 'home')
    service.kill('SIGTERM')
    assert.equal(await service.ended(), 0)
    const between = Array.from({ length: 600 }, () => request(`http://127.0.0.1:${service.port}/`)) // More than Node's 511.
    await service.start()
    for (const answer of between) assert.equal((await answer).text, 'home')
  })

  it('may be a Unix socket: its clients are local', async (t) => {
    const folder = temporaryFolder()
    const path = join(folder, 'svc.sock')
    const config = { 'server.trusted_proxies': ['127.0.0.1'] }
    const cwd = applicationFolder({ 'home.mjs': environment }, config)
    const service = await serviceManager(t, { cwd, listen: { path } })
    await service.start()
    assert.ok(service.output().includes(`[INFO ] [server] listening on a Unix socket\n`))
    assert.deepEqual(await ask(path), ['127.0.0.1', '', ''])
    assert.deepEqual(await ask(path, { 'x-forwarded-for': '198.51.100.7' }), ['198.51.100.7', '', ''])
    service.kill('SIGTERM')
    assert.equal(await service.ended(), 0)
    assert.ok(existsSync(path)) // It does not belong to the server.
    const between = ask(path)
    await service.start()
    assert.deepEqual(await between, ['127.0.0.1', '', ''])
  })

  it('may be a Unix socket of several processes', async (t) => {
    const path = join(temporaryFolder(), 'svc.sock')
    const service = await serviceManager(t, { cwd: applicationFolder({}, { 'server.processes': 2 }), listen: { path } })
    await service.start()
    assert.ok(service.output().includes(`[INFO ] [server] listening on a Unix socket\n`), service.output())
    service.kill('SIGTERM')
    assert.equal(await service.ended(), 0)
  })

  it('must be one', async (t) => {
    const { status, output } = await runWith(t, '2', 'ignore')
    assert.deepEqual([status, output], [
      78,
      'Cannot load the socket of the service manager: LISTEN_FDS must be 1: it is 2; let svc.socket have one ListenStream=\n',
    ])
  })

  it('must be a socket', async (t) => {
    const { status, output } = await runWith(t, '1', 'ignore')
    assert.equal(status, 78)
    assert.match(output, /file descriptor 3 is not a socket, though LISTEN_FDS is 1\n$/)
  })

  it('must be listening', async (t) => {
    const { status, output } = await runWith(t, '1', 'pipe')
    assert.equal(status, 1)
    assert.match(output, /\[FATAL\] \[server\] Cannot listen on file descriptor 3, which was passed: listen EINVAL.*Accept=no\n/)
  })
})
