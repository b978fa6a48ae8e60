import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { closeSync, openSync, readSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { LogFile, type FileSystem } from '../../lib/log/log-file.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { createFaultyDisk } from './faulty-disk.ts'

const nodeFileSystem: FileSystem = fs

test('knows its size, from the existing file and its own writes', () => {
  const path = join(temporaryFolder(), 'a.log')
  writeFileSync(path, 'torn')
  const file = new LogFile(path, nodeFileSystem)
  file.open()
  file.open()
  file.write(Buffer.from('..line\n'), 2)
  assert.deepEqual([file.size, statSync(path).size], [10, 10])
  file.close()
  file.close()
})

test('reports whether its path still leads to it', () => {
  const path = join(temporaryFolder(), 'a.log')
  const file = new LogFile(path, nodeFileSystem)
  assert.equal(file.isAtPath(), false)
  file.open()
  assert.equal(file.isAtPath(), true)
  unlinkSync(path)
  assert.equal(file.isAtPath(), false)
  writeFileSync(path, '')
  assert.equal(file.isAtPath(), false)
  file.reopen()
  assert.equal(file.isAtPath(), true)
  file.close()
})

test('keeps one file open, however often it is reopened', () => {
  const open = new Set<number>()
  const file = new LogFile(join(temporaryFolder(), 'a.log'), {
    ...nodeFileSystem,
    openSync: (...given) => {
      const descriptor = nodeFileSystem.openSync(...given)
      open.add(descriptor)
      return descriptor
    },
    closeSync: (descriptor) => {
      open.delete(descriptor)
      nodeFileSystem.closeSync(descriptor)
    },
  })
  file.open()
  for (let count = 0; count < 3; count += 1) {
    file.reopen()
    assert.equal(open.size, 1)
  }
  file.close()
  assert.equal(open.size, 0)
})

test('cannot be written before it is opened', () => {
  const path = join(temporaryFolder(), 'a.log')
  const file = new LogFile(path, nodeFileSystem)
  assert.throws(() => file.write(Buffer.from('line\n'), 0), { message: `Cannot write to ${path}: it is not open` })
})

test('leaves no descriptor open when it cannot be opened', () => {
  const fileSystem = createFaultyDisk()
  const closed: number[] = []
  const file = new LogFile(join(temporaryFolder(), 'a.log'), {
    ...fileSystem,
    closeSync: (fd) => {
      closed.push(fd)
      fileSystem.closeSync(fd)
    },
  })
  fileSystem.refused.set('fstatSync', 'EIO')
  assert.throws(() => file.open(), { code: 'EIO' })
  assert.equal(closed.length, 1)
})

test('a pipe has no size, so it is never rotated', () => {
  const path = join(temporaryFolder(), 'pipe')
  execFileSync('mkfifo', [path])
  const file = new LogFile(path, nodeFileSystem)
  file.open()
  const reader = openSync(path, 'r')
  file.write(Buffer.from('line\n'), 0)
  const read = Buffer.alloc(100)
  assert.equal(read.toString('utf8', 0, readSync(reader, read)), 'line\n')
  assert.deepEqual([file.size, file.room], [0, Number.POSITIVE_INFINITY])
  closeSync(reader)
  file.close()
})

test('a pipe without a reader refuses bytes when it is full, and does not block', (t) => {
  const path = join(temporaryFolder(), 'pipe')
  execFileSync('mkfifo', [path])
  const late = spawn('sh', ['-c', 'sleep 5; exec cat "$0"', path], { stdio: 'ignore' }) // Ends a write that blocks.
  t.after(() => late.kill())
  const file = new LogFile(path, nodeFileSystem)
  file.open()
  const bytes = Buffer.alloc(100_000, 'line\n')
  let written = 0
  assert.throws(
    () => {
      while (written < bytes.length) written += file.write(bytes, written)
    },
    { code: 'EAGAIN' },
  )
  assert.ok(written > 0)
  file.close()
})
