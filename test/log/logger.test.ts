import assert from 'node:assert/strict'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { levels } from '../../lib/log/logger.ts'
import { stackLines } from '../../lib/log/stack.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { allLines, openLog, textOf } from './fixture.ts'

test('writes the line of the specification', (t) => {
  const { logger, folder } = openLog(t, {}, { now: () => new Date(2026, 10, 20, 11, 27, 0, 123).getTime() })
  const log = logger.module('server')
  log('called')
  log.debug('one')
  log.info('two')
  log.warn('three')
  log.error('four')
  log.fatal('five')
  logger.flush()
  assert.equal(
    textOf(folder),
    [
      '[2026-11-20 11:27:00.123] [INFO ] [server] called\n',
      '[2026-11-20 11:27:00.123] [DEBUG] [server] one\n',
      '[2026-11-20 11:27:00.123] [INFO ] [server] two\n',
      '[2026-11-20 11:27:00.123] [WARN ] [server] three\n',
      '[2026-11-20 11:27:00.123] [ERROR] [server] four\n',
      '[2026-11-20 11:27:00.123] [FATAL] [server] five\n',
    ].join(''),
  )
})

test('a line is in the file one turn after it was logged', async (t) => {
  const { logger, folder } = openLog(t)
  logger.module('app')('soon')
  assert.equal(textOf(folder), '')
  await turn()
  assert.match(textOf(folder), /soon\n$/)
  logger.module('app')('again')
  await turn()
  assert.match(textOf(folder), /soon\n.*again\n$/)
  assert.deepEqual([logger.written, logger.lost, logger.problem], [2, 0, undefined])
})

test('does not wait for the turn to end when 64 KiB are there', (t) => {
  const { logger, folder } = openLog(t)
  logger.module('app')('x'.repeat(70_000))
  assert.equal(textOf(folder).length, 70_000 + '[2026-11-20 11:27:00.123] [INFO ] [app] \n'.length)
})

for (const level of levels) {
  test(`level ${level} drops what is below it`, (t) => {
    const { logger, folder } = openLog(t, { 'log.level': level })
    const log = logger.module('app')
    for (const each of levels) log[each](`at ${each}`)
    log('at info')
    logger.flush()
    const passed = levels.slice(levels.indexOf(level))
    const expected = [...passed, ...(passed.includes('info') ? ['info'] : [])].map((each) => `at ${each}`)
    assert.deepEqual(allLines(folder).map((line) => line.slice(line.lastIndexOf('at '))), expected)
    assert.equal(log.debugEnabled, level === 'debug')
  })
}

test('onLine is given each line that passes, as it was logged, with its stack, and nothing else', (t) => {
  const given: unknown[] = []
  const onLine = (...line: unknown[]): void => void given.push(line)
  const { logger, clock } = openLog(t, { 'log.level': 'info', trace: { pool: false } }, { onLine })
  logger.module('app').debug('below the level')
  logger.module('pool').info('switched off')
  logger.module('pool').warn('a\nb')
  clock.ms += 5
  const thrown = new Error('why')
  logger.module('app').error('failed', thrown)
  const stack = stackLines(thrown).join('\n')
  assert.deepEqual(given, [[clock.ms - 5, 'warn', 'pool', 'a\nb', ''], [clock.ms, 'error', 'app', 'failed', stack]])
})

test('a trace switch holds back DEBUG and INFO of its module and nothing else', (t) => {
  const { logger, folder } = openLog(t, { trace: { pool: false } })
  const write = (module: string): void => levels.forEach((level) => logger.module(module)[level](`${module} ${level}`))
  write('pool')
  write('server')
  write('billing')
  logger.trace.set('pool', true)
  write('pool')
  logger.flush()
  const found = allLines(folder).map((line) => line.split('] ').at(-1))
  const all = (module: string): string[] => levels.map((level) => `${module} ${level}`)
  assert.deepEqual(found, [...all('pool').slice(2), ...all('server'), ...all('billing'), ...all('pool')])
})

test('no level and no switch hides the warnings of an untraced logger', (t) => {
  const { logger, folder } = openLog(t, { 'log.level': 'fatal', trace: { server: false } })
  const log = logger.untraced('server')
  log.info('audit')
  log.warn('the token')
  logger.flush()
  assert.match(textOf(folder), /^\[.*\] \[WARN \] \[server\] the token\n$/)
})

test('tells whether a DEBUG line would be written', (t) => {
  const { logger } = openLog(t)
  const log = logger.module('metrics')
  assert.equal(log.debugEnabled, true)
  logger.trace.set('metrics', false)
  assert.equal(log.debugEnabled, false)
})

test('gives the same object for the same module', (t) => {
  const { logger } = openLog(t)
  assert.equal(logger.module('app'), logger.module('app'))
  assert.notEqual(logger.module('app'), logger.module('App'))
})

