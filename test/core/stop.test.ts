import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import { createApp, type App } from '../support/app.ts'
import { parseConfig } from '../../lib/config/load.ts'
import type { Listener } from '../../lib/core/listener.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import type { RequestServer } from '../../lib/core/server.ts'
import { createStop } from '../../lib/core/stop.ts'
import { startApplication, writeFiles } from '../support/application.ts'
import { exchange, parseAnswer, readAll } from '../support/raw.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'
import { ask, requestOn, cutWarning, files, go, newKey, open } from './stop-support.ts'

describe('the stop', () => {
  it('finishes running requests, with Connection: close, and accepts no connection', async (t) => {
    const { app, url, port, lines } = await startApplication(t, files)
    const key = newKey()
    const socket = await open(t, port)
    socket.write(ask(`/held/${key}`))
    await until(() => lines().some((line) => line.endsWith('[app] held')))
    await app.control.apply({ type: 'stop' })
    await until(() => request(`${url}/ok`).then(() => false, (error: NodeJS.ErrnoException) => error.code === 'ECONNREFUSED'))
    const text = readAll(socket)
    go(key)
    const { status, headers, body } = parseAnswer(await text)
    assert.deepEqual([status, headers['connection'], body], [200, 'close', 'at last'])
    await app.stopped
    assert.equal(lines().at(-1)?.endsWith('[INFO ] [server] stopped'), true)
    assert.equal(lines('access.log').at(-1)?.includes('/held/'), true)
  })

  it('answers once more on a kept-alive connection, and then closes it', async (t) => {
    const { app, port } = await startApplication(t, files)
    const socket = await open(t, port)
    assert.doesNotMatch(await requestOn(socket, '/ok'), /connection: close/i)
    assert.equal(app.stopping, false)
    const stopped = app.stop()
    assert.equal(app.stopping, true)
    const rest = readAll(socket)
    socket.write(ask('/ok'))
    const { status, headers } = parseAnswer(await rest)
    assert.deepEqual([status, headers['connection']], [200, 'close'])
    await stopped
  })

  it('closes idle connections, used and unused, and waits for none', async (t) => {
    const { app, port, lines } = await startApplication(t, files)
    const used = await open(t, port)
    const unused = await open(t, port)
    await requestOn(used, '/ok')
    const closed = [once(used, 'close'), once(unused, 'close')]
    await app.stop()
    await Promise.all(closed)
    assert.equal(cutWarning(lines()), undefined)
  })

  it('lets a request that is being sent arrive', async (t) => {
    const { app, port } = await startApplication(t, files)
    const socket = await open(t, port)
    socket.write('GET /ok HTTP/1.1\r\n')
    const stopped = app.stop()
    const text = readAll(socket)
    socket.write('Host: h\r\n\r\n')
    assert.equal(parseAnswer(await text).status, 200)
    await stopped
  })

  it('is not delayed by a teardown that throws or hangs, and logs it', async (t) => {
    const { app, lines } = await startApplication(
      t,
      {
        'routes/middleware/config.json': { load: ['good.mjs', 'throws.mjs', 'hangs.mjs'] },
        'routes/middleware/good.mjs': "export const setup = (app) => () => app.logger('app').info('torn down')",
        'routes/middleware/throws.mjs': "export const setup = () => () => { throw new Error('ouch') }",
        'routes/middleware/hangs.mjs': 'export const setup = () => () => new Promise(() => {})',
      },
      { 'server.stop_timeout_s': 1 },
    )
    await app.stop()
    const logged = lines().filter((line) => line.startsWith('[')).map((line) => line.slice(26))
    assert.match(logged.at(-2) ?? '', /^\[INFO \] \[server\] audit log: record 2, head [0-9a-f]{64}$/)
    assert.deepEqual(logged.slice(-5).toSpliced(3, 1), [
      '[ERROR] [error] the teardown of middleware hangs.mjs failed',
      '[ERROR] [error] the teardown of middleware throws.mjs failed',
      '[INFO ] [app] torn down',
      '[INFO ] [server] stopped',
    ])
  })

  it('runs once, however often it is requested', async (t) => {
    const { app, lines } = await startApplication(t, files)
    const first = app.stop()
    await app.control.apply({ type: 'stop' })
    await Promise.all([first, app.stop(), app.stopped])
    await app.stop()
    assert.equal(lines().filter((line) => line.endsWith('stopped')).length, 1)
  })

  it('may precede the start, which is then refused', async (t) => {
    const folder = temporaryFolder()
    writeFiles(folder, files)
    const app = createApp({ folder, config: { 'server.port': 0, 'log.console': false, 'server.drain_delay_s': 60 } })
    t.after(() => app.closeLogs())
    await app.stop()
    await assert.rejects(app.start(), { message: 'Cannot start: the server has been stopped before' })
  })

  it('makes a running start fail, and leaves nothing listening', async (t) => {
    const folder = temporaryFolder()
    writeFiles(folder, files)
    const app = createApp({ folder, config: { 'server.port': 0, 'log.console': false } })
    t.after(() => app.closeLogs())
    const started = app.start()
    const refused = assert.rejects(started, /the server is being stopped/)
    const first = Promise.race([started.catch(() => 'start'), app.stopped.then(() => 'stop')])
    await app.stop()
    assert.equal(await first, 'stop')
    await refused
  })

  it('makes a start fail that is just binding, and leaves nothing listening', async (t) => {
    const folder = temporaryFolder()
    writeFiles(folder, files)
    const loaded = parseConfig({ 'log.console': false }, folder)
    let app: App | undefined
    // The last process to request the port is the one that binds it.
    const port = { enumerable: true, get: () => (void app?.stop(), 0) }
    const config = Object.defineProperty({ ...loaded.config }, 'server.port', port)
    const made = createApp({ loaded: { ...loaded, config } })
    app = made
    t.after(() => made.closeLogs())
    await assert.rejects(made.start(), { message: 'Cannot start: the server is being stopped' })
    await made.stopped
  })

  it('after a failed start, because the port is taken, has no drain delay', async (t) => {
    const { port } = await startApplication(t, files)
    const folder = temporaryFolder()
    writeFiles(folder, files)
    const app = createApp({ folder, config: { 'server.port': port, 'log.console': false, 'server.drain_delay_s': 60 } })
    t.after(() => app.closeLogs())
    await assert.rejects(app.start(), { code: 'EADDRINUSE' })
    await app.stop()
  })

  it('answers on every connection that sends at the moment of the stop', async (t) => {
    const { app, port } = await startApplication(t, files)
    const sockets = await Promise.all(Array.from({ length: 30 }, () => open(t, port)))
    await Promise.all(sockets.map((socket) => requestOn(socket, '/ok')))
    const texts = sockets.map(readAll)
    for (const socket of sockets.slice(0, 15)) socket.write(ask('/ok'))
    const stopped = app.stop()
    for (const socket of sockets.slice(15)) socket.write(ask('/ok'))
    for (const text of await Promise.all(texts)) {
      const { status, headers } = parseAnswer(text)
      assert.deepEqual([status, headers['connection']], [200, 'close'])
    }
    await stopped
  })

  it('answers on connections that have not been accepted yet', async (t) => {
    const { app, port } = await startApplication(t, files)
    const sockets = Array.from({ length: 30 }, () => connect(port, '127.0.0.1'))
    t.after(() => sockets.forEach((socket) => socket.destroy()))
    for (const socket of sockets) socket.on('error', () => {}).write(ask('/ok'))
    const texts = sockets.map(readAll)
    await new Promise<void>((resolve) => process.nextTick(resolve)) // The kernel has connected them; no turn has passed.
    const stopped = app.stop()
    for (const text of await Promise.all(texts)) {
      const { status, headers } = parseAnswer(text)
      assert.deepEqual([status, headers['connection']], [200, 'close'])
    }
    await stopped
  })

  it('counts an action whose client has disconnected until it ends', async (t) => {
    const { app, port, lines } = await startApplication(t, files)
    const key = newKey()
    const socket = await open(t, port)
    socket.write(ask(`/held/${key}`))
    await until(() => lines().some((line) => line.endsWith('[app] held')))
    socket.resetAndDestroy()
    await until(() => lines('access.log').length === 1)
    let done = false
    const stopped = app.stop().then(() => {
      done = true
    })
    await until(async () => (await exchange(port, ask('/ok')).catch(() => 'refused')) === 'refused')
    assert.equal(done, false)
    go(key)
    await stopped
  })
})

describe('the end of a stop', () => {
  it('is reached although the background work could not be stopped', async () => {
    const logged: string[] = []
    const stop = createStop({
      lastLine: 'stopped',
      onEnd: () => logged.push('end'),
      log: Object.assign(() => {}, silentLogger, { error: (message: string) => logged.push(message) }),
      drainDelayMs: 0,
      timeoutMs: 1000,
      requests: { drain: () => {}, idle: () => Promise.resolve(), active: 0 } as unknown as RequestServer,
      listener: {
        listening: false,
        closeIdle: () => {},
        acceptWaiting: () => Promise.resolve(),
        stopAccepting: () => Promise.resolve(),
      } as unknown as Listener,
      onBegin: () => {},
      onDrain: () => {},
      finish: () => Promise.reject(new Error('ouch')),
    })
    assert.equal(stop.begun, false)
    await stop.begin()
    await stop.done
    assert.deepEqual([stop.begun, logged], [true, ['the background work could not be stopped', 'end']])
  })
})
