import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as promises from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { openFileStore, recording } from './file-store-support.ts'
import { testSessionStore } from './store-conformance.ts'
import { changes, contents, fields, id } from './store-values.ts'

const minute = 60_000
const hour = 60 * minute

testSessionStore('file', (t) => openFileStore(t))

describe('the files of the file store', () => {
  it('do not exist before the first session', async (t) => {
    const { store, folder } = openFileStore(t)
    assert.equal(await store.read(id(1)), undefined)
    assert.equal(await store.sweep(), 0)
    await store.destroy(id(1))
    await store.merge(id(1), changes({ a: '1' }), minute)
    assert.equal(fs.existsSync(folder), false)
  })

  it('are readable only by this user, and do not reveal the id', async (t) => {
    const { store, folder, fileOf } = openFileStore(t)
    await store.create(id(1), fields({ a: '1' }), minute)
    await store.merge(id(1), changes({ b: '2' }), minute)
    assert.deepEqual(fs.readdirSync(folder), [fileOf(id(1)).slice(folder.length + 1)])
    assert.equal(fs.statSync(fileOf(id(1))).mode & 0o777, 0o600)
    assert.equal(fs.statSync(folder).mode & 0o777, 0o700)
    assert.doesNotMatch(fs.readFileSync(fileOf(id(1)), 'utf8'), new RegExp(id(1)))
  })

  it('are available to the next process', async (t) => {
    const { store, folder } = openFileStore(t)
    await store.create(id(1), fields({ a: '1' }), minute)
    await store.close()
    const next = openFileStore(t, promises, folder)
    assert.deepEqual(await contents(next.store, id(1)), { a: '1' })
  })

  it('are restored in a folder that was removed', async (t) => {
    const { store, folder } = openFileStore(t)
    await store.create(id(1), fields({ a: '1' }), minute)
    fs.rmSync(folder, { recursive: true })
    assert.equal(await store.merge(id(1), changes({ b: '2' }), minute), false)
    await store.create(id(2), fields({ a: '1' }), minute)
    assert.deepEqual(await contents(store, id(2)), { a: '1' })
  })

  it('are not read by a sweep, nor written by a renewal', async (t) => {
    const calls: string[] = []
    const { store, advance } = openFileStore(t, recording(calls))
    await store.create(id(1), fields({ a: '1' }), minute)
    await store.create(id(2), fields({ a: '1' }), minute)
    advance(minute / 2)
    calls.length = 0
    assert.equal(await store.merge(id(1), changes({}), minute), true)
    assert.deepEqual(calls, ['lstat', 'utimes'])
    advance(minute / 2)
    calls.length = 0
    assert.equal(await store.sweep(), 1)
    assert.deepEqual(calls, ['opendir', 'lstat', 'lstat', 'unlink'])
  })

  it('left by a killed process are removed after an hour, others stay', async (t) => {
    const { store, folder, fileOf, advance } = openFileStore(t)
    await store.create(id(1), fields({ a: '1' }), 3 * hour)
    const leftover = `${fileOf(id(1))}.0123456789ab.tmp`
    const others = ['notes.txt', `${'0'.repeat(64)}.jsonx`, 'x.tmp']
    for (const name of others) fs.writeFileSync(join(folder, name), '')
    fs.writeFileSync(leftover, 'half')
    fs.utimesSync(leftover, 2 ** 31, 2 ** 31) // killed after its time was set
    advance(hour - minute)
    assert.equal(await store.sweep(), 0)
    assert.ok(fs.existsSync(leftover))
    advance(2 * minute)
    assert.equal(await store.sweep(), 0)
    assert.equal(fs.existsSync(leftover), false)
    assert.deepEqual(await contents(store, id(1)), { a: '1' })
    assert.equal(fs.readdirSync(folder).length, 1 + others.length)
  })

  it('are swept by one sweep at a time, beside other work', async (t) => {
    const calls: string[] = []
    const { store, advance } = openFileStore(t, recording(calls))
    for (let number = 0; number < 50; number++) await store.create(id(number), fields({}), minute)
    advance(minute)
    calls.length = 0
    const sweeps = [store.sweep(), store.sweep()]
    await store.create(id(100), fields({ a: '1' }), minute)
    assert.deepEqual(await Promise.all(sweeps), [50, 50])
    assert.equal(calls.filter((call) => call === 'opendir').length, 1)
    assert.deepEqual(await contents(store, id(100)), { a: '1' })
    assert.equal(await store.sweep(), 0)
  })

  it('are written completely before the store is closed', async (t) => {
    const { store, folder } = openFileStore(t)
    const created = store.create(id(1), fields({ a: '1' }), minute)
    const merged = store.merge(id(1), changes({ b: '2' }), minute)
    await store.close()
    const next = openFileStore(t, promises, folder)
    assert.deepEqual(await contents(next.store, id(1)), { a: '1', b: '2' })
    await Promise.all([created, merged])
  })

  it('end a sweep when the store is closed', async (t) => {
    const { store, folder, advance } = openFileStore(t)
    for (let number = 0; number < 100; number++) await store.create(id(number), fields({}), minute)
    advance(minute)
    const sweeping = store.sweep()
    await store.close()
    assert.equal((await Promise.resolve(sweeping)) + fs.readdirSync(folder).length, 100)
    assert.ok(fs.readdirSync(folder).length > 0)
  })
})

describe('a process that is killed', () => {
  it('in the middle of a rename leaves the old id unchanged, and the new id unused', async (t) => {
    const { store, folder } = openFileStore(t)
    await store.create(id(1), fields({ a: '1' }), minute)
    const killed = new Promise<void>((resolve) => {
      const hanging = (): Promise<void> => new Promise(() => resolve())
      const dying = openFileStore({ after: () => {} }, { ...promises, unlink: hanging }, folder)
      void dying.store.rename(id(1), id(2), changes({ user: '7' }), minute)
    })
    await killed
    assert.deepEqual(await contents(store, id(1)), { a: '1' })
    assert.equal(await store.rename(id(1), id(3), changes({ user: '8' }), minute), true)
    assert.equal(await store.read(id(1)), undefined)
  })
})
