// The JSON Schemas of fields, and those of docs/, with a real validator: they are valid themselves, those of fields in
// OpenAPI 3.1 too, and the tests' own reading of them (test/support/json-schema.ts) agrees with it.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createJsonSchemaCheck, createDocumentCheck } from '../support/openapi.ts'
import { renderJobSchema } from '../support/job-schema.ts'
import { accepts, type JsonSchema } from '../support/json-schema.ts'
import { renderRouteSchema } from '../support/route-schema.ts'
import { jobRows, middlewareRows, routeRows } from '../support/schema-rows.ts'
import { renderMiddlewareSchema } from '../support/schema.ts'
import { Seeded } from '../support/seeded.ts'
import { makeSchema } from '../validation/schema-generator.ts'

describe('the JSON Schemas of fields', () => {
  it('are valid, and a validator reads them as the tests do', async () => {
    const seeded = new Seeded(24)
    for (let round = 0; round < 300; round += 1) {
      const { schema, value } = makeSchema(seeded)
      const jsonSchema = schema.toJsonSchema()
      const check = await createJsonSchemaCheck(jsonSchema)
      for (let each = 0; each < 8; each += 1) {
        const sent = value()
        assert.equal(check(sent).length === 0, accepts(jsonSchema, sent), `${JSON.stringify(sent)} by ${JSON.stringify(jsonSchema)}`)
      }
    }
  })

  it('are valid in an OpenAPI 3.1 document, whose dialect they take', async () => {
    const seeded = new Seeded(25)
    const made = Array.from({ length: 50 }, () => makeSchema(seeded).schema.toJsonSchema())
    const schemas = Object.fromEntries(made.map(({ $schema, ...schema }, at) => [`s${at}`, schema]))
    const check = await createDocumentCheck()
    assert.deepEqual(check({ openapi: '3.1.0', info: { title: 'a', version: '1' }, components: { schemas } }), [])
  })
})

describe('the schemas of route files, job files and the middleware configuration', () => {
  const rows = [
    ['routes', renderRouteSchema, routeRows],
    ['jobs', renderJobSchema, jobRows],
    ['middleware', renderMiddlewareSchema, middlewareRows],
  ] as const
  for (const [name, render, contents] of rows) {
    it(`of ${name}: it is valid, and a validator reads it as the tests do`, async () => {
      const schema = JSON.parse(render()) as JsonSchema
      const check = await createJsonSchemaCheck(schema)
      for (const [content] of contents) {
        assert.equal(check(content).length === 0, accepts(schema, content), JSON.stringify(content).slice(0, 200))
      }
    })
  }
})
