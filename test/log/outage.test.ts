import assert from 'node:assert/strict'
import { existsSync, mkdirSync, renameSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Seeded } from '../support/seeded.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { createFaultyDisk } from './faulty-disk.ts'
import { allLines, openLog, rotatedFiles, textOf } from './fixture.ts'

test('a full disk stops nothing: the half line is completed when there is room again', (t) => {
  const fileSystem = createFaultyDisk()
  const { logger, folder, terminal } = openLog(t, {}, { fileSystem })
  const log = logger.module('app')
  log('before')
  logger.flush()
  fileSystem.room = 60
  for (let number = 0; number < 3; number += 1) log(`line ${number}`)
  logger.flush()
  assert.doesNotMatch(textOf(folder), /\n$/)
  assert.match(logger.problem ?? '', /^Cannot write the log .*svc\.log: ENOSPC/)
  assert.deepEqual([logger.written, logger.lost], [2, 0])
  log('meanwhile')
  logger.flush()
  fileSystem.room = 1e6
  logger.flush()
  const found = allLines(folder).map((line) => line.split(/(?=\[app\]|\[logger\])/)[1])
  const expected = ['before', 'line 0', 'line 1', 'line 2', 'meanwhile']
  assert.deepEqual(found.slice(0, 5), expected.map((message) => `[app] ${message}`))
  assert.match(found[5] ?? '', /^\[logger\] The log .* is writable again. Lines lost: 0 \(Cannot write.*ENOSPC.*\)$/)
  assert.deepEqual([logger.problem, logger.written, logger.lost], [undefined, 6, 0])
  assert.equal(terminal.errorText.match(/Cannot write/g)?.length, 1)
  assert.equal(terminal.errorText.match(/is writable again. Lines lost: 0\n/g)?.length, 1)
})

test('lines that do not fit in memory meanwhile are counted and reported on the console and in the log', (t) => {
  const fileSystem = createFaultyDisk()
  const { logger, folder, terminal } = openLog(t, {}, { fileSystem })
  fileSystem.room = 0
  const total = 5000
  for (let number = 0; number < total; number += 1) logger.module('app')(`line ${number} ${'x'.repeat(100)}`)
  const writesWhileFull = fileSystem.writes
  assert.ok(writesWhileFull <= 2, `the full disk was tried ${writesWhileFull} times in a moment`)
  assert.ok(logger.lost > 0)
  fileSystem.room = 1e9
  logger.flush()
  const found = allLines(folder)
  assert.equal(found.filter((line) => line.includes('] line ')).length + logger.lost, total)
  assert.match(found.at(-1) ?? '', new RegExp(`\\[WARN \\] \\[logger\\] .* again\\. Lines lost: ${logger.lost} `))
  assert.match(terminal.errorText, new RegExp(`is writable again. Lines lost: ${logger.lost}\n$`))
  assert.equal(found.length, logger.written)
})

test('retries each second without further lines', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setImmediate'] })
  const fileSystem = createFaultyDisk()
  const { logger, folder } = openLog(t, {}, { fileSystem })
  fileSystem.room = 0
  logger.module('app')('held')
  t.mock.timers.tick(0)
  assert.equal(fileSystem.writes, 1)
  t.mock.timers.tick(999)
  assert.equal(fileSystem.writes, 1)
  t.mock.timers.tick(1)
  assert.equal(fileSystem.writes, 2)
  fileSystem.room = 1e6
  t.mock.timers.tick(1000)
  assert.match(textOf(folder), /held\n/)
  assert.equal(logger.problem, undefined)
})

test('a burst retries after a second too, or when the clock was set back', (t) => {
  const fileSystem = createFaultyDisk()
  const { logger, clock } = openLog(t, {}, { fileSystem })
  const burst = 'x'.repeat(70_000)
  fileSystem.room = 0
  for (const [stepMs, writes] of [[0, 1], [999, 1], [1, 2], [-5000, 3], [10, 3]] as const) {
    clock.ms += stepMs
    logger.module('app')(burst)
    assert.equal(fileSystem.writes, writes)
  }
  assert.equal(logger.lost, 4)
})

