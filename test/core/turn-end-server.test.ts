// Requests are handled at the end of the turn in which they arrive: behaviour that must be as if handled at once.
import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { describe, it, type TestContext } from 'node:test'
import { Connection, cutAtEnd, requestText } from '../support/connection.ts'
import { request } from '../support/request.ts'
import { serve } from '../support/serve.ts'
import { until } from '../support/until.ts'

/** Gives the actions of a test a private object, as `shared`. */
function share<T extends object>(t: TestContext, shared: T): { readonly shared: T; readonly name: string } {
  const key = `turn-end ${Math.random()}`
  Object.assign(globalThis, { [key]: shared })
  t.after(() => Reflect.deleteProperty(globalThis, key))
  return { shared, name: `globalThis[${JSON.stringify(key)}]` }
}

/** Opens connections that the server has accepted, which takes a turn each. */
async function connected(t: TestContext, port: number, count: number): Promise<Connection[]> {
  const clients = Array.from({ length: count }, () => new Connection(t, port))
  for (const client of clients) void client.send(requestText('OPTIONS *'))
  await Promise.all(clients.map((client) => client.answers(1)))
  for (const client of clients) client.received = ''
  return clients
}

/** Returns each client's response to a request that all send at once. */
async function sendAtOnce(clients: readonly Connection[], text: (at: number) => string): Promise<string[]> {
  for (const [at, client] of clients.entries()) void client.send(text(at))
  const answers = await Promise.all(clients.map((client) => client.answers(1)))
  return answers.map(([answer]) => answer?.body ?? '')
}

