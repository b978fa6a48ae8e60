import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { endpoints } from '../access/support.ts'
import { root } from '../support/markdown.ts'
import { document, examplesOf, jsonBodies, operationOf, operations } from '../support/openapi-document.ts'

// test/external checks with a validator that it is valid, and that responses match its schemas.
describe('docs/openapi.json', () => {
  it('has the version of package.json', () => {
    const { version } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as { version: string }
    assert.equal(document.info.version, version)
  })

  it('describes every endpoint of the table, and no other', () => {
    const described = operations.map(({ key, operation }) => [key, operation.operationId, operation.summary])
    const expected = endpoints.map(({ method, url, name, meaning }) => [`${method} ${url}`, name, meaning])
    assert.deepEqual(described.sort(), expected.sort())
  })

  it('marks the endpoints that need a login, and those that refuse other sites', () => {
    for (const { name, auth, change } of endpoints) {
      const { security, responses } = operationOf(name)
      const ways = name === 'svc.metrics' ? [{ admin: [] }, { metrics: [] }] : [{ admin: [] }]
      assert.deepEqual(security, auth ? ways : [], name)
      assert.equal(responses['403'] !== undefined, change !== 'never', name)
      if (auth) assert.notEqual(responses['302'], undefined, name)
    }
  })

  it('has an example for every JSON body', () => {
    assert.ok(jsonBodies().length > 24)
    for (const media of jsonBodies()) assert.notEqual(examplesOf(media).length, 0, JSON.stringify(media))
  })

  it('has every schema that it references, and no unused one', () => {
    const named = [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name)
    assert.deepEqual([...new Set(named)].sort(), Object.keys(document.components.schemas).sort())
  })
})