test('after an outage a line is in the file one turn after it was logged, as before', async (t) => {
  const fileSystem = createFaultyDisk()
  const { logger, folder } = openLog(t, {}, { fileSystem })
  fileSystem.room = 0
  logger.module('app')('held')
  logger.flush()
  fileSystem.room = 1e6
  logger.flush()
  logger.module('app')('soon')
  await turn()
  assert.match(textOf(folder), /held\n.*is writable again.*\n.*soon\n$/)
})

test('a line that lacks only its line end counts as written', (t) => {
  const fileSystem = createFaultyDisk()
  const { logger, folder } = openLog(t, { trace: { logger: false } }, { fileSystem })
  const write = fileSystem.writeSync
  fileSystem.writeSync = (fd, bytes, offset, length) => {
    if (offset > 0) throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' })
    return write(fd, bytes, offset, length - 1)
  }
  logger.module('app')('whole')
  logger.flush()
  assert.deepEqual([logger.written, logger.lost], [1, 0])
  fileSystem.writeSync = write
  logger.module('app')('next')
  logger.flush()
  assert.match(textOf(folder), /^.*whole\n.*next\n.*Lines lost: 0 .*\n$/)
  assert.deepEqual([logger.written, logger.lost], [3, 0])
})

test('copes with writes of a few bytes at a time', (t) => {
  const fileSystem = createFaultyDisk()
  const { logger, folder } = openLog(t, {}, { fileSystem })
  fileSystem.bytesPerWrite = 7
  for (const message of ['déjà vu', '漢字 😀', 'plain']) logger.module('app')(message)
  logger.flush()
  assert.deepEqual(allLines(folder).map((line) => line.split('[app] ')[1]), ['déjà vu', '漢字 😀', 'plain'])
})

test('a write of 0 bytes is a failure, not an endless loop', (t) => {
  const fileSystem = createFaultyDisk()
  const { logger } = openLog(t, {}, { fileSystem })
  fileSystem.bytesPerWrite = 0
  logger.module('app')('held')
  logger.flush()
  assert.match(logger.problem ?? '', /the system accepted none of \d+ bytes$/)
  fileSystem.bytesPerWrite = 1000
  logger.flush()
  assert.deepEqual([logger.problem, logger.lost], [undefined, 0])
})

test('reopens the file after an error other than a full disk', (t) => {
  const fileSystem = createFaultyDisk()
  const { logger, folder } = openLog(t, {}, { fileSystem })
  fileSystem.refused.set('writeSync', 'EROFS').set('closeSync', 'EIO')
  logger.module('app')('one')
  logger.flush()
  assert.match(logger.problem ?? '', /EROFS/)
  fileSystem.refused.clear()
  logger.flush()
  assert.deepEqual([logger.lost, logger.problem], [0, undefined])
  assert.match(textOf(folder), /one\n/)
})

test('a half line that cannot be completed is counted as lost, and the next one begins on a new line', (t) => {
  const fileSystem = createFaultyDisk()
  const { logger, folder } = openLog(t, {}, { fileSystem })
  fileSystem.bytesPerWrite = 60
  const write = fileSystem.writeSync
  fileSystem.writeSync = (fd, bytes, offset, length) => {
    if (offset >= 60) throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' })
    return write(fd, bytes, offset, length)
  }
  logger.module('app')('first')
  logger.module('app').error('second, torn within its stack', { thrown: new Error('why') })
  logger.module('app')('third')
  logger.flush()
  fileSystem.writeSync = write
  logger.flush()
  const found = allLines(folder)
  assert.match(found[0] ?? '', /first$/)
  assert.match(found[2] ?? '', /third$/)
  assert.deepEqual([logger.lost, logger.written], [1, found.length - 1])
  assert.match(found.at(-1) ?? '', /is writable again. Lines lost: 1 /)
})

test('starts without a disk and continues once it is there', (t) => {
  const folder = join(temporaryFolder(), 'logs')
  mkdirSync(join(folder, 'svc.log'), { recursive: true })
  const { logger, terminal } = openLog(t, {}, { folder })
  assert.match(logger.problem ?? '', /^Cannot write the log .*: EISDIR/)
  assert.match(terminal.errorText, /^Cannot write the log .*EISDIR.*\n$/)
  logger.module('app')('held')
  logger.reopen()
  rmdirSync(join(folder, 'svc.log'))
  logger.flush()
  assert.deepEqual([logger.problem, logger.lost], [undefined, 0])
  assert.match(textOf(folder), /held\n/)
})

