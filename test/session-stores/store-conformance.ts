import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { SessionStore, StoredSession } from '../../lib/session/store.ts'
import { request } from '../support/request.ts'
import { serveSessions, sessionCookieOf } from '../session/session-server.ts'
import { changes, contents, fields, id } from './store-values.ts'

/** An empty store under test. */
export interface StoreUnderTest {
  readonly store: SessionStore
  /** Advances the store's clock, or waits that long. */
  readonly advance: (ms: number) => void | Promise<void>
  /** Whether expired sessions disappear without a sweep, which then has nothing to remove. */
  readonly expiresByItself?: true
}

/**
 * Checks that apply to every store: the guarantees of `lib/session/store.ts`.
 * @param open opens a store for the test, and closes it when the test ends
 * @param minute the time to live in the tests, in milliseconds; short if the test has to wait
 */
export function testSessionStore(
  name: string,
  open: (t: TestContext) => StoreUnderTest | Promise<StoreUnderTest>,
  minute = 60_000,
): void {
  describe(`the ${name} store keeps the contract`, () => {
    it('returns the created session, and nothing for another id', async (t) => {
      const { store } = await open(t)
      await store.create(id(1), fields({ a: '1', __proto__x: '2' }), minute)
      assert.deepEqual(await contents(store, id(1)), { a: '1', __proto__x: '2' })
      assert.equal(await store.read(id(2)), undefined)
      assert.equal(await store.read(''), undefined)
      assert.equal(await store.read('../../etc/passwd'), undefined)
    })

    it('keeps any name and any text', async (t) => {
      const { store } = await open(t)
      const odd = ['', '__proto__', 'constructor', 'a\u0000b', '\ud800', 'é€😀', '\u2028', '"\\/', 'x'.repeat(100_000)]
      const all = new Map(odd.map((text) => [text, text]))
      await store.create(id(1), all, minute)
      assert.deepEqual((await store.read(id(1)))?.fields, all)
    })

    it('keeps a session without fields', async (t) => {
      const { store } = await open(t)
      await store.create(id(1), new Map(), minute)
      assert.deepEqual(await contents(store, id(1)), {})
    })

    it('changes only the named fields', async (t) => {
      const { store } = await open(t)
      await store.create(id(1), fields({ a: '1', b: '2', c: '3' }), minute)
      assert.equal(await store.merge(id(1), changes({ b: '20', d: '4' }, ['c', 'nothing']), minute), true)
      assert.deepEqual(await contents(store, id(1)), { a: '1', b: '20', d: '4' })
    })

    it('returns a snapshot', async (t) => {
      const { store } = await open(t)
      const given = new Map([['a', '1']])
      await store.create(id(1), given, minute)
      given.set('a', 'changed by the caller')
      const before = await store.read(id(1))
      await store.merge(id(1), changes({ a: '2' }), minute)
      await store.rename(id(1), id(2), changes({ b: '3' }, ['a']), minute)
      assert.deepEqual([...(before as StoredSession).fields], [['a', '1']])
    })

    it('renames as one step: the old id no longer exists', async (t) => {
      const { store } = await open(t)
      await store.create(id(1), fields({ a: '1', b: '2' }), minute)
      assert.equal(await store.rename(id(1), id(2), changes({ user: '7' }, ['b']), minute), true)
      assert.equal(await store.read(id(1)), undefined)
      assert.deepEqual(await contents(store, id(2)), { a: '1', user: '7' })
      assert.equal(await store.rename(id(1), id(3), changes({}), minute), false)
      assert.equal(await store.read(id(3)), undefined)
    })

    it('does not restore a missing session', async (t) => {
      const { store } = await open(t)
      await store.create(id(1), fields({ a: '1' }), minute)
      await store.destroy(id(1))
      await store.destroy(id(1))
      assert.equal(await store.read(id(1)), undefined)
      assert.equal(await store.merge(id(1), changes({ a: '2' }), minute), false)
      assert.equal(await store.merge(id(1), changes({}), minute), false)
      assert.equal(await store.rename(id(1), id(2), changes({ a: '2' }), minute), false)
      assert.equal(await store.read(id(1)), undefined)
      assert.equal(await store.read(id(2)), undefined)
    })

    it('loses no concurrent changes', async (t) => {
      const { store } = await open(t)
      await store.create(id(1), fields({ kept: 'x', gone: 'y' }), minute)
      const names = Array.from({ length: 100 }, (_, at) => `n${at}`)
      const outcomes = await Promise.all([
        ...names.map((name) => store.merge(id(1), changes({ [name]: name }), minute)),
        store.merge(id(1), changes({}, ['gone']), minute),
      ])
      assert.ok(outcomes.every(Boolean))
      assert.deepEqual(await contents(store, id(1)), { kept: 'x', ...Object.fromEntries(names.map((n) => [n, n])) })
    })

    it('accepts one of two concurrent renames', async (t) => {
      const { store } = await open(t)
      await store.create(id(1), fields({ a: '1' }), minute)
      const rename = (to: number) => store.rename(id(1), id(to), changes({ to: `${to}` }), minute)
      const outcomes = await Promise.all([2, 3, 4].map(rename))
      assert.equal(outcomes.filter(Boolean).length, 1)
      const winner = outcomes.indexOf(true) + 2
      for (const to of [2, 3, 4]) {
        assert.deepEqual(await contents(store, id(to)), to === winner ? { a: '1', to: `${to}` } : undefined)
      }
    })

    it('ends a session that is merged and renamed at the same time', async (t) => {
      const { store } = await open(t)
      await store.create(id(1), fields({ a: '1' }), minute)
      await Promise.all([
        store.merge(id(1), changes({ b: '2' }), minute),
        store.destroy(id(1)),
        store.merge(id(1), changes({ c: '3' }), minute),
        store.rename(id(1), id(2), changes({}), minute),
      ])
      assert.equal(await store.read(id(1)), undefined)
      assert.equal(await store.read(id(2)), undefined)
    })

    it('counts from zero, and sweeps no live sessions', async (t) => {
      const { store } = await open(t)
      assert.deepEqual({ ...store.counts }, { evicted: 0, damaged: 0 })
      assert.equal(await store.sweep(), 0)
      await store.create(id(1), fields({}), minute)
      assert.equal(await store.sweep(), 0)
      assert.deepEqual(await contents(store, id(1)), {})
    })

    it('keeps the keys of 200 parallel requests of one session', async (t) => {
      const { store } = await open(t)
      const { url } = await serveSessions(
        t,
        {
          begin: ({ session }) => session.set('begun', true),
          write: async ({ session, query }) => {
            const at = Number(query.get('at'))
            await Promise.resolve()
            session.set(`key${at}`, at)
            session.setFlashBag(`form${at}`, { at })
          },
        },
        { store },
      )
      const cookie = `SVCSID=${sessionCookieOf(await request(`${url}/begin`))?.value}`
      const all = Array.from({ length: 200 }, (_, at) => at)
      await Promise.all(all.map((at) => request(`${url}/write?at=${at}`, { headers: { cookie } })))
      const expected = all.flatMap((at) => [[`key:key${at}`, `${at}`], [`flash:form${at}`, `{"at":${at}}`]])
      const found = await contents(store, cookie.slice('SVCSID='.length))
      assert.deepEqual(found, Object.fromEntries([['key:begun', 'true'], ...expected]))
    })
  })

  describe(`time in the ${name} store`, () => {
    it('is measured from the last create, merge or rename', async (t) => {
      const { store, advance } = await open(t)
      await store.create(id(1), fields({ a: '1' }), minute)
      await assertRemaining(store, id(1), minute)
      await advance(minute / 2)
      await assertRemaining(store, id(1), minute / 2)
      assert.equal(await store.merge(id(1), changes({}), minute), true)
      await advance(minute / 2)
      assert.equal(await store.merge(id(1), changes({ b: '2' }), 2 * minute), true)
      await assertRemaining(store, id(1), 2 * minute)
      await advance(minute)
      assert.equal(await store.rename(id(1), id(2), changes({}), minute), true)
      await assertRemaining(store, id(2), minute)
    })

    it('continues after a merge that does not renew it', async (t) => {
      const { store, advance } = await open(t)
      await store.create(id(1), fields({ a: '1' }), minute)
      await advance(minute / 2)
      assert.equal(await store.merge(id(1), changes({ b: '2' }), undefined), true)
      assert.equal(await store.merge(id(1), changes({}), undefined), true)
      await assertRemaining(store, id(1), minute / 2)
      assert.deepEqual(await contents(store, id(1)), { a: '1', b: '2' })
      await advance(minute / 2)
      assert.equal(await store.merge(id(1), changes({ b: '3' }), undefined), false)
      assert.equal(await store.read(id(1)), undefined)
    })

    it('ends a session that was read but not used', async (t) => {
      const { store, advance } = await open(t)
      await store.create(id(1), fields({ a: '1' }), minute)
      await advance(minute / 2)
      assert.notEqual(await store.read(id(1)), undefined)
      await advance(minute / 2)
      assert.equal(await store.read(id(1)), undefined)
    })

    it('does not restore an expired session, swept or not', async (t) => {
      const { store, advance } = await open(t)
      for (const number of [1, 2, 3, 4]) await store.create(id(number), fields({ a: '1' }), minute)
      await advance(minute)
      assert.equal(await store.merge(id(1), changes({}), minute), false)
      assert.equal(await store.merge(id(2), changes({ a: '2' }), minute), false)
      assert.equal(await store.rename(id(3), id(5), changes({}), minute), false)
      await store.sweep()
      assert.equal(await store.merge(id(4), changes({ a: '2' }), minute), false)
      for (const number of [1, 2, 3, 4, 5]) assert.equal(await store.read(id(number)), undefined)
    })

    it('decides what a sweep removes', async (t) => {
      const { store, advance, expiresByItself = false } = await open(t)
      await store.create(id(1), fields({}), minute)
      await store.create(id(2), fields({}), 3 * minute)
      await store.create(id(3), fields({}), minute)
      await store.create(id(4), fields({}), minute)
      await advance(minute / 2)
      await store.merge(id(4), changes({}), minute)
      await advance(minute / 2)
      assert.equal(await store.sweep(), expiresByItself ? 0 : 2)
      assert.equal(await store.sweep(), 0)
      assert.equal(store.stored ?? 2, 2)
      assert.deepEqual(await contents(store, id(2)), {})
      assert.deepEqual(await contents(store, id(4)), {})
    })
  })

  /** Within a quarter of a minute: some stores round, and some clocks keep running. */
  async function assertRemaining(store: SessionStore, id: string, expectedMs: number): Promise<void> {
    const remainingMs = (await store.read(id))?.remainingMs ?? 0
    const right = remainingMs <= expectedMs + 1 && remainingMs > expectedMs - minute / 4
    assert.ok(right, `${remainingMs} ms remain in place of ${expectedMs}`)
  }
}
