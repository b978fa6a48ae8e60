import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BodyReply, jsonReply, jsonType, textReply, textType } from '../../lib/http/reply.ts'

describe('jsonReply', () => {
  it('takes what JSON can hold', () => {
    const circle: unknown[] = []
    circle.push(circle)
    for (const value of [null, 0, false, 'a', { a: 1 }]) {
      assert.deepEqual(jsonReply(value), new BodyReply(jsonType, JSON.stringify(value)))
    }
    for (const value of [() => 1, Symbol('s'), 1n, circle, { toJSON: () => undefined }]) {
      assert.throws(() => jsonReply(value), TypeError)
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
