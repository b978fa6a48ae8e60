// `schema.toJsonSchema()`: every kind of field, and that what `check` accepts is valid by it.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fields } from '../../lib/validation/fields.ts'
import type { Field } from '../../lib/validation/fields-field.ts'
import { accepts } from '../support/json-schema.ts'
import { Seeded } from '../support/seeded.ts'
import { makeSchema } from './schema-generator.ts'

const { text, secret, email, url, integer, number, boolean, date, choice, list, object, file } = fields

/** The schema of one field. */
function schemaOf(field: Field): unknown {
  const { properties } = fields({ a: field }).toJsonSchema() as { properties: { a: unknown } }
  return properties.a
}

describe('the JSON Schema of a field', () => {
  const bytes = 'application/octet-stream'
  const rows: readonly (readonly [what: string, field: Field, schema: object])[] = [
    ['text', text(), { type: 'string', minLength: 1 }],
    ['text with lengths', text({ min: 2, max: 5 }), { type: 'string', minLength: 2, maxLength: 5 }],
    ['text, optional', text({ max: 5 }).optional(), { type: ['string', 'null'], maxLength: 5 }],
    ['text, optional with a length', text({ min: 2 }).optional(), { type: ['string', 'null'], minLength: 2 }],
    ['text with a default', text().default(''), { type: ['string', 'null'], default: '' }],
    ['a pattern', text({ pattern: /^\/[a-z]{2}$/ }), { type: 'string', minLength: 1, maxLength: 255, pattern: '^\\/[a-z]{2}$' }],
    ['a pattern with u', text({ pattern: /^\p{L}$/u, max: 9 }), { type: 'string', minLength: 1, maxLength: 9, pattern: '^\\p{L}$' }],
    ...[/^a$/i, /^a$/m, /a.b/s].map((pattern) =>
      [`the pattern ${pattern}, left out`, text({ pattern }), { type: 'string', minLength: 1, maxLength: 255 }] as const),
    ['secret', secret({ min: 8 }), { type: 'string', minLength: 8, writeOnly: true }],
    ['email', email(), { type: 'string', format: 'email', minLength: 1, maxLength: 254 }],
    ['url', url({ max: 80 }), { type: 'string', format: 'uri', minLength: 1, maxLength: 80 }],
    ['integer', integer(), { type: 'integer' }],
    ['integer with bounds', integer({ min: 0, max: 9 }), { type: 'integer', minimum: 0, maximum: 9 }],
    ['number with a bound', number({ max: -0.5 }), { type: 'number', maximum: -0.5 }],
    ['number with a default', number().default(0), { type: ['number', 'null'], default: 0 }],
    ['boolean', boolean(), { type: 'boolean' }],
    ['boolean with a default', boolean().default(false), { type: ['boolean', 'null'], default: false }],
    ['date', date({ min: '2024-01-01', max: '2024-12-31' }), { type: 'string', format: 'date' }],
    ['choice', choice('s', 'm'), { type: 'string', enum: ['s', 'm'] }],
    ['choice with a default', choice('s', 'm').default('s'), { type: ['string', 'null'], enum: ['s', 'm', null], default: 's' }],
    ['file', file(), { contentMediaType: bytes }],
    ['file of one type', file({ types: ['image/png'], maxKb: 2 }), { contentMediaType: 'image/png', maxLength: 2048 }],
    ['file of several types', file({ types: ['image/png', 'image/jpeg'] }), { contentMediaType: bytes }],
    ['file of a range of types', file({ types: ['image/*'] }).optional(), { contentMediaType: bytes }],
    ['list', list(integer()), { type: 'array', maxItems: 1000, items: { type: 'integer' } }],
    ['list with bounds', list(text().optional(), { min: 1, max: 3 }), { type: 'array', minItems: 1, maxItems: 3, items: { type: ['string', 'null'] } }],
    ['list with a default', list(choice('a')).default(['a']), { type: ['array', 'null'], maxItems: 1000, items: { type: 'string', enum: ['a'] }, default: ['a'] }],
    ['object', object({ a: integer(), b: date().optional() }), {
      type: 'object',
      properties: { a: { type: 'integer' }, b: { type: ['string', 'null'], format: 'date' } },
      required: ['a'],
      additionalProperties: true,
    }],
    ['object with nothing required', object({ a: integer().optional() }).default({ a: 1 }), {
      type: ['object', 'null'], properties: { a: { type: ['integer', 'null'] } }, additionalProperties: true, default: { a: 1 },
    }],
  ]
  for (const [what, field, schema] of rows) {
    it(what, () => {
      assert.deepEqual(schemaOf(field), schema)
      assert.deepEqual(schemaOf(list(object({ deep: list(field) }))), {
        type: 'array',
        maxItems: 1000,
        items: {
          type: 'object',
          properties: { deep: { type: 'array', maxItems: 1000, items: schema } },
          required: ['deep'],
          additionalProperties: true,
        },
      })
    })
  }
  it('has a row here for each kind', () => {
    for (const kind of Object.keys(fields)) assert.ok(rows.some(([what]) => what.startsWith(kind)), kind)
  })
})

