import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { statusOf } from '../../lib/panel/status.ts'
import { endpoints } from '../access/support.ts'
import { startCluster } from '../cluster/readings-cluster.ts'
import { code } from '../metrics/sources.ts'
import { startApplication } from '../support/application.ts'
import {
  document,
  examplesOf,
  jsonBodies,
  operationOf,
  operations,
  resolve,
  type Media,
  type Operation,
} from '../support/openapi-document.ts'
import { listedNode } from '../support/node-panel.ts'
import { createDocumentCheck, createSchemaChecks, type Check } from '../support/openapi.ts'
import { request, type Answer, type Question } from '../support/request.ts'
import { hasSqlite } from '../support/sqlite.ts'

/** A call of an operation: its path and query, and what is sent besides. */
type Call = readonly [status: number, target: string, question?: Question]

describe('docs/openapi.json', () => {
  let checks: ReadonlyMap<string, Check>
  before(async () => {
    checks = await createSchemaChecks(document.components.schemas)
  })

  it('is valid by the schema of OpenAPI 3.1', async () => {
    const check = await createDocumentCheck()
    assert.deepEqual(check(document), [])
    assert.notDeepEqual(check({ ...document, info: {} }), [])
    const { schemas } = document.components
    const wrong = { ...document, components: { schemas: { ...schemas, Wrong: { type: 'text' } } } }
    assert.notDeepEqual(check(wrong), [])
  })

  it('has examples that fit their schemas', () => {
    for (const media of jsonBodies()) {
      for (const example of examplesOf(media)) assert.deepEqual(check(media, example), [], JSON.stringify(example))
    }
  })

  it('describes what a server answers', async (t) => {
    const seen = new Set<string>()
    const inDev = await startApplication(t, { ...files, ...jobFiles }, { 'app.env': 'dev', 'pool_jobs.workers': 0 })
    await ask(inDev.url, callsInDev, seen)
    const { url, write } = await startApplication(t, files, { 'admin.metrics_token': 'a-token-of-thirty-two-characters' })
    await ask(url, [[401, '/svc-metrics', { headers: { authorization: 'Bearer another' } }]], seen)
    await ask(url, callsBeforeSetup, seen)
    write({ 'routes/b.json': [{ name: 'bad', url: 'x', action: 'a.mjs' }] })
    await ask(url, callsInProd(await login(url)), seen)
    const documented = operations.flatMap(({ operation }) =>
      Object.keys(operation.responses).map((status) => `${operation.operationId} ${status}`),
    )
    // What needs a server that is stopping, a hundred wrong logins, a second factor, or a file that cannot be written
    // has its tests in test/panel and test/access; `default` is for all that is not the endpoint's own.
    const unwritten = ['svc.login.post 500', 'svc.setup.post 500', 'svc.routes.add 500', 'svc.routes.delete 500']
    const ofJobs = hasSqlite ? [] : ['retry', 'discard', 'run'].map((name) => `svc.jobs.${name} 200`)
    const ofProfiles = ['svc.profile', 'svc.profile.take'].flatMap((name) => [`${name} 409`, `${name} 501`])
    const elsewhere = [...ofProfiles, 'svc.ready 503', 'svc.login.post 200', 'svc.login.post 429', ...unwritten, ...ofJobs]
    const missing = documented.filter((answer) => !answer.endsWith(' default') && !seen.has(answer))
    assert.deepEqual(missing.sort(), elsewhere.sort())
  })

  it('describes the status of several processes and nodes', async (t) => {
    const { workers } = startCluster(t, 2)
    const status = statusOf({ env: 'prod', code }, (await workers[0]?.processes.read('window')) ?? assert.fail(), [listedNode])
    assert.equal(status.processes?.length, 3)
    const media = { schema: { $ref: '#/components/schemas/Status' } }
    assert.deepEqual(check(media, status), [])
    assert.notDeepEqual(check(media, { ...status, processes: [{ id: '1', pid: 1 }] }), [])
    assert.notDeepEqual(check(media, { ...status, processes_ended: { count: 1 } }), [])
    assert.notDeepEqual(check(media, { ...status, nodes: [{ name: 'a' }] }), [])
  })

  /** Makes the calls one after the other; each answer must be as the document has it. */
  async function ask(url: string, calls: readonly Call[], seen: Set<string>): Promise<void> {
    for (const [status, target, question] of calls) {
      const answer = await request(url + target, question)
      const method = question?.method ?? (question?.body === undefined ? 'GET' : 'POST')
      const path = target.split('?', 1)[0]
      const row = endpoints.find((each) => each.method === method && each.url === path)
      assert.ok(row, `${method} ${target}`)
      const place = `${method} ${target}: ${answer.status} ${answer.text}`
      assert.equal(answer.status, status, place)
      assert.equal(answer.headers['cache-control'], 'no-store', place)
      compare(answer, operationOf(row.name), place)
      seen.add(`${row.name} ${status}`)
    }
  }

  function compare(answer: Answer, operation: Operation, place: string): void {
    const own = operation.responses[String(answer.status)]
    assert.ok(own, place)
    const { content = {}, headers = {} } = resolve(own)
    for (const name of Object.keys(headers)) {
      if (name === 'Set-Cookie' && answer.headers.location === '/svc-setup') continue // There are no credentials.
      assert.notEqual(answer.headers[name.toLowerCase()], undefined, `${place} ${name}`)
    }
    const type = answer.headers['content-type']?.split(';', 1)[0]
    if (type === undefined) return assert.deepEqual(content, {}, place)
    const media = content[type]
    assert.ok(media, `${place} ${type}`)
    if (type === 'application/json') assert.deepEqual(check(media, answer.json()), [], place)
  }

  function check({ schema }: Media, value: unknown): readonly string[] {
    if (schema.type === 'array') {
      const { items } = schema
      return (value as unknown[]).flatMap((each) => checkOf(items?.$ref)(each))
    }
    return checkOf(schema.$ref)(value)
  }

  function checkOf(reference: string | undefined): Check {
    const found = checks.get(reference?.replace('#/components/schemas/', '') ?? '')
    assert.ok(found, `${reference} is no schema of the document`)
    return found
  }
})

