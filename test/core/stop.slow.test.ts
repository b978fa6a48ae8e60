// The stops that wait for a time to be over.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { startApplication } from '../support/application.ts'
import { parseAnswer, readAll } from '../support/raw.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'
import { ask, requestOn, cutWarning, files, newKey, open } from './stop-support.ts'

/** Blocks the event loop. */
const block = (ms: number): unknown => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

describe('the stop', () => {
  it('does not wait for an incomplete header section, even on a used connection', async (t) => {
    const { app, port, lines } = await startApplication(t, files)
    const used = await open(t, port)
    const fresh = await open(t, port)
    await requestOn(used, '/ok')
    for (const socket of [used, fresh]) socket.write('GET /ok HTTP/1.1\r\nHost: h\r\nX-Slow: ')
    const closed = [used, fresh].map((socket) => once(socket.resume(), 'close'))
    await app.stop()
    await Promise.all(closed)
    assert.equal(cutWarning(lines()), undefined)
  })

  it('waits for a request whose body is still arriving', async (t) => {
    const { app, port } = await startApplication(t, files)
    const [uploading, idle] = [await open(t, port), await open(t, port)]
    await requestOn(idle, '/ok')
    uploading.write('POST /length HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nab')
    const text = readAll(uploading)
    const gone = once(idle, 'close')
    const stopped = app.stop()
    await gone // Idle connections have been closed, and the upload is still running.
    uploading.write('cd')
    const { status, body } = parseAnswer(await text)
    assert.deepEqual([status, body], [200, '4'])
    await stopped
  })

  it('ends a connection gracefully on which the rest of an answered request is still arriving', async (t) => {
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
    const closed = once(socket, 'close') // Rejects if the connection is reset.
    socket.write(rest.subarray(1))
    socket.end(rest.subarray(0, 1))
    await Promise.all([closed, stopped])
    assert.equal(cutWarning(lines()), undefined)
  })

  it('writes the access log line of a cut request', async (t) => {
    const { app, port, folder, lines } = await startApplication(t, files, { 'server.stop_timeout_s': 1 })
    const socket = await open(t, port)
    socket.write(ask('/hangs'))
    await until(() => lines().some((line) => line.endsWith('[app] hangs')))
    void app.stop()
    await app.stopped
    app.closeLogs()
    assert.match(readFileSync(join(folder, '.logs/access.log'), 'utf8'), /"GET \/hangs HTTP\/1\.1" 499\n$/)
  })

  it('cuts hanging requests, and still ends the background work', async (t) => {
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

  it('keeps serving for the drain delay, then stops', async (t) => {
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

  it('does not let the drain delay exceed the stop time-out', async (t) => {
    const { app } = await startApplication(t, files, { 'server.drain_delay_s': 60, 'server.stop_timeout_s': 1 })
    const before = performance.now()
    await app.stop()
    assert.ok(performance.now() - before < 30_000) // Half of the drain delay.
  })

  it('does not wait forever for hanging teardowns', async (t) => {
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
})

describe("a request during an event loop block longer than the interval of the stop's idle checks", () => {
  /** How the loop is blocked: starts the block after the stop's first check. */
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
    ['work at the end of a turn', (_busy, hold) => void setImmediate(hold)],
  ]
  for (const [what, begin] of rows) {
    it(`is answered: ${what}`, async (t) => {
      const { app, port } = await startApplication(t, files)
      const [used, fresh, busy] = [await open(t, port), await open(t, port), await open(t, port)]
      await requestOn(used, '/ok')
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

describe('a connection whose response began before the stop', () => {
  it('is closed when the response has ended, although it had no Connection: close', async (t) => {
    const { app, port } = await startApplication(t, files)
    const client = connect(port, '127.0.0.1')
    t.after(() => client.destroy())
    client.write('GET /big HTTP/1.1\r\nHost: h\r\n\r\n')
    const [first] = (await once(client, 'data')) as [Buffer]
    assert.match(first.toString('latin1'), /^HTTP\/1\.1 200 [^]*Connection: keep-alive/)
    client.pause()
    const began = performance.now()
    const stopped = app.stop()
    await until(() => performance.now() - began > 1200) // Two idle checks have passed.
    client.resume()
    await Promise.all([stopped, once(client, 'close')])
    assert.ok(performance.now() - began < 10_000, 'the stop did not wait until its time-out')
  })
})
