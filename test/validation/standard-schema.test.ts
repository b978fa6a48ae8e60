// Third-party schemas: anything with `~standard` of version 1. `test/external/standard-schema.test.ts` has a real one.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { request } from '../support/request.ts'
import { formType, startForms } from './validate-application.ts'

const json = 'application/json'
const schemas = `
const make = (validate, more = {}) => ({ '~standard': { version: 1, vendor: 'test', validate, ...more } })
const describe = (value) => value?.constructor === undefined && typeof value === 'object'
  ? { prototype: Object.getPrototypeOf(value), entries: Object.entries(value).map(([k, v]) => [k, typeof v === 'object' && !Array.isArray(v) ? v.filename : v]) }
  : value
export default {
  sync: make((value) => ({ value: describe(value) })),
  async: make(async (value) => ({ value: describe(value) })),
  called: Object.assign(() => 1, make((value) => ({ value: 'of a function' }))),
  noIssues: make((value) => ({ value: 1, issues: undefined })),
  issues: make(() => ({ issues: [
    { message: 'whole' }, { message: 'empty path', path: [] }, { message: 'keys', path: ['a', 0, 'b'] }, { message: 'objects', path: [{ key: 'a' }, { key: 0 }, { key: 'b' }] },
    { message: 'symbol', path: [Symbol('s')] }, { message: 'odd', path: ['__proto__'] }, { message: 'more', path: ['constructor'] },
  ] })),
  many: make(() => ({ issues: Array.from({ length: 5000 }, (_, at) => ({ message: 'm', path: [at] })) })),
  title: make((value) => typeof value.title === 'string' && value.title !== '' ? { value } : { issues: [{ message: 'Needs a title', path: ['title'] }] }),
  throws: make(() => { throw new Error('the schema broke') }),
  rejects: make(async () => { throw new Error('the schema broke later') }),
  nothing: make(() => undefined),
  old: make(() => ({ value: 1 }), { version: 2 }),
  idle: make('no function'),
  null: null,
}
`

describe('a third-party schema', () => {
  it('gets a form as an object without prototype: strings, lists for repeated names, files', async (t) => {
    const { post } = await startForms(t, { 'standard.mjs': schemas })
    const form = 'title=a&tags=b&tags=c&__proto__=d&constructor=e&empty='
    const entries = [['title', 'a'], ['tags', ['b', 'c']], ['__proto__', 'd'], ['constructor', 'e'], ['empty', '']]
    for (const name of ['sync', 'async']) {
      // Its own `constructor` hides its class, which would be shown otherwise.
      assert.deepEqual((await post(`/standard/${name}`, 'title=a&tags=b&tags=c&__proto__=d')).json(), {
        prototype: null,
        entries: entries.slice(0, 3),
      })
    }
    assert.deepEqual((await post('/standard/title', form)).json(), JSON.parse('{"title":"a","tags":["b","c"],"__proto__":"d","constructor":"e","empty":""}'))
    const part = (name: string, more: string, value: string) => `--b\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`
    const body = `${part('a', '; filename="x.png"', 'x')}${part('b', '', 'y')}${part('b', '; filename="z.png"', 'z')}--b--\r\n`
    const sent = await post('/standard/sync', body, { headers: { 'content-type': 'multipart/form-data; boundary=b' } })
    const [b, a] = (sent.json() as { entries: [string, unknown][] }).entries
    assert.deepEqual(a, ['a', 'x.png'])
    assert.equal(b?.[0], 'b')
    assert.deepEqual((b?.[1] as unknown[])[0], 'y')
    assert.equal(((b?.[1] as unknown[])[1] as { filename: string }).filename, 'z.png')
  })

  it('gets a JSON body as it is', async (t) => {
    const { app } = await startForms(t, { 'standard.mjs': schemas })
    for (const body of ['[1,"2"]', '"text"', 'null', '1', '{"a":{"b":[]}}']) {
      const answer = await request(`${app.url}/standard/sync`, { body, headers: { 'content-type': json } })
      if (body === 'null') assert.equal(answer.status, 500) // The action returned null, which is its mistake.
      else if (body === '1') assert.equal(answer.status, 500)
      else if (body === '"text"') assert.equal(answer.text, 'text')
      else assert.deepEqual(answer.json(), JSON.parse(body))
    }
  })

  it('may be a function, and may return no issues', async (t) => {
    const { post } = await startForms(t, { 'standard.mjs': schemas })
    assert.equal((await post('/standard/called', 'a=b')).text, 'of a function')
    assert.equal((await post('/standard/noIssues', 'a=b')).status, 500) // It returned the number 1.
  })

  it('reports issues by paths of keys or of objects with a key', async (t) => {
    const { app } = await startForms(t, { 'standard.mjs': schemas })
    const answer = await request(`${app.url}/standard/issues`, { body: '{}', headers: { 'content-type': json } })
    assert.equal(answer.status, 422)
    const expected = '{"":["whole","empty path"],"a.0.b":["keys","objects"],"Symbol(s)":["symbol"],"__proto__":["odd"],"constructor":["more"]}'
    assert.equal(answer.text, `{"error":"invalid","errors":${expected}}`)
    const many = await request(`${app.url}/standard/many`, { body: '{}', headers: { 'content-type': json } })
    assert.equal(Object.keys((many.json() as { errors: object }).errors).length, 1000)
  })

  it('sends a form back to its page as well', async (t) => {
    const { post, open } = await startForms(t, {
      'standard.mjs': schemas,
      'routes/s.json': [{ name: 's', method: 'POST', url: '/s/:name', action: 'a.mjs@standard', middleware: 'SVC_MwSession' }],
    })
    assert.equal((await post('/s/title', 'title=&tags=b&password=x')).status, 303)
    const { text } = await open('/notes/new')
    assert.match(text, /<p id="title-error">Needs a title<\/p>[^]*name="tags" value="b"[^]*value="none"/)
  })

  it('that fails is a 500, and the log has the reason', async (t) => {
    const { post, app } = await startForms(t, { 'standard.mjs': schemas })
    const reasons: Readonly<Record<string, RegExp>> = {
      throws: /the schema broke/,
      rejects: /the schema broke later/,
      nothing: /The schema returned no Standard Schema result: it is undefined/,
      old: /Cannot validate: pass fields\(\{\.\.\.\}\) or a Standard Schema/,
      idle: /Cannot validate: pass/,
      null: /Cannot validate: pass .*: it is null/,
      unknown: /Cannot validate: pass .*: it is undefined/,
    }
    for (const [name, reason] of Object.entries(reasons)) {
      assert.equal((await post(`/standard/${name}`, 'a=b', { headers: { 'content-type': formType } })).status, 500, name)
      assert.match(app.lines().filter((line) => line.includes('ERROR')).at(-1) ?? '', reason, name)
    }
  })
})
