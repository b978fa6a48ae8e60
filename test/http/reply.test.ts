import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  BodyReply,
  emptyReply,
  htmlType,
  jsonReply,
  jsonType,
  StreamReply,
  textReply,
  textType,
  toReply,
} from '../../lib/http/reply.ts'

describe('toReply', () => {
  it('makes HTML of text, a download of bytes, and JSON of values', () => {
    const rows: [unknown, string, string | Uint8Array][] = [
      ['<p>', htmlType, '<p>'],
      ['', htmlType, ''],
      [Uint8Array.of(1, 2), 'application/octet-stream', Uint8Array.of(1, 2)],
      [{ a: 1 }, jsonType, '{"a":1}'],
      [[1], jsonType, '[1]'],
      [null, jsonType, 'null'],
      [0, jsonType, '0'],
      [Number.NaN, jsonType, 'null'],
      [false, jsonType, 'false'],
      [new Date(0), jsonType, '"1970-01-01T00:00:00.000Z"'],
    ]
    for (const [value, type, body] of rows) assert.deepEqual(toReply(value), new BodyReply(type, body))
  })

  it('hands a reply on as it is', () => {
    const stream = new StreamReply(200, [], 0, () => {})
    assert.equal(toReply(stream), stream)
    assert.equal(toReply(emptyReply), emptyReply)
  })

  it('refuses what JSON cannot hold', () => {
    const circle: unknown[] = []
    circle.push(circle)
    for (const value of [() => 1, Symbol('s'), 1n, circle, { toJSON: () => undefined }]) {
      assert.throws(() => toReply(value), TypeError)
    }
    assert.throws(() => jsonReply(undefined), { message: 'A reply cannot be made of a undefined: return text or a JSON value' })
  })
})

describe('textReply', () => {
  it('takes a string alone', () => {
    assert.deepEqual(textReply(textType, 'a'), new BodyReply(textType, 'a'))
    assert.throws(() => textReply(textType, 42), { name: 'TypeError', message: 'A text reply is made of a string: it is a number' })
  })
})