test('no message and no module name can forge a line', (t) => {
  const { logger, folder } = openLog(t)
  logger.module('a\nb')('one\r\n[2026-11-20 11:27:00.123] [INFO ] [server] forged\x85\u2028')
  logger.flush()
  assert.equal(allLines(folder).length, 1)
  assert.match(textOf(folder), /\[a\\x0ab\] one\\x0d\\x0a\[2026.*forged\\x85\\u2028\n$/)
})

test('a stack follows its line, with the causes', (t) => {
  const { logger, folder } = openLog(t)
  logger.module('error').error('GET /x failed', new Error('outer', { cause: new RangeError('inner') }))
  logger.module('error').fatal('and once more', 'a string')
  logger.flush()
  const lines = allLines(folder)
  assert.match(lines[0] ?? '', /\[ERROR\] \[error\] GET \/x failed$/)
  assert.equal(lines[1], '    Error: outer')
  assert.ok(lines.includes('    caused by: RangeError: inner'))
  assert.equal(lines.at(-1), "    'a string'")
  assert.equal(lines.filter((line) => !line.startsWith('    ')).length, 2)
  assert.equal(logger.written, 2)
})

test('takes what JavaScript may pass for a message', (t) => {
  const { logger, folder } = openLog(t)
  const log = logger.module('app')
  const messages: unknown[] = [undefined, null, 7, Symbol('s'), { a: 1 }, revokedProxy()]
  for (const message of messages) log(message as string) // `as`: JavaScript can pass anything
  log.error(new TypeError('wrong') as unknown as string)
  logger.flush()
  const found = allLines(folder).map((line) => line.split('[app] ').at(-1))
  assert.deepEqual(found.slice(0, 5), ['undefined', 'null', '7', 'Symbol(s)', '{ a: 1 }'])
  assert.deepEqual(found.slice(6, 8), ['TypeError: wrong', '    TypeError: wrong'])
})

test('writes JSON, one object a line', (t) => {
  const { logger, folder } = openLog(t, { 'log.format': 'json' })
  logger.module('a"b').info('say "x"\n\x7f\u2028é')
  logger.module('error').error('failed', new Error('why'))
  logger.flush()
  const [first, second] = allLines(folder).map((line): Record<string, string> => JSON.parse(line))
  assert.doesNotMatch(textOf(folder), /[\x7f-\x9f\u2028\u2029]/)
  assert.match(first?.time ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.123[+-]\d\d:\d\d$/)
  assert.equal(Date.parse(first?.time ?? ''), Date.UTC(2026, 10, 20, 11, 27, 0, 123))
  assert.deepEqual({ ...first, time: '' }, { time: '', level: 'info', module: 'a"b', message: 'say "x"\n\x7f\u2028é' })
  assert.match(second?.stack ?? '', /^    Error: why\n    at /)
})

test('prints the same lines on the console when asked to', async (t) => {
  const { logger, folder, terminal } = openLog(t, { 'log.console': true })
  logger.module('app')('printed')
  logger.module('app')('x'.repeat(70_000))
  logger.module('app')('at the end of the turn')
  await turn()
  assert.equal(terminal.outText, textOf(folder))
  logger.module('app')('at close')
  logger.close()
  assert.equal(terminal.outText, textOf(folder))
  assert.equal(terminal.errorText, '')
})

test('prints nothing otherwise', (t) => {
  const { logger, terminal } = openLog(t)
  logger.module('app').fatal('quiet')
  logger.close()
  assert.deepEqual([terminal.outText, terminal.errorText], ['', ''])
})

test('makes its folder and its file for the owner and the group only', (t) => {
  const folder = join(temporaryFolder(), 'a', 'b')
  openLog(t, {}, { folder })
  assert.equal(statSync(folder).mode & 0o777 & ~0o750, 0)
  assert.equal(statSync(join(folder, 'svc.log')).mode & 0o777 & ~0o640, 0)
})

test('appends to what is there, and ends a last line that was torn', (t) => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'svc.log'), 'a whole line\nhalf a li')
  const { logger } = openLog(t, {}, { folder })
  logger.module('app')('next')
  logger.flush()
  assert.match(textOf(folder), /^a whole line\nhalf a li\n\[.*next\n$/)
  logger.reopen()
  assert.match(textOf(folder), /next\n\[.*\[logger\] Reopened .*svc\.log\n$/)
})

test('counts as lost what is logged after it was closed', (t) => {
  const { logger, folder } = openLog(t)
  logger.module('app')('before')
  logger.close()
  logger.module('app')('after')
  logger.close()
  logger.flush()
  logger.reopen()
  assert.match(textOf(folder), /before\n$/)
  assert.deepEqual([logger.written, logger.lost], [1, 1])
})

function revokedProxy(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}
