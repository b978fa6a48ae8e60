// What generators of clients and contract tests need of a description.
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { startApplication } from '../support/application.ts'
import { request } from '../support/request.ts'

type Members = Readonly<Record<string, unknown>>
interface Operation {
  readonly requestBody: { readonly content: Members }
  readonly responses: Readonly<Record<string, { readonly content?: Members }>>
}
interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, { readonly properties: Members }>> }
}

const module = `import { action, fields } from 'svc'
const note = fields({ text: fields.text(), place: fields.object({ city: fields.text() }) })
const wrong = fields({ why: fields.text() })
export default action({ body: note, answer: { 200: note, 303: null, 422: wrong } }, (ctx, { body }) => body)
`
const files = {
  'notes.mjs': module,
  'routes/notes.json': [
    { name: 'note', method: 'POST', url: '/notes', action: 'notes.mjs', middleware: 'SVC_MwSession' },
    { name: 'guarded', method: 'POST', url: '/guarded', action: 'notes.mjs', middleware: 'SVC_MwCsrfCheck' },
    { name: 'openapi', method: 'GET', url: '/openapi.json', action: 'svc:openapi', hidden: true },
  ],
}
/** Input needs a character where a text is required; a reply may have an empty one. */
const note = (text: Members) => ({
  type: 'object',
  properties: { text, place: { type: 'object', properties: { city: text }, required: ['city'] } },
  required: ['text', 'place'],
})

describe('the description, for generators', () => {
  it('leaves out that other members are allowed, which would become an index signature', async (t) => {
    const { operation } = await start(t)
    const sent = { 'application/json': { schema: note({ type: 'string', minLength: 1 }) } }
    const replied = { 'application/json': { schema: note({ type: 'string' }) } }
    assert.deepEqual([operation.requestBody.content, operation.responses['200']?.content], [sent, replied])
  })

  it('has the declared reply of a status where the server has one too', async (t) => {
    const { operation } = await start(t)
    const wrong = { type: 'object', properties: { why: { type: 'string' } }, required: ['why'] }
    assert.deepEqual(operation.responses['422'], {
      description: 'Unprocessable Entity', content: { 'application/json': { schema: wrong } },
    })
    assert.deepEqual(operation.responses['303'], { description: 'See Other' })
  })

  it('names every member of the refusal of a CSRF token', async (t) => {
    const { description, url } = await start(t)
    const refused = await request(`${url}/guarded`, { body: 'text=a' })
    const named = description.components.schemas['Error']?.properties ?? {}
    assert.equal(refused.status, 403)
    assert.deepEqual(Object.keys(refused.json() as object).filter((name) => !(name in named)), [])
  })
})

async function start(t: Pick<TestContext, 'after'>) {
  const { url } = await startApplication(t, files)
  const description = (await request(`${url}/openapi.json`)).json() as Description
  const operation = description.paths['/notes']?.['post']
  assert.ok(operation)
  return { description, operation, url }
}
