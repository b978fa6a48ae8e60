import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { SessionStore } from '../../lib/session/store.ts'
import { machine, type Machine } from './file-store-support.ts'
import { visit } from '../session/session-server.ts'
import { changes, contents, fields, id } from './store-values.ts'

const minute = 60_000
const hour = 60 * minute
const ttl = 10 * minute

const jumps: readonly (readonly [words: string, ms: number])[] = [['an hour', hour], ['a day', 24 * hour]]
/** Which process continues after the jump. */
const processes: readonly (readonly [words: string, next: (machine: Machine, store: SessionStore) => SessionStore])[] = [
  ['in the same process', (_machine, store) => store],
  ['between two processes', (machine) => machine.open()],
]

for (const [far, jumpMs] of jumps) {
  for (const [where, next] of processes) {
    describe(`sessions in files, when the clock is set back by ${far} ${where}`, () => {
      it('exist as long as they are used, and no write is lost', async (t) => {
        const computer = machine(t)
        const before = computer.open()
        for (const number of [1, 2, 3]) await before.create(id(number), fields({ a: `${number}` }), ttl)
        computer.pass(ttl / 2)
        computer.jump(-jumpMs)
        const store = next(computer, before)
        assert.equal(await store.sweep(), 0)
        assert.deepEqual(await contents(store, id(1)), { a: '1' })
        assert.equal(await store.merge(id(1), changes({ b: '1' }), ttl), true)
        assert.equal(await store.merge(id(2), changes({}), ttl), true)
        assert.equal(await store.rename(id(3), id(4), changes({}), ttl), true)
        await store.create(id(5), fields({ a: '5' }), ttl)
        const readAllSessions = async (): Promise<unknown> => Promise.all([1, 2, 3, 4, 5].map((number) => contents(store, id(number))))
        const expected = [{ a: '1', b: '1' }, { a: '2' }, undefined, { a: '3' }, { a: '5' }]
        assert.deepEqual(await readAllSessions(), expected)
        computer.pass(ttl - minute)
        assert.deepEqual(await readAllSessions(), expected)
        computer.pass(minute)
        assert.deepEqual(await readAllSessions(), [undefined, undefined, undefined, undefined, undefined])
        assert.equal(await store.sweep(), 4)
        assert.equal(computer.files(), 0)
      })

      it('end if they were unused for their time to live since it was noticed', async (t) => {
        const computer = machine(t)
        const before = computer.open()
        for (const number of [1, 2, 3, 4]) await before.create(id(number), fields({ a: '1' }), ttl)
        computer.jump(-jumpMs)
        const store = next(computer, before)
        assert.equal(await store.sweep(), 0)
        computer.pass(ttl - 1)
        assert.deepEqual(await contents(store, id(1)), { a: '1' })
        computer.pass(1)
        assert.equal(await store.read(id(1)), undefined)
        assert.equal(await store.merge(id(1), changes({}), ttl), false)
        assert.equal(await store.merge(id(2), changes({ a: '2' }), ttl), false)
        assert.equal(await store.rename(id(3), id(5), changes({}), ttl), false)
        assert.equal(await store.sweep(), 4)
        assert.equal(computer.files(), 0)
      })

      it('are unchanged when the clock is corrected', async (t) => {
        const computer = machine(t)
        const before = computer.open()
        await before.create(id(1), fields({ a: '1' }), ttl)
        computer.jump(-jumpMs)
        const store = next(computer, before)
        await store.sweep()
        computer.pass(ttl / 2)
        computer.jump(jumpMs)
        const last = next(computer, store)
        assert.equal(await last.sweep(), 0)
        assert.equal((await last.read(id(1)))?.remainingMs, ttl / 2)
        computer.pass(ttl / 2)
        assert.equal(await last.read(id(1)), undefined)
      })
    })

    describe(`sessions in files, when the clock is set ahead by ${far} ${where}`, () => {
      it('end as if the time had passed, and later writes live', async (t) => {
        const computer = machine(t)
        const before = computer.open()
        await before.create(id(1), fields({ a: '1' }), ttl)
        await before.create(id(2), fields({ a: '2' }), 48 * hour)
        computer.jump(jumpMs)
        const store = next(computer, before)
        assert.equal(await store.read(id(1)), undefined)
        assert.equal(await store.merge(id(1), changes({}), ttl), false)
        assert.deepEqual(await contents(store, id(2)), { a: '2' })
        await store.create(id(3), fields({ a: '3' }), ttl)
        assert.deepEqual(await contents(store, id(3)), { a: '3' })

        computer.jump(-jumpMs)
        const last = next(computer, store)
        assert.deepEqual(await contents(last, id(1)), { a: '1' }, 'the unswept session')
        assert.deepEqual(await contents(last, id(3)), { a: '3' })
        computer.pass(ttl)
        assert.deepEqual([await last.read(id(1)), await last.read(id(3))], [undefined, undefined])
        assert.equal(await last.sweep(), 2)
      })
    })
  }
}

describe('the leftovers of a killed process, when the clock is set back', () => {
  it('are removed an hour after it was noticed', async (t) => {
    const computer = machine(t)
    const store = computer.open()
    await store.create(id(1), fields({}), 2 * hour)
    computer.jump(-Date.now()) // The real file system determines when this file was changed.
    writeFileSync(join(computer.folder, `${'0'.repeat(64)}.json.0123456789ab.tmp`), 'half')
    await store.sweep()
    computer.pass(hour - 1)
    await store.sweep()
    assert.equal(computer.files(), 2)
    computer.pass(1)
    assert.equal(await store.sweep(), 0)
    assert.equal(computer.files(), 1)
  })
})

describe('a session with more than its time to live left', () => {
  it('is renewed with its cookie by the next request, once', async (t) => {
    const computer = machine(t)
    const { visitor } = await visit(
      t,
      { set: ({ session }) => session.set('a', 1), get: ({ session }) => String(session.get('a')) },
      { store: computer.open(), ttlS: ttl / 1000 },
    )
    const renewed = async (): Promise<boolean> => {
      const { headers, text } = await visitor.ask('get')
      assert.equal(text, '1')
      return headers['set-cookie']?.[0]?.includes(`Max-Age=${ttl / 1000};`) === true
    }
    await visitor.ask('set')
    computer.pass(minute / 2)
    assert.equal(await renewed(), false)
    computer.jump(-hour)
    assert.equal(await renewed(), true)
    assert.equal(await renewed(), false)
    computer.pass(ttl - minute)
    assert.equal(await renewed(), true)
  })
})
