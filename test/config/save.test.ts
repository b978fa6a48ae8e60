import assert from 'node:assert/strict'
import fs, { chmodSync, chownSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { readdirSync, readlinkSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { editConfig } from '../../lib/config/save.ts'
import { loadConfig } from '../../lib/config/load.ts'
import { saveConfig } from '../../lib/config/save.ts'
import type { Config } from '../../lib/config/table.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { checkSaved } from './save-support.ts'

const edits: readonly [what: string, before: string | undefined, changes: Partial<Config>, after: string][] = [
  ['creates a new text', undefined, { 'admin.user': 'ann' }, '{\n  "admin": {\n    "user": "ann"\n  }\n}\n'],
  [
    'makes a new text of several keys',
    undefined,
    { 'admin.user': 'ann', 'admin.secret': 's', app_key: 'k', 'server.tls.cert': '' },
    '{\n  "admin": {\n    "user": "ann",\n    "secret": "s"\n  },\n  "app_key": "k",\n'
      + '  "server": {\n    "tls": {\n      "cert": ""\n    }\n  }\n}\n',
  ],
  [
    'replaces a nested value',
    '{"admin": {"user": "", "x": 1}}',
    { 'admin.user': 'ann' },
    '{"admin": {"user": "ann", "x": 1}}',
  ],
  ['replaces a dotted value', '{ "admin.user":"" }', { 'admin.user': 'ann' }, '{ "admin.user":"ann" }'],
  [
    'replaces a half dotted value',
    '{"server":{"tls.cert":"a"}}',
    { 'server.tls.cert': '' },
    '{"server":{"tls.cert":""}}',
  ],
  [
    'keeps odd spaces, line ends, numbers, doubled unknown values and a byte order mark',
    '\ufeff{\r\n\t"9":1.50,"1" : [ 1,2 ],\r\n\r\n\t"admin" :{"user"\t:\t"x" } ,"mine":1e2}\r\n\r\n',
    { 'admin.user': 'ann' },
    '\ufeff{\r\n\t"9":1.50,"1" : [ 1,2 ],\r\n\r\n\t"admin" :{"user"\t:\t"ann" } ,"mine":1e2}\r\n\r\n',
  ],
  [
    'keeps a value as it is written when it is the same',
    '{"server":{"port":8.08e3}}',
    { 'server.port': 8080 },
    '{"server":{"port":8.08e3}}',
  ],
  [
    'adds beside a nested key of the group',
    '{\n    "admin": {\n        "user": "ann"\n    },\n    "mine": 1\n}',
    { 'admin.secret': 's' },
    '{\n    "admin": {\n        "user": "ann",\n        "secret": "s"\n    },\n    "mine": 1\n}',
  ],
  [
    'adds a nested key where the others of its group are dotted',
    '{\r\n\t"admin.user": "ann",\r\n\t"mine": 1\r\n}',
    { 'admin.secret': 's' },
    '{\r\n\t"admin.user": "ann",\r\n\t"mine": 1,\r\n\t"admin": {\r\n\t  "secret": "s"\r\n\t}\r\n}',
  ],
  [
    'adds beside a half dotted key',
    '{"server": {"tls.cert": ""}}',
    { 'server.tls.key': '' },
    '{"server": {"tls.cert": "", "tls": { "key": "" }}}',
  ],
  [
    'adds to a minified text',
    '{"admin":{"user":"ann"}}',
    { 'admin.secret': 's' },
    '{"admin":{"user":"ann", "secret": "s"}}',
  ],
  [
    'adds after several on one line',
    '{ "cache_ram": true, "mine": 1 }',
    { app_key: 'k' },
    '{ "cache_ram": true, "mine": 1, "app_key": "k" }',
  ],
  [
    'adds to an empty group',
    '{\n  "admin": {}\n}\n',
    { 'admin.user': 'ann' },
    '{\n  "admin": { "user": "ann" }\n}\n',
  ],
  ['adds to an empty group on one line', '{"admin": {}}', { 'admin.user': 'ann' }, '{"admin": { "user": "ann" }}'],
  [
    'adds to a group of unknown keys',
    '{"admin": {"mine": 1}}',
    { 'admin.user': 'ann' },
    '{"admin": {"mine": 1, "user": "ann"}}',
  ],
  [
    'adds a group at the end',
    '{\n\t"mine": 1\n}',
    { 'admin.user': 'ann' },
    '{\n\t"mine": 1,\n\t"admin": {\n\t  "user": "ann"\n\t}\n}',
  ],
  ['adds a group to an empty object', '{}', { 'admin.user': 'ann' }, '{ "admin": { "user": "ann" } }'],
  [
    'adds a group inside a group',
    '{"server": {"port": 1}}',
    { 'server.tls.key': '' },
    '{"server": {"port": 1, "tls": { "key": "" }}}',
  ],
  [
    'escapes what JSON escapes',
    '{"admin.user": ""}',
    { 'admin.user': '"\\\n\u2028' },
    '{"admin.user": "\\"\\\\\\n\u2028"}',
  ],
  [
    'is not led astray by names',
    '{"x": {"admin.user": 1}, "admin": {"user": "a"}}',
    { 'admin.user': 'b' },
    '{"x": {"admin.user": 1}, "admin": {"user": "b"}}',
  ],
]

const refusals: readonly [before: string, changes: object, message: string][] = [
  [
    '{',
    { app_key: 'k' },
    'it is not valid JSON at line 1, column 2: expected a name in double quotes, but found the end of the text',
  ],
  ['[]', { app_key: 'k' }, 'the configuration must be an object, {...}: it is a list'],
  [
    '{"admin": 3}',
    { 'admin.user': 'a' },
    'admin must be an object with enabled, user, password, secret, totp, recovery_codes, hardened, allow, metrics_token, setup_token: it is a number',
  ],
  [
    '{"admin.user": "", "admin": {"user": ""}}',
    { 'admin.user': 'a' },
    'admin.user is set twice, as "admin.user" and as "admin": "user"',
  ],
]

test('makes only the requested change and keeps every other byte', async (t) => {
  for (const [what, before, changes, after] of edits) {
    await t.test(what, () => assert.equal(editConfig(before, changes), after))
  }
})

test('refuses invalid texts', () => {
  for (const [before, changes, message] of refusals) {
    assert.throws(() => editConfig(before, changes), { message })
  }
})

test('saved values load again, whatever the form of the file (seeded)', () => checkSaved(25))

test('creates a new file with mode 0600', () => {
  const folder = temporaryFolder()
  const file = join(folder, 'svc.json')
  saveConfig(file, { 'admin.user': 'ann' })
  assert.equal(statSync(file).mode & 0o7777, 0o600)
  assert.equal(loadConfig(file).config['admin.user'], 'ann')
  assert.deepEqual(readdirSync(folder), ['svc.json'])
})

test('keeps mode, owner and group, and replaces the file instead of overwriting it', () => {
  const folder = temporaryFolder()
  const file = join(folder, 'svc.json')
  const root = process.geteuid?.() === 0
  for (const mode of [0o644, 0o640, 0o400, 0o666]) {
    writeFileSync(file, '{}', { mode: 0o600 })
    if (root) chownSync(file, 1234, 2345)
    chmodSync(file, mode)
    const before = statSync(file)
    saveConfig(file, { 'admin.user': `ann ${mode}` })
    const after = statSync(file)
    assert.equal(after.mode, before.mode)
    assert.deepEqual([after.uid, after.gid], [before.uid, before.gid])
    assert.notEqual(after.ino, before.ino)
    assert.deepEqual(readdirSync(folder), ['svc.json'])
    chmodSync(file, 0o600)
  }
})

test('keeps a symbolic link, and replaces its target', () => {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'real'))
  const real = join(folder, 'real', 'conf.json')
  writeFileSync(real, '{"mine": 1}')
  symlinkSync('real/conf.json', join(folder, 'svc.json'))
  saveConfig(join(folder, 'svc.json'), { app_key: 'k' })
  assert.equal(readlinkSync(join(folder, 'svc.json')), 'real/conf.json')
  assert.equal(readFileSync(real, 'utf8'), '{"mine": 1, "app_key": "k"}')
})