async function login(url: string): Promise<string> {
  const { status, headers } = await request(`${url}/svc-login`, form({ user: 'ann', password: 'correct-horse' }))
  assert.equal(status, 302)
  return headers['set-cookie']?.[0]?.split(';', 1)[0] ?? ''
}

function form(fields: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>> = {}): Question {
  const type = { 'content-type': 'application/x-www-form-urlencoded' }
  return { method: 'POST', body: new URLSearchParams(fields).toString(), headers: { ...type, ...headers } }
}

function json(value: unknown, headers: Readonly<Record<string, string>> = {}): Question {
  return { method: 'POST', body: JSON.stringify(value), headers }
}

const files = {
  'routes/a.json': [{ name: 'hello', url: '/hello/:name', method: 'GET', action: 'a.mjs' }],
  'routes/middleware/config.json': { load: [], setup: { nobody: {} } },
  'a.mjs': 'export default ({ params }) => params.name',
}
/** A Node without SQLite refuses to start with a job file. */
const jobFiles = hasSqlite ? { 'jobs/a.json': [{ name: 'tidy', action: 'a.mjs', every: '1h' }] } : {}
const jobCalls: readonly Call[] = [
  [200, '/svc-jobs'],
  [200, '/svc-jobs?format=json'],
  ...['/svc-jobs/retry', '/svc-jobs/discard'].flatMap((url): Call[] => [[400, url, json({})], [404, url, json({ id: '99' })], [404, url, json({ name: 'none' })]]),
  [400, '/svc-jobs/run', json({})],
  [404, '/svc-jobs/run', json({ name: 'none' })],
  ...(hasSqlite
    ? ([
        [200, '/svc-jobs/run', json({ name: 'tidy' })],
        [200, '/svc-jobs?format=json&name=tidy&state=waiting&page=1'],
        [200, '/svc-jobs/retry', json({ id: '1' })],
        [200, '/svc-jobs/discard', json({ id: '1' })],
      ] as const)
    : []),
]
const crossSite = { 'sec-fetch-site': 'cross-site', accept: 'application/json' }
const route = { name: 'hi', url: '/hi', action: 'a.mjs' }

