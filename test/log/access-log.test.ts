import assert from 'node:assert/strict'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { EndedRequest } from '../../lib/base/ports.ts'
import type { Config } from '../../lib/config/table.ts'
import { AccessLog, type AccessLogParts } from '../../lib/log/access-log.ts'
import type { LogReports } from '../../lib/log/log-file.ts'
import { endedRequest } from '../support/ended-request.ts'
import { Seeded } from '../support/seeded.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { createFaultyDisk } from './faulty-disk.ts'
import { KeptConsole, logConfig, openLog, textOf } from './fixture.ts'

type AccessFormat = Config['access_log.format']
type Change = Partial<EndedRequest> & { headers?: Record<string, string> }

const now = (): number => Date.parse('2026-11-20T11:27:00.123Z')
const start = '127.0.0.1 - - [20/Nov/2026:11:27:00 +0000] '
const zoneOfTheMachine = process.env.TZ

before(() => {
  process.env.TZ = 'UTC'
})

after(() => {
  if (zoneOfTheMachine === undefined) delete process.env.TZ
  else process.env.TZ = zoneOfTheMachine
})

const rows: readonly (readonly [what: string, format: AccessFormat, change: Change, line: string])[] = [
  ['the line of the specification', 'spec', {}, `${start}"GET /x HTTP/1.1" 200`],
  ['an upgrade', 'spec', { sentStatus: 101 }, `${start}"GET /x HTTP/1.1" 101`],
  ['an older version', 'spec', { httpVersion: '1.0', method: 'HEAD' }, `${start}"HEAD /x HTTP/1.0" 200`],
  ['quotes and backslashes', 'spec', { path: '/a"b\\c' }, `${start}"GET /a\\x22b\\x5cc HTTP/1.1" 200`],
  ['line ends', 'spec', { path: '/\r\n\u2028' }, `${start}"GET /\\x0d\\x0a\\u2028 HTTP/1.1" 200`],
  ['control characters', 'spec', { path: '/\0\x7f\x85' }, `${start}"GET /\\x00\\x7f\\x85 HTTP/1.1" 200`],
  ['bytes of any encoding', 'spec', { path: '/caf\xc3\xa9' }, `${start}"GET /caf\\xc3\\xa9 HTTP/1.1" 200`],
  ['a request that could not be read', 'spec', { method: '', path: '', sentStatus: 400 }, `${start}"- - HTTP/1.1" 400`],
  ['an address that is none', 'spec', { ip: 'a "\n' }, `a\\x20\\x22\\x0a${start.slice(9)}"GET /x HTTP/1.1" 200`],
  ['no address', 'spec', { ip: '' }, `-${start.slice(9)}"GET /x HTTP/1.1" 200`],
  ['the bytes', 'common', { sentBytes: 1234 }, `${start}"GET /x HTTP/1.1" 200 1234`],
  ['no bytes', 'common', { sentBytes: 0, sentStatus: 304 }, `${start}"GET /x HTTP/1.1" 304 -`],
  [
    'referer and user agent',
    'combined',
    { headers: { referer: 'http://a/?b="c"', 'user-agent': 'A B\\\x1b' } },
    `${start}"GET /x HTTP/1.1" 200 5 "http://a/?b=\\x22c\\x22" "A B\\x5c\\x1b"`,
  ],
  ['neither of them', 'combined', { headers: { referer: '' } }, `${start}"GET /x HTTP/1.1" 200 5 "-" "-"`],
]

for (const [what, format, change, line] of rows) {
  test(`${format}: writes ${what}`, (t) => {
    const { log, folder } = open(t, { format })
    log.write(entry(change), now())
    log.flush()
    assert.equal(textOf(folder, 'access.log'), `${line}\n`)
  })
}

test('json: one object per line, with the available fields', (t) => {
  const { log, folder } = open(t, { format: 'json' })
  log.write(entry({}), now())
  const headers = { referer: 'r"', 'user-agent': 'u\x85' }
  const given = { ip: '::1', path: '/"\n\x85', givenId: 'abcdefgh', routeName: 'board.list', durationMs: 1.23456 }
  log.write(entry({ ...given, headers }), now())
  log.flush()
  const text = textOf(folder, 'access.log')
  assert.doesNotMatch(text, /[\x7f-\x9f]/)
  const [first, second] = text.trimEnd().split('\n').map((line): unknown => JSON.parse(line))
  const common = { time: '2026-11-20T11:27:00.123+00:00', method: 'GET', version: '1.1', status: 200, bytes: 5 }
  assert.deepEqual(first, { ...common, ip: '127.0.0.1', path: '/x', duration_ms: 0.5, route: '' })
  const shown = { id: 'abcdefgh', referer: 'r"', user_agent: 'u\x85', route: 'board.list', duration_ms: 1.235 }
  assert.deepEqual(second, { ...common, ip: '::1', path: '/"\n\x85', ...shown })
})

