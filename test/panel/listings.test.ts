import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { createListings } from '../../lib/panel/listings.ts'
import type { Chain } from '../../lib/chain/compose.ts'
import { parsePattern } from '../../lib/routing/pattern.ts'
import type { RouteRecord } from '../../lib/routing/route.ts'
import { request, type Answer } from '../support/request.ts'
import { makePort, serve } from '../access/support.ts'

/** The routes of the table are listed and never run. */
const unused: Chain = () => assert.fail('a listed route was run')

type Get = (path: string) => Promise<Answer>

/** Serves the listings of an application with these routes. Returns a function that requests a path. */
async function start(t: TestContext, records: readonly Partial<RouteRecord>[]): Promise<Get> {
  const held = makePort({ 'app.env': 'prod' })
  for (const given of records) {
    const record = { name: '', url: '/', action: 'a.js', method: '*', middleware: '', scope: '', ...given }
    held.registry.add({ record, pattern: parsePattern(record.url), system: false, target: unused })
  }
  const handlers = createListings(held.port, new Map([['svc.stop', 'Stops the server.']]))
  const { 'svc.index': index, 'svc.routes.list': list, 'svc.routes.listall': listAll } = handlers
  const url = await serve(t, held, [
    { method: 'GET', url: '/svc-index', action: index, name: 'svc.index' },
    { method: 'GET', url: '/svc-routes/list', action: list, name: 'svc.routes.list' },
    { method: 'GET', url: '/svc-routes/listall', action: listAll, name: 'svc.routes.listall' },
    { method: 'GET', url: '/svc-stop', action: index, name: 'svc.stop' },
    { method: 'POST', url: '/svc-login', action: index, name: 'svc.login.post' },
  ])
  return (path) => request(`${url}${path}`)
}

/** The text of the cells, row by row. */
function rows(html: string): string[][] {
  const body = html.slice(html.indexOf('<tbody>'), html.indexOf('</tbody>'))
  const cells = (row: string) => [...row.matchAll(/<td[^>]*>([^]*?)<\/td>/g)].map((cell) => textOf(cell[1] ?? ''))
  return body.split('<tr>').slice(1).map(cells)
}

function textOf(html: string): string {
  return html.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ').trim()
}

const user = {
  name: 'users.show', url: '/users/:id', method: 'GET,POST', middleware: 'SVC_MwSession,audit', action: 'users.js@show',
}

test('the list has only the routes of the application, with all their columns', async (t) => {
  const get = await start(t, [user, { name: 'home', url: '/' }])
  const { status, text, headers } = await get('/svc-routes/list')
  assert.equal(status, 200)
  assert.equal(headers['content-type'], 'text/html; charset=utf-8')
  assert.equal(headers['x-frame-options'], 'DENY')
  assert.deepEqual(rows(text), [
    ['users.show', 'GET, POST', '/users/:id', 'SVC_MwSession, audit', 'users.js@show', 'Open… Open'],
    ['home', 'all', '/', '', 'a.js', 'Open'],
  ])
})

test('the list of all routes has system routes too', async (t) => {
  const get = await start(t, [user])
  const names = rows((await get('/svc-routes/listall')).text).map(([name]) => name)
  const system = ['svc.index', 'svc.routes.list', 'svc.routes.listall', 'svc.stop', 'svc.login.post']
  assert.deepEqual(names, ['users.show', ...system])
})

test('a list as JSON has the route records, and applies the filter', async (t) => {
  const get = await start(t, [user, { name: 'home', url: '/' }])
  const list = await get('/svc-routes/list?format=json')
  assert.equal(list.headers['content-type'], 'application/json; charset=utf-8')
  const home = { name: 'home', url: '/', action: 'a.js', method: '*', middleware: '', scope: '' }
  assert.deepEqual(list.json(), [{ scope: '', ...user }, home])
  assert.equal(((await get('/svc-routes/listall?format=json')).json() as unknown[]).length, 7)
  assert.deepEqual((await get('/svc-routes/list?format=json&q=home')).json(), [home])
})

test('an application without routes has a different message than a filter without matches', async (t) => {
  const get = await start(t, [])
  assert.match((await get('/svc-routes/list')).text, /The application has no routes\./)
  assert.match((await get('/svc-routes/list?q=x')).text, /No route has all of these words\./)
  assert.match((await get('/svc-index?q=zzz')).text, /No route has all of these words\./)
})

test('the filter matches words in every field, ignoring case', async (t) => {
  const get = await start(t, [user, { name: 'home', url: '/', scope: 'home:read' }])
  const filters = [
    ['USERS', ['users.show']],
    ['audit', ['users.show']],
    ['@show post', ['users.show']],
    ['home:read', ['home']],
    ['%20%20home%20%20', ['home']],
    [':id home', []],
    ['', ['users.show', 'home']],
  ] as const
  for (const [filter, expected] of filters) {
    const { text } = await get(`/svc-routes/list?q=${filter.replaceAll(' ', '+')}`)
    assert.deepEqual(rows(text).map(([name]) => name), expected, filter)
  }
  const { text } = await get('/svc-routes/list?q=%22%3E%3Cscript%3E')
  assert.match(text, /value="&quot;&gt;&lt;script&gt;"/)
})

