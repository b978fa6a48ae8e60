import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { TestAction } from '../support/context.ts'
import { visit } from './session-server.ts'
import { contents } from '../session-stores/store-values.ts'

describe('the content of a session', () => {
  const texts = ['', 'Ada', '"', '""', '\\', '\\u0041', 'é😀\u0000"', 'é😀\u2028\u007f', '\ud800', ' a ', 'x'.repeat(999)]
  const values: readonly unknown[] = [null, false, 0, -1.5, ...texts, [], [1, [2]], ['a'], {}, { a: { b: [null] } }]
  for (const value of values) {
    it(`is restored in the next request: ${JSON.stringify(value)}`, async (t) => {
      const { visitor } = await visit(t, {
        set: ({ session }) => session.set('key', value),
        get: ({ session }) => [session.get('key', 'fallback'), session.has('key')],
      })
      await visitor.ask('set')
      assert.deepEqual(await visitor.json('get'), [value, true])
    })
  }

  it('is a copy: of the value set, and on each read', async (t) => {
    const { visitor } = await visit(t, {
      set: ({ session }) => {
        const list = [1]
        session.set('list', list)
        list.push(2)
        const read = session.get('list') as number[]
        read.push(3)
        return session.get('list')
      },
      get: ({ session }) => session.get('list'),
    })
    assert.deepEqual(await visitor.json('set'), [1])
    assert.deepEqual(await visitor.json('get'), [1])
  })

  it('is tested by has, removed by delete, and otherwise the fallback', async (t) => {
    const { visitor } = await visit(t, {
      set: ({ session }) => {
        session.set('kept', 1)
        session.set('gone', 1)
        session.set('never', 1)
        session.delete('never')
        return [session.get('none'), session.get('none', 'fallback'), session.has('never')]
      },
      remove: ({ session }) => {
        session.delete('gone')
        session.delete('none')
        return [session.has('gone'), session.get('gone', 7)]
      },
      get: ({ session }) => ['kept', 'gone', 'never'].map((key) => session.has(key)),
    })
    assert.deepEqual(await visitor.json('set'), [null, 'fallback', false])
    assert.deepEqual(await visitor.json('remove'), [false, 7])
    assert.deepEqual(await visitor.json('get'), [true, false, false])
  })

  it('accepts any key, including __proto__', async (t) => {
    const keys = ['__proto__', 'constructor', '', 'key:a', 'flash:a', 'a\u0000', '_flash2', '\ud800']
    const { visitor } = await visit(t, {
      set: ({ session }) => {
        for (const key of keys) session.set(key, { key, __proto__: null })
        session.setFlashBag('a', { of: 'flash' })
      },
      get: ({ session }) => keys.map((key) => session.get(key)),
    })
    await visitor.ask('set')
    assert.deepEqual(await visitor.json('get'), keys.map((key) => ({ key })))
    assert.equal(({} as { key?: unknown }).key, undefined)
  })

  const refused: Readonly<Record<string, [unknown, RegExp]>> = {
    undefined: [undefined, /Cannot set key "k" in the session: JSON cannot hold the value: it is of type undefined/],
    'a function': [() => {}, /Cannot set key "k".*it is of type function/],
    'a symbol': [Symbol('s'), /Cannot set key "k".*it is of type symbol/],
    'a bigint': [1n, /Cannot set key "k".*BigInt/],
    'a circle': [circle(), /Cannot set key "k".*circular/],
    'a Map in a list in it': [{ a: [new Map()] }, /Cannot set key "k".*: a\.0 is of class Map/],
    NaN: [NaN, /Cannot set key "k".*: it is NaN/],
    'a promise': [Promise.resolve(1), /Cannot set key "k".*: it is a promise: await it/],
    'what fails': [{ toJSON: () => assert.fail('no JSON') }, /Cannot set key "k".*no JSON/],
    'a value that throws a non-error': [{ toJSON: () => throwText() }, /Cannot set key "k".*a text/],
  }
  for (const [what, [value, message]] of Object.entries(refused)) {
    it(`cannot be ${what}`, async (t) => {
      const { visitor } = await visit(t, {
        set: ({ session }) => {
          assert.throws(() => session.set('k', value), { name: 'TypeError', message })
          return [session.has('k')]
        },
      })
      assert.deepEqual(await visitor.json('set'), [false])
      assert.equal(visitor.id, undefined)
    })
  }

  it('has only string keys', async (t) => {
    const { visitor } = await visit(t, {
      set: ({ session }) => {
        const wrong = 1 as unknown as string // as JavaScript allows
        const error = { name: 'TypeError', message: 'A session key must be a string: it is number' }
        assert.throws(() => session.set(wrong, 1), error)
        assert.throws(() => session.get(wrong), error)
        assert.throws(() => session.has(wrong), error)
        assert.throws(() => session.delete(wrong), error)
      },
    })
    assert.equal((await visitor.ask('set')).status, 204)
  })
})

