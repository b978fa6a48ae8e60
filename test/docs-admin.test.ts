import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { statusOf } from '../lib/panel/status.ts'
import { systemRoutes } from '../lib/panel/table.ts'
import { renderPrometheus } from '../lib/metrics/prometheus.ts'
import { startCluster } from './group/readings-cluster.ts'
import { startApplication } from './support/application.ts'
import { readPage, tableBelow } from './support/markdown.ts'
import { listedNode } from './support/node-panel.ts'
import { request } from './support/request.ts'

const admin = readPage('docs/admin.md')
const statusRows = tableBelow(admin, '### /svc-status')

describe('docs/admin.md', () => {
  it('has a curl line for every endpoint', () => {
    const lines = admin.blocks.map((block) => block.text).join('').split('\n')
    const asked = lines.filter((line) => line.startsWith('$ curl')).map((line) => {
      const path = /localhost:8080([^\s'?]*)/.exec(line)?.[1] ?? ''
      return `${/ -d /.test(line) ? 'POST' : 'GET'} ${path}`
    })
    const endpoints = systemRoutes.map(({ method, url }) => `${method.split(',')[0]} ${url}`)
    const missing = endpoints.filter((endpoint) => !asked.includes(endpoint))
    assert.deepEqual(missing, ['GET /svc-login'])
    assert.ok(asked.some((line) => line === 'POST /svc-login'))
  })

  it('lists the endpoints as the table in the code does', () => {
    const changes = { never: 'no', always: 'yes', 'with-query': 'with a query' }
    const documented = tableBelow(admin, '## Endpoints').map(([method, url, auth, change, , meaning]) => {
      return [method, url, auth, change, meaning]
    })
    const expected = systemRoutes.map(({ method, url, auth, change, meaning }) => {
      return [method, `\`${url}\``, auth ? 'yes' : 'no', changes[change], meaning]
    })
    assert.deepEqual(documented, expected)
  })

  it('lists the fields of the status', async (t) => {
    const { url } = await startApplication(t, {}, { 'app.env': 'dev' })
    await request(`${url}/svc-ping`)
    const status = (await request(`${url}/svc-status`)).json()
    assert.deepEqual(statusRows.flatMap(([cell = '']) => namesOf(cell)), [...valuesOf(status).keys()])
  })

  it('lists the fields that the status has more of with several processes, and their metrics', async (t) => {
    const server = (await startCluster(t, 2).workers[0]?.processes.read('window')) ?? assert.fail()
    const { processes, processes_ended } = statusOf('prod', server)
    const rows = tableBelow(admin, '### With several processes')
    assert.deepEqual(rows.flatMap(([cell = '']) => namesOf(cell)), [...valuesOf({ processes, processes_ended }).keys()])
    const families = [...renderPrometheus(server).matchAll(/^# TYPE (svc_process(?:es)?_\w+) (\w+)$/gm)]
    const documented = tableBelow(admin, '### Prometheus').flatMap(([cell = '', type]) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => [name, type]),
    )
    assert.deepEqual(documented, families.map(([, name, type]) => [name, type]))
  })

  it('lists the fields that the status has of nodes, and their metric', async (t) => {
    const server = (await startCluster(t, 2).workers[0]?.processes.read('window')) ?? assert.fail()
    const { nodes } = statusOf('prod', server, [listedNode])
    const rows = tableBelow(admin, '### With several servers')
    assert.deepEqual(rows.flatMap(([cell = '']) => namesOf(cell)), [...valuesOf({ nodes }).keys()])
    assert.match(renderPrometheus(server, nodes), /^svc_nodes_live 1$/m)
    assert.match(admin.prose, /`svc_nodes_live`/)
  })

  it('is right about which fields go back when a window begins', async (t) => {
    const { app, url } = await startApplication(t, {}, { 'app.env': 'dev' })
    for (let count = 0; count < 3; count += 1) {
      await request(`${url}/nothing`, { body: 'x' })
      await request(`${url}/svc-ping`)
    }
    app.flushLogs()
    const before = valuesOf((await request(`${url}/svc-status`)).json())
    await request(`${url}/svc-bench-start`)
    const after = valuesOf((await request(`${url}/svc-status`)).json())
    assert.deepEqual([before.get('requests.total'), after.get('requests.total')], [6, 0])
    for (const [cell = '', unit = '', window, meaning = ''] of statusRows.filter(([name]) => !name?.includes('[]'))) {
      for (const field of namesOf(cell)) {
        const [was, is] = [Number(before.get(field)), Number(after.get(field))]
        if (meaning.includes('since the start')) assert.ok(is >= was, field)
        const counts = window === 'yes' && /^(?:requests|bytes|lines|views|connections)$/.test(unit)
        if (counts) assert.ok(is < was || was === 0, field)
      }
    }
  })
})

/** The fields that a cell names: `a.b`, `.c` are a.b and a.c. */
function namesOf(cell: string): string[] {
  const [first = '', ...others] = [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
  const group = first.slice(0, first.lastIndexOf('.'))
  return [first, ...others.map((name) => group + name)]
}

/** All values of a document by their names, with dots. An array of objects is `name[]`, with those of the first. */
function valuesOf(value: unknown, name = ''): Map<string, unknown> {
  if (Array.isArray(value) && typeof value[0] === 'object') return valuesOf(value[0], `${name}[]`)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return new Map([[name, value]])
  if (Object.keys(value).length === 0) return new Map([[name, value]]) // No rule of a limit, say.
  const members = Object.entries(value).map(([key, member]) => valuesOf(member, name === '' ? key : `${name}.${key}`))
  return new Map(members.flatMap((values) => [...values]))
}