test('distinguishes a dangling symbolic link from a cycle', () => {
  const folder = temporaryFolder()
  symlinkSync('nowhere.json', join(folder, 'svc.json'))
  saveConfig(join(folder, 'svc.json'), { app_key: 'k' })
  assert.deepEqual(readdirSync(folder), ['svc.json'])
  symlinkSync('circle.json', join(folder, 'circle.json'))
  assert.throws(() => saveConfig(join(folder, 'circle.json'), { app_key: 'k' }), /Cannot save .*: ELOOP/)
})

/** Replaces a function of `node:fs` until the end of the test. */
function replaceStep(t: TestContext, name: 'fsyncSync' | 'renameSync', step: (...args: never[]) => void): void {
  t.mock.method(fs, name, step)
  syncBuiltinESMExports()
  t.after(() => {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  })
}

test('the content and the folder are on disk before and after the rename', (t) => {
  const file = join(temporaryFolder(), 'svc.json')
  const steps: string[] = []
  const { fsyncSync, renameSync } = fs
  replaceStep(t, 'fsyncSync', (descriptor: number) => {
    steps.push(existsSync(file) ? 'folder' : 'content')
    fsyncSync(descriptor)
  })
  replaceStep(t, 'renameSync', (from: string, to: string) => {
    steps.push('rename')
    renameSync(from, to)
  })
  saveConfig(file, { app_key: 'k' })
  assert.deepEqual(steps, ['content', 'rename', 'folder'])
})

