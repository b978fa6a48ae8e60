// `action(schemas, run)` with real requests, and its declarations.
import assert from 'node:assert/strict'
import { describe, it, test } from 'node:test'
import type { ActionSchemas, Context } from 'svc'
import { action, fields } from '../../lib/index.ts'
import { answersOf, schemasOf } from '../../lib/validation/action.ts'
import { startApplication } from '../support/application.ts'
import { request, type Question } from '../support/request.ts'

const json = { 'content-type': 'application/json' }

const files = {
  'routes/a.json': [
    { name: 'all', url: '/all/:id', method: 'POST', action: 'a.mjs' },
    { name: 'none', url: '/none/:id', action: 'a.mjs@none' },
    { name: 'page', url: '/page', method: 'GET', action: 'a.mjs@page', middleware: 'SVC_MwSession' },
    { name: 'save', url: '/page', method: 'POST', action: 'a.mjs@save', middleware: 'SVC_MwSession' },
  ],
  'a.mjs': `
    import { action, fields } from 'svc'
    const schemas = {
      params: fields({ id: fields.integer() }),
      query: fields({ page: fields.integer().default(1) }),
      body: fields({ title: fields.text() }),
    }
    export default action(schemas, (ctx, input) => ({ ...input, path: ctx.path }))
    export const none = action({}, ({ json }, input) => json(input, 201))
    export const page = ({ errorsOf, session }) => {
      session.set('begun', true)
      return { second: errorsOf('title', 'second') }
    }
    export const save = action({ body: schemas.body, form: 'second' }, () => 'saved')
  `,
}

test('runs with the checked input, and refuses wrong parameters before the query, and both before the body', async (t) => {
  const { url } = await startApplication(t, files)
  const rows: readonly (readonly [target: string, question: Question, status: number, answer: unknown])[] = [
    ['/all/7?page=2', { headers: json, body: '{"title":" Milk ","more":1}' }, 200, { params: { id: 7 }, query: { page: 2 }, body: { title: 'Milk' }, path: '/all/7' }],
    ['/all/7', { body: 'title=Milk', headers: { 'content-type': 'application/x-www-form-urlencoded' } }, 200, { params: { id: 7 }, query: { page: 1 }, body: { title: 'Milk' }, path: '/all/7' }],
    ['/all/x?page=x', { headers: json, body: '{' }, 404, { error: 'not_found', detail: 'Nothing is here: /all/x' }],
    ['/all/7?page=x', { headers: json, body: '{' }, 422, { error: 'invalid', errors: { page: ['Must be a whole number'] } }],
    ['/all/7', { headers: json, body: '{"title":""}' }, 422, { error: 'invalid', errors: { title: ['Required'] } }],
    ['/none/x?page=x', {}, 201, {}],
  ]
  for (const [target, question, status, answer] of rows) {
    const sent = await request(url + target, question)
    assert.deepEqual([sent.status, sent.json()], [status, answer], target)
  }
})

test('sends a wrong form back to its page, with the bag that the action names', async (t) => {
  const { url } = await startApplication(t, files)
  const first = await request(`${url}/page`)
  const cookie = first.headers['set-cookie']?.[0]?.split(';', 1)[0] ?? ''
  const headers = { 'content-type': 'application/x-www-form-urlencoded', referer: `${url}/page`, accept: 'text/html', cookie }
  const refused = await request(`${url}/page`, { body: 'title=', headers })
  assert.deepEqual([refused.status, refused.headers['location']], [303, '/page'])
  assert.deepEqual((await request(`${url}/page`, { headers: { cookie } })).json(), { second: ['Required'] })
})

describe('action', () => {
  const schema = fields({ id: fields.integer() })
  const run = (): string => ''

  it('returns a function with its schemas', () => {
    const declared = action({ body: schema, summary: 'Saves' }, run)
    assert.equal(declared.schemas.summary, 'Saves')
    assert.equal(schemasOf(declared)?.body, schema)
    assert.deepEqual([schemasOf(run), schemasOf(undefined), schemasOf(Object.assign(() => '', { schemas: { bdy: schema } }))], [undefined, undefined, undefined])
  })

  it('has replies by status', () => {
    const text = fields.text()
    const rows: readonly (readonly [answer: ActionSchemas['answer'], replies: [number, unknown][]])[] = [
      [undefined, []],
      [schema, [[200, schema]]],
      [text, [[200, text]]],
      [{ 201: schema, 204: null }, [[201, schema], [204, null]]],
    ]
    for (const [answer, replies] of rows) assert.deepEqual([...answersOf(answer === undefined ? {} : { answer })], replies)
  })

  it('refuses a wrong declaration, and names what is wrong', () => {
    const rows: readonly (readonly [schemas: unknown, run: unknown, message: RegExp])[] = [
      [undefined, run, /: pass an object such as \{ body: fields\(\{\.\.\.\}\) \}: it is undefined$/],
      [run, undefined, /pass an object such as/],
      [{}, undefined, /pass the function to run after the schemas: it is undefined$/],
      [{ bdy: schema }, run, /unknown member 'bdy': did you mean body\?$/],
      [{ body: { id: fields.integer() } }, run, /body must be fields\(\{\.\.\.\}\) or a Standard Schema: it is /],
      [{ params: fields.integer() }, run, /params must be/],
      [{ summary: 7 }, run, /summary must be a text$/],
      [{ answer: 'text' }, run, /answer must be a schema, or schemas by status: it is 'text'$/],
      [{ answer: { 99: schema } }, run, /answer must have statuses from 200 to 599: one is '99'$/],
      [{ answer: { 200: 'text' } }, run, /answer 200 must be a schema, or null for a reply without content: it is 'text'$/],
    ]
    for (const [schemas, given, message] of rows) {
      assert.throws(() => action(schemas as ActionSchemas, given as (ctx: Context) => unknown), { name: 'TypeError', message })
    }
  })
})
