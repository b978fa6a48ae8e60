// Profiles of a running server, taken as an administrator does.
import assert from 'node:assert/strict'
import { realpathSync } from 'node:fs'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { MissingRoomError } from '../../lib/config/load-room.ts'
import { createProfiler } from '../../lib/diagnose/profile.ts'
import { createProfiles } from '../../lib/panel/profile.ts'
import { makePort, serve } from '../access/support.ts'
import { cookieOf, nowSeconds, startPanel, type PanelServer } from '../panel/panel-server.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'

interface Frame {
  readonly functionName: string
  readonly scriptId: string
  readonly url: string
  readonly lineNumber: number
  readonly columnNumber: number
}

interface HeapNode {
  readonly id: number
  readonly callFrame: Frame
  readonly selfSize: number
  readonly children: readonly HeapNode[]
}

const working = {
  'routes/a.json': ['spin', 'keep', 'quick', 'odd'].map((name) => ({ name, url: `/${name}`, action: `work.mjs@${name}` })),
  'work.mjs': `
    const kept = []
    export function spin() {
      const end = Date.now() + 1300
      let sum = 0
      while (Date.now() < end) for (let at = 0; at < 10_000; at += 1) sum += Math.sqrt(at)
      return sum > 0 ? 'spun' : ''
    }
    export function keep() {
      for (let at = 0; at < 200_000; at += 1) kept.push({ at })
      return 'kept'
    }
    export const quick = () => 'quick'
    const generated = new Function('while (Date.now() < this.end);\\n//# sourceURL=file://%zz/odd')
    export const odd = () => String(generated.call({ end: Date.now() + 100 }))
  `,
}

const lib = fileURLToPath(new URL('../../lib/', import.meta.url))

/** Resolves when a server has begun to take its first profile. */
function started(server: PanelServer): Promise<void> {
  return until(() => server.lines().some((line) => line.includes('profile started')))
}

/** The frames of a tree. */
function framesOf(node: HeapNode): Frame[] {
  return [node.callFrame, ...node.children.flatMap(framesOf)]
}

