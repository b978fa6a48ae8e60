// `schema.check(value)`: a plain value against a schema, without a request.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { StandardSchema } from 'svc'
import { fields } from '../../lib/validation/fields.ts'
import { startForms } from './validate-application.ts'

const { text, integer, boolean, list, object, file } = fields
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

describe('schema.check', () => {
  const schema = fields({
    title: text({ max: 5 }),
    size: integer({ min: 1 }).default(1),
    done: boolean().optional(),
    lines: list(object({ name: text() })).optional(),
  })

  it('returns the values, without what the schema does not name', () => {
    const result = schema.check({ title: ' Milk ', lines: [{ name: 'a', x: 1 }], x: 1, __proto__: { done: true } })
    assert.ok(result.ok)
    assert.deepEqual(plain(result.value), { title: 'Milk', size: 1, lines: [{ name: 'a' }] })
    assert.equal(Object.getPrototypeOf(result.value), null)
  })

  it('returns English texts by path, in an object without prototype', () => {
    const result = schema.check({ title: 'Butter', size: '2', done: 'on', lines: [{ name: 'a' }, {}] })
    assert.ok(!result.ok)
    assert.deepEqual(plain(result), {
      ok: false,
      errors: {
        title: ['Must have at most 5 characters'],
        size: ['Must be a whole number'],
        done: ['Must be yes or no'],
        'lines.1.name': ['Required'],
      },
    })
    assert.equal(Object.getPrototypeOf(result.errors), null)
  })

  it('returns the errors that a request gets', async (t) => {
    const definition = "{ name: fields.text({ max: 3 }), tags: fields.list(fields.integer(), { min: 1 }) }"
    const { post } = await startForms(t, {
      'routes/b.json': [{ name: 'b', method: 'POST', url: '/b', action: 'b.mjs' }],
      'b.mjs': `import { fields } from 'svc'\nconst schema = fields(${definition})\nexport default (ctx) => ctx.validate(schema)\n`,
    })
    const same = fields({ name: text({ max: 3 }), tags: list(integer(), { min: 1 }) })
    for (const value of [{}, { name: 'long', tags: [] }, { name: null, tags: ['x', 1, 1.5] }, [], 'x', null]) {
      const result = same.check(value)
      assert.ok(!result.ok)
      const answer = await post('/b', JSON.stringify(value), { headers: { 'content-type': 'application/json' } })
      assert.deepEqual(answer.json(), { error: 'invalid', errors: plain(result.errors) })
    }
  })

  it('refuses values that JSON has not, and everything for a file', () => {
    const cases: readonly (readonly [value: unknown, path: string])[] = [
      [undefined, ''], [() => 1, ''], [Symbol('s'), ''], [5n, ''],
      [{ title: new String('a') }, 'title'], [{ title: 'a', size: NaN }, 'size'], [{ title: 'a', size: 5n }, 'size'],
      [{ title: 'a', lines: new Map([[0, { name: 'a' }]]) }, 'lines'], [{ title: 'a', lines: new Set() }, 'lines'],
      [{ title: 'a', lines: { length: 1, 0: { name: 'a' } } }, 'lines'], [{ title: 'a', lines: [, { name: 'a' }] }, 'lines.0'],
    ]
    for (const [value, path] of cases) {
      const result = schema.check(value)
      assert.deepEqual(result.ok ? [] : Object.keys(result.errors), [path])
    }
    for (const value of ['/etc/passwd', { name: 'a', filename: 'a', type: 'image/png', size: 1, path: '/etc/passwd' }]) {
      assert.deepEqual(plain(fields({ a: file() }).check({ a: value })), { ok: false, errors: { a: ['Must be a file'] } })
    }
    const own = { title: 'a', lines: [] as unknown[] }
    own.lines.push(own) // An object that contains itself.
    assert.deepEqual(plain(schema.check(own)), { ok: false, errors: { 'lines.0.name': ['Required'] } })
  })
})

describe('schema["~standard"]', () => {
  const standard = fields({
    'a.b': text(),
    a: object({ b: integer().optional() }).optional(),
    lines: list(object({ '0': text(), tags: list(integer()).optional() })).optional(),
  })['~standard']
  const { validate } = standard

  it('is a Standard Schema of version 1', () => {
    assert.deepEqual({ ...standard, validate: 0 }, { version: 1, vendor: 'svc', validate: 0 })
    assert.deepEqual(plain(validate({ 'a.b': ' x ', unknown: 1 })), { value: { 'a.b': 'x' } })
  })

  it('returns issues with their text and the keys of their path', () => {
    const result = validate({ a: { b: 'x' }, lines: [{ 0: 'x', tags: [1, 'y'] }, { tags: 1 }, 7] })
    assert.ok('issues' in result)
    assert.deepEqual(result.issues, [
      { message: 'Required', path: ['a.b'] },
      { message: 'Must be a whole number', path: ['a', 'b'] },
      { message: 'Must be a whole number', path: ['lines', 0, 'tags', 1] },
      { message: 'Required', path: ['lines', 1, '0'] },
      { message: 'Must be a list', path: ['lines', 1, 'tags'] },
      { message: 'Must be an object', path: ['lines', 2] },
    ])
    assert.deepEqual(validate('x'), { issues: [{ message: 'Must be an object', path: [] }] })
  })

  it('is what other libraries take', async () => {
    /** As adapters do (https://standardschema.dev). */
    const parse = async (schema: StandardSchema, input: unknown): Promise<unknown> => {
      const result = (await schema['~standard'].validate(input)) as { value?: unknown; issues?: readonly { message: string }[] }
      if (result.issues !== undefined) throw new Error(JSON.stringify(result.issues))
      return result.value
    }
    const schema = fields({ a: integer() })
    assert.deepEqual(plain(await parse(schema, { a: 1 })), { a: 1 })
    await assert.rejects(parse(schema, { a: 'x' }), /"path":\["a"\]/)
  })
})
