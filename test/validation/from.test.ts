// `ctx.validate` with `from`: the query and the parameters of a path.
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { request } from '../support/request.ts'
import { startForms } from './validate-application.ts'

const actions = `import { fields } from 'svc'
const list = fields({
  q: fields.text({ max: 5 }).optional(),
  page: fields.integer({ min: 1 }).default(1),
  tags: fields.list(fields.text()),
  done: fields.boolean(),
  late: fields.boolean().optional(),
  open: fields.boolean().default(true),
  since: fields.date().optional(),
  near: fields.object({ lat: fields.number() }).optional(),
  rows: fields.list(fields.object({ a: fields.integer() })).optional(),
  code: fields.secret().optional(),
})
const item = fields({ id: fields.integer({ min: 1 }), at: fields.date().optional() })
const other = (value) => ({ '~standard': { version: 1, vendor: 'test', validate: (input) => value(input) } })
const seen = other((input) => ({ value: { prototype: Object.getPrototypeOf(input), entries: Object.entries(input) } }))
const never = other(() => ({ issues: [{ message: 'wrong', path: ['a'] }] }))
export const query = (ctx) => ctx.validate(list, { from: 'query' })
export const params = (ctx) => ctx.validate(item, { from: 'params' })
export const both = async (ctx) => ({ ...(await ctx.validate(item, { from: 'params' })), ...(await ctx.validate(list)) })
export const seenQuery = (ctx) => ctx.validate(seen, { from: 'query' })
export const seenParams = (ctx) => ctx.validate(seen, { from: 'params' })
export const neverQuery = (ctx) => ctx.validate(never, { from: 'query' })
export const neverParams = (ctx) => ctx.validate(never, { from: 'params' })
export const body = (ctx) => ctx.validate(list, { from: undefined })
export const wrong = (ctx) => ctx.validate(list, { from: 'cookies' })
export const again = async (ctx) => {
  try {
    return await ctx.validate(list, { from: 'query' })
  } catch (error) {
    return ctx.view('search.html', {}, error.status)
  }
}
`
const routes = [
  { name: 'l.get', method: 'GET', url: '/l', action: 'f.mjs@query', middleware: 'SVC_MwSession' },
  { name: 'l.post', method: 'POST', url: '/l', action: 'f.mjs@query', middleware: 'SVC_MwSession' },
  { name: 'i', method: 'GET', url: '/i/:id', action: 'f.mjs@params' },
  { name: 'i.post', method: 'POST', url: '/i/:id', action: 'f.mjs@both' },
  { name: 'i.at', method: 'GET', url: '/i/:id/:at', action: 'f.mjs@params' },
  ...['seenQuery', 'seenParams', 'neverQuery', 'neverParams', 'wrong', 'again', 'body'].map((name) => {
    return { name: `f.${name}`, method: 'GET', url: `/${name}/:id`, action: `f.mjs@${name}` }
  }),
]
const files = {
  'f.mjs': actions,
  'routes/f.json': routes,
  'search.html': "{{ old('q') }} {{ old('page') }} {{ old('code', 'none') }} {{ errorsOf('page').join() }}\n",
}

const start = (t: TestContext) => startForms(t, files)
const json = { accept: 'application/json' }
const rest = { page: 1, tags: [], done: false, open: true }

