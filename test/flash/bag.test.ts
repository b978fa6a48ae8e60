import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { FlashBag, RequestFlash } from '../../lib/flash/bag.ts'

function newBag(): FlashBag {
  return new FlashBag('f', { holder: new RequestFlash(), keepOnGet: false })
}

describe('a flash bag', () => {
  it('returns a value once, then the fallback', () => {
    const bag = newBag()
    bag.set('message', 'Saved')
    assert.deepEqual([bag.has('message'), bag.has('message')], [true, true])
    assert.equal(bag.get('message', 'none'), 'Saved')
    assert.deepEqual([bag.get('message', 'none'), bag.get('message'), bag.has('message')], ['none', undefined, false])
  })

  it('merges an object and leaves the other keys', () => {
    const bag = newBag()
    bag.set('type', 'info')
    bag.set({ type: 'danger', errors: { name: 'is missing' }, input: { name: '', tags: ['a'] } })
    bag.set({})
    assert.equal(bag.get('type'), 'danger')
    assert.deepEqual([bag.get('errors'), bag.get('input')], [{ name: 'is missing' }, { name: '', tags: ['a'] }])
  })

  it('removes one key, and all, without reading', () => {
    const bag = newBag()
    bag.set({ a: 1, b: 2, c: 3 })
    bag.delete('a')
    bag.delete('none')
    assert.deepEqual([bag.has('a'), bag.has('b')], [false, true])
    bag.clear()
    bag.clear()
    bag.delete('b')
    assert.deepEqual([bag.has('b'), bag.has('c'), bag.get('c', 0)], [false, false, 0])
  })

  it('keeps every JSON value, including null', () => {
    for (const value of [null, false, 0, '', [], {}, 'é\u0000', [[{ a: [null] }]], 1e21]) {
      const bag = newBag()
      bag.set('v', value)
      assert.ok(bag.has('v'))
      assert.deepEqual(bag.get('v', 'fallback'), value)
    }
  })

  it('holds a copy of the value, independent of the object', () => {
    const bag = newBag()
    const input = { name: 'a' }
    bag.set({ input })
    input.name = 'b'
    assert.deepEqual(bag.get('input'), { name: 'a' })
  })

  it('accepts names of Object members as keys and form ids', () => {
    const holder = new RequestFlash()
    for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '', '0']) {
      const bag = new FlashBag(name, { holder, keepOnGet: false })
      assert.deepEqual([bag.has(name), bag.get(name, 'none')], [false, 'none'], name)
      bag.set(name, { [name]: 1 })
      bag.set(JSON.parse(`{${JSON.stringify(name)}: 2, "other": 3}`) as Record<string, unknown>)
      assert.deepEqual([bag.get(name), bag.has(name), bag.get('other')], [2, false, 3], name)
    }
    assert.equal(Object.prototype.hasOwnProperty.call(Object.prototype, 'other'), false)
  })

  it('is one bag per id, removed when it is empty', () => {
    const holder = new RequestFlash()
    const [a, again, b] = ['a', 'a', 'b'].map((id) => new FlashBag(id, { holder, keepOnGet: false }))
    a?.set('k', 1)
    b?.set('k', 2)
    assert.deepEqual([again?.getId(), again?.get('k'), a?.has('k'), b?.get('k')], ['a', 1, false, 2])
    a?.save()
    assert.deepEqual([holder.flashBag('a'), holder.flashBag('b')], [undefined, undefined])
    b?.set({ k: 3 })
    b?.save()
    assert.deepEqual(holder.flashBag('b'), { k: 3 })
    b?.clear()
    assert.equal(holder.flashBag('b'), undefined)
  })

  it('keeps a value that is read for a response that may go unseen', () => {
    const bag = new FlashBag('f', { holder: new RequestFlash(), keepOnGet: true })
    bag.set('k', 1)
    assert.deepEqual([bag.get('k'), bag.get('k'), bag.get('none', 0)], [1, 1, 0])
    bag.delete('k')
    assert.equal(bag.has('k'), false)
  })

  const circular: Record<string, unknown> = {}
  circular['self'] = circular
  const wrong: readonly (readonly [what: string, given: readonly unknown[], message: RegExp])[] = [
    ['undefined', ['k', undefined], /^Cannot set flash "f": JSON cannot hold the value of key "k": it is of type und/],
    ['a key without a value', ['k'], /key "k": it is of type undefined$/],
    ['a function', ['k', () => 1], /key "k": it is of type function$/],
    ['a symbol', ['k', Symbol('s')], /key "k": it is of type symbol$/],
    ['a bigint', ['k', 1n], /key "k": .*BigInt/],
    ['a circular object', ['k', circular], /key "k": .*circular/],
    ['a Set', ['k', { tags: new Set(['a']) }], /key "k": tags is of class Set/],
    ['undefined in a list', [{ k: [undefined] }], /key "k": 0 is of type undefined$/],
    ['a value that throws a string', ['k', { toJSON: () => { throw 'no' } }], /key "k": no$/],
    ['an object with one invalid member', [{ a: 1, b: undefined }], /key "b": it is of type undefined$/],
    ['no key', [undefined, 1], /^Cannot set flash "f": pass a string and a value, or an object of keys and values$/],
    ['a number as key', [1, 1], /pass a string/],
    ['null', [null], /pass a string/],
    ['an array', [['a']], /pass a string/],
  ]
  for (const [what, given, message] of wrong) {
    it(`refuses ${what} and sets nothing`, () => {
      const bag = newBag()
      bag.set('before', 1)
      // JavaScript callers are not bound by the types.
      assert.throws(() => Reflect.apply(bag.set, bag, given), { name: 'TypeError', message })
      assert.deepEqual([bag.has('a'), bag.has('k'), bag.get('before')], [false, false, 1])
    })
  }
})
