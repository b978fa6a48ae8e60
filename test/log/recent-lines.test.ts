import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Recent } from '../../lib/base/recent.ts'
import { keptLines, logLine, type LogLine } from '../../lib/log/recent-lines.ts'
import { stackLines } from '../../lib/log/stack.ts'
import { loggedRequest, logRecord, openLog } from './fixture.ts'

const messages: readonly (readonly [string, string, string])[] = [
  ['of 500 characters whole', 'x'.repeat(500), 'x'.repeat(500)],
  ['of 501 characters cut', 'x'.repeat(501), 'x'.repeat(500)],
  ['of 500 wide characters whole', '\u4e16'.repeat(500), '\u4e16'.repeat(500)],
  ['with controls escaped', 'a\nb\x1b[0m\u2028', 'a\\x0ab\\x1b[0m\\u2028'],
  ['of controls cut after they are escaped', '\n'.repeat(500), '\\x0a'.repeat(125)],
  ['that is cut within a pair without half a character', `${'x'.repeat(499)}\u{1f600}`, `${'x'.repeat(499)}\ufffd`],
  ['that is empty', '', ''],
]

for (const [name, message, expected] of messages) {
  test(`shows a message ${name}`, () => {
    assert.equal(logLine(logRecord({ message })).message, expected)
  })
}

test('truncates a module name at 64 characters', () => {
  assert.equal(logLine(logRecord({ module: 'm'.repeat(100_000) })).module, 'm'.repeat(64))
})

test('has the request id, also if the message is truncated before it', () => {
  const message = 'x'.repeat(10_000)
  const request = loggedRequest({ id: 'i'.repeat(128) })
  assert.equal(logLine(logRecord({ message, request })).request_id, 'i'.repeat(128))
  assert.equal(logLine(logRecord({ message: 'no id [4-YiBWim4s8u00000002]' })).request_id, undefined)
})

test('keeps 2,000 characters of a stack, and none if nothing was thrown', () => {
  assert.equal(logLine(logRecord({ stack: `    ${'x'.repeat(100_000)}` })).stack, `    ${'x'.repeat(1996)}`)
  assert.deepEqual(Object.keys(logLine(logRecord())), ['time', 'level', 'module', 'message'])
})

test('does not keep long strings in memory that short messages were cut from', () => {
  const lines = new Recent<LogLine>(keptLines)
  setFlagsFromString('--expose-gc')
  const collectGarbage: () => void = runInNewContext('gc')
  for (let turn = 0; turn < 500; turn += 1) {
    const long = Buffer.alloc(100_000, 97 + (turn % 26)).toString('latin1')
    lines.add(logLine(logRecord({ message: long.slice(turn, turn + 100), stack: long })))
  }
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  assert.equal(lines.list().length, 500)
  for (let turn = 0; turn < 500; turn += 1) lines.add(logLine(logRecord()))
  collectGarbage()
  const freed = before - process.memoryUsage().heapUsed
  assert.ok(freed < 5_000_000, `${freed} bytes of the 50,000,000 were kept`)
})

test('gets the written lines from the logger, as they were logged', (t) => {
  const lines = new Recent<LogLine>(keptLines)
  const { logger, clock } = openLog(t, { 'log.level': 'info', trace: { pool: false } }, { onRecord: (record) => lines.add(logLine(record)) })
  logger.module('app')('called')
  logger.module('app').debug('below the level')
  logger.module('pool').info('switched off')
  logger.module('pool').warn('passes\n')
  clock.ms += 5
  const thrown = new Error('why')
  logger.module('error').error('failed', { thrown })
  assert.deepEqual(lines.list(), [
    { time: clock.ms - 5, level: 'info', module: 'app', message: 'called' },
    { time: clock.ms - 5, level: 'warn', module: 'pool', message: 'passes\\x0a' },
    { time: clock.ms, level: 'error', module: 'error', message: 'failed', stack: stackLines(thrown).join('\n') },
  ])
})
