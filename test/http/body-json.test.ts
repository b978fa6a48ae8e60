import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseJson } from '../../lib/http/json.ts'
import { explainJson } from '../../lib/json/json-map.ts'
import { checkJsonBodies } from './body-json-support.ts'

test('reports the position of a mistake', () => {
  const rows: [text: string, message: RegExp][] = [
    ['', /it is empty$/],
    ['{"a":[1,2', /line 1, column 10: .*the end of the text/],
    ['{"password":"hunter2",\n x', /^(?!.*hunter2).*line 2, column 2/],
    ["{'a':1}", /line 1, column 2: .*double quotes/],
    ['\ufeff{}', /it is not valid JSON$/],
  ]
  for (const [text, message] of rows) {
    assert.throws(() => parseJson(text, explainJson), { name: 'HttpError', status: 400, code: 'bad_json', message }, JSON.stringify(text))
  }
})

test('accepts and refuses exactly what JSON.parse does', () => checkJsonBodies(2_000))

test('handles a million levels, and finds the position in linear time', () => {
  assert.throws(() => parseJson('['.repeat(1_000_000), explainJson), { code: 'bad_json' })
  assert.throws(() => parseJson(`"${'\\n'.repeat(500_000)}`, explainJson), { code: 'bad_json' })
  assert.throws(() => parseJson(`[${'1'.repeat(1_000_000)}x]`, explainJson), /line 1, column 1000002:/)
})
