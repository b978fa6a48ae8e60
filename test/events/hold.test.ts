import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Connection, requestText } from '../support/connection.ts'
import { parseAnswer } from '../support/raw.ts'
import { request } from '../support/request.ts'
import { serve } from '../support/serve.ts'
import { until } from '../support/until.ts'

const json = { headers: { accept: 'application/json' } }

/** Emits an event on the process, which the actions of this file listen to. */
const tell = (name: string): boolean => process.emit(name as 'SIGUSR2') // Any name works, but the types allow only a few.

let count = 0
const newKey = (): string => `hold-${process.pid}-${(count += 1)}`

/** Whether the held work of the action is listening. */
const listening = (key: string): Promise<void> => until(() => process.listenerCount(key) > 0)

describe('hold', () => {
  it('answers with the value of the promise, as an action would', async (t) => {
    const { url } = await serve(t, {
      '/html': '({ hold }) => hold(async () => "<p>late</p>")',
      '/json': '({ hold }) => hold(async () => ({ a: 1 }))',
      '/plain': '({ hold }) => hold(() => [7])',
      '/status': '(ctx) => ctx.hold(async () => { ctx.setHeader("X-Late", "yes"); return ctx.text("made", 201) })',
      '/replied': '(ctx) => ctx.hold(async () => { ctx.text("said") })',
      '/nothing': '(ctx) => { ctx.text("replaced"); return ctx.hold(async () => {}) }',
      '/unreturned': '(ctx) => { ctx.hold(async () => "not returned") }',
      '/response': '({ hold }) => hold(async () => new Response("of fetch", { status: 202 }))',
      '/stream': '({ hold }) => hold(async () => (async function* () { yield "a"; await new Promise(setImmediate); yield "b" })())',
      '/again': '({ hold }) => hold(async () => hold(async () => "waited twice"))',
    })
    const rows: [string, number, string][] = [
      ['/html', 200, '<p>late</p>'],
      ['/json', 200, '{"a":1}'],
      ['/plain', 200, '[7]'],
      ['/status', 201, 'made'],
      ['/replied', 200, 'said'],
      ['/nothing', 204, ''],
      ['/unreturned', 200, 'not returned'],
      ['/response', 202, 'of fetch'],
      ['/stream', 200, 'ab'],
      ['/again', 200, 'waited twice'],
    ]
    for (const [path, status, text] of rows) {
      const answer = await request(url + path)
      assert.deepEqual([answer.status, answer.text], [status, text], path)
    }
    assert.equal((await request(`${url}/status`)).headers['x-late'], 'yes')
  })

  it('answers a rejection, and a throw, as an error', async (t) => {
    const { url, lines } = await serve(t, {
      '/fail': '({ hold, fail }) => hold(async () => fail(409, "taken", "It is taken"))',
      '/reject': '({ hold }) => hold(() => Promise.reject(new Error("later reason")))',
      '/throw': '({ hold }) => hold(() => { throw new Error("thrown reason") })',
      '/odd': '({ hold }) => hold(async () => () => {})',
    })
    const taken = await request(`${url}/fail`, json)
    assert.deepEqual([taken.status, taken.json()], [409, { error: 'taken', detail: 'It is taken' }])
    for (const path of ['/reject', '/throw', '/odd']) {
      assert.deepEqual((await request(url + path, json)).json(), { error: 'internal_error' }, path)
    }
    const log = lines().join('\n')
    for (const reason of ['later reason', 'thrown reason', 'returned a function']) {
      assert.ok(log.includes(reason), reason)
    }
  })

  it('refuses wrong arguments', async (t) => {
    const { url, lines } = await serve(t, {
      '/work': '({ hold }) => hold("work")',
      '/text': '({ hold }) => hold(() => 1, { timeout_s: "3" })',
      '/negative': '({ hold }) => hold(() => 1, { timeout_s: -1 })',
      '/nan': '({ hold }) => hold(() => 1, { timeout_s: NaN })',
    })
    for (const path of ['/work', '/text', '/negative', '/nan']) {
      assert.equal((await request(url + path)).status, 500, path)
    }
    const log = lines().join('\n')
    assert.match(log, /TypeError: Cannot hold: the work must be a function: it is a string/)
    for (const value of ['3', '-1', 'NaN']) {
      assert.ok(log.includes(`Cannot hold: timeout_s must be a number of seconds from 0: it is ${value}`), value)
    }
  })

  it('begins the work when it has its worker, and gives the worker back', async (t) => {
    const first = newKey()
    const second = newKey()
    const { url, lines } = await serve(
      t,
      {
        '/hold/:key': `({ hold, params, log }) => hold(() => {
          log('began ' + params.key)
          return new Promise((resolve) => process.once(params.key, () => resolve(params.key)))
        })`,
      },
      { 'pool_rest.workers_longpoll': 1, 'pool_http.workers': 1 },
    )
    const answers = [request(`${url}/hold/${first}`)]
    await listening(first)
    answers.push(request(`${url}/hold/${second}`))
    await until(() => lines().some((line) => line.includes('(longpoll, queued)')))
    assert.equal(process.listenerCount(second), 0)
    tell(first)
    await listening(second)
    tell(second)
    assert.deepEqual((await Promise.all(answers)).map(({ text }) => text), [first, second])
  })

  it('answers 204 at its timeout, whether it has a worker or not', async (t) => {
    const { url } = await serve(
      t,
      {
        '/never': '(ctx) => { ctx.status = 201; return ctx.hold(() => new Promise(() => {}), { timeout_s: 0.05 }) }',
        '/zero': '({ hold }) => hold(() => "never begun", { timeout_s: 0 })',
      },
      { 'pool_rest.workers_longpoll': 1 },
    )
    const answers = await Promise.all(['/never', '/never', '/never', '/zero'].map((path) => request(url + path)))
    assert.deepEqual(answers.map(({ status, text }) => [status, text]), Array(4).fill([204, '']))
  })

  it('lets the work decide the response when the signal aborts', async (t) => {
    const { url, lines } = await serve(t, {
      '/word': `({ hold }) => hold((signal) => new Promise((resolve) =>
        signal.addEventListener('abort', () => resolve('last word'))), { timeout_s: 0.02 })`,
      '/abort': `({ hold }) => hold((signal) => new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason))), { timeout_s: 0.02 })`,
      '/error': `({ hold }) => hold((signal) => new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(new Error('at the end')))), { timeout_s: 0.02 })`,
      '/bad': `({ hold }) => hold((signal) => new Promise((resolve) =>
        signal.addEventListener('abort', () => resolve(() => {}))), { timeout_s: 0.02 })`,
      '/same': `(ctx) => ctx.hold((signal) => new Promise((resolve) =>
        ctx.signal.addEventListener('abort', () => resolve(String(signal === ctx.signal)))), { timeout_s: 0.02 })`,
    })
    const rows: [string, number, string | undefined][] = [
      ['/word', 200, 'last word'],
      ['/abort', 204, ''],
      ['/error', 500, undefined],
      ['/bad', 500, undefined],
      ['/same', 200, 'true'],
    ]
    for (const [path, status, text] of rows) {
      const answer = await request(url + path)
      assert.deepEqual([answer.status, text === undefined ? text : answer.text], [status, text], path)
    }
    assert.ok(lines().some((line) => line.includes('[error]') && line.includes('at the end')))
  })

  it('logs an error after the response, but no abort', async (t) => {
    const key = newKey()
    const { url, lines } = await serve(t, {
      '/late': `({ hold, params }) => hold(() => new Promise((_, reject) =>
        process.once('${key}', () => reject(new Error('too late')))), { timeout_s: 0.01 })`,
      '/value': `({ hold }) => hold(() => new Promise((resolve) =>
        process.once('${key}', () => resolve('too late as well'))), { timeout_s: 0.01 })`,
      '/abort': `({ hold }) => hold((signal) => new Promise((_, reject) =>
        process.once('${key}', () => reject(signal.reason))), { timeout_s: 0.01 })`,
    })
    for (const path of ['/late', '/value', '/abort']) assert.equal((await request(url + path)).status, 204, path)
    tell(key)
    await until(() => lines().some((line) => line.includes('GET /late (r0): failed after its wait had ended')))
    assert.equal(lines().filter((line) => line.includes('[ERROR]')).length, 1)
  })

  it('aborts the signal when the client disconnects, sends nothing, and frees the worker', async (t) => {
    const key = newKey()
    const { port, url, lines } = await serve(
      t,
      {
        '/left': `({ hold, log }) => hold((signal) => new Promise((_, reject) => {
          process.once('${key}', () => {})
          signal.addEventListener('abort', () => { log('aborted'); reject(signal.reason) })
        }))`,
        '/next': '({ hold }) => hold(async () => "next")',
      },
      { 'pool_rest.workers_longpoll': 1, 'pool_rest.queue_size': 0 },
    )
    const connection = new Connection(t, port)
    await connection.send(requestText('GET /left'))
    await listening(key)
    assert.equal((await request(`${url}/next`)).status, 503)
    connection.socket.destroy()
    await until(() => lines().some((line) => line.endsWith('[app] aborted')))
    tell(key)
    assert.equal((await request(`${url}/next`)).text, 'next')
    await until(() => lines('access.log').some((line) => line.includes('"GET /left HTTP/1.1" 499')))
    assert.deepEqual(lines().filter((line) => line.includes('[ERROR]')), [])
  })

  it('ends at the stop, with Connection: close, and the stop does not wait for the work', async (t) => {
    const key = newKey()
    const { app, port } = await serve(t, {
      '/word': `({ hold }) => hold((signal) => new Promise((resolve) => {
        process.on('${key}', () => {})
        signal.addEventListener('abort', () => resolve('bye'))
      }))`,
      '/deaf': `({ hold }) => hold(() => new Promise(() => process.on('${key}', () => {})))`,
    })
    t.after(() => process.removeAllListeners(key))
    const connections = ['/word', '/deaf'].map((path) => {
      const connection = new Connection(t, port)
      void connection.send(requestText(`GET ${path}`))
      return connection
    })
    await until(() => process.listenerCount(key) === 2)
    const before = performance.now()
    await app.stop()
    assert.ok(performance.now() - before < 10_000) // A third of the stop timeout.
    const [word, deaf] = (await Promise.all(connections.map((each) => each.closed()))).map(parseAnswer)
    assert.deepEqual([word?.status, word?.headers['connection'], word?.body], [200, 'close', 'bye'])
    assert.deepEqual([deaf?.status, deaf?.headers['connection']], [204, 'close'])
  })

  it('answers a HEAD empty without beginning the work', async (t) => {
    const { port, lines } = await serve(t, { '/a': '({ hold, log }) => hold(() => { log("begun") })' })
    const connection = new Connection(t, port)
    await connection.send(requestText('HEAD /a', ['Connection: close']))
    assert.equal(parseAnswer(await connection.closed()).status, 204)
    assert.deepEqual(lines().filter((line) => line.endsWith('begun')), [])
  })
})
