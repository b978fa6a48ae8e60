import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMonitor, monitorDocument } from '../../lib/panel/monitor.ts'
import { request } from '../support/request.ts'
import { makeMonitorPort, makeRoute } from './monitor-port.ts'
import { serve } from '../access/support.ts'

/** The text of the document's element as a browser reads it: up to the first matching end tag. */
function embedded(html: string): string {
  const start = html.indexOf('>', html.indexOf('<script type="application/json" id="document"')) + 1
  return html.slice(start, start + html.slice(start).search(/<\/script/i))
}

test('the page contains its first document, and the interval', async (t) => {
  const { held, port } = makeMonitorPort({ 'monitor.interval_s': 7 })
  const url = await serve(t, held, [{ method: 'GET', url: '/svc-monitor', action: createMonitor(port) }])
  const { status, text } = await request(`${url}/svc-monitor`)
  assert.equal(status, 200)
  assert.deepEqual(JSON.parse(embedded(text)), JSON.parse(JSON.stringify(await monitorDocument(port))))
  assert.match(text, /^const intervalMs = 7000$/m)
})

test('the content of a log line or a path cannot escape from its element', async (t) => {
  const { held, port, figures } = makeMonitorPort()
  const message = '</script><script>alert(1)</script><!--<script>\u2028&lt;{{ x }}'
  figures.lines = [{ time: 1, level: 'info', module: 'app', message }]
  figures.requests = [{ time: 1, method: 'GET', path: '/</SCRIPT >', status: 404, duration_ms: 1, route: '' }]
  const url = await serve(t, held, [{ method: 'GET', url: '/svc-monitor', action: createMonitor(port) }])
  const { text } = await request(`${url}/svc-monitor`)
  const json = embedded(text)
  assert.doesNotMatch(json, /</)
  const { monitor } = JSON.parse(json) as Awaited<ReturnType<typeof monitorDocument>>
  assert.equal(monitor.lines[0]?.message, message)
  assert.equal(monitor.requests[0]?.path, '/</SCRIPT >')
})

test('every script and style of the page has the nonce, and nothing else is inline', async (t) => {
  const { held, port } = makeMonitorPort()
  const url = await serve(t, held, [{ method: 'GET', url: '/svc-monitor', action: createMonitor(port) }])
  const { text, headers } = await request(`${url}/svc-monitor`)
  const nonce = /script-src 'nonce-([^']+)'/.exec(String(headers['content-security-policy']))?.[1]
  assert.ok(nonce)
  const tags = text.match(/<(?:script|style)\b[^>]*>/g) ?? []
  assert.equal(tags.length, 3)
  for (const tag of tags) assert.ok(tag.includes(`nonce="${nonce}"`), tag)
  assert.doesNotMatch(text, /\sstyle="|\son[a-z]+="|<link[^>]+href="(?!data:)|\ssrc="/)
})

test('the document has the twenty slowest routes, the slowest first, and leaves the status as it was', async () => {
  const { port, figures } = makeMonitorPort()
  const routes = Array.from({ length: 50 }, (_, at) => makeRoute(`r${at}`, (at * 7) % 50))
  figures.status = { ...figures.status, routes }
  const slowest = (await monitorDocument(port)).routes.map(({ p99_ms }) => p99_ms)
  assert.deepEqual(slowest.slice(0, 20), Array.from({ length: 20 }, (_, at) => 49 - at))
  assert.deepEqual(slowest, [...slowest].sort((a, b) => b - a))
  assert.equal(figures.status.routes[1]?.name, 'r1')
})

test('the document has the top twenty routes by each column, with and without those of the panel', async () => {
  const { port, figures } = makeMonitorPort()
  const size = 10_007
  const fields = ['count', 'errors', 'p50_ms', 'p95_ms', 'p99_ms', 'max_ms'] as const
  const routes = Array.from({ length: size }, (_, at) => {
    // Each column has every number from 0 to 10006 once, in a different order; each third route is the panel's.
    const numbers = fields.map((field, column) => [field, (at * (31 + 2 * column)) % size])
    return makeRoute(`${at % 3 === 0 ? 'svc.' : 'r'}${at}`, 0, Object.fromEntries(numbers) as object)
  })
  figures.status = { ...figures.status, routes }
  const sent = (await monitorDocument(port)).routes
  for (const system of [true, false]) {
    const shown = (list: typeof sent) => list.filter(({ name }) => system || !name.startsWith('svc.'))
    for (const field of fields) {
      const first = (list: typeof sent) => shown(list).sort((a, b) => b[field] - a[field]).slice(0, 20)
      assert.deepEqual(first(sent), first(routes), field)
    }
    const names = (list: typeof sent) => shown(list).map(({ name }) => name).sort().slice(0, 20)
    assert.deepEqual(names(sent), names(routes))
  }
  assert.equal(new Set(sent).size, sent.length)
  assert.ok(sent.length <= 280, `${sent.length}`)
})

test('the document is the status, with the data for the page under `monitor`', async () => {
  const { port, figures } = makeMonitorPort()
  const { monitor, ...status } = await monitorDocument(port)
  assert.deepEqual(status, figures.status)
  const { history, requests, lines, trace } = figures
  assert.deepEqual(monitor, { history, requests, lines, error_groups: 0, errors_last_hour: 0, trace })
})