describe('profiles', () => {
  it('of the CPU are files for DevTools, with the function that kept the event loop', async (t) => {
    const server = await startPanel(t, {}, working)
    const profile = server.askSignedIn('/svc-profile?seconds=1')
    await started(server)
    assert.equal((await server.ask('/quick')).text, 'quick')
    assert.equal((await server.ask('/odd')).text, 'undefined')
    assert.equal((await server.ask('/spin')).text, 'spun')
    const { status, headers, text, json } = await profile
    assert.deepEqual([status, headers['content-type']], [200, 'application/json; charset=utf-8'])
    assert.match(String(headers['content-disposition']), /^attachment; filename="cpu-process-1-\d{8}T\d{6}Z\.cpuprofile"$/)
    const { nodes, startTime, endTime, samples, timeDeltas } = json() as {
      nodes: { id: number; callFrame: Frame; hitCount: number; children?: number[] }[]
      startTime: number
      endTime: number
      samples: number[]
      timeDeltas: number[]
    }
    assert.ok(endTime - startTime >= 1_300_000, 'as long as the loop was blocked')
    assert.equal(samples.length, timeDeltas.length)
    const ids = new Set(nodes.map(({ id }) => id))
    assert.deepEqual([...samples, ...nodes.flatMap(({ children = [] }) => children)].filter((id) => !ids.has(id)), [])
    const spin = nodes.filter(({ callFrame }) => callFrame.functionName === 'spin')
    assert.deepEqual([...new Set(spin.map(({ callFrame }) => `${callFrame.url}:${callFrame.lineNumber + 1}`))], ['work.mjs:3'])
    const spinning = new Set(spin.map(({ id }) => id))
    assert.ok(samples.filter((id) => spinning.has(id)).length > samples.length / 4)
    const urls = new Set(nodes.map(({ callFrame }) => callFrame.url))
    assert.ok(urls.has('svc:lib/chain/compose.ts') || urls.has('svc:dist/chain/compose.js'), [...urls].join('\n'))
    assert.ok(urls.has('file://%zz/odd'))
    for (const folder of [realpathSync(server.folder), lib]) assert.ok(!text.includes(folder), folder)
  })

  it('of the heap are files for DevTools, with the function whose memory is in use', async (t) => {
    const server = await startPanel(t, {}, working)
    const profile = server.askSignedIn('/svc-profile?kind=heap&seconds=1')
    await started(server)
    await server.ask('/keep')
    const { headers, json } = await profile
    assert.match(String(headers['content-disposition']), /^attachment; filename="heap-process-1-\d{8}T\d{6}Z\.heapprofile"$/)
    const { head, samples } = json() as { head: HeapNode; samples: { size: number; nodeId: number; ordinal: number }[] }
    const kept = framesOf(head).find(({ functionName }) => functionName === 'keep')
    assert.equal(kept?.url, 'work.mjs')
    assert.ok(samples.reduce((sum, { size }) => sum + size, 0) > 1_000_000)
  })

  it('need a login, and right parameters', async (t) => {
    const server = await startPanel(t)
    assert.equal((await server.ask('/svc-profile?seconds=1')).headers.location, '/svc-login?next=/svc-profile')
    const wrong = ['0', '61', '3600', '-1', '1.5', '1e1', '', 'ten', '0x10', '%00', '999999999999999999999']
    for (const seconds of wrong) {
      const { status, json } = await server.askSignedIn(`/svc-profile?seconds=${seconds}`)
      const value = /^\d{1,15}$/.test(seconds) ? seconds : JSON.stringify(decodeURIComponent(seconds))
      const error = `seconds must be a whole number from 1 to 60: it is ${value}`
      assert.deepEqual([status, json()], [400, { ok: false, error }])
    }
    const { status, json } = await server.askSignedIn('/svc-profile?kind=CPU')
    assert.deepEqual([status, json()], [400, { ok: false, error: 'kind must be cpu or heap: it is "CPU"' }])
    assert.ok(server.lines().every((line) => !line.includes('profile')))
  })

  it('are taken by the members of a body, over those of the query', async (t) => {
    const server = await startPanel(t)
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const seconds = (value: string): string => `seconds must be a whole number from 1 to 60: it is ${value}`
    const refused: readonly (readonly [body: string, error: string | RegExp])[] = [
      ['{"seconds":61}', seconds('61')],
      ['{"seconds":"1"}', seconds('"1"')],
      ['{"seconds":null}', seconds('null')],
      ['{"seconds":1.5,"kind":"heap"}', seconds('1.5')],
      ['{"kind":["heap"]}', 'kind must be cpu or heap: it is ["heap"]'],
      ['page=1&seconds=ten', seconds('"ten"')],
      ['page=1&seconds=61&kind=heap', seconds('61')],
      ['[]', 'The body must be a JSON object'],
      ['seconds=1', /JSON/],
    ]
    for (const [body, error] of refused) {
      const answer = await server.askSignedIn('/svc-profile?seconds=1', { method: 'POST', body, headers })
      assert.equal(answer.status, 400, body)
      const said = (answer.json() as { error: string }).error
      if (typeof error === 'string') assert.equal(said, error)
      else assert.match(said, error)
    }
    assert.ok(server.lines().every((line) => !line.includes('profile')))
    for (const body of ['{"seconds":1,"kind":"heap"}', 'page=1&seconds=1&kind=heap']) {
      const { status, headers: sent } = await server.askSignedIn('/svc-profile?seconds=60', { method: 'POST', body, headers })
      assert.equal(status, 200, body)
      assert.match(String(sent['content-disposition']), /"heap-process-1-/)
    }
  })

  it('are not taken by a query without seconds and kind', async (t) => {
    const server = await startPanel(t)
    for (const query of ['?', '?x', '?format=json', '?Seconds=1']) {
      const { status, headers } = await server.askSignedIn(`/svc-profile${query}`)
      assert.deepEqual([status, headers['content-type']], [200, 'text/html; charset=utf-8'], query)
    }
    assert.ok(server.lines().every((line) => !line.includes('profile')))
  })

  it('are not taken for another site, a prefetch or HEAD', async (t) => {
    const server = await startPanel(t)
    const path = '/svc-profile?seconds=1'
    for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { 'sec-purpose': 'prefetch' }, { referer: 'https://evil.example/' }]) {
      assert.equal((await server.askSignedIn(path, { headers })).status, 403)
      assert.equal((await server.askSignedIn('/svc-profile', { headers })).status, 200, 'the page takes no profile')
    }
    assert.equal((await server.askSignedIn(path, { method: 'HEAD' })).status, 405)
    assert.ok(server.lines().every((line) => !line.includes('profile')))
  })

  it('are taken one at a time, until the client leaves, and each has an audit record', async (t) => {
    const server = await startPanel(t)
    const socket = connect(server.port, '127.0.0.1')
    t.after(() => socket.destroy())
    socket.write(`GET /svc-profile?seconds=60 HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: ${cookieOf(nowSeconds())}\r\n\r\n`)
    await until(() => server.lines().includes('INFO server cpu profile started by 127.0.0.1: 60 s of process 1'))
    const { status, headers, json } = await server.askSignedIn('/svc-profile?kind=heap')
    const left = Number(headers['retry-after'])
    assert.ok(left > 30 && left <= 60, String(left))
    const error = `Process 1 is already taking a profile: try again in ${left} s`
    assert.deepEqual([status, json()], [409, { ok: false, error }])
    socket.destroy()
    const leftAt = performance.now()
    await until(async () => (await server.askSignedIn('/svc-profile?seconds=1&kind=heap')).status === 200)
    assert.ok(performance.now() - leftAt < 30_000, 'before the profile of 60 s would have ended')
    const records = server.read('.logs/audit.log').split('\n').filter((line) => line.includes('profile'))
    const shown = records.map((line) => JSON.parse(line) as Record<string, unknown>).map(({ user, what, to }) => [user, what, to])
    assert.deepEqual(shown, [['ann', 'cpu profile started', '60 s'], ['ann', 'heap profile started', '1 s']])
  })

  it('end with what they have when the server stops', async (t) => {
    const server = await startPanel(t)
    const profile = server.askSignedIn('/svc-profile?seconds=60')
    await started(server)
    await server.app.stop()
    const { status, json } = await profile
    const { startTime, endTime } = json() as { startTime: number; endTime: number }
    assert.equal(status, 200)
    assert.ok(endTime - startTime < 30_000_000)
  })

  it('are 501 where they are denied, which the page says too', async (t) => {
    const held = makePort()
    const problem = 'denied'
    const profiler = { ...createProfiler(temporaryFolder()), problem }
    const parts = { process: { number: 3, count: 4 }, stopping: new AbortController().signal }
    const handlers = createProfiles({ ...held.port, ...parts, profiler: () => Promise.resolve(profiler) })
    const url = await serve(t, held, [{ method: 'GET', url: '/svc-profile', action: handlers['svc.profile'] }])
    const { status, json } = await request(`${url}/svc-profile?kind=cpu`)
    assert.deepEqual([status, json()], [501, { ok: false, error: 'denied' }])
    const { text } = await request(`${url}/svc-profile`)
    assert.match(text, /<p class="message error">denied\.<\/p>/)
    assert.doesNotMatch(text, /<button|<script/)
  })

  it('without their folder, page and files are a 404 that names it', async (t) => {
    const held = makePort()
    const parts = { process: { number: 1, count: 1 }, stopping: new AbortController().signal }
    const profiler = (): Promise<never> => Promise.reject(new MissingRoomError('/svc-profile', 'diagnose'))
    const handlers = createProfiles({ ...held.port, ...parts, profiler })
    const url = await serve(t, held, [{ method: 'GET', url: '/svc-profile', action: handlers['svc.profile'] }])
    const detail = '/svc-profile needs the folder lib/diagnose, which is missing from this installation'
    for (const path of ['/svc-profile', '/svc-profile?kind=cpu']) {
      const answer = await request(`${url}${path}`, { headers: { accept: 'application/json' } })
      assert.deepEqual([answer.status, answer.json()], [404, { error: 'not_found', detail }])
    }
  })
})