test('no request can forge a line', (t) => {
  const seeded = new Seeded(7)
  const bytes = (): string => seeded.bytes(seeded.integer(40)).toString('latin1')
  const text = (): string => bytes() + seeded.pick(['', '\u2028', '" 200\n'])
  for (const format of ['spec', 'common', 'combined', 'json'] as const) {
    const { log, folder } = open(t, { format })
    for (let number = 0; number < 500; number += 1) {
      const headers = { referer: text(), 'user-agent': text() }
      log.write(entry({ ip: text(), method: text(), path: text(), routeName: text(), givenId: text(), headers }), now())
    }
    log.flush()
    const lines = textOf(folder, 'access.log').split('\n')
    assert.equal(lines.pop(), '')
    assert.equal(lines.length, 500)
    const shape = /^[!-~]+ - - \[20\/Nov\/2026:\S+ \+0000\] "[!-~]+ [!-~]+ HTTP\/1\.1" 200( 5( "[ -~]+" "[ -~]+")?)?$/
    for (const line of lines) {
      if (format === 'json') assert.equal(typeof JSON.parse(line), 'object')
      else assert.match(line, shape)
      assert.equal(line.split('"').length, { spec: 3, common: 3, combined: 7, json: line.split('"').length }[format])
    }
  }
})

test('reads no header that the format does not show', (t) => {
  for (const format of ['spec', 'common'] as const) {
    const { log } = open(t, { format })
    log.write({ ...entry({}), header: () => assert.fail('a header was read') }, now())
    log.flush()
    assert.equal(log.written, 1)
  }
})

test('leaves out the requests whose path begins with an entry of access_log.skip', (t) => {
  const { log, folder } = open(t, {}, { 'access_log.skip': ['/svc-ready', '/assets/'] })
  for (const path of ['/svc-ready', '/svc-ready/', '/assets', '/assets/a.css', '/x/svc-ready', '/SVC-READY', '']) {
    log.write(entry({ path, sentPath: `/app${path}` }), now())
  }
  log.flush()
  const paths = textOf(folder, 'access.log').matchAll(/"GET \/app(\S*) /g)
  assert.deepEqual([...paths].map(([, path]) => path), ['/assets', '/x/svc-ready', '/SVC-READY', ''])
  assert.deepEqual([log.written, log.lost], [4, 0])
})

test('a line is in the file one turn after it was written', async (t) => {
  const { log, folder } = open(t, {})
  log.write(entry({}), now())
  assert.equal(textOf(folder, 'access.log'), '')
  await turn()
  assert.equal(textOf(folder, 'access.log').length, `${start}"GET /x HTTP/1.1" 200\n`.length)
})

test('reopens its file after logrotate has moved it away', (t) => {
  const { log, folder, reports } = open(t, {})
  log.write(entry({ path: '/old' }), now())
  renameSync(join(folder, 'access.log'), join(folder, 'access.log.1'))
  log.write(entry({ path: '/old' }), now())
  log.reopen()
  log.write(entry({ path: '/new' }), now())
  log.close()
  assert.match(textOf(folder, 'access.log.1'), /^.*\/old .*\n.*\/old .*\n$/)
  assert.match(textOf(folder, 'access.log'), /^.*\/new .*\n$/)
  assert.deepEqual(reports, [`info Reopened ${join(folder, 'access.log')}`])
})

test('reports lost lines to the general log', (t) => {
  const fileSystem = createFaultyDisk()
  const general = openLog(t)
  const report: LogReports['report'] = (level, message) => general.logger.module('logger')[level](message)
  const { log, terminal } = open(t, { fileSystem, report })
  fileSystem.room = 0
  for (let number = 0; number < 5000; number += 1) log.write(entry({}), now())
  assert.match(log.problem ?? '', /^Cannot write the log .*access\.log: ENOSPC/)
  fileSystem.room = 1e9
  log.flush()
  general.logger.flush()
  assert.ok(log.lost > 0)
  assert.deepEqual([log.written + log.lost, log.problem], [5000, undefined])
  const warning = new RegExp(`\\[WARN \\] \\[logger\\] .*access\\.log is writable again\\. Lines lost: ${log.lost} `)
  assert.match(textOf(general.folder), warning)
  assert.match(terminal.errorText, new RegExp(`Lines lost: ${log.lost}\n`))
})

test('works with only the required options', () => {
  const folder = temporaryFolder()
  const log = new AccessLog(logConfig(), folder, { report: () => {} })
  log.write(entry({}), now())
  log.reopen()
  log.close()
  assert.match(textOf(folder, 'access.log'), /"GET \/x HTTP\/1\.1" 200\n$/)
})

function open(
  t: Parameters<typeof openLog>[0],
  options: Partial<AccessLogParts> & { readonly format?: AccessFormat },
  more: Partial<Config> = {},
) {
  const folder = temporaryFolder()
  const terminal = new KeptConsole()
  const reports: string[] = []
  const report = (level: string, message: string): number => reports.push(`${level} ${message}`)
  const config = logConfig({ 'access_log.format': options.format ?? 'spec', ...more })
  const log = new AccessLog(config, folder, { now, consolePort: terminal, report, ...options })
  t.after(() => log.close())
  return { log, folder, terminal, reports }
}

function entry(change: Change): EndedRequest {
  const { headers = {}, ...rest } = change
  const request = { path: '/x', sentBytes: 5, durationMs: 0.5, routeName: '' }
  return endedRequest({ ...request, header: (name) => headers[name], ...rest })
}
