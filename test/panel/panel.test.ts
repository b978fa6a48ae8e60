import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sampleFields, type HistorySnapshot } from '../../lib/metrics/history.ts'
import { startApplication } from '../support/application.ts'
import { request } from '../support/request.ts'
import { greeting, startPanel } from './panel-server.ts'

const dev = { 'app.env': 'dev' }

test('a trace switch with a duration reverts automatically, and the log reports it', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const server = await startPanel(t, dev)
  const switchOf = async (module: string) =>
    ((await server.ask('/svc-trace')).json() as Record<string, boolean>)[module]
  await server.ask('/svc-trace?mod=pool&on=0&ttl=60')
  const body = JSON.stringify({ module: 'metrics', enabled: false, ttl: 90 })
  assert.equal((await server.ask('/svc-trace', { body })).status, 200)
  t.mock.timers.tick(59_000)
  assert.deepEqual([await switchOf('pool'), await switchOf('metrics')], [false, false])
  t.mock.timers.tick(1000)
  assert.deepEqual([await switchOf('pool'), await switchOf('metrics')], [true, false])
  t.mock.timers.tick(31_000) // The clock of the state is not mocked: the two were set some milliseconds apart.
  assert.equal(await switchOf('metrics'), true)
  const said = server.lines().filter((line) => line.includes('reverted to'))
  assert.deepEqual(said, [
    'INFO server trace of pool reverted to on',
    'INFO server trace of metrics reverted to on',
  ])
})

test('every five seconds a sample is taken for the charts, and none after the stop', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const server = await startPanel(t, dev, greeting)
  const history = async () =>
    ((await server.ask('/svc-status?monitor=1')).json() as { monitor: { history: HistorySnapshot } }).monitor.history
  assert.deepEqual((await history()).time, [])
  await server.ask('/hello/bob')
  await server.ask('/nothing')
  t.mock.timers.tick(5000)
  const { time, requests, errors, connections, rss_mb: memory, ...others } = await history()
  assert.equal(time.length, 1)
  assert.ok((requests[0] ?? 0) > 0 && (errors[0] ?? 0) > 0 && (requests[0] ?? 0) > (errors[0] ?? 0))
  assert.ok((connections[0] ?? -1) >= 0 && (memory[0] ?? 0) > 1)
  assert.deepEqual(Object.keys(others).length, sampleFields.length - 4)
  await server.ask('/svc-bench-start')
  t.mock.timers.tick(5000)
  assert.equal((await history()).time.length, 2, 'a bench window leaves the charts alone')
})

test('the monitor has the last requests without their query, and the last log lines', async (t) => {
  const server = await startPanel(t, dev, greeting)
  await server.ask('/hello/bob?password=secret')
  await server.ask('/nothing?token=secret')
  interface Monitor {
    requests: { method: string; path: string; status: number; route: string }[]
    lines: { module: string; message: string }[]
  }
  const text = (await server.ask('/svc-status?monitor=1')).text
  const { monitor } = JSON.parse(text) as { monitor: Monitor }
  const shown = monitor.requests.map(({ method, path, status, route }) => [method, path, status, route])
  assert.deepEqual(shown, [
    ['GET', '/hello/bob', 200, 'hello'],
    ['GET', '/nothing', 404, ''],
  ])
  assert.ok(monitor.lines.some(({ module, message }) => module === 'server' && message.startsWith('listening on ')))
  assert.ok(!text.includes('secret'))
})

test('a dry match gives parameters without a prototype, as a request would', async (t) => {
  const server = await startPanel(t, dev, {
    ...greeting,
    'routes/a.json': [{ name: 'odd', url: '/odd/:__proto__/*rest', action: 'hello.mjs' }],
  })
  const answer = await server.ask('/svc-routes/match?path=/odd/a/b/c')
  assert.ok(answer.text.endsWith('"params":{"__proto__":"a","rest":"b/c"}}'), answer.text)
})

test('actions of the panel are in the logs of its modules too', async (t) => {
  const { url, lines } = await startApplication(t, {}, { 'app.env': 'dev', 'log.level': 'debug' })
  const ask = (path: string): Promise<unknown> => request(url + path)
  await ask('/svc-monitor')
  await ask('/svc-status?monitor=1')
  await ask('/svc-bench-start')
  await ask('/svc-bench-stop')
  const said = lines().map((line) => line.slice(26)).filter((line) => /^\[\w+ *\] \[(?:monitor|metrics)\] (?!the event loop)/.test(line))
  assert.deepEqual(said, [
    '[INFO ] [monitor] opened by 127.0.0.1',
    '[DEBUG] [monitor] read by 127.0.0.1',
    '[INFO ] [metrics] bench window started',
    '[INFO ] [metrics] bench window read: 0 requests, 0 errors',
  ])
})
