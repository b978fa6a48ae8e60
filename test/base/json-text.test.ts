// Values stored as JSON: everything that JSON would silently drop or change is refused, with its path.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { runInNewContext } from 'node:vm'
import { jsonText } from '../../lib/base/json-text.ts'

class Point {
  x = 1
  label: string | undefined = undefined
  #hidden = 2
  get hidden(): number {
    return this.#hidden
  }
}
class Secret {
  #hidden = 2
  get hidden(): number {
    return this.#hidden
  }
}

const holds: readonly (readonly [what: string, value: unknown, text: string])[] = [
  ['null', null, 'null'],
  ['a text', 'é', '"é"'],
  ['a number', -0.5, '-0.5'],
  ['a list', [1, [], null], '[1,[],null]'],
  ['an object', { a: { b: true } }, '{"a":{"b":true}}'],
  ['an object without prototype', Object.assign(Object.create(null), { __proto__x: 1 }), '{"__proto__x":1}'],
  ['an empty object', {}, '{}'],
  ['an object of another realm', runInNewContext('({ a: {} })'), '{"a":{}}'],
  ['an undefined member, which is omitted', { a: undefined, b: 1 }, '{"b":1}'],
  ['a Date, as text', { at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
  ['an object with toJSON', [new URL('https://a.example/'), { toJSON: () => [1] }], '["https://a.example/",[1]]'],
  ['the members of a class', new Point(), '{"x":1}'],
  ['a boxed number, string or boolean', [Object(1), Object(''), Object(false)], '[1,"",false]'],
]

const refuses: readonly (readonly [what: string, value: unknown, reason: RegExp])[] = [
  ['undefined', undefined, /^it is of type undefined$/],
  ['a function', () => 1, /^it is of type function$/],
  ['a function as a member', { a: { b: () => 1 } }, /^a\.b is of type function$/],
  ['a symbol', [Symbol('s')], /^0 is of type symbol$/],
  ['undefined in a list', { a: [1, undefined] }, /^a\.1 is of type undefined$/],
  ['a hole in a list', { a: [1, , 2] }, /^a\.1 is of type undefined$/],
  ['NaN', { lines: [{ total: NaN }] }, /^lines\.0\.total is NaN$/],
  ['Infinity', [-Infinity], /^0 is -Infinity$/],
  ['an invalid Date', { at: new Date(NaN) }, /^at is an invalid Date$/],
  ['a Map', { a: new Map([[1, 2]]) }, /^a is of class Map, whose content JSON cannot hold: use an object, a list or a string$/],
  ['a Map with members', Object.assign(new Map(), { a: 1 }), /^it is of class Map/],
  ['a Set', [[new Set([1])]], /^0\.0 is of class Set/],
  ['a WeakMap', new WeakMap(), /^it is of class WeakMap/],
  ['a RegExp', { a: /x/ }, /^a is of class RegExp/],
  ['an Error', { error: Object.assign(new TypeError('x'), { code: 1 }) }, /^error is of class TypeError/],
  ['bytes', { a: new ArrayBuffer(2) }, /^a is of class ArrayBuffer/],
  ['URLSearchParams', new URLSearchParams('a=1'), /^it is of class URLSearchParams/],
  ['an object with hidden content', new Secret(), /^it is of class Secret/],
  ['a promise', Promise.resolve(1), /^it is a promise: await it$/],
  ['a thenable', { user: { then: () => {}, id: 1 } }, /^user is a promise: await it$/],
  ['the result of toJSON', { a: { toJSON: () => ({ b: new Map() }) } }, /^a\.b is of class Map/],
  ['a bigint', [1n], /BigInt/],
]

describe('a value that is stored as JSON', () => {
  for (const [what, value, text] of holds) it(`may be ${what}`, () => assert.equal(jsonText(value, 'Refused'), text))

  for (const [what, value, reason] of refuses) {
    it(`must not be ${what}`, () => {
      assert.throws(() => jsonText(value, 'Refused'), (error: Error) => {
        assert.ok(error instanceof TypeError)
        assert.match(error.message, /^Refused: /)
        assert.match(error.message.slice('Refused: '.length), reason)
        return true
      })
    })
  }

  it('must not be circular, nor nested deeper than the stack', () => {
    const circle: unknown[] = []
    circle.push({ circle })
    assert.throws(() => jsonText(circle, 'Refused'), { name: 'TypeError', message: /^Refused: .*circular/ })
    let deep: unknown = 1
    for (let depth = 0; depth < 1_000_000; depth += 1) deep = [deep]
    assert.throws(() => jsonText(deep, 'Refused'), { name: 'TypeError', message: /^Refused: / })
  })
})
