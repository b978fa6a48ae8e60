import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, renameSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { createFaultyDisk } from './faulty-disk.ts'
import { openLog, rotatedFiles, textOf, type LogChanges } from './fixture.ts'

/** 4 KiB, so that a rotation takes about 60 lines. */
const small = { 'log.max_size_mb': 4 / 1024, 'log.level': 'info', trace: { logger: false } } as const
const name = /^svc_\d{14}_\d{6}\.log$/

test('renames the file when it reaches its size and begins a new one', (t) => {
  const now = (): number => new Date(2026, 10, 20, 11, 27, 5).getTime()
  const { logger, folder } = openLog(t, { 'log.max_size_mb': 1 }, { now })
  const log = logger.module('app')
  for (let number = 0; number < 20_000; number += 1) log(`line ${number} of some length, as usual`)
  logger.flush()
  const [first, second] = rotatedFiles(folder)
  assert.equal(first, 'svc_20261120112705_000001.log')
  assert.ok(second === undefined)
  const size = statSync(join(folder, first ?? '')).size
  assert.ok(size >= 2 ** 20 && size < 2 ** 20 + 100, `it has ${size} bytes, not those to the line that reached its size`)
  assert.match(textOf(folder), /\[INFO \] \[logger\] Rotated svc\.log to svc_20261120112705_000001\.log\n/)
})

test('names files as specified', (t) => {
  const folder = temporaryFolder()
  rotateOnce(t, folder)
  assert.match(rotatedFiles(folder)[0] ?? '', name)
})

test('the number grows, across restarts too, whatever the name of the log', (t) => {
  const folder = temporaryFolder()
  for (const file of ['svc.log', 'svc.log', 'other.log']) rotateOnce(t, folder, { 'log.file': file })
  assert.deepEqual(rotatedFiles(folder).map(numberOf), ['000001', '000002', '000003'])
})

test('the number grows when the clock is set back, and past a million', (t) => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'svc_20991231235959_999999.log'), '')
  rotateOnce(t, folder)
  rotateOnce(t, folder, { 'log.max_files': 1 })
  assert.deepEqual(readdirSync(folder).map(numberOf).sort(), ['1000001', 'svc.log'])
})

test('never renames over a file', (t) => {
  const { logger, folder, clock } = openLog(t, small, { now: () => new Date(2026, 0, 1).getTime() })
  fill(logger)
  mkdirSync(join(folder, 'svc_20260101000000_000002.log'))
  fill(logger)
  assert.deepEqual(rotatedFiles(folder).map(numberOf), ['000001', '000002', '000003'])
  assert.ok(statSync(join(folder, 'svc_20260101000000_000002.log')).isDirectory())
  assert.ok(clock.ms > 0)
})

test('keeps the configured number of rotated files, across restarts, and touches no other file', (t) => {
  const folder = temporaryFolder()
  const others = ['svc_1_000001.log', 'svc_20260101000000_1.log', 'svc_20260101000000_000001.log.gz', 'my.log']
  others.push('xsvc_20260101000000_000001.log', 'svc_20260101000000_0000001.log', 'svc_2026010100000a_000001.log')
  for (const other of others) writeFileSync(join(folder, other), 'keep')
  for (let run = 0; run < 5; run += 1) rotateOnce(t, folder, { 'log.max_files': 2 })
  assert.deepEqual(rotatedFiles(folder).map(numberOf), ['000004', '000005'])
  for (const other of others) assert.equal(textOf(folder, other), 'keep')
})

test('keeps all of them when max_files is 0, and continues the numbers in the folder', (t) => {
  const folder = temporaryFolder()
  for (let run = 0; run < 5; run += 1) rotateOnce(t, folder, { 'log.max_files': 0 })
  assert.equal(rotatedFiles(folder).length, 5)
  for (const old of rotatedFiles(folder).slice(-2)) unlinkSync(join(folder, old))
  rotateOnce(t, folder, { 'log.max_files': 4 })
  assert.deepEqual(rotatedFiles(folder).map(numberOf), ['000001', '000002', '000003', '000004'])
})

test('deletes by number, not by the time in the name', (t) => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'svc_20990101000000_000001.log'), 'older')
  writeFileSync(join(folder, 'svc_20000101000000_000002.log'), 'newer')
  rotateOnce(t, folder, { 'log.max_files': 2 })
  assert.deepEqual(rotatedFiles(folder).map(numberOf), ['000002', '000003'])
})

test('continues in the old file while renaming fails, reports it once, and rotates later', (t) => {
  const fileSystem = createFaultyDisk()
  const { logger, folder, clock, terminal } = openLog(t, small, { fileSystem })
  fileSystem.refused.set('renameSync', 'EACCES')
  for (let round = 0; round < 5; round += 1) {
    fill(logger)
    clock.ms += 1000
  }
  assert.deepEqual(rotatedFiles(folder), [])
  assert.equal(terminal.errorText.match(/Cannot rotate/g)?.length, 1)
  assert.equal(textOf(folder).match(/\[WARN \] \[logger\] Cannot rotate .*EACCES.*Lines still go/g)?.length, 1)
  fileSystem.refused.clear()
  writeOne(logger)
  assert.equal(rotatedFiles(folder).length, 1)
  assert.deepEqual([logger.lost, linesIn(folder)], [0, logger.written])
})

