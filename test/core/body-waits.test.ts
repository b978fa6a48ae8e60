// A request that waits for its body holds no worker, and all bodies together hold bounded memory.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BodyWaits } from '../../lib/core/body-waits.ts'
import { Pool } from '../../lib/core/pool.ts'
import type { CoreContext } from '../../lib/http/context.ts'
import { Connection, requestText } from '../support/connection.ts'
import { request } from '../support/request.ts'
import { serve } from '../support/serve.ts'
import { until } from '../support/until.ts'

const actions = {
  '/ok': "() => 'ok'",
  'POST /read/:id': `async (ctx) => {
    const text = await ctx.readText()
    ctx.log('read ' + ctx.params.id)
    return text
  }`,
  'POST /form': "async (ctx) => (await ctx.readForm()).get('a')",
  '/gate/:id': `(ctx) => new Promise((resolve) => {
    ctx.log('waits ' + ctx.params.id)
    globalThis[Symbol.for('svc.test.body-waits')].push(() => resolve(ctx.params.id))
  })`,
}

/** Releases the actions at the gate. */
function gates(): (() => void)[] {
  return ((globalThis as { [key: symbol]: unknown })[Symbol.for('svc.test.body-waits')] ??= []) as (() => void)[]
}

describe('requests whose bodies do not arrive', () => {
  it('leave all workers to other requests, and are served once the bodies have arrived', async (t) => {
    const workers = 4
    const { port, url } = await serve(t, actions, { 'pool_http.workers': workers, 'pool_http.queue_size': workers })
    const silent = Array.from({ length: 10 * workers }, () => new Connection(t, port))
    for (const client of silent) await client.send(requestText('POST /read/a', ['Content-Length: 4']))
    for (let count = 0; count < 20; count += 1) {
      assert.equal((await request(`${url}/ok`)).text, 'ok')
      assert.equal((await request(`${url}/read/b`, { body: 'body' })).text, 'body')
    }
    for (const client of silent) await client.send('late')
    for (const client of silent) assert.equal((await client.answers(1))[0]?.body, 'late')
  })

  it('get a worker back ahead of the queue', async (t) => {
    gates().length = 0
    const { port, url, lines } = await serve(t, actions, { 'pool_http.workers': 1 })
    const logged = (text: string) => () => lines().some((line) => line.endsWith(text))
    const [reading, first, second] = [new Connection(t, port), new Connection(t, port), new Connection(t, port)]
    await reading.send(requestText('POST /read/a', ['Content-Length: 4']))
    await first.send(requestText('GET /gate/first'))
    await until(logged('waits first'))
    await second.send(requestText('GET /gate/second'))
    await reading.send('body')
    for (let count = 0; count < 2; count += 1) await request(`${url}/svc-ping`) // Both have been read by then.
    gates().splice(0).forEach((open) => open())
    await until(logged('waits second'))
    assert.ok(logged('read a')())
    gates().splice(0).forEach((open) => open())
    for (const client of [reading, first, second]) assert.equal((await client.answers(1))[0]?.status, 200)
  })

  it('release their worker only once when their clients disconnect', async (t) => {
    const { port, url } = await serve(t, actions, { 'app.env': 'dev', 'pool_http.workers': 2 })
    const busy = async (): Promise<number> =>
      ((await request(`${url}/svc-status`)).json() as { pool_http: { busy: number } }).pool_http.busy
    for (const leave of ['destroy', 'reset'] as const) {
      const clients = Array.from({ length: 6 }, () => new Connection(t, port))
      for (const [at, client] of clients.entries()) {
        const form = ['Content-Type: application/x-www-form-urlencoded', 'Content-Length: 9']
        await client.send(requestText(at % 2 === 0 ? 'POST /read/a' : 'POST /form', form, 'a=1'))
      }
      await until(async () => (await busy()) === 0)
      for (const client of clients) {
        if (leave === 'destroy') client.socket.destroy()
        else await client.reset()
      }
      assert.equal((await request(`${url}/ok`)).text, 'ok')
    }
    await until(async () => (await busy()) === 0)
  })
})

describe('the memory of unfinished bodies', () => {
  const mebibyte = 1_048_576
  const pool = new Pool<CoreContext>({ workers: 1, queueSize: 0, start: () => {} })
  const begin = (waits: BodyWaits) => waits.begin({ holdsWorker: false, running: true } as CoreContext)
  const refused = { status: 503, code: 'overloaded', headers: { 'Retry-After': '1' } }

  it('is limited to 64 MiB: new and growing bodies are refused until others end', () => {
    const waits = new BodyWaits(pool)
    const bodies = Array.from({ length: 65 }, () => begin(waits))
    for (const body of bodies) body.hold(mebibyte)
    assert.throws(() => begin(waits), refused)
    assert.doesNotThrow(() => bodies[0]?.hold(2 * mebibyte), 'the others hold no more than 64 MiB')
    assert.throws(() => bodies[1]?.hold(2 * mebibyte), refused)
    for (const body of bodies.slice(0, 3)) assert.equal(body.end(() => {}), true)
    begin(waits).hold(mebibyte)
    for (const body of bodies.slice(3)) body.end(() => {})
    assert.equal(waits.heldBytes, mebibyte)
  })

  it('allows a single body up to the limit of its route', () => {
    const waits = new BodyWaits(pool)
    const body = begin(waits)
    for (let size = 0; size <= 200 * mebibyte; size += 10 * mebibyte) body.hold(size)
    assert.throws(() => begin(waits), refused)
    body.end(() => {})
    assert.equal(waits.heldBytes, 0)
  })
})
