// The seeded check of JSON bodies, for any number of texts.
import assert from 'node:assert/strict'
import { HttpError } from '../../lib/http/errors.ts'
import { parseJson } from '../../lib/http/json.ts'
import { explainJson } from '../../lib/json/json-map.ts'
import { Seeded } from '../support/seeded.ts'

/** Checks that JSON is accepted and refused exactly as by JSON.parse. */
export function checkJsonBodies(rounds: number): void {
  const seeded = new Seeded(7)
  const pieces = ['{', '}', '[', ']', ',', ':', ' ', '\n', '\u0001', '"a"', '"\\"', '1', '-0.5e1', 'true', 'null', 'x', '0']
  for (let round = 0; round < rounds; round += 1) {
    const text = Array.from({ length: seeded.integer(8) }, () => seeded.pick(pieces)).join('')
    let expected: unknown = HttpError
    try {
      expected = JSON.parse(text)
    } catch {
      assert.throws(() => parseJson(text, explainJson), { name: 'HttpError', status: 400, code: 'bad_json' }, JSON.stringify(text))
      continue
    }
    assert.deepEqual(parseJson(text, explainJson), expected)
  }
}
