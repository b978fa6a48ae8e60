// `ctx.validate` with a real library of Standard Schema. It lies in `test/standard-schema`, with a lock file of its own.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { before, describe, it } from 'node:test'
import { request } from '../support/request.ts'
import { startForms } from '../validation/validate-application.ts'

const library = new URL('../standard-schema/node_modules/valibot/dist/index.mjs', import.meta.url)
const action = `import * as v from ${JSON.stringify(library.href)}
const schema = v.object({
  title: v.pipe(v.string(), v.trim(), v.minLength(1, 'Needs a title'), v.maxLength(20)),
  size: v.optional(v.pipe(v.unknown(), v.transform(Number), v.integer('Needs a whole number'))),
  tags: v.optional(v.union([v.array(v.string()), v.pipe(v.string(), v.transform((tag) => [tag]))]), []),
  address: v.optional(v.object({ city: v.pipe(v.string(), v.minLength(2, 'Too short')) })),
  picture: v.optional(v.custom((file) => file.type === 'image/png', 'Needs a PNG')),
})
const checked = v.objectAsync({ name: v.pipeAsync(v.string(), v.checkAsync(async (name) => name !== 'taken', 'Is taken')) })
export const save = async (ctx) => ctx.validate(schema)
export const taken = async (ctx) => ctx.validate(checked)
`
const files = {
  'valibot.mjs': action,
  'routes/v.json': [
    { name: 'v.save', method: 'POST', url: '/v', action: 'valibot.mjs@save', middleware: 'SVC_MwSession' },
    { name: 'v.taken', method: 'POST', url: '/taken', action: 'valibot.mjs@taken' },
  ],
}

describe('valibot', () => {
  before(() => {
    assert.ok(existsSync(library), 'valibot is not installed: run `npm ci --prefix test/standard-schema`')
  })

  it('reads forms and JSON', async (t) => {
    const { post } = await startForms(t, files)
    assert.deepEqual((await post('/v', 'title=+Milk&size=2&tags=a&tags=b')).json(), { title: 'Milk', size: 2, tags: ['a', 'b'] })
    const json = { 'content-type': 'application/json' }
    assert.deepEqual((await post('/v', '{"title":"Milk","address":{"city":"Oslo"}}', { headers: json })).json(), {
      title: 'Milk', tags: [], address: { city: 'Oslo' },
    })
    const wrong = await post('/v', '{"title":"","size":1.5,"address":{"city":"x"},"tags":1}', { headers: json })
    assert.equal(wrong.status, 422)
    const { errors } = wrong.json() as { errors: Record<string, string[]> }
    assert.deepEqual(Object.keys(errors).sort(), ['address.city', 'size', 'tags', 'title'])
    assert.deepEqual([errors['title'], errors['size'], errors['address.city']], [['Needs a title'], ['Needs a whole number'], ['Too short']])
  })

  it('sends a form back to its page', async (t) => {
    const { post, open } = await startForms(t, files)
    assert.equal((await post('/v', 'title=&tags=a')).status, 303)
    assert.match((await open('/notes/new')).text, /<p id="title-error">Needs a title<\/p>/)
  })

  it('checks files, and what takes time', async (t) => {
    const { post, app } = await startForms(t, files)
    const part = (type: string) => `--b\r\nContent-Disposition: form-data; name="title"\r\n\r\nx\r\n--b\r\nContent-Disposition: form-data; name="picture"; filename="a.png"\r\nContent-Type: ${type}\r\n\r\nx\r\n--b--\r\n`
    const headers = { 'content-type': 'multipart/form-data; boundary=b', accept: 'application/json' }
    assert.equal((await post('/v', part('image/png'), { headers })).status, 200)
    assert.deepEqual((await post('/v', part('text/html'), { headers })).json(), { error: 'invalid', errors: { picture: ['Needs a PNG'] } })
    const ask = (name: string) => request(`${app.url}/taken`, { body: JSON.stringify({ name }), headers: { 'content-type': 'application/json' } })
    assert.deepEqual((await ask('taken')).json(), { error: 'invalid', errors: { name: ['Is taken'] } })
    assert.deepEqual((await ask('free')).json(), { name: 'free' })
  })
})
