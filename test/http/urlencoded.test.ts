import assert from 'node:assert/strict'
import { test } from 'node:test'

import { HttpError } from '../../lib/http/errors.ts'
import { maxUrlencodedFields, parseUrlencoded } from '../../lib/http/urlencoded.ts'
import { Seeded } from '../support/seeded.ts'

const parse = (text: string): Array<[string, string]> => [...parseUrlencoded(Buffer.from(text)).entries()]

test('reads names and values', () => {
  const rows: Array<[string, Array<[string, string]>]> = [
    ['', []],
    ['a=1', [['a', '1']]],
    ['a=1&b=2', [['a', '1'], ['b', '2']]],
    ['&&a=1&&', [['a', '1']]],
    ['a', [['a', '']]],
    ['a=', [['a', '']]],
    ['=1', [['', '1']]],
    ['=', [['', '']]],
    ['a=b=c', [['a', 'b=c']]],
    ['a+b=c+d%2B', [['a b', 'c d+']]],
    ['%C3%A9=%e2%82%ac', [['é', '€']]],
    ['é=€', [['é', '€']]],
    ['a=1;b=2', [['a', '1;b=2']]],
    ['__proto__=1&constructor=2', [['__proto__', '1'], ['constructor', '2']]],
    ['a=%00', [['a', '\0']]],
    ['a=1&b=2&a=3', [['a', '1'], ['a', '3'], ['b', '2']]],
    ['a=100%&b=%4&%zz=%%41', [['a', '100%'], ['b', '%4'], ['%zz', '%A']]],
    ['%=%', [['%', '%']]],
    ['\ufeffa=1', [['\ufeffa', '1']]],
  ]
  for (const [text, expected] of rows) assert.deepEqual(parse(text), expected, text)
})

test('returns the first value, all values, and undefined if none was sent', () => {
  const form = parseUrlencoded(Buffer.from('a=1&b=&a=2'))
  assert.deepEqual([form.get('a'), form.get('b'), form.get('c'), form.get('toString')], ['1', '', undefined, undefined])
  assert.deepEqual([form.getAll('a'), form.getAll('c')], [['1', '2'], []])
  assert.deepEqual([form.has('b'), form.has('c'), form.has('__proto__')], [true, false, false])
  assert.deepEqual([[...form.keys()], form.files], [['a', 'b'], []])
  form.getAll('a').push('3')
  assert.deepEqual(form.getAll('a'), ['1', '2'])
})

test('refuses invalid encodings and names the field', () => {
  const refused = { name: 'HttpError', status: 400, code: 'bad_form' }
  for (const text of ['a=%ff', 'a=%C3', 'a=%C3%', 'a=%ED%A0%80', 'a=%C0%80', '%ff=1']) {
    assert.throws(() => parse(`ok=1&${text}`), { ...refused, message: /field 2 has percent-encoded bytes/ }, text)
  }
  assert.throws(() => parseUrlencoded(Buffer.from([0x61, 0x3d, 0xff])), { ...refused, message: /it is not UTF-8/ })
})

test('reads ISO-8859-1 for a form in that charset', () => {
  const form = parseUrlencoded(Buffer.from('n\u00e4me=%E9+%ff&b=100%', 'latin1'), 'latin1')
  assert.deepEqual([...form.entries()], [['n\u00e4me', '\u00e9 \u00ff'], ['b', '100%']])
})

test('accepts as many fields as allowed, and no more', () => {
  assert.equal(parse('a&'.repeat(maxUrlencodedFields)).length, maxUrlencodedFields)
  const more = 'a&'.repeat(maxUrlencodedFields) + 'a'
  assert.throws(() => parse(more), { code: 'bad_form', message: /more than 10000 fields/ })
})

test('reads the output of URLSearchParams, and agrees with it on everything it accepts', () => {
  const seeded = new Seeded(11)
  const marks = ['=', '&', '+', '%', ' ', '"', ';', '\0', '\ufeff']
  const characters = [...marks, 'a', 'é', '€', '😀', '%41', '%C3%A9', '%ff']
  const word = (): string => Array.from({ length: seeded.integer(5) }, () => seeded.pick(characters)).join('')
  let taken = 0
  for (let round = 0; round < 3000; round += 1) {
    const pairs = Array.from({ length: seeded.integer(5) }, (_, index): [string, string] => [word() + index, word()])
    assert.deepEqual(parse(new URLSearchParams(pairs).toString()), pairs)

    const text = word() + word()
    try {
      const entries = parse(text)
      taken += 1
      const grouped = new Map<string, string[]>()
      // Node's URLSearchParams corrupts non-ASCII characters beside a stray %, which the URL standard keeps.
      for (const [name, value] of new URLSearchParams(`&${text.replace(/%(?![0-9a-f]{2})/gi, '%25')}`)) {
        grouped.set(name, [...(grouped.get(name) ?? []), value])
      }
      assert.deepEqual(entries, [...grouped].flatMap(([name, values]) => values.map((value) => [name, value])))
    } catch (error) {
      assert.ok(error instanceof HttpError, String(error))
    }
  }
  assert.ok(taken > 1000)
})

test('throws only HttpError, whatever the bytes', () => {
  const seeded = new Seeded(13)
  let refused = 0
  for (let round = 0; round < 3000; round += 1) {
    try {
      parseUrlencoded(seeded.bytes(seeded.integer(20)))
    } catch (error) {
      assert.ok(error instanceof HttpError)
      refused += 1
    }
  }
  assert.ok(refused > 0)
})
