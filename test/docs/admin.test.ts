import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { statusOf } from '../../lib/panel/status.ts'
import { systemRoutes } from '../../lib/panel/table.ts'
import { renderPrometheus } from '../../lib/metrics/prometheus.ts'
import { startCluster } from '../cluster/readings-cluster.ts'
import { code } from '../metrics/sources.ts'
import { renderAdmin } from '../support/admin-page.ts'
import { startApplication } from '../support/application.ts'
import { assertCurrent } from '../support/current.ts'
import { readPage, tableBelow } from '../support/markdown.ts'
import { listedNode } from '../support/node-panel.ts'
import { request } from '../support/request.ts'

const admin = readPage('docs/admin.md')
const prose = admin.prose.replaceAll(/\s+/g, ' ')
const rowsOfNow = tableBelow(admin, '#### Current values')
const rowsOfWindow = tableBelow(admin, '#### Since the window began')

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
    const expected = systemRoutes.map(({ method, url, meaning }) => [`${method} \`${url}\``, meaning])
    assert.deepEqual(tableBelow(admin, '## Endpoints'), expected)
  })

  it('is right about which endpoints need a login, change something and always exist', () => {
    const names = (pattern: RegExp): string[] => namedEndpoints(pattern.exec(prose)?.[1] ?? assert.fail(`No ${pattern}`))
    const urls = (routes: readonly { readonly url: string }[]): string[] => [...new Set(routes.map(({ url }) => url))].sort()
    assert.deepEqual(names(/In `prod` all need a login except ([^.]*)\./), urls(systemRoutes.filter(({ auth }) => !auth)))
    assert.deepEqual(names(/`admin\.enabled` false, all except ([^.]*) are 404/), urls(systemRoutes.filter(({ always }) => always)))
    assert.match(prose, /Endpoints with POST change something, as does GET of trace or profile with a query:/)
    for (const { url, method, change } of systemRoutes) {
      const documented = method.includes('POST') ? 'always' : ['/svc-trace', '/svc-profile'].includes(url) ? 'with-query' : 'never'
      assert.equal(change, documented, `${method} ${url}`)
    }
  })

  it('lists every metric: npm run docs writes them', () => {
    assertCurrent('admin.md', renderAdmin())
  })

  it('lists the fields of the status', async (t) => {
    const { url } = await startApplication(t, {}, { 'app.env': 'dev' })
    await request(`${url}/svc-ping`)
    const status = (await request(`${url}/svc-status`)).json()
    assertListed([...rowsOfNow, ...rowsOfWindow], status)
  })

  it('lists the fields that several processes add to the status, and names their metrics', async (t) => {
    const server = (await startCluster(t, 2).workers[0]?.processes.read('window')) ?? assert.fail()
    const { processes, processes_ended, processes_replaced, ...status } = statusOf({ env: 'prod', code }, server)
    assertListed(tableBelow(admin, '### With several processes'), { processes, processes_ended, processes_replaced: {} })
    const own = [...valuesOf({ processes }).keys()].map((name) => name.replace('processes[].', ''))
    const above = new Set(valuesOf(status).keys())
    assert.deepEqual(own.filter((name) => !above.has(name)), ['id', 'responding'])

    const text = renderPrometheus(code, server)
    const families = [...text.matchAll(/^# TYPE (svc_process(?:es)?_\w+) \w+$/gm)].map(([, name = '']) => name)
    for (const name of families) assert.match(text, new RegExp(`^# HELP ${name} \\w`, 'm'))
    const named = [...admin.prose.matchAll(/`(svc_process(?:es)?_\w+)`/g)].map(([, name = '']) => name)
    assert.deepEqual(named.filter((name) => !families.includes(name)), [])
  })

  it('lists the fields of nodes in the status, and their metric', async (t) => {
    const server = (await startCluster(t, 2).workers[0]?.processes.read('window')) ?? assert.fail()
    const { nodes } = statusOf({ env: 'prod', code }, server, [listedNode])
    assertListed(tableBelow(admin, '### With several servers'), { nodes })
    assert.match(renderPrometheus(code, server, nodes), /^svc_nodes_live 1$/m)
    assert.match(admin.prose, /`svc_nodes_live`/)
  })

  it('is right about which fields a new window resets', async (t) => {
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
    const names = rowsOfWindow.flatMap(([cell = '']) => namesOf(cell))
    for (const field of names.flatMap((name) => leavesOf(name, [...before.keys()])).filter(isCount)) {
      const [was, is] = [Number(before.get(field)), Number(after.get(field))]
      assert.ok(is < was || was === 0, field)
    }
    const uptime = rowsOfNow.find(([cell]) => cell?.includes('`uptime_s`'))
    assert.match(uptime?.[1] ?? '', /whole seconds since the start/)
    assert.ok(Number(after.get('uptime_s')) >= Number(before.get('uptime_s')))
  })
})

/** Fails unless the rows list every field of a document once. A name may be a group: `a` for `a.b` and `a.c`. */
function assertListed(rows: string[][], document: unknown): void {
  const fields = [...valuesOf(document).keys()]
  const names = rows.flatMap(([cell = '']) => namesOf(cell))
  assert.deepEqual(names.filter((name) => leavesOf(name, fields).length === 0), [])
  assert.deepEqual(names.flatMap((name) => leavesOf(name, fields)).sort(), fields.sort())
}

/** The fields that a name covers. */
function leavesOf(name: string, fields: readonly string[]): string[] {
  return fields.filter((field) => field === name || field.startsWith(`${name}.`))
}

/** Whether a field of the window is a count, not a time, a share, a field of a route, or an object. */
function isCount(field: string): boolean {
  return !/_ms$|_s$|^latency_ms\.|\.utilization$|^routes\[\]|^limits\./.test(field)
}

/** The addresses of the endpoints that a sentence names by their last words: `ping, slow and ready`. */
function namedEndpoints(sentence: string): string[] {
  return sentence.split(/, | and /).map((name) => `/svc-${name}`).sort()
}

/** The fields that a cell names: `a.b`, `.c`, `d.e` are a.b, a.c and d.e. */
function namesOf(cell: string): string[] {
  let group = ''
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => {
    if (name.startsWith('.')) return group + name
    group = name.slice(0, Math.max(0, name.lastIndexOf('.')))
    return name
  })
}

/** All values of a document by their dotted names. An array of objects is `name[]`, with the fields of the first. */
function valuesOf(value: unknown, name = ''): Map<string, unknown> {
  if (Array.isArray(value) && typeof value[0] === 'object') return valuesOf(value[0], `${name}[]`)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return new Map([[name, value]])
  if (Object.keys(value).length === 0) return new Map([[name, value]]) // For example, limits without a rule.
  const members = Object.entries(value).map(([key, member]) => valuesOf(member, name === '' ? key : `${name}.${key}`))
  return new Map(members.flatMap((values) => [...values]))
}
