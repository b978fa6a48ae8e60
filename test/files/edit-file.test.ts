import assert from 'node:assert/strict'
import fs, { chmodSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, mock, test } from 'node:test'
import { editFile } from '../../lib/files/edit-file.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

test('passes the old text, undefined if there is no file, and writes the new one', () => {
  const file = join(temporaryFolder(), 'a.txt')
  const given: (string | undefined)[] = []
  const append = (text: string | undefined): string => {
    given.push(text)
    return `${text ?? ''}\ufeffä\0`
  }
  editFile(file, append)
  editFile(file, append)
  assert.deepEqual(given, [undefined, '\ufeffä\0'])
  assert.equal(readFileSync(file, 'utf8'), '\ufeffä\0\ufeffä\0')
})

test('gives advice if this user cannot keep the group, and changes nothing', (t) => {
  const file = join(temporaryFolder(), 'a.txt')
  writeFileSync(file, 'old')
  t.after(() => {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  })
  t.mock.method(fs, 'fchownSync', () => {
    throw Object.assign(new Error('EPERM: operation not permitted, fchown'), { code: 'EPERM' })
  })
  syncBuiltinESMExports()
  const { gid } = statSync(file)
  const message = `Cannot save ${file}: its group (${gid}) cannot be kept by this user: run this as root, or as a user of that group`
  assert.throws(() => editFile(file, () => 'new'), { message })
  assert.deepEqual([readFileSync(file, 'utf8'), readdirSync(join(file, '..'))], ['old', ['a.txt']])
})

describe("under Node's permission model", () => {
  const calls = ['fsyncSync', 'fchmodSync', 'fchownSync'] as const
  beforeEach(() => {
    for (const name of calls) {
      mock.method(fs, name, () => {
        throw new Error(`${name} API is disabled when Permission Model is enabled.`)
      })
    }
    syncBuiltinESMExports()
    Object.defineProperty(process, 'permission', { value: {}, configurable: true })
  })
  afterEach(() => {
    Reflect.deleteProperty(process, 'permission')
    mock.restoreAll()
    syncBuiltinESMExports()
  })

  test('a file is synced to disk, and keeps its mode', () => {
    const file = join(temporaryFolder(), 'a.txt')
    const opened = mock.method(fs, 'openSync')
    syncBuiltinESMExports()
    editFile(file, () => 'old')
    assert.equal(statSync(file).mode & 0o777, 0o600)
    chmodSync(file, 0o640)
    editFile(file, () => 'new')
    assert.deepEqual([readFileSync(file, 'utf8'), statSync(file).mode & 0o777], ['new', 0o640])
    assert.deepEqual(readdirSync(join(file, '..')), ['a.txt'])
    const temporary = opened.mock.calls.filter(({ arguments: [path] }) => String(path).endsWith('.tmp'))
    const flags = temporary.map(({ arguments: [, flag] }) => Number(flag) & fs.constants.O_SYNC)
    assert.deepEqual(flags, [fs.constants.O_SYNC, fs.constants.O_SYNC])
  })

  test('the save fails if the owner or the group would change', () => {
    const file = join(temporaryFolder(), 'a.txt')
    writeFileSync(file, 'old')
    const { uid, gid } = statSync(file)
    const stats = fs.fstatSync
    mock.method(fs, 'fstatSync', (descriptor: number) => Object.assign(stats(descriptor), { gid: gid + 1 }))
    syncBuiltinESMExports()
    const advice = 'change it to the user and group that the server runs as'
    const message = `Cannot save ${file}: its owner (${uid}:${gid}) cannot be kept with --permission: ${advice}`
    assert.throws(() => editFile(file, () => 'new'), { message })
    assert.deepEqual([readFileSync(file, 'utf8'), readdirSync(join(file, '..'))], ['old', ['a.txt']])
  })
})

test('an empty file is an empty text, and the result can be empty', () => {
  const file = join(temporaryFolder(), 'a.txt')
  writeFileSync(file, '')
  editFile(file, (text) => {
    assert.equal(text, '')
    return ''
  })
  assert.equal(statSync(file).size, 0)
})

test('a path is relative to the working directory', () => {
  const folder = temporaryFolder()
  const before = process.cwd()
  process.chdir(folder)
  try {
    editFile('a.txt', () => 'a')
  } finally {
    process.chdir(before)
  }
  assert.equal(readFileSync(join(folder, 'a.txt'), 'utf8'), 'a')
})

test('an error of the edit is reported with the file and as cause, and nothing changes', () => {
  const folder = temporaryFolder()
  const file = join(folder, 'a.txt')
  const cause = new Error('it is wrong')
  const fail = (): never => {
    throw cause
  }
  assert.throws(() => editFile(file, fail), { message: `Cannot save ${file}: it is wrong`, cause })
  assert.deepEqual(readdirSync(folder), [])
  writeFileSync(file, 'old')
  assert.throws(() => editFile(file, fail), { message: `Cannot save ${file}: it is wrong`, cause })
  assert.equal(readFileSync(file, 'utf8'), 'old')
})

const hints: readonly [code: string, hint: string][] = [
  ['EACCES', '; let the user that the server runs as write to its folder'],
  ['EPERM', '; let the user that the server runs as write to its folder'],
  ['EROFS', '; the file system is read-only'],
  ['ENOSPC', '; the disk is full'],
  ['EDQUOT', '; the disk quota is used up'],
  ['EIO', ''],
]

test('a failure includes advice if there is any', (t) => {
  const file = join(temporaryFolder(), 'a.txt')
  t.after(() => {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  })
  let cause = new Error()
  t.mock.method(fs, 'renameSync', () => {
    throw cause
  })
  syncBuiltinESMExports()
  for (const [code, hint] of hints) {
    cause = Object.assign(new Error(`${code}: so it is`), { code })
    const message = `Cannot save ${file}: ${code}: so it is${hint}`
    assert.throws(() => editFile(file, () => 'a'), { message, cause })
  }
})
