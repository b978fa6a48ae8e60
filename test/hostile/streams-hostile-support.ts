// A server with streams and long polls and misbehaving clients, and checks that nothing of them is left.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import type { App } from '../../lib/app.ts'
import { request } from '../support/request.ts'
import { until } from '../support/until.ts'
import { serveRoutes } from '../support/websocket.ts'

interface Status {
  readonly pool_rest: { readonly sse: number; readonly longpoll: number; readonly queue: number; readonly refused: number }
  readonly pool_http: { readonly busy: number; readonly queue: number }
  readonly events: { readonly delivered: number; readonly slow: number }
  readonly connections: { readonly active: number }
  readonly requests: { readonly active: number }
}

interface StreamServer {
  readonly app: App
  readonly url: string
  readonly port: number
  lines(file?: string): string[]
  status(): Promise<Status>
  /** Waits for this many polls, streams and queued requests. */
  waits(longpoll: number, sse?: number, queue?: number): Promise<void>
  /** Checks that nothing of the clients is left, and that the server still serves. */
  clean(): Promise<void>
}

const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length

/** A server with a long poll, a poll of a queue, a stream and a hold. */
export async function serveStreams(t: TestContext, config: Readonly<Record<string, unknown>> = {}): Promise<StreamServer> {
  const { app, url, port, lines } = await serveRoutes(
    t,
    {
      '/poll': { action: (ctx) => ctx.longPoll(ctx.channel('c')) },
      '/queue': { action: (ctx) => ctx.longPoll(ctx.queue('q')) },
      '/sse': { action: (ctx) => ctx.sse(ctx.channel('c')) },
      '/hold': { action: (ctx) => ctx.hold((signal) => once(signal, 'abort')) },
      '/read': { action: async (ctx) => (await ctx.readText(), ctx.longPoll(ctx.channel('c'))) },
      '/ok': { action: () => 'ok' },
    },
    { 'app.env': 'dev', 'server.allowed_hosts': ['h', '127.0.0.1'], ...config },
  )
  const status = async (): Promise<Status> => (await request(`${url}/svc-status`)).json() as Status
  await status()
  const timersBefore = timers()
  return {
    app,
    url,
    port,
    lines,
    status,
    waits: (longpoll, sse = 0, queue = 0) =>
      until(async () => {
        const { pool_rest: now } = await status()
        return now.longpoll === longpoll && now.sse === sse && now.queue === queue
      }),
    clean: async () => {
      const now = await status()
      const idle = { sse: 0, longpoll: 0, queue: 0 }
      await until(async () => (await status()).connections.active === 1)
      const { pool_rest, pool_http, requests } = await status()
      const { sse, longpoll, queue } = pool_rest
      assert.deepEqual({ sse, longpoll, queue }, idle, JSON.stringify(now.pool_rest))
      assert.deepEqual([pool_http.busy, pool_http.queue, requests.active], [0, 0, 1])
      assert.ok(timers() <= timersBefore, `${timers()} timers, ${timersBefore} before`)
      assert.deepEqual(lines().filter((line) => /\[(ERROR|FATAL)\]/.test(line)), [])
      assert.equal((await request(`${url}/ok`)).text, 'ok')
    },
  }
}
