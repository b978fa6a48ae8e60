import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRequestIds, isRequestId } from '../../lib/http/request-id.ts'

const rows: [string, boolean][] = [
  ['12345678', true],
  ['abc-DEF_0.9', true],
  ['a'.repeat(128), true],
  ['1234567', false],
  ['a'.repeat(129), false],
  ['', false],
  ['1234567 ', false],
  ['12345678\n', false],
  ['12345678\r\nX: y', false],
  ['1234"5678', false],
  ['1234567\u00e9', false],
  ['12345678/', false],
]
for (const [text, is] of rows) {
  test(`${is ? 'takes' : 'refuses'} ${JSON.stringify(text.slice(0, 20))} (${text.length}) as a request id`, () => {
    assert.equal(isRequestId(text), is)
  })
}

test('makes ids of 20 characters that it would take itself, none twice', () => {
  const makers = [createRequestIds(), createRequestIds()]
  const ids = new Set<string>()
  for (let round = 0; round < 5000; round += 1) for (const make of makers) ids.add(make())
  assert.equal(ids.size, 10_000)
  for (const id of ids) assert.ok(isRequestId(id) && id.length === 20, id)
})