describe('schema.toJsonSchema', () => {
  it('says which JSON Schema it is, and survives JSON', () => {
    const made = fields({ a: text(), ['__proto__']: list(object({ b: date() })) }).toJsonSchema()
    assert.equal(made['$schema'], 'https://json-schema.org/draft/2020-12/schema')
    assert.deepEqual(made['required'], ['a', '__proto__'])
    assert.deepEqual(Object.keys(made['properties'] as object), ['a', '__proto__'])
    assert.deepEqual(JSON.parse(JSON.stringify(made)), made)
  })

  it('returns a new object each time', () => {
    const schema = fields({ a: choice('a', 'b'), b: list(object({ c: text() })).default([{ c: 'x' }]) })
    const text1 = JSON.stringify(schema.toJsonSchema())
    const { properties } = schema.toJsonSchema() as { properties: { a: { enum: string[] }; b: { default: { c: string }[] } } }
    properties.a.enum.push('c')
    properties.b.default.push({ c: 'y' })
    assert.equal(JSON.stringify(schema.toJsonSchema()), text1)
    assert.deepEqual(schema.check({ a: 'c' }).ok, false)
    assert.equal(JSON.stringify(schema.check({ a: 'a' })), '{"ok":true,"value":{"a":"a","b":[{"c":"x"}]}}')
  })

  it('accepts what check accepts, and mostly refuses what it refuses', () => {
    const seeded = new Seeded(23)
    const seen = { accepted: 0, refusedByBoth: 0, refusedByFields: 0 }
    for (let round = 0; round < 3000; round += 1) {
      const { schema, value } = makeSchema(seeded)
      const jsonSchema = schema.toJsonSchema()
      for (let each = 0; each < 4; each += 1) {
        const sent = value()
        const isValid = accepts(jsonSchema, sent)
        const { ok } = schema.check(sent)
        if (ok) assert.ok(isValid, `round ${round}: ${JSON.stringify(sent)} by ${JSON.stringify(jsonSchema)}`)
        seen[ok ? 'accepted' : isValid ? 'refusedByFields' : 'refusedByBoth'] += 1
      }
    }
    assert.ok(seen.accepted > 3000 && seen.refusedByBoth > 1500 && seen.refusedByFields < seen.refusedByBoth, JSON.stringify(seen))
  })

  it('sees a text with white space around it differently, as lib/validation/json-schema.ts says', () => {
    const schema = fields({ a: text({ max: 2 }) })
    assert.equal(schema.check({ a: ' ab ' }).ok, true)
    assert.equal(accepts(schema.toJsonSchema(), { a: ' ab ' }), false)
  })
})