test('retries a failed rotation at most once a second, and when the clock was set back', (t) => {
  const fileSystem = createFaultyDisk()
  const { logger, folder, clock } = openLog(t, small, { fileSystem })
  fileSystem.refused.set('renameSync', 'EACCES')
  fill(logger)
  fileSystem.refused.clear()
  clock.ms += 999
  writeOne(logger)
  assert.deepEqual(rotatedFiles(folder), [])
  clock.ms -= 5000
  writeOne(logger)
  assert.equal(rotatedFiles(folder).length, 1)
})

test('keeps the old file under its name when no new one can be opened', (t) => {
  const fileSystem = createFaultyDisk()
  const { logger, folder, clock } = openLog(t, small, { fileSystem })
  fileSystem.refused.set('openSync', 'EMFILE')
  fill(logger)
  assert.deepEqual(readdirSync(folder), ['svc.log'])
  assert.match(textOf(folder), /Cannot rotate .*EMFILE/)
  fileSystem.refused.clear()
  clock.ms += 1000
  writeOne(logger)
  assert.equal(rotatedFiles(folder).length, 1)
  assert.deepEqual([logger.lost, linesIn(folder)], [0, logger.written])
})

test('begins a new file when the old one was moved away', (t) => {
  const { logger, folder } = openLog(t, { ...small, trace: {} })
  logger.module('app')('to the old one')
  logger.flush()
  renameSync(join(folder, 'svc.log'), join(folder, 'svc.log.1'))
  fill(logger)
  logger.module('app')('to the new one')
  logger.flush()
  assert.deepEqual([rotatedFiles(folder), readdirSync(folder).sort()], [[], ['svc.log', 'svc.log.1']])
  assert.match(textOf(folder), /^.* Began a new .*: the old one had been moved away\n/)
  assert.match(textOf(folder), /to the new one\n$/)
  assert.equal(linesIn(folder), logger.written)
})

test('does not rename a file that someone else put at the path', (t) => {
  const { logger, folder } = openLog(t, small)
  unlinkSync(join(folder, 'svc.log'))
  writeFileSync(join(folder, 'svc.log'), 'of another process\n')
  fill(logger)
  assert.deepEqual(rotatedFiles(folder), [])
  assert.match(textOf(folder), /^of another process\n/)
})

test('reports once that old files cannot be deleted, and keeps them', (t) => {
  const fileSystem = createFaultyDisk()
  const { logger, folder, terminal } = openLog(t, { ...small, 'log.max_files': 1 }, { fileSystem })
  fileSystem.refused.set('unlinkSync', 'EPERM')
  for (let round = 0; round < 4; round += 1) fill(logger)
  assert.equal(rotatedFiles(folder).length, 4)
  assert.equal(terminal.errorText.match(/Cannot delete old log files: EPERM/g)?.length, 1)
  fileSystem.refused.clear()
  fill(logger)
  assert.equal(rotatedFiles(folder).length, 1)
})

test('reports an unreadable folder as a failed rotation', (t) => {
  const fileSystem = createFaultyDisk()
  const { logger, folder } = openLog(t, small, { fileSystem })
  fileSystem.refused.set('statSync', 'EIO')
  fill(logger)
  assert.match(textOf(folder), /Cannot rotate .*EIO/)
})

test('the line about a rotation obeys the level and the switch of module logger', async (t) => {
  for (const change of [{ 'log.level': 'warn' }, { trace: { logger: false } }] as const) {
    const { logger, folder } = openLog(t, { ...small, ...change })
    const log = logger.module('app')
    for (let number = 0; number < 60; number += 1) log.warn(`line ${number}, which is as long as other lines are`)
    await turn()
    assert.equal(rotatedFiles(folder).length, 1)
    assert.doesNotMatch(textOf(folder), /Rotated/)
  }
})

/** Writes lines in batches until 4 KiB are full. */
function fill(logger: ReturnType<typeof openLog>['logger']): void {
  for (let number = 0; number < 52; number += 1) {
    logger.module('app')(`line ${number}, which is as long as other lines are`)
    if (number % 10 === 0) logger.flush()
  }
  logger.flush()
}

function writeOne(logger: ReturnType<typeof openLog>['logger']): void {
  logger.module('app')('one more')
  logger.flush()
}

function rotateOnce(t: Parameters<typeof openLog>[0], folder: string, changes: LogChanges = {}): void {
  const { logger } = openLog(t, { ...small, ...changes }, { folder })
  fill(logger)
  logger.close()
}

function linesIn(folder: string): number {
  return readdirSync(folder).reduce((sum, file) => sum + textOf(folder, file).split('\n').length - 1, 0)
}

function numberOf(file: string): string {
  return /_(\d+)\.log$/.exec(file)?.[1] ?? file
}
