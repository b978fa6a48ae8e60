import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { Connection, requestText } from '../support/connection.ts'
import { request } from '../support/request.ts'
import { serve } from '../support/serve.ts'
import { until } from '../support/until.ts'

/** The requests of a connection that are served at a time. */
const limit = 1

/** A server whose action counts its calls, and holds them until `/open` is requested. */
async function start(t: TestContext, config: Readonly<Record<string, unknown>> = {}) {
  const key = `pipelining ${Math.random()}`
  const state = { started: 0, waiting: [] as (() => void)[] }
  Object.assign(globalThis, { [key]: state })
  t.after(() => Reflect.deleteProperty(globalThis, key))
  const shared = `globalThis[${JSON.stringify(key)}]`
  const { port, url, app } = await serve(
    t,
    {
      '/held/:id': `({ params }) => {
        ${shared}.started += 1
        return new Promise((resolve) => ${shared}.waiting.push(() => resolve(params.id)))
      }`,
      '/now': "() => 'now'",
    },
    config,
  )
  const release = (): void => state.waiting.splice(0).forEach((resolve) => resolve())
  return { port, url, app, state, release }
}

function requests(count: number, path = 'GET /held/'): string {
  return Array.from({ length: count }, (_, at) => requestText(`${path}${at}`)).join('')
}

describe('pipelined requests', () => {
  it('are served one after the other, the others wait unserved, and all are answered in order', async (t) => {
    const { port, url, state, release } = await start(t)
    const client = new Connection(t, port)
    await client.send(requests(50))
    await until(() => state.started === limit)
    assert.equal((await request(`${url}/now`)).text, 'now')
    assert.equal(state.started, limit)
    for (let answered = 0; answered < 50; ) {
      release()
      answered = (await client.answers(Math.min(50, answered + limit))).length
      assert.ok(state.started <= answered + limit, `${state.started} are served with ${answered} answered`)
    }
    const answers = await client.answers(50)
    assert.deepEqual(answers.map(({ body }) => body), Array.from({ length: 50 }, (_, at) => String(at)))
  })

  it('get a long response completely even if the next one closes the connection, with more data arriving', async (t) => {
    const size = 3_000_000
    const { port } = await serve(t, {}, { 'paths.public': 'public' }, { 'public/big.bin': 'b'.repeat(size) })
    const socket = connect({ port, host: '127.0.0.1' })
    let error: Error | undefined
    socket.on('error', (thrown) => (error = thrown))
    socket.write(requestText('GET /big.bin') + requestText('GET /nothing', ['Connection: close']) + requestText('GET /big.bin').repeat(50))
    const more = setInterval(() => socket.writable && socket.write(requestText('GET /more')), 5)
    t.after(() => clearInterval(more))
    let received = 0
    socket.on('data', (chunk: Buffer) => {
      received += chunk.length
      socket.pause() // A slow client: unread data must not be lost when the connection is closed.
      setTimeout(() => socket.resume(), 20)
    })
    await once(socket, 'close')
    assert.equal(error, undefined)
    assert.ok(received > size && received < size + 2000, `${received} bytes of ${size} and an answer`)
  })

  it('do not stop reading: later requests are answered too, with their bodies', async (t) => {
    const { port, state, release } = await start(t)
    const client = new Connection(t, port)
    await client.send(requests(20))
    await until(() => state.started === limit)
    const late = client.send(requestText('POST /now', ['Content-Length: 200000'], 'x'.repeat(200_000)))
    const releasing = setInterval(release, 1)
    t.after(() => clearInterval(releasing))
    const answers = await client.answers(21)
    assert.equal(answers.at(-1)?.body, 'now')
    await late
  })

  it('are dropped with their client: unserved requests are never served', async (t) => {
    const { port, url, state, release } = await start(t, { 'app.env': 'dev' })
    const active = async (): Promise<number> =>
      ((await request(`${url}/svc-status`)).json() as { requests: { active: number } }).requests.active
    const client = new Connection(t, port)
    await client.send(requests(50))
    await until(() => state.started === limit)
    await client.reset()
    await until(async () => (release(), (await active()) === 1))
    assert.ok(state.started < 50, `${state.started} were served`)
  })

  it('after a final response are not served', async (t) => {
    const { port, state } = await start(t)
    const client = new Connection(t, port)
    await client.send(requestText('GET /now', ['Connection: close']) + requests(10))
    const text = await client.closed()
    assert.equal(text.match(/^HTTP\/1\.1 /gm)?.length, 1)
    assert.equal(state.started, 0)
  })

  it('do not keep a server from stopping', async (t) => {
    const { port, app, state, release } = await start(t)
    const client = new Connection(t, port)
    await client.send(requests(50))
    await until(() => state.started === limit)
    const stopped = app.stop()
    const releasing = setInterval(release, 1)
    t.after(() => clearInterval(releasing))
    await stopped
    const text = await client.closed()
    assert.match(text, /Connection: close\r\n/)
    assert.ok(state.started < 50)
  })
})
