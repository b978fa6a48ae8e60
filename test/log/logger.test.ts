import assert from 'node:assert/strict'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, test, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { ModuleLogger } from '../../lib/log/logger.ts'
import { authorLogger } from '../../lib/log/feature.ts'
import { levels, type LogRecord } from '../../lib/log/record.ts'
import { stackLines } from '../../lib/log/stack.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { allLines, loggedRequest, openLog, textOf } from './fixture.ts'

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

test('does not wait for the end of the turn with 64 KiB buffered', (t) => {
  const { logger, folder } = openLog(t)
  logger.module('app')('x'.repeat(70_000))
  assert.equal(textOf(folder).length, 70_000 + '[2026-11-20 11:27:00.123] [INFO ] [app] \n'.length)
})

for (const level of levels) {
  test(`level ${level} drops lines below it`, (t) => {
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

test('onRecord gets each line that is written, and nothing else', (t) => {
  const given: LogRecord[] = []
  const { logger, clock } = openLog(t, { 'log.level': 'info', trace: { pool: false } }, { onRecord: (record) => given.push(record) })
  logger.module('app').debug('below the level')
  logger.module('pool').info('switched off')
  logger.module('pool').warn('a\nb')
  clock.ms += 5
  const thrown = new Error('why')
  logger.module('app').error('failed', { thrown })
  const stack = stackLines(thrown).join('\n')
  assert.deepEqual(given, [
    { timeMs: clock.ms - 5, level: 'warn', module: 'pool', message: 'a\nb', stack: '' },
    { timeMs: clock.ms, level: 'error', module: 'app', message: 'failed', stack, thrown },
  ])
})

test('a trace switch suppresses DEBUG and INFO of its module and nothing else', (t) => {
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

test('reports whether a DEBUG line would be written', (t) => {
  const { logger } = openLog(t)
  const log = logger.module('metrics')
  assert.equal(log.debugEnabled, true)
  logger.trace.set('metrics', false)
  assert.equal(log.debugEnabled, false)
})

test('returns the same object for the same module', (t) => {
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
  logger.module('error').error('GET /x failed', { thrown: new Error('outer', { cause: new RangeError('inner') }) })
  logger.module('error').fatal('and once more', { thrown: 'a string' })
  logger.flush()
  const lines = allLines(folder)
  assert.match(lines[0] ?? '', /\[ERROR\] \[error\] GET \/x failed$/)
  assert.equal(lines[1], '    Error: outer')
  assert.ok(lines.includes('    caused by: RangeError: inner'))
  assert.equal(lines.at(-1), "    'a string'")
  assert.equal(lines.filter((line) => !line.startsWith('    ')).length, 2)
  assert.equal(logger.written, 2)
})

test('writes JSON, one object per line', (t) => {
  const { logger, folder } = openLog(t, { 'log.format': 'json' })
  logger.module('a"b').info('say "x"\n\x7f\u2028é')
  logger.flush()
  const [first] = allLines(folder).map((line): Record<string, string> => JSON.parse(line))
  assert.doesNotMatch(textOf(folder), /[\x7f-\x9f\u2028\u2029]/)
  assert.match(first?.time ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.123[+-]\d\d:\d\d$/)
  assert.equal(Date.parse(first?.time ?? ''), Date.UTC(2026, 10, 20, 11, 27, 0, 123))
  assert.deepEqual({ ...first, time: '' }, { time: '', level: 'info', module: 'a"b', message: 'say "x"\n\x7f\u2028é' })
})

describe('a line about a request', () => {
  /** The lines that `write` produces, without time. */
  function linesOf(t: TestContext, format: 'text' | 'json', write: (log: ModuleLogger) => void, origin = {}): string[] {
    const { logger, folder } = openLog(t, { 'log.format': format }, { origin })
    write(logger.module('error'))
    logger.flush()
    return allLines(folder).map((line) => line.replace(/^\[[^\]]*\] |(?<="time":")[^"]*/, ''))
  }

  const request = loggedRequest()
  const known = loggedRequest({ idToSend: 'request-1' })
  const unrouted = loggedRequest({ routeName: '' })
  for (const [name, write, expected] of [
    ['has the id last', (log) => log.warn('odd', { request }), '[WARN ] [error] odd [request-1]'],
    ['begins with the request when it is asked to', (log) => log.warn('odd', { request, isLabelled: true }), '[WARN ] [error] GET /orders/5 (orders): odd [request-1]'],
    ['begins without a route where none answers', (log) => log.warn('odd', { request: unrouted, isLabelled: true }), '[WARN ] [error] GET /orders/5: odd [request-1]'],
    ['makes no id below WARN', (log) => log.info('odd', { request }), '[INFO ] [error] odd'],
    ['has below WARN an id that is known', (log) => log.info('odd', { request: known }), '[INFO ] [error] odd [request-1]'],
    ['has the fields before the id', (log) => log.warn('paid', { request, fields: { order: 7 } }), '[WARN ] [error] paid order=7 [request-1]'],
  ] satisfies [string, (log: ModuleLogger) => void, string][]) {
    it(`${name}, as text`, (t) => assert.deepEqual(linesOf(t, 'text', write), [expected]))
  }

  it('has a member for each known value, as JSON', (t) => {
    const thrown = new RangeError('why')
    const write = (log: ModuleLogger): void => log.error('odd', { request, isLabelled: true, thrown, status: 500, durationMs: 1.23456, fields: { order: 7 } })
    const [line = ''] = linesOf(t, 'json', write, { process: 2, node: 'a:8080' })
    assert.deepEqual(JSON.parse(line), {
      time: '', level: 'error', module: 'error', message: 'odd', request_id: 'request-1', route: 'orders', method: 'GET',
      path: '/orders/5', status: 500, duration_ms: 1.235,
      error: { name: 'RangeError', message: 'why', stack: stackLines(thrown).join('\n') }, process: 2, node: 'a:8080', order: 7,
    })
  })
})

describe('the log of an application', () => {
  /** A log, and its lines from after the module. */
  function open(t: TestContext, format: 'text' | 'json' = 'text') {
    const { logger, folder } = openLog(t, { 'log.format': format })
    const lines = (): string[] => {
      logger.flush()
      return allLines(folder).map((line) => line.split('[app] ').at(-1) as string)
    }
    return { log: authorLogger(logger.module('app')), lines }
  }

  const itself: Record<string, unknown> = { name: 'x' }
  itself['self'] = itself
  for (const [name, fields, text, json] of [
    ['a number, a string, a boolean and null', { a: 1.5, b: 'word', c: true, d: null }, 'a=1.5 b=word c=true d=null', { a: 1.5, b: 'word', c: true, d: null }],
    ['texts that are no word in quotes', { a: 'two words', b: 'a"b', c: 'a\nb' }, 'a="two words" b="a\\"b" c="a\\nb"', { a: 'two words', b: 'a"b', c: 'a\nb' }],
    ['objects and lists as JSON', { a: { b: [1, 'c'] } }, 'a="{\\"b\\":[1,\\"c\\"]}"', { a: { b: [1, 'c'] } }],
    ['a time as JSON has it', { at: new Date(0) }, 'at=1970-01-01T00:00:00.000Z', { at: '1970-01-01T00:00:00.000Z' }],
    ['an error by its name and message', { cause: new RangeError('why') }, 'cause="RangeError: why"', { cause: 'RangeError: why' }],
    ['what JSON would lose as text', { a: NaN, b: new Set([1]), c: 10n }, 'a=NaN b="Set(1) { 1 }" c=10n', { a: 'NaN', b: 'Set(1) { 1 }', c: '10n' }],
    ['what contains itself as text', { itself }, /^itself="<ref \*1> \{ name: 'x', self: \[Circular \*1\] \}"$/, undefined],
    ['nothing of what is undefined', { a: undefined, b: 1 }, 'b=1', { b: 1 }],
    ['a name that is taken with a _ before it', { time: 1, _time: 2, path: 3 }, '__time=1 _time=2 _path=3', { __time: 1, _time: 2, _path: 3 }],
    ['a name that is no word in quotes', { 'a b': 1 }, '"a b"=1', { 'a b': 1 }],
  ] satisfies [string, Record<string, unknown>, string | RegExp, Record<string, unknown> | undefined][]) {
    it(`shows ${name}`, (t) => {
      const asText = open(t)
      asText.log.info('paid', fields)
      const [line = ''] = asText.lines()
      if (text instanceof RegExp) assert.match(line.slice('paid '.length), text)
      else assert.equal(line, `paid ${text}`)
      const asJson = open(t, 'json')
      asJson.log('paid', fields)
      const { time, level, module, message, ...rest } = JSON.parse(asJson.lines()[0] ?? '') as Record<string, unknown>
      assert.deepEqual([typeof time, level, module, message], ['string', 'info', 'app', 'paid'])
      if (json !== undefined) assert.deepEqual(rest, json)
    })
  }

  it('takes a thrown value, fields, or both', (t) => {
    const { log, lines } = open(t)
    log.error('one', new Error('why'))
    log.error('two', { order: 7 })
    log.error('three', new Error('why'), { order: 7 })
    log.warn('four', undefined, { order: 7 })
    log.warn('five', 'a text')
    const found = lines().filter((line) => !line.startsWith('    at '))
    assert.deepEqual(found, ['one', '    Error: why', 'two order=7', 'three order=7', '    Error: why', 'four order=7', 'five', "    'a text'"])
  })

  it('accepts any value for a message or for fields', (t) => {
    const { log, lines } = open(t)
    const messages: unknown[] = [undefined, null, 7, Symbol('s'), { a: 1 }, revokedProxy()]
    for (const message of messages) log(message as string) // `as`: JavaScript can pass anything
    log.error(new TypeError('wrong') as unknown as string)
    log.info('fields', { get broken() { throw new Error('no') } })
    log.info('proxy', revokedProxy() as Record<string, unknown>)
    const found = lines().filter((line) => !line.startsWith('    at '))
    assert.deepEqual(found.slice(0, 5), ['undefined', 'null', '7', 'Symbol(s)', '{ a: 1 }'])
    assert.deepEqual(found.slice(6, 9), ['TypeError: wrong', '    TypeError: wrong', 'fields'])
    assert.match(found[9] ?? '', /^proxy/)
  })
})

test('prints the same lines on the console if configured', async (t) => {
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

test('creates its folder and its file for the owner and the group only', (t) => {
  const folder = join(temporaryFolder(), 'a', 'b')
  openLog(t, {}, { folder })
  assert.equal(statSync(folder).mode & 0o777 & ~0o750, 0)
  assert.equal(statSync(join(folder, 'svc.log')).mode & 0o777 & ~0o640, 0)
})

test('appends to an existing file, and ends a torn last line', (t) => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'svc.log'), 'a whole line\nhalf a li')
  const { logger } = openLog(t, {}, { folder })
  logger.module('app')('next')
  logger.flush()
  assert.match(textOf(folder), /^a whole line\nhalf a li\n\[.*next\n$/)
  logger.reopen()
  assert.match(textOf(folder), /next\n\[.*\[logger\] Reopened .*svc\.log\n$/)
})

test('counts lines logged after closing as lost', (t) => {
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
