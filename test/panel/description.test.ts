import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MissingRoomError } from '../../lib/config/load-room.ts'
import { shownDescription } from '../../lib/describe/shown-description.ts'
import { createDescription } from '../../lib/panel/description.ts'
import { makePort, serve } from '../access/support.ts'
import { request } from '../support/request.ts'
import { described } from './described.ts'
import { startPanel } from './panel-server.ts'

/** The text of a part of a page, without its elements. */
function textOf(html: string): string {
  return html.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ').replaceAll('&quot;', '"').trim()
}

/** The operations of the page by method and path: the text before the form, and the form. */
function operationsOf(html: string): ReadonlyMap<string, { readonly text: string; readonly form: string }> {
  const parts = html.split('<details class="fold operation">').slice(1)
  return new Map(parts.map((part) => {
    const [shown = '', form = ''] = part.split('<h3>Try it</h3>')
    const [, method, path] = /<strong class="method">(\w+)<\/strong>\s*<span class="what"><code>([^<]*)/.exec(part) ?? []
    return [`${method} ${path}`, { text: textOf(shown), form }]
  }))
}

test('the description is behind the login, and as JSON what svc:openapi answers', async (t) => {
  const route = { name: 'api', url: '/api', method: 'GET', action: 'svc:openapi', hidden: true }
  const server = await startPanel(t, {}, { ...described, 'routes/api.json': [route] })
  assert.equal((await server.ask('/svc-openapi')).headers.location, '/svc-login?next=/svc-openapi')
  const { status, headers, text } = await server.askSignedIn('/svc-openapi?format=json')
  assert.deepEqual([status, headers['content-type']], [200, 'application/json; charset=utf-8'])
  assert.equal(text, (await server.ask('/api')).text)
  await server.post('/svc-routes/add', { name: 'late', url: '/late', method: 'GET', action: 'tasks.mjs@list' })
  assert.match((await server.askSignedIn('/svc-openapi?format=json')).text, /"\/late":/)
})

