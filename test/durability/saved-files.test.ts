import assert from 'node:assert/strict'
import fs, { fstatSync, fsyncSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { editFile } from '../../lib/files/edit-file.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

test('a saved file is brought to disk before it is in its place, and its folder before that is told', (t) => {
  const folder = temporaryFolder()
  const file = join(folder, 'svc.json')
  writeFileSync(file, 'old')
  const steps: string[] = []
  const [sync, rename] = [fsyncSync, renameSync]
  t.mock.method(fs, 'fsyncSync', (descriptor: number) => {
    const isFolder = fstatSync(descriptor).isDirectory()
    steps.push(`fsync ${isFolder ? 'the folder' : 'the new file'}, in its place is ${readFileSync(file, 'utf8')}`)
    sync(descriptor)
  })
  t.mock.method(fs, 'renameSync', (from: string, to: string) => {
    steps.push(`rename ${readFileSync(from, 'utf8')}`)
    rename(from, to)
  })
  syncBuiltinESMExports()
  t.after(() => {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  })
  editFile(file, () => 'new')
  assert.deepEqual(steps, [
    'fsync the new file, in its place is old',
    'rename new',
    'fsync the folder, in its place is new',
  ])
})
