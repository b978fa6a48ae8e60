import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, linkSync, mkdirSync, openSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathOfOpen, readFileWithin } from '../../lib/files/opened-file.ts'
import { withoutProc } from '../support/around-open.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

for (const system of ['with /proc', 'without /proc']) {
  test(`the path of an open file has no links, ${system}`, (t) => {
    if (system === 'without /proc') withoutProc(t)
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'real'))
    writeFileSync(join(folder, 'real', 'a'), 'a')
    symlinkSync('real', join(folder, 'link'))
    symlinkSync('real/a', join(folder, 'b'))
    for (const name of ['real/a', 'link/a', 'b']) {
      const descriptor = openSync(join(folder, name), 'r')
      assert.equal(pathOfOpen(descriptor, join(folder, name)), join(folder, 'real', 'a'))
      closeSync(descriptor)
    }
  })
}

test('the path of an open file is where the file is now, not where its path leads', () => {
  const folder = temporaryFolder()
  for (const name of ['a', 'b']) writeFileSync(join(folder, name), name)
  const descriptor = openSync(join(folder, 'a'), 'r')
  renameSync(join(folder, 'a'), join(folder, 'c'))
  linkSync(join(folder, 'b'), join(folder, 'a'))
  assert.equal(pathOfOpen(descriptor, join(folder, 'a')), join(folder, 'c'))
  rmSync(join(folder, 'c'))
  assert.equal(pathOfOpen(descriptor, join(folder, 'a')), join(folder, 'c (deleted)'))
  closeSync(descriptor)
})

test('without /proc the path of an open file is unknown when another file, or none, has its path', (t) => {
  withoutProc(t)
  const path = join(temporaryFolder(), 'a')
  writeFileSync(path, 'a')
  const descriptor = openSync(path, 'r')
  rmSync(path)
  assert.equal(pathOfOpen(descriptor, path), undefined)
  writeFileSync(path, 'b')
  assert.equal(pathOfOpen(descriptor, path), undefined)
  closeSync(descriptor)
})

test('reads only regular files below a folder, and never blocks on a pipe', () => {
  const outer = temporaryFolder()
  const root = join(outer, 'root')
  mkdirSync(join(root, 'sub'), { recursive: true })
  writeFileSync(join(outer, 'outside'), 'outside')
  writeFileSync(join(root, 'sub', 'a'), 'caf\u00e9')
  symlinkSync('../outside', join(root, 'out'))
  symlinkSync('sub', join(root, 'in'))
  symlinkSync('root', join(outer, 'current'))
  execFileSync('mkfifo', [join(root, 'fifo')])
  const { text, stats } = readFileWithin(join(outer, 'current'), join(root, 'in', 'a'))
  assert.deepEqual([text, stats.size], ['caf\u00e9', 5])
  const refused: [name: string, message: string][] = [
    ['out', `it is outside ${root}`],
    ['../outside', `it is outside ${root}`],
    ['sub', 'it is not a regular file'],
    ['fifo', 'it is not a regular file'],
  ]
  for (const [name, message] of refused) assert.throws(() => readFileWithin(root, join(root, name)), { message }, name)
  assert.throws(() => readFileWithin(root, join(root, 'in', 'a'), 4), { message: 'it is larger than 4 bytes' })
  assert.throws(() => readFileWithin(root, join(root, 'none')), { code: 'ENOENT' })
})