/** Everything that a login is not needed for in `dev`, and every refusal of another site. */
const callsInDev: readonly Call[] = [
  [200, '/svc-ping'],
  [200, '/svc-slow'],
  [200, '/svc-ready'],
  [200, '/svc-status'],
  [200, '/svc-status?monitor=1'],
  [200, '/svc-metrics'],
  [200, '/svc-monitor'],
  [200, '/svc-errors'],
  [200, '/svc-errors?format=json'],
  [200, '/svc-errors/clear', { method: 'POST' }],
  [200, '/svc-config'],
  [200, '/svc-config?format=json'],
  [200, '/svc-changes'],
  [200, '/svc-changes?format=json'],
  [200, '/svc-index'],
  [302, '/svc-index?open=hello&in.name=you'],
  [200, '/svc-openapi'],
  [200, '/svc-openapi?format=json'],
  ...jobCalls,
  [200, '/svc-profile'],
  [200, '/svc-profile?seconds=1'],
  [400, '/svc-profile?seconds=0'],
  [200, '/svc-profile?kind=heap&seconds=1', { method: 'POST' }],
  [400, '/svc-profile?kind=none', { method: 'POST' }],
  [200, '/svc-trace'],
  [200, '/svc-trace?mod=all&on=1'],
  [400, '/svc-trace?mod=nobody'],
  [200, '/svc-trace', json({ module: 'app', enabled: true, ttl: 1 })],
  [400, '/svc-trace', json({})],
  [200, '/svc-cache-clear'],
  [200, '/svc-cache-clear', { method: 'POST' }],
  [200, '/svc-bench-start'],
  [200, '/svc-bench-start', { method: 'POST' }],
  [200, '/svc-bench-stop'],
  [200, '/svc-bench-stop', { method: 'POST' }],
  [200, '/svc-routes/add', json(route)],
  [200, '/svc-routes/add', json({ ...route, name: 'later', action: 'later.mjs', persist: true })],
  [400, '/svc-routes/add', json({ ...route, name: 'svc.mine' })],
  [409, '/svc-routes/add', json(route)],
  [409, '/svc-routes/add', json({})],
  [200, '/svc-routes/list'],
  [200, '/svc-routes/list?format=json'],
  [200, '/svc-routes/listall'],
  [200, '/svc-routes/listall?format=json'],
  [200, '/svc-routes/match?path=/hello/you'],
  [200, '/svc-routes/match?path=/hello/you&method=POST'],
  [200, '/svc-routes/match?path=/hello/you&method=OPTIONS'],
  [200, '/svc-routes/match?path=/nowhere'],
  [200, '/svc-routes/match?path=/hello/%25zz'],
  [400, '/svc-routes/match'],
  [200, '/svc-routes/diff'],
  [200, '/svc-routes/diff?format=json'],
  [200, '/svc-routes/delete', json({ name: 'hi' })],
  [400, '/svc-routes/delete', json({})],
  [200, '/svc-routes/reload'],
  [200, '/svc-routes/reload', { method: 'POST' }],
  [200, '/svc-routes/delete', json({ name: 'later' })],
  [200, '/svc-login'],
  ...endpoints.filter(({ change }) => change !== 'never').map(({ method, url, change }): Call => {
    const target = change === 'with-query' ? `${url}?mod=all` : url
    return [403, target, { method, headers: crossSite, ...(method === 'POST' && { body: '{}' }) }]
  }),
  [200, '/svc-stop'],
]

const callsBeforeSetup: readonly Call[] = [
  [302, '/svc-status'],
  [302, '/svc-login', form({ user: 'ann', password: 'x' })],
  [200, '/svc-setup'],
  [422, '/svc-setup', form({ user: '', password: '', password2: '' })],
  [302, '/svc-setup', form({ user: 'ann', password: 'correct-horse', password2: 'correct-horse' })],
  [302, '/svc-setup'],
  ...endpoints.filter(({ auth }) => auth).map(({ method, url }): Call => {
    return [302, url, { method, ...(method === 'POST' && { body: '{}' }) }]
  }),
  [401, '/svc-routes/add', json({}, { accept: 'application/json' })],
  [401, '/svc-login', form({ user: 'ann', password: 'x' })],
  [302, '/svc-login', form({ user: 'ann', password: 'correct-horse' })],
  [302, '/svc-logout'],
  [302, '/svc-logout', { method: 'POST' }],
]

const callsInProd = (cookie: string): readonly Call[] => [
  [200, '/svc-status', { headers: { cookie } }],
  [409, '/svc-routes/reload', { headers: { cookie } }],
  [409, '/svc-routes/reload', { method: 'POST', headers: { cookie } }],
  [200, '/svc-stop', { method: 'POST', headers: { cookie } }],
]
