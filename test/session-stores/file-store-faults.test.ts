import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as promises from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { problemOfFields } from '../../lib/session/fields.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { checkDamagedFiles, damage, faulty, openFileStore } from './file-store-support.ts'
import { changes, contents, fields, id } from './store-values.ts'

const minute = 60_000
const hour = 60 * minute

describe('a damaged session file', () => {
  const whole = JSON.stringify({ version: 1, fields: [['key:a', '1']] })
  const kinds: Readonly<Record<string, string | Uint8Array>> = {
    'an empty file': '',
    'a truncated file': whole.slice(0, -5),
    'a file of zeros': new Uint8Array(whole.length),
    'no JSON': '<html>',
    'JSON and more': `${whole}x`,
    'no object': '1',
    null: 'null',
    'a list': '[]',
    'another version': whole.replace('1', '2'),
    'no version': '{"fields":[]}',
    'no fields': '{"version":1}',
    'fields as an object': '{"version":1,"fields":{"a":"1"}}',
    'a field that is not a pair': '{"version":1,"fields":[["a"]]}',
    'a field of three': '{"version":1,"fields":[["a","b","c"]]}',
    'a field that is not a string': '{"version":1,"fields":[["a",1]]}',
    'a name that is not a string': '{"version":1,"fields":[[null,"1"]]}',
    'bytes that are not UTF-8': Buffer.from(whole.replace('a', '\xff'), 'latin1'),
    'a value that is not JSON': whole.replace('"1"', '"{"'),
    'a truncated value': JSON.stringify({ version: 1, fields: [['key:b', '1'], ['key:a', '"text']] }),
    'an empty value': whole.replace('"1"', '""'),
    'flash that is not JSON': JSON.stringify({ version: 1, fields: [['flash:f', '{"x":']] }),
    'flash that is a list': JSON.stringify({ version: 1, fields: [['flash:f', '[1]']] }),
    'flash that is null': JSON.stringify({ version: 1, fields: [['flash:f', 'null']] }),
    'flash that is a string': JSON.stringify({ version: 1, fields: [['flash:f', '"x"']] }),
    'UTF-16': Buffer.from(whole, 'utf16le'),
  }

  for (const [kind, content] of Object.entries(kinds)) {
    it(`is ignored, counted and reported once: ${kind}`, async (t) => {
      const { store, problems, fileOf, advance } = openFileStore(t, undefined, undefined, problemOfFields)
      await store.create(id(1), fields({ a: '1' }), minute)
      damage(fileOf(id(1)), content)
      assert.equal(await store.read(id(1)), undefined)
      assert.equal(await store.read(id(1)), undefined)
      assert.equal(await store.merge(id(1), changes({ b: '1' }), minute), false)
      assert.equal(await store.rename(id(1), id(2), changes({}), minute), false)
      assert.equal(store.counts.damaged, 1)
      assert.equal(problems.length, 1)
      assert.ok(problems[0]?.startsWith(`the session file ${fileOf(id(1))} is damaged and was ignored: it`))
      assert.equal(await store.sweep(), 0)
      advance(minute)
      assert.equal(await store.sweep(), 1)
      assert.equal(fs.existsSync(fileOf(id(1))), false)
    })
  }

  it('may be anything but a regular file', async (t) => {
    const { store, problems, folder, fileOf, advance } = openFileStore(t)
    await store.create(id(9), fields({}), hour)
    fs.mkdirSync(fileOf(id(1)))
    fs.symlinkSync(fileOf(id(9)), fileOf(id(2)))
    for (const number of [1, 2]) fs.lutimesSync(fileOf(id(number)), 2 ** 31, 2 ** 31)
    assert.equal(await store.read(id(1)), undefined)
    assert.equal(await store.read(id(2)), undefined)
    assert.equal(await store.merge(id(2), changes({}), minute), false)
    assert.equal(problems.length, 2)
    advance(50 * 365 * 24 * hour)
    assert.equal(await store.sweep(), 1)
    assert.equal(fs.readdirSync(folder).length, 2)
  })

  it('never makes a read fail, and never returns an invalid session', (t) => checkDamagedFiles(t, 150))

  it('is valid again when the session is created again', async (t) => {
    const { store, fileOf } = openFileStore(t)
    await store.create(id(1), fields({}), minute)
    damage(fileOf(id(1)), '')
    assert.equal(await store.read(id(1)), undefined)
    await store.destroy(id(1))
    await store.create(id(1), fields({ a: '1' }), minute)
    assert.deepEqual(await contents(store, id(1)), { a: '1' })
  })
})

