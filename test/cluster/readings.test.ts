import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { statusOf, type Status } from '../../lib/panel/status.ts'
import { Peer } from '../../lib/cluster/peer.ts'
import type { AppMetricReading } from '../../lib/metrics/app-readings.ts'
import { renderPrometheus } from '../../lib/metrics/prometheus.ts'
import { primaryLine, startCluster, turns, type Worker } from './readings-cluster.ts'
import { code } from '../metrics/sources.ts'
import { memoryPorts } from './memory-ports.ts'

async function statusBy(worker: Worker): Promise<Status> {
  return statusOf({ env: 'prod', code }, await worker.processes.read('window'))
}

async function sampleBy(worker: Worker, name: string): Promise<number> {
  const text = renderPrometheus(code, await worker.processes.read('start'))
  const line = text.split('\n').find((each) => each.startsWith(`${name} `))
  assert.ok(line, `there is no ${name}`)
  return Number(line.slice(name.length + 1))
}

/** Queries while a worker hangs: its time-out passes at once. */
async function whileHanging<T>(t: TestContext, ask: () => Promise<T>): Promise<T> {
  const asked = ask()
  await turns()
  t.mock.timers.tick(1000)
  return asked
}

/** Makes the host take a history sample. */
async function takeSample(t: TestContext): Promise<void> {
  t.mock.timers.tick(5000)
  await turns()
}

const requestsOfA = 'svc_http_requests_total{route="a",code="2xx"}'

