import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Status } from '../../lib/admin/status.ts'
import { createApp } from '../../lib/app.ts'
import { createClusterProcesses } from '../../lib/cluster/figures.ts'
import { createFiguresHost } from '../../lib/cluster/figures-host.ts'
import { createPeer } from '../../lib/cluster/peer.ts'
import { writeFiles } from '../support/application.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { makePrimaryProcess } from './figures-cluster.ts'
import { memoryPorts } from './memory-ports.ts'

/** Two servers that serve one application as the workers of a cluster would. */
async function startTwo(t: TestContext): Promise<{ urls: string[]; host: ReturnType<typeof createFiguresHost> }> {
  const host = createFiguresHost({ own: makePrimaryProcess(t), report: (message, error) => assert.fail(`${message}: ${error}`) })
  t.after(() => host.close())
  const urls: string[] = []
  for (const id of ['1', '2']) {
    const folder = temporaryFolder()
    writeFiles(folder, { 'routes/a.json': [{ name: 'hello', url: '/hello', action: 'a.html' }], 'a.html': 'hello' })
    const [here, there] = memoryPorts()
    host.attach(createPeer(here), { id, pid: 100 + Number(id) })
    const app = createApp({
      config: { 'app.env': 'dev', 'server.port': 0, 'log.console': false },
      folder,
      processes: (own) => createClusterProcesses(createPeer(there), own),
    })
    t.after(async () => {
      await app.stop()
      app.closeLogs()
      here.close()
    })
    urls.push((await app.start()).url)
  }
  return { urls, host }
}

test('the panel of one process shows what all have served', async (t) => {
  const { urls, host } = await startTwo(t)
  const [first = '', second = ''] = urls
  const statusBy = async (url: string): Promise<Status> => (await request(`${url}/svc-status`)).json() as Status
  await request(`${first}/hello`)
  for (let turn = 0; turn < 3; turn += 1) await request(`${second}/hello`)
  const { requests, routes, processes = [] } = await statusBy(first)
  assert.equal(requests.total, 4)
  assert.deepEqual(routes.map(({ name, count }) => [name, count]), [['hello', 4]])
  const each = processes.map((process) => [process.id, process.pid, process.responding && process.requests.total])
  assert.deepEqual(each, [['primary', process.pid, 0], ['1', 101, 1], ['2', 102, 3]])

  const { text } = await request(`${second}/svc-metrics`)
  assert.match(text, /^svc_http_requests_total\{route="hello",code="2xx"\} 4$/m)
  assert.match(text, /^svc_process_requests_total\{process="2"\} 3$/m)

  interface Monitor {
    monitor: { requests: { path: string }[]; lines: { message: string }[] }
  }
  const { monitor } = (await request(`${first}/svc-status?monitor=1`)).json() as Monitor
  assert.equal(monitor.requests.filter(({ path }) => path === '/hello').length, 4)
  assert.equal(monitor.lines.filter(({ message }) => message.startsWith('listening on ')).length, 2)
  assert.match((await request(`${second}/svc-monitor`)).text, /"processes":\[\{"id":"primary"/)

  host.resetWindow()
  for (const url of urls) await request(`${url}/svc-bench-start`)
  await request(`${second}/hello`)
  const stopped = (await request(`${first}/svc-bench-stop`)).json() as { metrics: Status }
  assert.equal(stopped.metrics.requests.total, 1)
})
