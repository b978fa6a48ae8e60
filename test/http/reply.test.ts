import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BodyReply, jsonReply, jsonType, textReply, textType } from '../../lib/http/reply.ts'

describe('jsonReply', () => {
  it('accepts everything that JSON can hold', () => {
    const circle: unknown[] = []
    circle.push(circle)
    for (const value of [null, 0, false, 'a', { a: 1 }]) {
      assert.deepEqual(jsonReply(value), new BodyReply(jsonType, JSON.stringify(value)))
    }
    for (const value of [() => 1, Symbol('s'), 1n, circle, { toJSON: () => undefined }]) {
      assert.throws(() => jsonReply(value), TypeError)
    }
    assert.throws(() => jsonReply(undefined), { message: 'Cannot reply with a value of type undefined: return text or a JSON value' })
  })
})

describe('textReply', () => {
  it('accepts only a string', () => {
    assert.deepEqual(textReply(textType, 'a'), new BodyReply(textType, 'a'))
    assert.throws(() => textReply(textType, 42), { name: 'TypeError', message: 'A text reply must be a string: it is a number' })
  })
})
