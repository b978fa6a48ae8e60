import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mapJson, nodeAt, readJson } from '../../lib/json/json-map.ts'
import type { JsonNode } from '../../lib/json/json-map.ts'
import { checkJson } from './json-map-support.ts'

const mistakes: readonly [text: string, message: string][] = [
  ['', 'line 1, column 1: expected a value, but found the end of the text'],
  ['nul', 'line 1, column 1: expected a value, but found "n"'],
  ["{'a': 1}", "line 1, column 2: expected a name in double quotes, but found ' (strings need double quotes)"],
  ['{a: 1}', 'line 1, column 2: expected a name in double quotes, but found "a"'],
  ['{"a" 1}', 'line 1, column 6: expected a colon after the name, but found "1"'],
  ['{"a": 1 "b": 2}', 'line 1, column 9: expected a comma or }, but found "\\""'],
  ['[1 2]', 'line 1, column 4: expected a comma or ], but found "2"'],
  ['[1,]', 'line 1, column 3: no comma is allowed before the closing ]'],
  ['[1,\n,]', 'line 2, column 1: expected a value, but found ","'],
  ['{} // end', 'line 1, column 4: expected nothing after the value, but found a comment, which JSON does not have'],
  ['/* a */ {}', 'line 1, column 1: expected a value, but found a comment, which JSON does not have'],
  ['01', 'line 1, column 2: expected nothing after the value, but found "1"'],
  ['+1', 'line 1, column 1: expected a value, but found "+"'],
  ['NaN', 'line 1, column 1: expected a value, but found "N"'],
  ['"a', 'line 1, column 1: a string that begins here has no closing quote on its line'],
  ['"a\n"', 'line 1, column 1: a string that begins here has no closing quote on its line'],
  ['"a\tb"', 'line 1, column 3: a control character in a string: write \\u0009'],
  ['"C:\\data"', 'line 1, column 4: not an escape sequence: write \\\\ for a backslash'],
  ['"\\u12g4"', 'line 1, column 2: not an escape sequence: write \\\\ for a backslash'],
  ['{"a": 1, "\\u0061": 2}', 'line 1, column 10: the name "\\u0061" appears twice in this object'],
  ['😀', 'line 1, column 1: expected a value, but found "😀"'],
  ['['.repeat(5000), 'line 1, column 102: nested deeper than 100'],
]

test('reports where and why a text is not JSON', () => {
  for (const [text, message] of mistakes) {
    assert.throws(() => readJson(text), { name: 'JsonError', message: `it is not valid JSON at ${message}` })
  }
})

test('detects a duplicate name among few and among many, also written with an escape', () => {
  for (const count of [1, 16, 17, 18, 100]) {
    const names = Array.from({ length: count }, (_, index) => `"a${index}":1`)
    const before = `{${names.join(',')}`
    assert.equal(Object.keys(readJson(`${before}}`).value as object).length, count)
    for (const again of ['"a0"', '"\\u00610"', `"a${count - 1}"`]) {
      const error = { message: new RegExp(`column ${before.length + 2}: the name .* appears twice`) }
      assert.throws(() => readJson(`${before},${again}:2}`), error)
    }
  }
})

test('maps every member to its position', () => {
  const text = '\ufeff{ "a" : [1, {"x": 2}],\n  "b\\n": {"c": "}"} }'
  const root = mapJson(text)
  const slice = (node: JsonNode | undefined): string => text.slice(node?.start, node?.end)
  assert.equal(slice(nodeAt(root, ['a'])), '[1, {"x": 2}]')
  assert.equal(slice(nodeAt(root, ['b\n', 'c'])), '"}"')
  assert.equal(nodeAt(root, ['b\n', 'd']), undefined)
  assert.equal(nodeAt(root, ['a', 'x', 'y']), undefined)
  assert.deepEqual(root.members?.map((member) => text.slice(member.start, member.nameEnd)), ['"a"', '"b\\n"'])
  assert.deepEqual(readJson(text).value, { a: [1, { x: 2 }], 'b\n': { c: '}' } })
})

test('agrees with JSON.parse, except for duplicate names (seeded)', () => checkJson(5_000))