describe('the key _flash', () => {
  it('is a map of form ids to bags, including single bags', async (t) => {
    const { visitor, store } = await visit(t, {
      set: ({ session }) => {
        assert.equal(session.has('_flash'), false)
        assert.equal(session.get('_flash', 'none'), 'none')
        session.setFlashBag('__proto__', { y: 2 })
        session.setFlashBag('b', { z: 3 })
      },
      get: ({ session }) => [JSON.stringify(session.get('_flash')), session.flashBag('b'), session.has('_flash')],
      change: ({ session }) => {
        session.setFlashBag('__proto__', undefined)
        return session.get('_flash')
      },
    })
    await visitor.ask('set')
    assert.deepEqual(await visitor.json('get'), ['{"__proto__":{"y":2},"b":{"z":3}}', { z: 3 }, true])
    assert.deepEqual(await visitor.json('change'), { b: { z: 3 } })
    assert.deepEqual(await contents(store, visitor.id), { 'flash:b': '{"z":3}' })
  })

  it('is changed only by bags', async (t) => {
    const { visitor } = await visit(t, {
      set: ({ session }) => {
        session.setFlashBag('a', { x: 1 })
        const error = { name: 'TypeError', message: 'Cannot change key "_flash" of the session: use flash(id)' }
        assert.throws(() => session.set('_flash', { b: {} }), error)
        assert.throws(() => session.delete('_flash'), error)
        assert.throws(() => session.setFlashBag('b', { x: 1n }), /Cannot set _flash "b" in the session/)
        return session.get('_flash')
      },
    })
    assert.deepEqual(await visitor.json('set'), { a: { x: 1 } })
  })
})

describe('a route without SVC_MwSession', () => {
  const uses: Readonly<Record<string, TestAction>> = {
    'get-bare': ({ session }) => session.get('a'),
    'set-bare': ({ session }) => session.set('a', 1),
    'has-bare': ({ session }) => session.has('a'),
    'delete-bare': ({ session }) => session.delete('_flash'),
    'save-bare': ({ session }) => session.save(),
    'destroy-bare': ({ session }) => session.destroy(),
    'regenerate-bare': ({ session }) => session.regenerate(),
    'flash-bare': ({ session }) => session.flashBag('a'),
  }
  for (const path of Object.keys(uses)) {
    it(`has no session: ${path}`, async (t) => {
      const { visitor, failures } = await visit(t, uses)
      assert.equal((await visitor.ask(path)).status, 500)
      assert.deepEqual(failures.map(String), [
        `Error: This route has no session: add SVC_MwSession to the middleware of route "${path}"`,
      ])
    })
  }

  it('shows it by isOpen', async (t) => {
    const { visitor } = await visit(t, {
      'is-bare': ({ session, USession }) => [session.isOpen, USession() === session],
      is: ({ session, USession }) => [session.isOpen, USession() === session],
    })
    assert.deepEqual(await visitor.json('is-bare'), [false, true])
    assert.deepEqual(await visitor.json('is'), [true, true])
  })
})

function circle(): unknown {
  const one: { self?: unknown } = {}
  one.self = one
  return one
}

function throwText(): never {
  throw 'a text'
}
