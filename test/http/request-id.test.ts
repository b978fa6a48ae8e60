import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isRequestId } from '../../lib/http/received-request.ts'

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
  test(`${is ? 'accepts' : 'refuses'} ${JSON.stringify(text.slice(0, 20))} (${text.length}) as a request id`, () => {
    assert.equal(isRequestId(text), is)
  })
}
