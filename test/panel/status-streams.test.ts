import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Status } from '../../lib/panel/status.ts'
import type { HistorySnapshot } from '../../lib/metrics/history.ts'
import { Connection } from '../support/connection.ts'
import { until } from '../support/until.ts'
import { startPanel, type PanelServer } from './panel-server.ts'

type Document = Status & { readonly monitor: { readonly history: HistorySnapshot } }

const dev = { 'app.env': 'dev' }

const waits = {
  'routes/a.json': [
    { name: 'poll', url: '/poll/:name', action: 'a.mjs@poll' },
    { name: 'stream', url: '/stream/:name', action: 'a.mjs@stream' },
    { name: 'socket', url: '/socket', action: 'socket.mjs' },
  ],
  'a.mjs': `export const poll = ({ channel, longPoll, params }) => longPoll(channel(params.name))
    export const stream = ({ channel, sse, params }) => sse(channel(params.name))`,
  'socket.mjs': 'export const websocket = {}',
}

const upgrade = ['Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: ']
const handshake = `${upgrade.join('\r\n')}${Buffer.alloc(16).toString('base64')}\r\n`

async function statusOf(server: PanelServer): Promise<Document> {
  return (await server.ask('/svc-status?monitor=1')).json() as Document
}

/** Waits until a figure of the status has a value. */
function reaches(server: PanelServer, figure: (status: Status) => number, value: number): Promise<void> {
  return until(async () => figure(await statusOf(server)) === value)
}

/** The value of a sample of the Prometheus text. */
async function sampleOf(server: PanelServer, name: string): Promise<number> {
  const lines = (await server.ask('/svc-metrics')).text.split('\n')
  return Number(lines.find((line) => line.startsWith(`${name} `))?.slice(name.length + 1))
}

test('waiting and refused requests are in the status, the samples and the Prometheus text', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  t.after(() => t.mock.timers.reset()) // Before the stop, which checks for idle connections by an interval.
  const limits = { 'pool_rest.workers_longpoll': 1, 'pool_rest.queue_size': 1, 'pool_ws.workers': 1 }
  const server = await startPanel(t, { ...dev, ...limits, 'pool_rest.workers_sse': 3 }, waits)
  const send = (path: string, fields = '') => {
    const client = new Connection(t, server.port)
    void client.send(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n${fields}\r\n`)
    return client
  }
  const first = send('/poll/first')
  await reaches(server, ({ pool_rest: rest }) => rest.longpoll, 1)
  const second = send('/poll/second')
  await reaches(server, ({ pool_rest: rest }) => rest.queue, 1)
  assert.equal((await server.ask('/poll/third')).status, 503)
  const stream = send('/stream/first')
  await until(() => stream.received.startsWith('HTTP/1.1 200 '))
  const socket = send('/socket', handshake)
  await until(() => socket.received.startsWith('HTTP/1.1 101 '))
  const refused = send('/socket', handshake)
  await until(() => refused.received.startsWith('HTTP/1.1 503 '))

  t.mock.timers.tick(5000)
  const before = await statusOf(server)
  const none = { count: 0, p50_ms: 0, p99_ms: 0, max_ms: 0 }
  assert.deepEqual(before.pool_ws, { workers: 1, active: 1, refused: 1, slow: 0 })
  assert.deepEqual(before.pool_rest, {
    workers_sse: 3, sse: 1, workers_longpoll: 1, longpoll: 1, queue: 1, queue_size: 1, refused: 1, waits: none,
  })
  assert.deepEqual(before.events, { published: 0, delivered: 0, dropped: 0, slow: 0 })
  const { longpoll, sse, ws } = before.monitor.history
  assert.deepEqual([longpoll, sse, ws], [[1], [1], [1]])

  await server.app.channel('first').publish('news')
  assert.equal((await first.answers(1))[0]?.status, 200)
  await until(() => stream.received.includes('news'))
  await reaches(server, ({ pool_rest: rest }) => rest.waits.count, 1)
  await server.app.channel('second').publish('more')
  assert.equal((await second.answers(1))[0]?.status, 200)
  await reaches(server, ({ pool_rest: rest }) => rest.longpoll, 0)
  const after = await statusOf(server)
  assert.deepEqual(after.events, { published: 2, delivered: 3, dropped: 0, slow: 0 })
  assert.ok(after.pool_rest.waits.max_ms > 0)

  await server.ask('/svc-bench-start')
  const window = await statusOf(server)
  assert.deepEqual(window.events, before.events)
  assert.deepEqual(window.pool_ws, { ...before.pool_ws, refused: 0 })
  assert.deepEqual(window.pool_rest, { ...before.pool_rest, longpoll: 0, queue: 0, refused: 0 })
  const expected = {
    'svc_pool_workers_busy{pool="ws"}': 1,
    'svc_pool_workers_busy{pool="sse"}': 1,
    'svc_pool_workers{pool="sse"}': 3,
    'svc_pool_queue_size{pool="longpoll"}': 1,
    'svc_pool_refused_total{pool="ws"}': 1,
    'svc_pool_refused_total{pool="sse"}': 0,
    'svc_pool_refused_total{pool="longpoll"}': 1,
    svc_events_published_total: 2,
    svc_events_delivered_total: 3,
    svc_events_dropped_total: 0,
    'svc_streams_slow_total{kind="sse"}': 0,
    'svc_streams_slow_total{kind="ws"}': 0,
  }
  for (const [name, value] of Object.entries(expected)) assert.equal(await sampleOf(server, name), value, name)
  for (const client of [first, second, stream, socket]) await client.reset()
})

test('evicted sessions stay counted when a reload replaces the store', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  t.after(() => t.mock.timers.reset()) // Before the stop, which checks for idle connections by an interval.
  const room = (max: number) => ({ 'routes/middleware/config.json': { setup: { session: { max } } } })
  const server = await startPanel(t, dev, {
    'routes/a.json': [{ name: 'visit', url: '/visit', action: 'a.mjs', middleware: 'SVC_MwSession' }],
    'a.mjs': 'export default ({ session }) => { session.set("seen", 1) }',
    ...room(1),
  })
  const visit = async (times: number) => {
    for (let count = 0; count < times; count += 1) await server.ask('/visit')
  }
  const evicted = async () => [
    (await statusOf(server)).sessions.evicted,
    await sampleOf(server, 'svc_sessions_evicted_total'),
  ]
  await visit(4)
  t.mock.timers.tick(5000) // The status is not read before the store is replaced.
  server.write(room(2))
  await server.ask('/svc-routes/reload')
  assert.deepEqual(await evicted(), [3, 3])
  await visit(3)
  assert.deepEqual(await evicted(), [4, 4])
  await server.ask('/svc-bench-start')
  assert.deepEqual(await evicted(), [0, 4])
  server.write(room(1))
  await server.ask('/svc-routes/reload')
  assert.deepEqual(await evicted(), [0, 4])
  await visit(2)
  assert.deepEqual(await evicted(), [1, 5])
})
