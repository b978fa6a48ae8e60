import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HttpError } from '../../lib/http/errors.ts'
import { parseJson } from '../../lib/http/json.ts'
import { Seeded } from '../support/seeded.ts'

test('names the place of a mistake', () => {
  const rows: [text: string, message: RegExp][] = [
    ['', /it is empty$/],
    ['{"a":[1,2', /line 1, column 10: .*the end of the text/],
    ['{"password":"hunter2",\n x', /^(?!.*hunter2).*line 2, column 2/],
    ["{'a':1}", /line 1, column 2: .*double quotes/],
    ['\ufeff{}', /it is not valid JSON$/],
  ]
  for (const [text, message] of rows) {
    assert.throws(() => parseJson(text), { name: 'HttpError', status: 400, code: 'bad_json', message }, JSON.stringify(text))
  }
})

test('refuses what JSON.parse refuses, and takes what it takes', () => {
  const seeded = new Seeded(7)
  const pieces = ['{', '}', '[', ']', ',', ':', ' ', '\n', '\u0001', '"a"', '"\\"', '1', '-0.5e1', 'true', 'null', 'x', '0']
  for (let round = 0; round < 20_000; round += 1) {
    const text = Array.from({ length: seeded.integer(8) }, () => seeded.pick(pieces)).join('')
    let expected: unknown = HttpError
    try {
      expected = JSON.parse(text)
    } catch {
      assert.throws(() => parseJson(text), { name: 'HttpError', status: 400, code: 'bad_json' }, JSON.stringify(text))
      continue
    }
    assert.deepEqual(parseJson(text), expected)
  }
})

test('stands a million levels, and finds the place in time that grows with the text', () => {
  assert.throws(() => parseJson('['.repeat(1_000_000)), { code: 'bad_json' })
  assert.throws(() => parseJson(`"${'\\n'.repeat(500_000)}`), { code: 'bad_json' })
  assert.throws(() => parseJson(`[${'1'.repeat(1_000_000)}x]`), /line 1, column 1000002:/)
})
