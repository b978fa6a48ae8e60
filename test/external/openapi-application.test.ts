// The description of an application that uses everything, by the schema of OpenAPI 3.1.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { files } from '../describe/application.ts'
import { startApplication } from '../support/application.ts'
import { createDocumentCheck } from '../support/openapi.ts'
import { request } from '../support/request.ts'

test('the description of an application is valid', async (t) => {
  const { url } = await startApplication(t, files)
  const document = (await request(`${url}/api/openapi.json`)).json() as { info: object }
  const check = await createDocumentCheck()
  assert.deepEqual(check(document), [])
  assert.notDeepEqual(check({ ...document, info: {} }), [])
})
