import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { createApp, type App } from '../lib/app.ts'
import { parseConfig } from '../lib/config/load.ts'
import type { Listener } from '../lib/listener.ts'
import { silentLogger } from '../lib/log/silent.ts'
import type { RequestServer } from '../lib/server.ts'
import { createStop } from '../lib/stop.ts'
import { startApplication, writeFiles } from './support/application.ts'
import { exchange, parseAnswer, readAll } from './support/raw.ts'
import { request } from './support/request.ts'
import { temporaryFolder } from './support/temporary-folder.ts'
import { until } from './support/until.ts'

/** `/held` is answered when the test emits the event of the application's own name on the process. */
const files = {
  'routes/a.json': [
    { name: 'ok', url: '/ok', action: 'a.mjs' },
    { name: 'held', url: '/held/:key', action: 'a.mjs@held' },
    { name: 'hangs', url: '/hangs', action: 'a.mjs@hangs' },
    { name: 'big', url: '/big', action: 'a.mjs@big' },
    { name: 'length', url: '/length', action: 'a.mjs@length' },
    { name: 'busy', url: '/busy/:key', action: 'a.mjs@busy' },
  ],
  'a.mjs': `export default () => 'ok'
    export const big = () => 'x'.repeat(32 * 2 ** 20)
    export const busy = ({ params }) => {
      process.emit('go-' + params.key)
      return 'done'
    }
    export const length = async ({ readText, text }) => text(String((await readText()).length))
    export const held = (ctx) => {
      ctx.log('held')
      return new Promise((resolve) => process.once('go-' + ctx.params.key, () => resolve('at last')))
    }
    export const hangs = (ctx) => {
      ctx.log('hangs')
      return new Promise(() => {})
    }`,
}

let count = 0
const newKey = (): string => `${process.pid}-${(count += 1)}`
const go = (key: string): boolean => process.emit(`go-${key}` as 'SIGUSR2') // Any name will do, but the types know a few.