describe('a failing disk', () => {
  it('keeps the previous state, and is reported with the folder', async (t) => {
    const failing = new Map<string, string>()
    const { store, folder, fileOf } = openFileStore(t, faulty(failing))
    await store.create(id(1), fields({ a: '1' }), minute)
    for (const call of ['writeFile', 'utimes', 'rename']) {
      failing.set(call, 'ENOSPC')
      const message = new RegExp(`^Cannot save a session in ${folder}: ENOSPC.*; the user.*the disk must have room`)
      await assert.rejects(async () => store.merge(id(1), changes({ b: '2' }), minute), { message })
      await assert.rejects(async () => store.rename(id(1), id(2), changes({ b: '2' }), minute), { message })
      await assert.rejects(async () => store.create(id(3), fields({}), minute), { message })
      failing.clear()
      assert.deepEqual(await contents(store, id(1)), { a: '1' })
      assert.deepEqual(fs.readdirSync(folder), [fileOf(id(1)).slice(folder.length + 1)])
    }
    assert.equal(await store.merge(id(1), changes({ b: '2' }), minute), true)
    assert.deepEqual(await contents(store, id(1)), { a: '1', b: '2' })
  })

  it('that keeps the old file undoes a rename', async (t) => {
    const failing = new Map<string, string>()
    const { store, fileOf } = openFileStore(t, faulty(failing))
    await store.create(id(1), fields({ a: '1' }), minute)
    failing.set(`unlink ${fileOf(id(1))}`, 'EACCES')
    await assert.rejects(async () => store.rename(id(1), id(2), changes({ user: '7' }), minute), /EACCES/)
    assert.deepEqual(await contents(store, id(1)), { a: '1' })
    assert.equal(await store.read(id(2)), undefined)
  })

  it('that loses the old file in the middle of a rename has no session', async (t) => {
    const failing = new Map<string, string>()
    const { store, fileOf } = openFileStore(t, faulty(failing))
    await store.create(id(1), fields({ a: '1' }), minute)
    failing.set(`unlink ${fileOf(id(1))}`, 'ENOENT')
    assert.equal(await store.rename(id(1), id(2), changes({ user: '7' }), minute), false)
    assert.equal(await store.read(id(2)), undefined)
  })

  it('that loses a file between two checks has no session', async (t) => {
    const failing = new Map<string, string>()
    const { store } = openFileStore(t, faulty(failing))
    await store.create(id(1), fields({ a: '1' }), minute)
    failing.set('readFile', 'ENOENT')
    assert.equal(await store.read(id(1)), undefined)
    failing.set('readFile', 'EIO')
    await assert.rejects(async () => store.read(id(1)), /^Error: Cannot read a session in .*EIO/)
    failing.clear()
    failing.set('opendir', 'EACCES')
    await assert.rejects(async () => store.sweep(), /^Error: Cannot sweep the sessions in .*EACCES/)
    failing.clear()
    assert.equal(await store.sweep(), 0)
    failing.set('unlink', 'EACCES')
    await assert.rejects(async () => store.destroy(id(1)), /^Error: Cannot remove a session from .*EACCES/)
    failing.clear()
    assert.deepEqual(await contents(store, id(1)), { a: '1' })
  })

  it('is reported if the folder is not a folder', async (t) => {
    const file = join(temporaryFolder(), 'file')
    fs.writeFileSync(file, '')
    const { store } = openFileStore(t, promises, file)
    const create = async () => store.create(id(1), fields({}), minute)
    await assert.rejects(create, /^Error: Cannot save a session in .*ENOTDIR/)
  })
})
