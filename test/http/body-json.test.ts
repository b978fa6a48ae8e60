import assert from 'node:assert/strict'
import { test } from 'node:test'

import { HttpError } from '../../lib/http/errors.ts'
import { jsonErrorPosition, parseJson } from '../../lib/http/json.ts'
import { Seeded } from '../support/seeded.ts'

test('names the first character that cannot stand there', () => {
  const rows: Array<[string, number]> = [
    ['', 0],
    [' \t\r\n', 4],
    ['{}', -1],
    [' [ ] ', -1],
    ['[1,-2.5e+3,"\\u00e9\\n",true,false,null,{"a":{}}]', -1],
    ['[1,]', 3],
    ['{"a":1,}', 7],
    ['{"a" 1}', 5],
    ['{"a":}', 5],
    ['{a:1}', 1],
    ['{"a":1]', 6],
    ['[}', 1],
    ['[1}', 2],
    ['1 2', 2],
    [']', 0],
    ['undefined', 0],
    ['01', 1],
    ['1.', 1],
    ['-', 0],
    ['+1', 0],
    ['tru', 0],
    ['"a', 2],
    ['"a\nb"', 2],
    ['"\\x"', 1],
    ['"\\u12', 1],
    ['{"a', 3],
    ['{"a\n":1}', 3],
    ["{'a':1}", 1],
    ['[[[', 3],
    ['\u00a0', 0],
  ]
  for (const [text, position] of rows) assert.equal(jsonErrorPosition(text), position, JSON.stringify(text))
})

test('agrees with JSON.parse on what is JSON', () => {
  const seeded = new Seeded(7)
  const marks = ['{', '}', '[', ']', ',', ':', ' ', '\n', '\u0001']
  const pieces = [...marks, '"a"', '"\\"', '1', '-0.5e1', 'true', 'null', 'x', '0']
  for (let round = 0; round < 20_000; round += 1) {
    const text = Array.from({ length: seeded.integer(8) }, () => seeded.pick(pieces)).join('')
    let valid = true
    try {
      JSON.parse(text)
    } catch {
      valid = false
    }
    const position = jsonErrorPosition(text)
    assert.equal(position === -1, valid, JSON.stringify(text))
    assert.ok(position <= text.length)
  }
  const whole = JSON.stringify({ a: [1, -2.5, 'é"\\\n', true, null, { b: {} }], c: 'd' }, null, 1)
  for (let length = 0; length < whole.length; length += 1) {
    const position = jsonErrorPosition(whole.slice(0, length))
    assert.ok(position >= 0 && position <= length, String(length))
  }
  for (let round = 0; round < 2000; round += 1) {
    const at = seeded.integer(whole.length)
    const text = whole.slice(0, at) + seeded.pick(pieces) + whole.slice(at + seeded.integer(2))
    let expected: unknown = HttpError
    try {
      expected = JSON.parse(text)
    } catch {
      assert.throws(() => parseJson(text), { name: 'HttpError', status: 400, code: 'bad_json' })
      continue
    }
    assert.deepEqual(parseJson(text), expected)
  }
})

test('stands a million levels, and finds the place in time that grows with the text', () => {
  assert.equal(jsonErrorPosition('['.repeat(1_000_000)), 1_000_000)
  assert.throws(() => parseJson(`"${'\\n'.repeat(500_000)}`), /it ends too early, at position 1000001 \(line 1/)
  assert.throws(() => parseJson(`[${'1'.repeat(1_000_000)}x]`), /it is wrong at position 1000001 /)
})