const ask = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`

/** Holds the event loop up. */
const block = (ms: number): unknown => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

/** A connection that is closed when the test ends. */
async function open(t: Pick<TestContext, 'after'>, port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  t.after(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

/** Sends a request on a connection and reads what comes at once. */
async function askOn(socket: Socket, path: string): Promise<string> {
  socket.write(ask(path))
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  return chunk.toString()
}

/** What the log says when a stop waited until its time was over, and then cut what was there. */
function cutWarning(lines: readonly string[]): string | undefined {
  return lines.find((line) => line.includes('the stop took longer than'))
}

describe('the stop', () => {
  it('finishes what runs, with Connection: close, and takes no new connection', async (t) => {
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

  it('answers once more on a connection that was kept alive, and then closes it', async (t) => {
    const { app, port } = await startApplication(t, files)
    const socket = await open(t, port)
    assert.doesNotMatch(await askOn(socket, '/ok'), /connection: close/i)
    assert.equal(app.stopping, false)
    const stopped = app.stop()
    assert.equal(app.stopping, true)
    const rest = readAll(socket)
    socket.write(ask('/ok'))
    const { status, headers } = parseAnswer(await rest)
    assert.deepEqual([status, headers['connection']], [200, 'close'])
    await stopped
  })

  it('closes idle connections, used ones and unused ones, and waits for none', async (t) => {
    const { app, port, lines } = await startApplication(t, files)
    const used = await open(t, port)
    const unused = await open(t, port)
    await askOn(used, '/ok')
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

  it('waits for no header section that has come in part, on a used connection neither', async (t) => {
    const { app, port, lines } = await startApplication(t, files)
    const used = await open(t, port)
    const fresh = await open(t, port)
    await askOn(used, '/ok')
    for (const socket of [used, fresh]) socket.write('GET /ok HTTP/1.1\r\nHost: h\r\nX-Slow: ')
    const closed = [used, fresh].map((socket) => once(socket.resume(), 'close'))
    await app.stop()
    await Promise.all(closed)
    assert.equal(cutWarning(lines()), undefined)
  })

  it('waits for a request whose body is still coming', async (t) => {
    const { app, port } = await startApplication(t, files)
    const [uploading, idle] = [await open(t, port), await open(t, port)]
    await askOn(idle, '/ok')
    uploading.write('POST /length HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nab')
    const text = readAll(uploading)
    const gone = once(idle, 'close')
    const stopped = app.stop()
    await gone // What is idle has been closed, and the upload has outlived it.
    uploading.write('cd')
    const { status, body } = parseAnswer(await text)
    assert.deepEqual([status, body], [200, '4'])
    await stopped
  })

  it('ends a connection without breaking it on which the rest of an answered request is still coming', async (t) => {
    const { app, port, lines } = await startApplication(t, files)
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    t.after(() => socket.destroy())
    const rest = Buffer.alloc(900_000)
    socket.write(`POST /ok HTTP/1.1\r\nHost: h\r\nContent-Length: ${rest.length}\r\n\r\n`)
    const [chunk] = (await once(socket, 'data')) as [Buffer]
    assert.equal(parseAnswer(chunk.toString()).status, 200)
    const ended = once(socket, 'end')
    const stopped = app.stop()
    await ended
    const closed = once(socket, 'close') // Rejects when the connection is reset.
    socket.write(rest.subarray(1))
    socket.end(rest.subarray(0, 1))
    await Promise.all([closed, stopped])
    assert.equal(cutWarning(lines()), undefined)
  })

  it('has the access line of what it cut', async (t) => {
    const { app, port, folder, lines } = await startApplication(t, files, { 'server.stop_timeout_s': 1 })
    const socket = await open(t, port)
    socket.write(ask('/hangs'))
    await until(() => lines().some((line) => line.endsWith('[app] hangs')))
    void app.stop()
    await app.stopped
    app.closeLogs()
    assert.match(readFileSync(join(folder, '.logs/access.log'), 'utf8'), /"GET \/hangs HTTP\/1\.1" 499\n$/)
  })

  it('cuts what hangs, and still ends the background work', async (t) => {
    const { app, port, lines } = await startApplication(
      t,
      {
        ...files,
        'routes/middleware/config.json': { load: ['m.mjs'] },
        'routes/middleware/m.mjs': `export const setup = (app) => async () => {
          await new Promise((resolve) => setTimeout(resolve, 10))
          app.logger('app').info('torn down')
        }`,
      },
      { 'server.stop_timeout_s': 1 },
    )
    const socket = await open(t, port)
    socket.write(ask('/hangs'))
    await until(() => lines().some((line) => line.endsWith('[app] hangs')))
    const text = readAll(socket)
    await app.stop()
    assert.equal(await text, '')
    const [warning, ...rest] = lines().filter((line) => /the stop took|torn down|stopped/.test(line)).map((line) => line.slice(26))
    assert.equal(warning, '[WARN ] [server] the stop took longer than 1 s: cut 1 request')
    assert.deepEqual(rest, ['[INFO ] [app] torn down', '[INFO ] [server] stopped'])
    assert.match(lines('access.log')[0] ?? '', /"GET \/hangs HTTP\/1\.1" 499$/)
  })

  it('serves on for the drain delay, then stops', async (t) => {
    const { app, url } = await startApplication(t, files, { 'server.drain_delay_s': 1 })
    const before = performance.now()
    const stopped = app.stop()
    const answer = await request(`${url}/ok`)
    assert.equal(answer.status, 200)
    await stopped
    const took = performance.now() - before
    assert.ok(took >= 990, `${took} ms`)
    await assert.rejects(request(`${url}/ok`), { code: 'ECONNREFUSED' })
  })

  it('does not let the drain delay outlast the stop time-out', async (t) => {
    const { app } = await startApplication(t, files, { 'server.drain_delay_s': 60, 'server.stop_timeout_s': 1 })
    const before = performance.now()
    await app.stop()
    assert.ok(performance.now() - before < 30_000) // Half of the drain delay.
  })

  it('is not held up by a teardown that throws or hangs, and says so', async (t) => {
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
    const said = lines().filter((line) => line.startsWith('[')).map((line) => line.slice(26))
    assert.deepEqual(said.slice(-4), [
      '[ERROR] [error] the teardown of middleware hangs.mjs failed',
      '[ERROR] [error] the teardown of middleware throws.mjs failed',
      '[INFO ] [app] torn down',
      '[INFO ] [server] stopped',
    ])
  })

  it('does not wait for ever for teardowns that all hang', async (t) => {
    const hangs = 'export const setup = () => () => new Promise(() => {})'
    const names = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => `${name}.mjs`)
    const { app, lines } = await startApplication(
      t,
      {
        'routes/middleware/config.json': { load: names },
        ...Object.fromEntries(names.map((name) => [`routes/middleware/${name}`, hangs])),
      },
      { 'server.stop_timeout_s': 1 },
    )
    await app.stop()
    assert.ok(lines().some((line) => line.endsWith('[WARN ] [server] the background work did not end in time')))
  })

  it('ends the background work although a reload hangs', async (t) => {
    const { app, lines, write } = await startApplication(
      t,
      {
        'routes/middleware/config.json': { load: ['m.mjs'] },
        'routes/middleware/m.mjs': "export const setup = (app) => () => app.logger('app').info('torn down')",
      },
      { 'server.stop_timeout_s': 1 },
    )
    write({
      'routes/middleware/config.json': { load: ['m.mjs', 'hangs.mjs'] },
      'routes/middleware/hangs.mjs': `export const setup = (app) => {
        app.logger('app').info('hangs')
        return new Promise(() => {})
      }`,
    })
    void app.control.apply({ type: 'routes.reload' })
    await until(() => lines().some((line) => line.endsWith('[app] hangs')))
    await app.control.apply({ type: 'stop' })
    await app.stopped
    assert.ok(lines().some((line) => line.endsWith('[app] torn down')))
  })

  it('is one stop, however often it is asked for', async (t) => {
    const { app, lines } = await startApplication(t, files)
    const first = app.stop()
    await app.control.apply({ type: 'stop' })
    await Promise.all([first, app.stop(), app.stopped])
    await app.stop()
    assert.equal(lines().filter((line) => line.endsWith('stopped')).length, 1)
  })

  it('comes before the start as well, which is then refused', async (t) => {
    const folder = temporaryFolder()
    writeFiles(folder, files)
    const app = createApp({ folder, config: { 'server.port': 0, 'log.console': false, 'server.drain_delay_s': 60 } })
    t.after(() => app.closeLogs())
    await app.stop()
    await assert.rejects(app.start(), { message: 'Cannot start: the server has been stopped before' })
  })

  it('makes a start that is under way fail, and leaves nothing listening', async (t) => {
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

  it('makes a start that is just binding fail, and leaves nothing listening', async (t) => {
    const folder = temporaryFolder()
    writeFiles(folder, files)
    const loaded = parseConfig({ 'log.console': false }, folder)
    let app: App | undefined
    // The last to ask for the port is who binds it.
    const port = { enumerable: true, get: () => (void app?.stop(), 0) }
    const config = Object.defineProperty({ ...loaded.config }, 'server.port', port)
    const made = createApp({ loaded: { ...loaded, config } })
    app = made
    t.after(() => made.closeLogs())
    await assert.rejects(made.start(), { message: 'Cannot start: the server is being stopped' })
    await made.stopped
  })

  it('follows a start that failed because the port is taken, without a drain delay', async (t) => {
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
    await Promise.all(sockets.map((socket) => askOn(socket, '/ok')))
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

  it('answers on the connections that nobody has accepted yet', async (t) => {
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

  it('counts an action whose client has left until it ends', async (t) => {
    const { app, port, lines } = await startApplication(t, files)
    const key = newKey()
    const socket = await open(t, port)
    socket.write(ask(`/held/${key}`))
    await until(() => lines().some((line) => line.endsWith('[app] held')))
    socket.destroy()
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

describe('a request that comes while the event loop is held up for longer than the stop waits between two looks', () => {
  /** By what the loop is held up: something that begins it once the stop has looked for the first time. */
  const rows: readonly (readonly [what: string, begin: (busy: Socket, hold: () => void) => void])[] = [
    [
      'an action',
      (busy, hold) => {
        const key = newKey()
        process.once(`go-${key}`, hold)
        busy.write(ask(`/busy/${key}`))
      },
    ],
    ['a timer', (_busy, hold) => void setTimeout(hold, 1)],
    ['what runs at the end of a turn', (_busy, hold) => void setImmediate(hold)],
  ]
  for (const [what, begin] of rows) {
    it(`is answered: ${what}`, async (t) => {
      const { app, port } = await startApplication(t, files)
      const [used, fresh, busy] = [await open(t, port), await open(t, port), await open(t, port)]
      await askOn(used, '/ok')
      const texts = [used, fresh].map(readAll)
      const stopped = app.stop()
      begin(busy, () => {
        for (const socket of [used, fresh]) socket.write(ask('/ok')) // The kernel has it at once.
        block(1200)
      })
      for (const text of texts) {
        const { status, headers } = parseAnswer(await text)
        assert.deepEqual([status, headers['connection']], [200, 'close'])
      }
      await stopped
    })
  }
})

describe('a connection whose answer began before the stop', () => {
  it('is closed when that has ended, though it could not say that it is the last', async (t) => {
    const { app, port } = await startApplication(t, files)
    const client = connect(port, '127.0.0.1')
    t.after(() => client.destroy())
    client.write('GET /big HTTP/1.1\r\nHost: h\r\n\r\n')
    const [first] = (await once(client, 'data')) as [Buffer]
    assert.match(first.toString('latin1'), /^HTTP\/1\.1 200 [^]*Connection: keep-alive/)
    client.pause()
    const began = performance.now()
    const stopped = app.stop()
    await until(() => performance.now() - began > 1200) // Two looks at idle connections have passed.
    client.resume()
    await Promise.all([stopped, once(client, 'close')])
    assert.ok(performance.now() - began < 10_000, 'it was not waited for until the time of the stop was over')
  })
})

describe('the end of a stop', () => {
  it('comes although the background work could not be ended', async () => {
    const said: string[] = []
    const stop = createStop({
      lastLine: 'stopped',
      log: Object.assign(() => {}, silentLogger, { error: (message: string) => said.push(message) }),
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
    assert.deepEqual([stop.begun, said], [true, ['the background work could not be ended']])
  })
})