describe('the readings of several processes', () => {
  it('are the same from every worker: the total and each process', async (t) => {
    const { workers } = startCluster(t, 3)
    const [first, second, third] = workers as [Worker, Worker, Worker]
    first.serve(10, { durationMs: 1 })
    second.serve(5, { durationMs: 50, sentStatus: 500 })
    third.serve(1, { routeName: 'b', durationMs: 800 })
    Object.assign(second.parts, { busy: 7, open: 4, alert: true, warnings: ['of all', 'of the second'] })
    Object.assign(third.parts, { busy: 1, open: 2, log: { written: 3, lost: 1 } })
    third.queueWaits.record(16)
    const { processes = [], ...sum } = await statusBy(first)
    assert.deepEqual([sum.pid, sum.requests.total, sum.requests.errors, sum.requests.active], [process.pid, 16, 5, 3])
    assert.deepEqual([sum.latency_ms.max, sum.pool_http.waits.count, sum.pool_http.waits.max_ms], [800, 1, 16])
    assert.deepEqual(sum.routes.map(({ name, count, errors }) => [name, count, errors]), [['a', 15, 5], ['b', 1, 0]])
    const { workers: places, busy, queue, queue_size: size, refused, alert } = sum.pool_http
    assert.deepEqual([places, busy, queue, size, refused, alert], [30, 8, 3, 60, 6, true])
    assert.deepEqual([sum.pool_rest.queue_size, sum.pool_rest.longpoll, sum.connections], [264, 9, { active: 6, refused: 3, stalled: 0, tls_failed: 3 }])
    assert.deepEqual([sum.events, sum.sessions.evicted], [{ published: 3, delivered: 6, dropped: 4, slow: 9 }, 5])
    assert.deepEqual([sum.log, sum.warnings], [{ written: 10, lost: 1 }, ['of all', 'of the second']])
    assert.deepEqual(sum.processes_ended, { count: 0, requests: { total: 0, errors: 0 } })

    assert.deepEqual(processes.map(({ id, pid, responding }) => [id, pid, responding]), [
      ['primary', process.pid, true],
      ['1', 101, true],
      ['2', 102, true],
      ['3', 103, true],
    ])
    const shown = processes.map((each) => (each.responding ? [each.requests.total, each.requests.errors, each.latency_ms.max] : []))
    assert.deepEqual(shown, [[0, 0, 0], [10, 0, 1], [5, 5, 50], [1, 0, 800]])
    const part = processes[2]
    assert.ok(part?.responding)
    assert.deepEqual([part.connections.active, part.pool_http], [4, { busy: 7, queue: 1, alert: true }])
    assert.deepEqual([part.pool_ws, part.pool_rest], [{ active: 5 }, { sse: 4, longpoll: 3, queue: 2 }])
    assert.ok(part.memory.rss_mb > 1 && sum.memory.rss_mb > 3 * part.memory.rss_mb)

    assert.deepEqual((await statusBy(third)).requests, sum.requests)
  })

  it('are metrics of the total, and of each process with a label', async (t) => {
    const { workers } = startCluster(t, 3)
    const [first, second] = workers as [Worker, Worker]
    first.serve(3)
    second.serve(4)
    second.serve(1, { sentStatus: 404 })
    const rows: readonly (readonly [string, number])[] = [
      [requestsOfA, 7],
      ['svc_http_request_duration_seconds_count{route="a"}', 8],
      ['svc_process_up{process="primary"}', 1],
      ['svc_process_requests_total{process="1"}', 3],
      ['svc_process_requests_total{process="2"}', 5],
      ['svc_process_errors_total{process="2"}', 1],
      ['svc_process_requests_active{process="3"}', 1],
      ['svc_pool_refused_total{pool="sse"}', 6],
      ['svc_processes_ended_total', 0],
      ['svc_processes_replaced_total{reason="exit"}', 2],
      ['process_open_fds', 60],
      ['process_max_fds', 400],
      ['svc_process_open_fds{process="primary"}', 30],
      ['svc_process_max_fds{process="2"}', 100],
    ]
    for (const [name, value] of rows) assert.equal(await sampleBy(first, name), value, name)
  })

  it('counts a worker that does not answer with its last reading, and marks it', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
    const { workers, problems } = startCluster(t, 3)
    const [first, second] = workers as [Worker, Worker]
    first.serve(1)
    second.serve(20)
    assert.equal(await sampleBy(first, requestsOfA), 21)
    second.hang()
    second.serve(3)
    first.serve(1)
    const { processes = [], ...sum } = await whileHanging(t, () => statusBy(first))
    assert.deepEqual(processes[2], { id: '2', pid: 102, responding: false })
    assert.equal(sum.requests.total, 22)
    assert.equal(await whileHanging(t, () => sampleBy(first, requestsOfA)), 22)
    assert.equal(await whileHanging(t, () => sampleBy(first, 'svc_process_up{process="2"}')), 0)
    second.resume()
    await turns()
    assert.equal(await sampleBy(first, requestsOfA), 25)
    assert.deepEqual(problems, [])
  })

  it('queries a worker that hangs only once until it answers', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
    const { workers } = startCluster(t, 2)
    const [first, second] = workers as [Worker, Worker]
    second.hang()
    const taken = t.mock.method(second.metrics, 'takeChangedRoutes')
    for (let turn = 0; turn < 10; turn += 1) await whileHanging(t, () => first.processes.read('window'))
    second.resume()
    await turns()
    assert.equal(taken.mock.callCount(), 1)
    await first.processes.read('window')
    assert.equal(taken.mock.callCount(), 2)
  })

  it('lists a worker that has never answered, without a reading', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
    const { workers } = startCluster(t, 2)
    const [first, second] = workers as [Worker, Worker]
    second.hang()
    const before = Date.now() / 1000
    const { processes = [] } = await whileHanging(t, () => statusBy(first))
    assert.deepEqual(processes[2], { id: '2', pid: 102, responding: false })
    const started = await whileHanging(t, () => sampleBy(first, 'svc_start_time_seconds'))
    assert.ok(started > before - 60 && started < before + 60, String(started))
  })

  it('keeps the counts of an ended worker, to the last request after a graceful end', async (t) => {
    const { workers, start } = startCluster(t, 2)
    const [first, second] = workers as [Worker, Worker]
    first.serve(1)
    second.serve(5, { sentStatus: 500 })
    second.parts.open = 9
    await second.end()
    const third = start('2')
    third.serve(2)
    const { processes = [], processes_ended: ended, ...sum } = await statusBy(first)
    assert.deepEqual([sum.requests.total, sum.requests.errors], [8, 5])
    assert.deepEqual([sum.connections.active, ended], [0, { count: 1, requests: { total: 5, errors: 5 } }])
    assert.deepEqual(processes.map(({ id }) => id), ['primary', '1', '2'])
    assert.equal(await sampleBy(third, 'svc_process_requests_total{process="2"}'), 2)
    assert.equal(await sampleBy(first, 'svc_processes_ended_total'), 1)
    const routes = sum.routes.map(({ name, count, max_ms }) => [name, count, max_ms])
    assert.deepEqual(routes, [['a', 8, 2]])
  })

  it('keeps the last known counts of a crashed worker, from a query or a history sample', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
    const { workers, problems } = startCluster(t, 3)
    const [first, second, third] = workers as [Worker, Worker, Worker]
    second.serve(5)
    second.serve(2, { routeName: 'b' })
    await takeSample(t)
    second.serve(1)
    await takeSample(t)
    second.serve(100)
    second.crash()
    await turns()
    assert.equal((await statusBy(first)).requests.total, 8)
    third.serve(4)
    assert.equal(await sampleBy(first, requestsOfA), 10)
    third.crash()
    await turns()
    assert.equal(await sampleBy(first, requestsOfA), 10)
    assert.equal(await sampleBy(first, 'svc_http_requests_total{route="b",code="2xx"}'), 2)
    assert.equal((await statusBy(first)).processes_ended?.count, 2)
    assert.deepEqual(problems, [])
  })

  it('starts a bench window for all processes, including ended and unresponsive ones', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
    const { host, workers } = startCluster(t, 4)
    const [first, second, third, fourth] = workers as [Worker, Worker, Worker, Worker]
    for (const worker of workers) worker.serve(10)
    await fourth.end()
    assert.equal((await statusBy(first)).requests.total, 40)
    third.hang()
    await whileHanging(t, () => host.beginWindow())
    for (const worker of [first, second]) worker.processes.beginWindow()
    second.serve(3)
    const { requests, routes, processes_ended: ended, latency_ms: latency } = await whileHanging(t, () => statusBy(first))
    assert.deepEqual([requests.total, latency.max, ended], [3, 2, { count: 1, requests: { total: 0, errors: 0 } }])
    assert.deepEqual(routes.map(({ name, count }) => [name, count]), [['a', 3]])
    assert.equal(await whileHanging(t, () => sampleBy(first, requestsOfA)), 43)
    second.crash()
    third.crash()
    await turns()
    assert.equal((await statusBy(first)).requests.total, 3)
    assert.equal(await sampleBy(first, requestsOfA), 43)
  })

  it('processes an answer and the last reading of one message in order', async (t) => {
    const { workers } = startCluster(t, 2)
    const [first, second] = workers as [Worker, Worker]
    second.serve(5)
    second.serve(2, { routeName: 'b' })
    const read = second.metrics.takeChangedRoutes.bind(second.metrics)
    t.mock.method(second.metrics, 'takeChangedRoutes', () => {
      queueMicrotask(() => {
        second.serve(1)
        second.processes.close()
      })
      return read()
    }, { times: 1 })
    await first.processes.read('start')
    second.crash()
    await turns()
    const { routes, requests } = await statusBy(first)
    assert.deepEqual(routes.map(({ name, count }) => [name, count]), [['a', 6], ['b', 2]])
    assert.equal(requests.total, 8)
  })

  it('adds late readings to the next history sample', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
    const { workers } = startCluster(t, 3)
    const [first, second, third] = workers as [Worker, Worker, Worker]
    /** The share of errors in each sample: the rates themselves depend on the time that the test takes. */
    const counted = async (): Promise<number[]> => {
      const { requests, errors } = await first.processes.history()
      return requests.map((rate, at) => (rate > 0 ? Math.round(((errors[at] as number) / rate) * 100) / 100 : 0))
    }
    assert.deepEqual((await first.processes.history()).time, [])
    first.serve(3)
    second.serve(1, { sentStatus: 500 })
    Object.assign(third.parts, { busy: 4, open: 5 })
    await takeSample(t)
    assert.deepEqual(await counted(), [0.25])
    const { busy_http: busy, connections, longpoll } = await second.processes.history()
    assert.deepEqual([busy, connections, longpoll], [[4], [5], [9]])

    second.hang()
    second.serve(4, { sentStatus: 500 })
    first.serve(1)
    await takeSample(t)
    assert.deepEqual(await counted(), [0.25], 'it waits for the one that hangs')
    t.mock.timers.tick(1000)
    await turns()
    assert.deepEqual(await counted(), [0.25, 0])
    assert.deepEqual((await first.processes.history()).longpoll, [9, 9])
    second.resume()
    await turns()
    await takeSample(t)
    assert.deepEqual(await counted(), [0.25, 0, 1])

    third.serve(4)
    await third.end()
    first.serve(4, { sentStatus: 500 })
    await takeSample(t)
    assert.deepEqual(await counted(), [0.25, 0, 1, 0.5])
  })

  it('merges the last lines and requests of all processes by time', async (t) => {
    const { workers } = startCluster(t, 3)
    const [first, second, third] = workers as [Worker, Worker, Worker]
    const line = (time: number, message: string) => ({ time, level: 'info', module: 'app', message }) as const
    const failed = { ...line(50, 'last'), request_id: '4-YiBWim4s8u00000002', stack: '    Error: why\n    at a.js:1' }
    first.lines.push(line(20, 'first'), failed)
    second.lines.push(line(30, 'second'))
    third.lines.push(...Array.from({ length: 3 }, (_, at) => line(10 + at, `early ${at}`)))
    const lines = await second.processes.lines()
    const messages = lines.map(({ message }) => message)
    assert.deepEqual(messages, [primaryLine.message, 'early 0', 'early 1', 'early 2', 'first', 'second', 'last'])
    assert.deepEqual(lines.at(-1), failed)

    first.serve(80, { path: '/first' })
    second.serve(80, { path: '/second' })
    const requests = await first.processes.requests()
    assert.equal(requests.length, 100)
    const times = requests.map(({ time }) => time)
    assert.deepEqual(times, [...times].sort((a, b) => a - b))
  })

  it('does not query a worker that is starting, and marks it', async (t) => {
    const { host, workers, problems } = startCluster(t, 1)
    const [first] = workers as [Worker]
    host.attach({ peer: new Peer(memoryPorts()[0]), number: 2, pid: 102, serving: false })
    const { processes = [] } = await statusBy(first)
    assert.deepEqual(processes[2], { id: '2', pid: 102, responding: false, starting: true })
    await first.processes.lines()
    await first.processes.requests()
    assert.deepEqual(problems, [])
  })

  it('marks a missing worker as not responding, with 0 in the metrics', async (t) => {
    const { workers } = startCluster(t, 3)
    const [first, second] = workers as [Worker, Worker]
    second.crash()
    await turns()
    const { processes = [] } = await statusBy(first)
    assert.deepEqual(processes.map(({ id }) => id), ['primary', '1', '2', '3'])
    assert.deepEqual(processes[2], { id: '2', pid: 0, responding: false })
    assert.equal(await sampleBy(first, 'svc_process_up{process="2"}'), 0)
    assert.equal(await sampleBy(first, 'svc_process_up{process="3"}'), 1)
  })

  it('is not ready when one process is not', async (t) => {
    const [first, second] = startCluster(t, 2).workers as [Worker, Worker]
    assert.equal(await sampleBy(first, 'svc_ready'), 1)
    second.parts.ready = false
    assert.equal(await sampleBy(first, 'svc_ready'), 0)
  })

  it('adds up the metrics of the application, and keeps the counters of an ended worker', async (t) => {
    const [first, second] = startCluster(t, 2).workers as [Worker, Worker]
    const metric = { name: 'app_a', kind: 'counter', help: 'A.', labels: [], value: { '': 3 } } as const
    const gauge = { ...metric, name: 'app_b', kind: 'gauge' } as const
    for (const { parts } of [first, second]) parts.appMetrics.push(metric, gauge)
    assert.deepEqual([await sampleBy(first, 'app_a'), await sampleBy(first, 'app_b')], [6, 6])
    const cpu = await sampleBy(first, 'process_cpu_seconds_total')
    await second.end()
    assert.deepEqual([await sampleBy(first, 'app_a'), await sampleBy(first, 'app_b')], [6, 3])
    assert.ok((await sampleBy(first, 'process_cpu_seconds_total')) >= cpu)
  })

  it('drops a metric of the application that no process has anymore, but not while one is missing', async (t) => {
    const { host, workers, start } = startCluster(t, 2)
    const [first, second] = workers as [Worker, Worker]
    const old = { name: 'app_old', kind: 'counter', help: 'O.', labels: [], value: { '': 4 } } as const
    const renamed = { ...old, name: 'app_new', value: { '': 1 } } as const
    const namesOf = async (worker: Worker): Promise<unknown> => {
      const { total, parts } = await worker.processes.read('start')
      return [total, parts?.ended.reading].map((reading) => reading?.appMetrics.map(({ name }) => name))
    }
    for (const { parts } of workers) parts.appMetrics = [old]
    await second.end()
    first.parts.appMetrics = [renamed]
    assert.deepEqual(await namesOf(first), [['app_new', 'app_old'], ['app_old']])
    const third = start('2')
    third.parts.appMetrics = [old]
    assert.equal(await sampleBy(first, 'app_old'), 8)
    third.parts.appMetrics = [renamed]
    await host.summary()
    assert.deepEqual(await namesOf(first), [['app_new'], []])
    third.parts.appMetrics = [{ ...renamed, labels: ['l'], value: { 'l="x"': 1 } }]
    assert.equal(await sampleBy(first, 'app_new'), 1)
  })

  it('keeps the same 100 rows of a metric, whichever processes end', async (t) => {
    const { workers, start } = startCluster(t, 2)
    const [first, second] = workers as [Worker, Worker]
    const metricOf = (of: number): AppMetricReading => {
      const rows = Array.from({ length: 60 }, (_, at) => [`id="${of}.${at}"`, 1] as const)
      return { name: 'app_seen', kind: 'counter', help: 'S.', labels: ['id'], value: Object.fromEntries(rows) }
    }
    const seen = async (worker: Worker): Promise<[names: string[], sum: number, other: number | undefined]> => {
      const { value = {} } = (await worker.processes.read('start')).total.appMetrics[0] ?? {}
      return [Object.keys(value).sort(), Object.values(value).reduce((a, b) => a + b), value['id="other"']]
    }
    first.parts.appMetrics = [metricOf(1)]
    second.parts.appMetrics = [metricOf(2)]
    const [names, ...counts] = await seen(second)
    assert.deepEqual([names.length, ...counts], [101, 120, 20])
    await first.end()
    const third = start('1')
    third.parts.appMetrics = [metricOf(3)]
    assert.deepEqual(await seen(second), [names, 180, 80])
    await second.end()
    start('2').parts.appMetrics = [metricOf(2)]
    assert.deepEqual(await seen(third), [names, 240, 100])
  })

  it('reports the last reload as refused when one process refused it', async (t) => {
    const { workers } = startCluster(t, 3)
    const [first, second, third] = workers as [Worker, Worker, Worker]
    assert.equal(await sampleBy(first, 'svc_config_last_reload_successful'), 1)
    second.parts.refused = true
    assert.equal(await sampleBy(first, 'svc_config_last_reload_successful'), 0)
    third.parts.refused = true
    assert.equal(await sampleBy(first, 'svc_config_last_reload_successful'), 0)
    Object.assign(second.parts, { refused: false })
    Object.assign(third.parts, { refused: false })
    assert.equal(await sampleBy(first, 'svc_config_last_reload_successful'), 1)
  })

  it('reports a worker with unreadable metrics, and counts it as not responding', async (t) => {
    const { workers, problems } = startCluster(t, 2)
    const [first, second] = workers as [Worker, Worker]
    t.mock.method(second.metrics, 'takeChangedRoutes', () => {
      throw new Error('out of order')
    })
    const { processes = [] } = await statusBy(first)
    assert.deepEqual(processes[2], { id: '2', pid: 102, responding: false })
    assert.deepEqual(problems, ['Cannot read the metrics of worker 2 (process 102): RemoteError: out of order'])
  })

  it('rejects calls to a primary that has ended', async (t) => {
    const { workers } = startCluster(t, 1)
    const [first] = workers as [Worker]
    const asked = assert.rejects(first.processes.read('window'), { name: 'DisconnectedError' })
    first.crash()
    await asked
    await assert.rejects(first.processes.history(), { name: 'DisconnectedError' })
  })
})
