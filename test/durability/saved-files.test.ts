import assert from 'node:assert/strict'
import { fstatSync, fsyncSync, mkdirSync, readdirSync, readFileSync, renameSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { editFile } from '../../lib/storage/edit-file.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

test('a saved file is brought to disk before it is in its place, and its folder before that is told', () => {
  const folder = temporaryFolder()
  const file = join(folder, 'svc.json')
  writeFileSync(file, 'old')
  const steps: string[] = []
  editFile(file, () => 'new', {
    fsyncSync: (descriptor) => {
      const isFolder = fstatSync(descriptor).isDirectory()
      steps.push(`fsync ${isFolder ? 'the folder' : 'the new file'}, in its place is ${readFileSync(file, 'utf8')}`)
      fsyncSync(descriptor)
    },
    renameSync: (from, to) => {
      steps.push(`rename ${readFileSync(from, 'utf8')}`)
      renameSync(from, to)
    },
  })
  assert.deepEqual(steps, [
    'fsync the new file, in its place is old',
    'rename new',
    'fsync the folder, in its place is new',
  ])
})

test('what a killed process left behind of a file is removed by a later change, an hour on, and nothing else', () => {
  const folder = temporaryFolder()
  const file = join(folder, 'svc.json')
  const others = ['.svc.json.tmp', '.svc.json.0123456789abc.tmp', '.other.json.0123456789ab.tmp']
  const old = ['.svc.json.0123456789ab.tmp', ...others]
  const young = '.svc.json.ba9876543210.tmp'
  for (const name of [...old, young]) writeFileSync(join(folder, name), 'secret')
  const hourAgo = Date.now() / 1000 - 3601
  for (const name of old) utimesSync(join(folder, name), hourAgo, hourAgo)
  editFile(file, () => 'new')
  assert.deepEqual(readdirSync(folder).sort(), [...others, young, 'svc.json'].sort())
  assert.equal(readFileSync(file, 'utf8'), 'new')
})

test('a leftover that cannot be removed fails no change', () => {
  const folder = temporaryFolder()
  const leftover = join(folder, '.svc.json.0123456789ab.tmp')
  mkdirSync(leftover)
  utimesSync(leftover, 0, 0)
  editFile(join(folder, 'svc.json'), () => 'new')
  assert.deepEqual(readdirSync(folder).sort(), ['.svc.json.0123456789ab.tmp', 'svc.json'])
})