/** The statuses in the access log. */
function statuses(lines: (file: string) => string[]): (string | undefined)[] {
  return lines('access.log').map((line) => /" (\d{3})$/.exec(line)?.[1])
}

describe('requests that arrive in one turn', () => {
  it('have separate asynchronous contexts, whatever an earlier request entered', async (t) => {
    const { name } = share(t, { store: new AsyncLocalStorage() })
    cutAtEnd(t)
    const { port } = await serve(t, {
      '/sync/:id': `({ params }) => {
        const before = ${name}.store.getStore() ?? 'none'
        ${name}.store.enterWith(params.id)
        return before
      }`,
      '/async/:id': `async ({ params }) => {
        const before = ${name}.store.getStore() ?? 'none'
        ${name}.store.enterWith(params.id)
        await null
        return before + ' ' + ${name}.store.getStore()
      }`,
    })
    const clients = await connected(t, port, 20)
    const bodies = await sendAtOnce(clients, (at) => requestText(`GET /${at % 2 === 0 ? 'sync' : 'async'}/${at}`))
    assert.deepEqual(bodies, clients.map((_, at) => (at % 2 === 0 ? 'none' : `none ${at}`)))
  })

  it('have them, and their own bytes, after waiting in the queue behind a long turn', async (t) => {
    const { name } = share(t, { store: new AsyncLocalStorage(), bytes: Buffer.alloc(40) })
    cutAtEnd(t)
    const body = `{
      for (const until = performance.now() + (params.id === '0' ? 150 : 0); performance.now() < until;);
      const before = ${name}.store.getStore() ?? 'none'
      ${name}.store.enterWith(params.id)
      return ${name}.bytes.fill((before + ' ' + params.id).padEnd(40))
    }`
    const { port } = await serve(t, { '/sync/:id': `({ params }) => ${body}`, '/async/:id': `async ({ params }) => ${body}` })
    const clients = await connected(t, port, 20)
    const bodies = await sendAtOnce(clients, (at) => requestText(`GET /${at % 4 < 2 ? 'sync' : 'async'}/${at}`))
    assert.deepEqual(bodies.map((text) => text.trim()), clients.map((_, at) => `none ${at}`))
  })

  it('keep the context that an observer of node:http entered, as tracing does', async (t) => {
    const { shared, name } = share(t, { store: new AsyncLocalStorage<string>() })
    const enter = (message: unknown): void => {
      const { request } = message as { request: { url: string } }
      shared.store.enterWith(`span of ${request.url}`)
    }
    subscribe('http.server.request.start', enter)
    t.after(() => unsubscribe('http.server.request.start', enter))
    cutAtEnd(t)
    const { port } = await serve(t, { '/:id': `async () => ${name}.store.getStore()` })
    const clients = await connected(t, port, 20)
    const bodies = await sendAtOnce(clients, (at) => requestText(`GET /${at}`))
    assert.deepEqual(bodies, clients.map((_, at) => `span of /${at}`))
  })

  it('keep it behind a response that is still being sent, and in waiting input', async (t) => {
    const { shared, name } = share(t, { store: new AsyncLocalStorage<string>(), called: 0 })
    const enter = (message: unknown): void => {
      const { request } = message as { request: { url: string } }
      if (request.url === '/observed') shared.store.enterWith('span')
    }
    subscribe('http.server.request.start', enter)
    t.after(() => unsubscribe('http.server.request.start', enter))
    cutAtEnd(t)
    const { port } = await serve(t, {
      '/big': `() => { ${name}.called += 1; ${name}.store.enterWith('that of the first'); return Buffer.alloc(20_000_000) }`,
      '/late': `async () => { ${name}.store.enterWith('that of the first'); await new Promise((resolve) => setTimeout(resolve, 5)) }`,
      '/observed': `() => String(${name}.store.getStore())`,
      '/plain': `() => String(${name}.store.getStore())`,
    })
    const follows = new Connection(t, port)
    follows.socket.pause()
    await follows.send(requestText('GET /big'))
    await until(() => shared.called === 1)
    await follows.send(requestText('GET /observed'))
    await request(`http://127.0.0.1:${port}/plain`) // The input has been read.
    follows.socket.resume()
    assert.equal((await follows.answers(2)).at(-1)?.body, 'span')
    const waits = new Connection(t, port)
    await waits.send(requestText('GET /late') + requestText('GET /plain') + requestText('GET /late'))
    await waits.send(requestText('GET /plain') + requestText('GET /observed'))
    const bodies = (await waits.answers(5)).map(({ body }) => body)
    assert.deepEqual(bodies, ['', 'undefined', '', 'undefined', 'span'])
  })

  it('run the promises of one request before the next, so that immediate work is not interleaved', async (t) => {
    const { name } = share(t, { count: 0 })
    cutAtEnd(t)
    const { port } = await serve(t, {
      'POST /count': `async (ctx) => {
        const before = ${name}.count
        await ctx.readText()
        ${name}.count = before + 1
        return String(before)
      }`,
    })
    const clients = await connected(t, port, 30)
    // A pause of the process would send requests through the queue of the pool, which starts several at once.
    const nowMs = performance.now()
    t.mock.method(performance, 'now', () => nowMs)
    const bodies = await sendAtOnce(clients, () => requestText('POST /count', ['Content-Length: 4'], 'body'))
    assert.deepEqual(bodies.map(Number).sort((a, b) => a - b), clients.map((_, at) => at))
  })

  it('are answered if their clients end their side at once, also without keep-alive and in HTTP/1.0', async (t) => {
    cutAtEnd(t)
    const { port } = await serve(t, { 'POST /': 'async (ctx) => ctx.readText()' })
    const rows = [
      requestText('POST /', ['Content-Length: 4'], 'body'),
      requestText('POST /', ['Content-Length: 4', 'Connection: close'], 'body'),
      'POST / HTTP/1.0\r\nContent-Length: 4\r\n\r\nbody',
    ]
    const clients = rows.map(() => new Connection(t, port, { allowHalfOpen: true }))
    for (const [at, client] of clients.entries()) client.socket.end(rows[at] ?? '')
    for (const client of clients) assert.match(await client.closed(), /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nbody$/)
  })

  it('are refused without their action, and logged once, if their body is broken in the same turn', async (t) => {
    const { shared, name } = share(t, { called: 0 })
    const { port, url, lines } = await serve(t, { 'POST /': `() => { ${name}.called += 1 }`, '/ok': "() => 'ok'" })
    const client = new Connection(t, port)
    await client.send(requestText('POST /', ['Transfer-Encoding: chunked'], '5\r\nhello\r\nzz\r\n'))
    const received = await client.closed()
    assert.match(received, /^HTTP\/1\.1 400 /)
    assert.equal(received.match(/HTTP\/1\.1/g)?.length, 1)
    assert.equal((await request(`${url}/ok`)).text, 'ok')
    assert.equal(shared.called, 0)
    assert.deepEqual(statuses(lines), ['400', '200'])
  })

  it('are over for their action as soon as they are refused, while their connection lingers', async (t) => {
    cutAtEnd(t)
    const { shared, name } = share(t, { begun: 0, aborted: 0 })
    const { port, lines } = await serve(t, {
      'POST /': `(ctx) => {
        ${name}.begun += 1
        return ctx.readText().catch(() => { ${name}.aborted += 1 })
      }`,
    })
    const client = new Connection(t, port, { allowHalfOpen: true })
    await client.send(requestText('POST /', ['Transfer-Encoding: chunked'], '5\r\nhello\r\n'))
    await until(() => shared.begun === 1)
    await client.send('zz\r\n')
    await client.answers(1)
    await until(() => lines('access.log').length === 1 && shared.aborted === 1)
    const sockets = process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length
    assert.equal(sockets, 2, 'both sides are open')
    assert.deepEqual(statuses(lines), ['400'])
  })

  it('do not start if their connection was cut meanwhile', async (t) => {
    const { shared, name } = share(t, { called: 0 })
    const cut = (message: unknown): void => {
      const { request, socket } = message as { request: { url: string }; socket: { destroy(): void } }
      if (request.url === '/cut') socket.destroy()
    }
    subscribe('http.server.request.start', cut)
    t.after(() => unsubscribe('http.server.request.start', cut))
    const { port, url, lines, app } = await serve(t, { '/cut': `() => { ${name}.called += 1 }`, '/ok': "() => 'ok'" })
    const client = new Connection(t, port)
    await client.send(requestText('GET /cut'))
    assert.equal(await client.closed(), '')
    assert.equal((await request(`${url}/ok`)).text, 'ok')
    assert.equal(shared.called, 0)
    assert.deepEqual(statuses(lines), ['499', '200'])
    await app.stop() // Nothing counts as running.
  })

  it('are served by a server that began to stop in between', async (t) => {
    cutAtEnd(t)
    const { app, port } = await serve(t, { '/': "async () => 'served'" })
    let stopped: Promise<unknown> | undefined
    const stop = (): void => void (stopped ??= app.stop())
    const clients = await connected(t, port, 5)
    subscribe('http.server.request.start', stop)
    t.after(() => unsubscribe('http.server.request.start', stop))
    for (const client of clients) void client.send(requestText('GET /'))
    for (const client of clients) assert.match(await client.closed(), /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nserved$/)
    await stopped
  })

  it('wait for an earlier response that its client reads late, and end with their connection', async (t) => {
    cutAtEnd(t)
    const { shared, name } = share(t, { called: [] as string[] })
    const { port, lines } = await serve(t, {
      '/big': `() => { ${name}.called.push('big'); return Buffer.alloc(20_000_000, 'b') }`,
      '/ok/:id': `({ params }) => { ${name}.called.push(params.id); return params.id }`,
    })
    const begin = async (): Promise<Connection> => {
      const client = new Connection(t, port)
      client.socket.pause()
      shared.called.length = 0
      await client.send(requestText('GET /big'))
      await until(() => shared.called.length === 1)
      for (const id of ['1', '2', '3']) await client.send(requestText(`GET /ok/${id}`))
      await request(`http://127.0.0.1:${port}/ok/other`) // The input has been read.
      assert.deepEqual(shared.called, ['big', 'other'])
      return client
    }
    const late = await begin()
    late.socket.resume()
    assert.deepEqual((await late.answers(4)).slice(1).map(({ body }) => body), ['1', '2', '3'])
    const leaving = await begin()
    const before = lines('access.log').length
    await leaving.reset()
    await until(() => lines('access.log').length > before)
    assert.deepEqual(shared.called, ['big', 'other'])
    assert.deepEqual(statuses(lines).slice(before), ['200', '499'])
  })

  it('are answered in order on a connection: before CONNECT, a handshake, a refused one', async (t) => {
    cutAtEnd(t)
    const { port } = await serve(t, { '/now': "() => 'now'", '/late': "() => new Promise((resolve) => setTimeout(resolve, 5, 'late'))" })
    const rows: readonly (readonly [string, RegExp])[] = [
      ['CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n', /405 Method Not Allowed/],
      ['BROKEN\r\n\r\n', /400 Bad Request/],
      [requestText('GET /now', ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13']), /200 OK/],
      [requestText('POST /now', ['Content-Length: x']), /400 Bad Request/],
    ]
    for (const [behind, status] of rows) {
      for (const path of ['/now', '/late']) {
        const client = new Connection(t, port)
        await client.send(requestText(`GET ${path}`) + behind)
        await until(() => status.test(client.received.slice(20)))
        assert.match(client.received, new RegExp(`^HTTP/1\\.1 200 OK\r\n[^]*\r\n\r\n${path.slice(1)}HTTP/1\\.1 `), behind)
      }
    }
  })
})