test('the page shows each operation with parameters, bodies, replies and security in words', async (t) => {
  const server = await startPanel(t, {}, described)
  const { text: html } = await server.askSignedIn('/svc-openapi')
  const operations = operationsOf(html)
  assert.deepEqual([...operations.keys()], [
    'GET /tasks', 'POST /tasks', 'GET /tasks/{id}', 'POST /tasks/{id}/files', 'GET /tasks/{id}/news', 'GET /secret',
    'GET /mine', 'GET /odd',
  ])
  const shown = (key: string): string => operations.get(key)?.text ?? assert.fail(key)
  assert.deepEqual([...html.matchAll(/<h2>(\w+)<\/h2>/g)].map(([, area]) => area), ['task', 'secret', 'odd', 'Schemas'])
  assert.match(shown('GET /tasks'), /words query list of string(?:, [^ ]+)* .*limit query integer, at least 1, default 10/)
  assert.match(shown('GET /tasks/{id}'), /^GET \/tasks\/\{id\} Shows one deprecated .* id required path integer/)
  const body = /Body, application\/json (.*) Replies/.exec(shown('POST /tasks'))?.[1] ?? ''
  assert.match(body, /title required string, 1 to 80 characters/)
  assert.match(body, /state "open" or "done" or null, default "open"/)
  assert.match(body, /points integer or null, 1 to 5/)
  assert.match(body, /tags required list of string, at most 3 items, each 1 to 20 characters/)
  assert.match(body, /steps required list of object, at most 1000 items steps\[\]\.name required string.* steps\[\]\.done required boolean/)
  assert.match(shown('POST /tasks'), /Replies 201 Created application\/json Name Type .* 422 Wrong input application\/json InvalidInput/)
  assert.match(shown('POST /tasks/{id}/files'), /x-csrf-token header string .*multipart\/form-data .*file required file \(/)
  assert.match(shown('GET /secret'), /bearer .* with a bearer token/)
  assert.match(shown('GET /mine'), /session .* for users who are signed in/)
  assert.match(textOf(html.slice(html.indexOf('id="schema-Error"'))), /error required string A stable code for programs\./)
})

test('the form of an operation has an input for each value, and an example of the body', async (t) => {
  const server = await startPanel(t, {}, described)
  const operations = operationsOf((await server.askSignedIn('/svc-openapi')).text)
  const form = (key: string): string => operations.get(key)?.form ?? assert.fail(key)
  const example = /<textarea data-in="text"[^>]*>\n([^<]*)</.exec(form('POST /tasks'))?.[1] ?? ''
  assert.deepEqual(JSON.parse(example.replaceAll('&quot;', '"')), {
    title: '', state: 'open', points: 1, tags: [''], steps: [{ name: '', done: false }],
  })
  assert.match(form('GET /tasks/{id}'), /<input name="id" data-in="path"[^>]* required pattern=/)
  assert.match(form('GET /tasks'), /<textarea name="words" data-in="query"[^]*<input name="limit" data-in="query"/)
  assert.match(form('GET /tasks'), /limit <span class="hint">query, integer/)
  const upload = form('POST /tasks/{id}/files')
  assert.match(upload, /with 403 unless it has a CSRF token/)
  assert.match(upload, /<input name="x-csrf-token" data-in="header"/)
  assert.match(upload, /<input type="file" name="file"/)
  assert.doesNotMatch(form('POST /tasks'), /CSRF/)
  assert.match(form('GET /secret'), /data-bearer="true"/)
})

test('names and texts of routes are escaped, and scripts need the nonce', async (t) => {
  const server = await startPanel(t, {}, described)
  const { text, headers } = await server.askSignedIn('/svc-openapi')
  const scripts = [...text.matchAll(/<script[^>]*>/g)].map(([tag]) => tag)
  const nonce = /nonce-([^']+)/.exec(String(headers['content-security-policy']))?.[1]
  assert.deepEqual(scripts, Array.from({ length: 2 }, () => `<script type="module" nonce="${nonce}">`))
  assert.match(text, /Adds a &lt;b&gt;task&lt;\/b&gt;/)
  assert.match(text, /<code>&quot;&gt;&lt;script&gt;alert\(1\)/)
  assert.match(text, /&lt;\/p&gt;&lt;script&gt;alert\(2\)/)
})

test('the filter and the pages work without a script', async (t) => {
  const routes = Array.from({ length: 300 }, (_, at) => ({ name: `many.n${at}`, url: `/many/${at}`, method: 'GET', action: 'tasks.mjs@list' }))
  const server = await startPanel(t, {}, { ...described, 'routes/tasks.json': routes })
  const first = (await server.askSignedIn('/svc-openapi')).text
  assert.equal(operationsOf(first).size, 200)
  assert.match(first, /1 to 200 of 300[^]*rel="next" href="\/svc-openapi\?page=2"/)
  assert.equal(operationsOf((await server.askSignedIn('/svc-openapi?page=2')).text).size, 100)
  const found = await server.askSignedIn('/svc-openapi?q=MANY.N299&part=results')
  assert.deepEqual([...operationsOf(found.text).keys()], ['GET /many/299'])
  assert.match(found.text, /^<div id="results" data-count="1 of 300 operations">/)
})

test('problems of the description are shown first', async (t) => {
  const nested = `import { action, fields } from 'svc'
    export default action({ query: fields({ near: fields.object({ x: fields.number() }) }) }, () => 'ok')`
  const route = { name: 'near', url: '/near', method: 'GET', action: 'near.mjs' }
  const server = await startPanel(t, {}, { 'routes/a.json': [route], 'near.mjs': nested })
  assert.match(textOf((await server.askSignedIn('/svc-openapi')).text), /The description is incomplete: route "near": query /)
})

test('without the folder of the description, the page is a 404 that names it', async (t) => {
  const held = makePort()
  const describe = (): Promise<never> => Promise.reject(new MissingRoomError('svc:openapi', 'describe'))
  const action = createDescription({ ...held.port, describe })
  const url = await serve(t, held, [{ method: 'GET', url: '/svc-openapi', action, name: 'svc.openapi' }])
  const answer = await request(`${url}/svc-openapi?format=json`, { headers: { accept: 'application/json' } })
  const detail = 'svc:openapi needs the folder lib/describe, which is missing from this installation'
  assert.deepEqual([answer.status, answer.json()], [404, { error: 'not_found', detail }])
})

test('a schema that refers to itself, or to nothing, is shown and has an example', async (t) => {
  const held = makePort()
  const node = { type: 'object', properties: { name: { const: 'x' }, next: { anyOf: [{ $ref: '#/components/schemas/Node' }, { type: 'null' }] } } }
  const schema = {
    type: 'object',
    properties: { tree: { $ref: '#/components/schemas/Node' }, lost: { $ref: '#/nowhere' }, self: { $ref: '#/components/schemas/Self' }, any: true },
  }
  const operation = { operationId: 'a', requestBody: { content: { 'application/json': { schema } } }, responses: {} }
  const components = { schemas: { Node: node, Self: { $ref: '#/components/schemas/Self' } } }
  const document = { info: { title: 'a', version: '1' }, paths: { '/a': { post: operation } }, components }
  const action = createDescription({ ...held.port, describe: () => Promise.resolve({ document, below: () => document, problems: [], shown: () => shownDescription(document) }) })
  const url = await serve(t, held, [{ method: 'GET', url: '/svc-openapi', action, name: 'svc.openapi' }])
  const { status, text } = await request(`${url}/svc-openapi`)
  assert.equal(status, 200)
  const operations = operationsOf(text).get('POST /a')
  assert.match(operations?.text ?? '', /tree object tree\.name "x" tree\.next Node, as above or null lost anything self Self, as above any anything/)
})