for (const step of ['fsyncSync', 'renameSync'] as const) {
  test(`a save that fails at the last step keeps the old file and leaves no temporary file: ${step}`, (t) => {
    const folder = temporaryFolder()
    const file = join(folder, 'svc.json')
    writeFileSync(file, '{"mine": 1}')
    const failure = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
    replaceStep(t, step, () => {
      throw failure
    })
    assert.throws(() => saveConfig(file, { app_key: 'k' }), {
      message: `Cannot save ${file}: ENOSPC: no space left on device; the disk is full`,
      cause: failure,
    })
    assert.equal(readFileSync(file, 'utf8'), '{"mine": 1}')
    assert.deepEqual(readdirSync(folder), ['svc.json'])
  })
}

test('a folder at the path of the file is an error, and is kept', () => {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'svc.json'))
  assert.throws(() => saveConfig(join(folder, 'svc.json'), { app_key: 'k' }), /Cannot save .*: it is not a regular file$/)
  assert.deepEqual(readdirSync(folder), ['svc.json'])
})

test('a missing folder and a wrong encoding are errors with a remedy', () => {
  const folder = temporaryFolder()
  const file = join(folder, 'svc.json')
  assert.throws(() => saveConfig(join(folder, 'no', 'svc.json'), { app_key: 'k' }), /ENOENT.*; the folder does not exist/)
  writeFileSync(file, Buffer.from([0x7b, 0xff, 0x7d]))
  assert.throws(() => saveConfig(file, { app_key: 'k' }), /Cannot save .*: .*not valid for encoding utf-8/)
  assert.deepEqual(readFileSync(file), Buffer.from([0x7b, 0xff, 0x7d]))
})

test('a folder that is not writable is an error that names the cause, and nothing changes', () => {
  const folder = temporaryFolder()
  const file = join(folder, 'svc.json')
  writeFileSync(file, '{}', { mode: 0o666 })
  chmodSync(folder, 0o555)
  const root = process.geteuid?.() === 0
  if (root) process.seteuid?.(65534)
  try {
    assert.throws(() => saveConfig(file, { app_key: 'k' }), /EACCES.*; let the user .* write to its folder$/)
  } finally {
    if (root) process.seteuid?.(0)
  }
  chmodSync(folder, 0o755)
  assert.equal(readFileSync(file, 'utf8'), '{}')
  assert.deepEqual(readdirSync(folder), ['svc.json'])
})