describe('ctx.validate from the query', () => {
  it('converts texts as in a form', async (t) => {
    const { app } = await start(t)
    const rows: readonly (readonly [query: string, values: object])[] = [
      ['', rest],
      ['?', rest],
      ['?q=+a%20b+&page=2&unknown=1', { ...rest, q: 'a b', page: 2 }],
      ['?q=&page=&since=', { ...rest }],
      ['?tags=a', { ...rest, tags: ['a'] }],
      ['?tags=a&tags=&tags=b', { ...rest, tags: ['a', 'b'] }],
      ['?done', rest],
      ['?done=1&late=no&open=off', { ...rest, done: true, late: false, open: false }],
      ['?done=0&done=1', { ...rest, done: true }],
      ['?since=2024-02-29&near.lat=1.5&rows.3.a=2&rows.1.a=1', { ...rest, since: '2024-02-29', near: { lat: 1.5 }, rows: [{ a: 1 }, { a: 2 }] }],
    ]
    for (const [query, values] of rows) {
      for (const method of ['GET', 'POST']) {
        const answer = await request(`${app.url}/l${query}`, { method, headers: json })
        assert.deepEqual([answer.status, answer.json()], [200, values], `${method} ${query}`)
      }
      const head = await request(`${app.url}/l${query}`, { method: 'HEAD' })
      assert.equal(head.status, 200)
    }
  })

  it('refuses wrong input with 422 and never redirects', async (t) => {
    const { app, cookie, post } = await start(t)
    const rows: readonly (readonly [query: string, errors: object])[] = [
      ['?page=0', { page: ['Must be 1 or more'] }],
      ['?page=1&page=2', { page: ['Must be a single value'] }],
      ['?q=a&q=b&done=maybe', { q: ['Must be a single value'], done: ['Must be yes or no'] }],
      [`?${'q=a&'.repeat(1000)}`, { q: ['Must be a single value'] }],
      ['?near.lat=x&rows.2.a=y&rows=1', { 'near.lat': ['Must be a number'], 'rows.2.a': ['Must be a whole number'] }],
      ['?page=%00', { page: ['Must be a whole number'] }],
    ]
    for (const [query, errors] of rows) {
      const answer = await request(`${app.url}/l${query}`, { headers: json })
      assert.deepEqual([answer.status, answer.json()], [422, { error: 'invalid', errors }], query)
      assert.equal((await request(`${app.url}/l${query}`, { method: 'HEAD' })).status, 422)
      const headers = { cookie, referer: `${app.url}/notes/new` }
      assert.equal((await request(`${app.url}/l${query}`, { headers })).status, 422)
      const posted = await post(`/l${query}`, 'title=x', { headers })
      assert.deepEqual([posted.status, posted.headers['location']], [422, undefined])
      assert.deepEqual((await request(`${app.url}/bag`, { headers: { cookie } })).json(), {})
    }
  })

  it('lets an action show what was typed, without secrets', async (t) => {
    const { app } = await start(t)
    const answer = await request(`${app.url}/again/1?q=milk&page=x&code=1234`)
    assert.deepEqual([answer.status, answer.text], [422, 'milk x none Must be a whole number\n'])
  })

  it('gives other schemas an object without prototype', async (t) => {
    const { app } = await start(t)
    const seen = async (query: string) => (await request(`${app.url}/seenQuery/1${query}`)).json()
    assert.deepEqual(await seen(''), { prototype: null, entries: [] })
    assert.deepEqual(await seen('?a=1&b=&a=2&__proto__=c'), { prototype: null, entries: [['a', ['1', '2']], ['b', ''], ['__proto__', 'c']] })
    const answer = await request(`${app.url}/neverQuery/1`, { headers: json })
    assert.deepEqual([answer.status, answer.json()], [422, { error: 'invalid', errors: { a: ['wrong'] } }])
  })
})

describe('ctx.validate from the parameters', () => {
  it('converts them', async (t) => {
    const { app } = await start(t)
    assert.deepEqual((await request(`${app.url}/i/7?id=8`)).json(), { id: 7 })
    assert.deepEqual((await request(`${app.url}/i/%37/2024-02-29`)).json(), { id: 7, at: '2024-02-29' })
    assert.equal((await request(`${app.url}/i/7`, { method: 'HEAD' })).status, 200)
  })

  it('can be combined with a body', async (t) => {
    const { app } = await start(t)
    const body = '{"tags":[],"done":true}'
    const answer = await request(`${app.url}/i/7`, { body, headers: { 'content-type': 'application/json' } })
    assert.deepEqual(answer.json(), { ...rest, id: 7, done: true })
  })

  it('answers wrong ones as an unknown path', async (t) => {
    const { app, cookie } = await start(t)
    for (const path of ['/i/0', '/i/x', '/i/1.5', '/i/9007199254740993', '/i/7/2023-02-29', '/i/%00', '/neverParams/1']) {
      const answer = await request(app.url + path, { headers: { ...json, cookie, referer: `${app.url}/notes/new` } })
      assert.deepEqual([answer.status, answer.json()], [404, { error: 'not_found', detail: `Nothing is here: ${path}` }])
    }
    assert.equal((await request(`${app.url}/i/x`, { method: 'HEAD' })).status, 404)
    assert.equal(app.lines().some((line) => / WARN | ERROR/.test(line)), false)
  })

  it('gives other schemas an object of texts without prototype', async (t) => {
    const { app } = await start(t)
    assert.deepEqual((await request(`${app.url}/seenParams/a%2Fb`)).json(), { prototype: null, entries: [['id', 'a/b']] })
  })
})

describe('ctx.validate from', () => {
  it('another place is a mistake that names the three', async (t) => {
    const { app } = await start(t)
    assert.equal((await request(`${app.url}/wrong/1`)).status, 500)
    assert.match(app.lines().join('\n'), /Cannot validate: from must be 'body', 'query' or 'params': it is 'cookies'/)
  })

  it('nothing is from the body', async (t) => {
    const { app } = await start(t)
    assert.deepEqual((await request(`${app.url}/body/1?page=7`)).json(), rest)
  })
})