test('the index opens GET routes: by a link, by a form for their parameters, or after confirmation', async (t) => {
  const files = { name: 'files', url: '/files/*path', method: 'GET' }
  const get = await start(t, [user, files, { name: 'save', url: '/save', method: 'POST' }])
  const { text } = await get('/svc-index')
  assert.deepEqual(rows(text).slice(0, 4), [
    ['users.show', 'GET, POST', '/users/:id', 'SVC_MwSession, audit', 'users.js@show', 'Open… Open'],
    ['files', 'GET', '/files/*path', '', 'a.js', 'Open… Open'],
    ['save', 'POST', '/save', '', 'a.js', ''],
    ['svc.index', 'GET', '/svc-index', '', '', 'Open'],
  ])
  assert.match(text, /<a class="button" href="\/svc-index" aria-label="Open svc\.index">/)
  assert.match(text, /<input type="hidden" name="open" value="users\.show">/)
  assert.match(text, /<input name="in\.id" aria-label="id, of users\.show"[^>]* required>/)
  assert.match(text, /<input name="in\.path"(?![^>]*required)[^>]*>/)
  assert.match(text, /Stops the server\. <a href="\/svc-stop">/)
  assert.doesNotMatch(text, /svc-login"/)
})

test('a link of the index leads to this host whatever the pattern looks like', async (t) => {
  const get = await start(t, [{ name: 'odd', url: '/\\example.com/"><b>', method: 'GET' }])
  const { text } = await get('/svc-index?q=odd')
  assert.match(text, /href="\/%5Cexample\.com\/%22%3E%3Cb%3E"/)
  assert.match(text, /<code>\/\\example\.com\/&quot;&gt;&lt;b&gt;<\/code>/)
})

test('the index redirects to the path of a route with the typed parameters', async (t) => {
  const get = await start(t, [user, { name: 'files', url: '/files/*path' }])
  const answers = [
    ['open=users.show&in.id=a+b%2Fc', '/users/a%20b%2Fc'],
    ['open=users.show&in.id=%2F%2Fexample.com', '/users/%2F%2Fexample.com'],
    ['open=files&in.path=a%2Fb', '/files/a/b'],
    ['open=files', '/files/'],
  ]
  for (const [query, location] of answers) {
    const answer = await get(`/svc-index?${query}`)
    assert.equal(answer.status, 302)
    assert.equal(answer.headers.location, location)
  }
})

test('the index refuses what it cannot open', async (t) => {
  const get = await start(t, [user, { name: 'all', url: '/*all' }, { name: 'any', url: '/:any' }])
  const refusals = [
    ['open=users.show', /parameter \\?"id\\?": it is empty/],
    ['open=users.show&in.id=..', /segment \.\./],
    ['open=all&in.all=%2Fevil.example', /parameter \\?"all\\?": it begins with an empty segment/],
    ['open=all&in.all=svc-index', /Cannot open route \\?"all\\?" this way: its path is a panel path/],
    ['open=any&in.any=svc-index', /Cannot open route \\?"any\\?" this way: its path is a panel path/],
    ['open=nobody', /Cannot open route \\?"nobody\\?": there is no route of this name/],
    ['open=svc.stop', /Cannot open route \\?"svc\.stop\\?" this way: it has no parameters/],
  ] as const
  for (const [query, message] of refusals) {
    const { status, text, headers } = await get(`/svc-index?${query}`)
    assert.equal(status, 400, query)
    assert.equal(headers.location, undefined)
    assert.match(text.replaceAll('&quot;', '"'), message)
  }
})

test('a page has 200 of 10,000 routes, and links to the others', async (t) => {
  const many = Array.from({ length: 10_000 }, (_, at) => ({ name: `r${at}`, url: `/r/${at}/:id`, method: 'GET' }))
  const get = await start(t, many)
  const cases = [
    ['', 'r0', 200, '1 to 200 of 10000', ['2']],
    ['page=2', 'r200', 200, '201 to 400 of 10000', ['1', '3']],
    ['page=50', 'r9800', 200, '9801 to 10000 of 10000', ['49']],
    ['page=51', 'r9800', 200, '9801 to 10000 of 10000', ['49']],
    ['page=0', 'r0', 200, '1 to 200 of 10000', ['2']],
    ['page=x', 'r0', 200, '1 to 200 of 10000', ['2']],
    ['page=1.5', 'r0', 200, '1 to 200 of 10000', ['2']],
  ] as const
  for (const [query, first, count, pages, neighbours] of cases) {
    const { text } = await get(`/svc-routes/list?${query}`)
    const found = rows(text)
    assert.equal(found[0]?.[0], first, query)
    assert.equal(found.length, count)
    assert.ok(text.includes(pages), query)
    const links = text.matchAll(/rel="\w+" href="\/svc-routes\/list\?page=(\d+)"/g)
    assert.deepEqual([...links].map((link) => link[1]), neighbours)
    assert.ok(text.length < 130_000, `${text.length}`)
  }
  const index = await get('/svc-index?q=r9&page=2')
  assert.match(index.text, /1111 of 10005 routes/)
  assert.match(index.text, /rel="next" href="\/svc-index\?q=r9&amp;page=3"/)
})

test('the script of the page gets only the table', async (t) => {
  const get = await start(t, [user])
  for (const path of ['/svc-routes/list', '/svc-routes/listall', '/svc-index']) {
    const { text } = await get(`${path}?part=results&q=users`)
    assert.match(text, /^<div id="results" data-count="1 of \d routes?">/)
    assert.doesNotMatch(text, /<style|<script|<html/)
    assert.equal(rows(text).length, 1)
  }
})