test('a removed folder is created again when the log is reopened', (t) => {
  const { logger, folder } = openLog(t)
  logger.module('app')('old')
  logger.flush()
  renameSync(folder, `${folder}-moved`)
  t.after(() => renameSync(`${folder}-moved`, folder))
  logger.reopen()
  logger.module('app')('new')
  logger.flush()
  assert.match(textOf(folder), /Reopened.*\n.*new\n$/)
  renameSync(folder, join(`${folder}-moved`, 'again'))
})

test('keeps the open file when reopening fails', (t) => {
  const fileSystem = createFaultyDisk()
  const { logger, folder, terminal } = openLog(t, {}, { fileSystem })
  for (const call of ['openSync', 'fstatSync'] as const) {
    fileSystem.refused.set(call, 'EMFILE')
    logger.reopen()
    fileSystem.refused.clear()
  }
  logger.flush()
  assert.equal(textOf(folder).match(/\[WARN \] \[logger\] Cannot reopen .*EMFILE.*Lines still go/g)?.length, 2)
  assert.equal(terminal.errorText.match(/Cannot reopen/g)?.length, 2)
  assert.deepEqual([logger.problem, logger.lost], [undefined, 0])
})

test('lines that a full disk still refuses at the end are lost, counted and reported', (t) => {
  const fileSystem = createFaultyDisk()
  const { logger, terminal } = openLog(t, {}, { fileSystem })
  fileSystem.room = 60
  for (let number = 0; number < 3; number += 1) logger.module('app')(`line ${number}`)
  logger.flush()
  logger.module('app')('one more')
  logger.close()
  assert.deepEqual([logger.written, logger.lost], [1, 3])
  assert.match(terminal.errorText, /\nThe log .*svc\.log is closed\. Lines lost: 3\. Cannot write.*ENOSPC.*\n$/)
})

const wholeLine = /^\[.{23}\] \[WARN \] \[(app\] number \d+ é* end|logger\] .*(old file|same file|\)))$/

test('every line is on disk once or counted as lost, through rotations, logrotate and full disks', async (t) => {
  for (let seed = 1; seed <= 8; seed += 1) {
    const seeded = new Seeded(seed)
    const fileSystem = createFaultyDisk()
    const small = { 'log.max_size_mb': 8 / 1024, 'log.level': 'warn' } as const
    const { logger, folder, clock, terminal } = openLog(t, small, { fileSystem })
    let moved = 0
    const moveAway = (): void => {
      const from = join(folder, 'svc.log')
      if (existsSync(from)) renameSync(from, join(folder, `moved.${(moved += 1)}`))
      logger.reopen()
    }
    const refuse = (): void => {
      const call = seeded.pick(['renameSync', 'openSync', 'writeSync'] as const)
      fileSystem.refused.set(call, seeded.pick(['EIO', 'ENOSPC', 'EROFS']))
    }
    const events: readonly (() => unknown)[] = [
      () => (fileSystem.room = seeded.integer(5000)),
      () => (fileSystem.room = Number.POSITIVE_INFINITY),
      () => (fileSystem.bytesPerWrite = 1 + seeded.integer(1000)),
      () => (clock.ms += seeded.integer(3000) - 500),
      () => fileSystem.refused.clear(),
      () => logger.flush(),
      () => logger.reopen(),
      () => turn(),
      moveAway,
      refuse,
    ]
    const total = 4000
    for (let number = 0; number < total; number += 1) {
      logger.module('app').warn(`number ${number} ${'é'.repeat(seeded.integer(80))} end`)
      if (seeded.integer(20) === 0) await seeded.pick(events)()
    }
    logger.close()
    const reports = terminal.errorText.match(/is writable again|Cannot rotate|Cannot reopen/g)?.length ?? 0
    const lines = allLines(folder)
    const whole = lines.filter((line) => wholeLine.test(line))
    const numbers = whole.flatMap((line) => /\] number (\d+) /.exec(line)?.[1] ?? [])
    assert.ok(rotatedFiles(folder).length > 2 && moved > 2 && logger.lost > 2, `seed ${seed} tries too little`)
    assert.equal(new Set(numbers).size, numbers.length, `seed ${seed}: a line is duplicated`)
    assert.equal(logger.written + logger.lost, total + reports, `seed ${seed}: lines are not accounted for`)
    assert.equal(whole.length, logger.written, `seed ${seed}: what is on disk is not what was counted`)
  }
})
