import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { auditFile } from '../../lib/log/audit-file.ts'
import { AuditLog, readAudit, type AuditLogParts } from '../../lib/log/audit-log.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { openLogs } from '../../lib/log/logs.ts'
import { HeldClock, KeptConsole, logConfig } from './fixture.ts'

const keys = { keys: ['a key'], isLasting: true }

function openAudit(t: TestContext, parts: Partial<AuditLogParts> = {}, folder = temporaryFolder()) {
  const clock = new HeldClock()
  const audit = new AuditLog(folder, { report: () => {}, now: clock.now, consolePort: new KeptConsole(), keys, ...parts })
  t.after(() => audit.close())
  const lines = (): Record<string, unknown>[] => {
    audit.flush()
    const text = readFileSync(join(folder, auditFile), 'utf8')
    return text.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as Record<string, unknown>)
  }
  return { audit, folder, clock, lines }
}

const record = (what: string): string =>
  `${JSON.stringify({ seq: 1, time: '2026-11-24T10:00:00.123+01:00', by: '::1', what, mac: 'a'.repeat(64) })}\n`

test('a change is one line of JSON, with the time, the process and the node', (t) => {
  const { audit, lines, clock } = openAudit(t, { origin: { process: 2, node: 'a:8080' } })
  audit.record({ by: '::1', user: 'ann', what: 'trace of pool set', from: 'on', to: 'off' })
  audit.record({ by: 'SIGTERM', what: 'stop\nrequested\u2028' })
  const [first, second] = lines()
  assert.equal(Date.parse(String(first?.['time'])), clock.ms)
  assert.match(String(first?.['mac']), /^[0-9a-f]{64}$/)
  assert.deepEqual({ ...first, time: '', mac: '' }, { seq: 1, time: '', by: '::1', user: 'ann', what: 'trace of pool set', from: 'on', to: 'off', process: 2, node: 'a:8080', mac: '' })
  assert.deepEqual(second?.['what'], 'stop\nrequested\u2028')
  assert.deepEqual(Object.keys(first ?? {}), ['seq', 'time', 'by', 'user', 'what', 'from', 'to', 'node', 'process', 'mac'])
})

test('the same failure of a client within a minute is one record with a count', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { audit, lines } = openAudit(t)
  for (let time = 0; time < 240; time += 1) audit.recordFailure({ by: '::1', what: 'failed login' })
  audit.recordFailure({ by: '::2', what: 'failed login' })
  assert.deepEqual(lines(), [])
  t.mock.timers.tick(60_000)
  assert.deepEqual(lines().map(({ by, count }) => [by, count]), [['::1', 240], ['::2', undefined]])
  audit.recordFailure({ by: '::1', what: 'failed login' })
  audit.close()
  assert.equal(lines().length, 3, 'a stop does not wait for the minute')
})

test('the minute of a failure begins with its first, whatever others there are', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { audit, lines } = openAudit(t)
  audit.recordFailure({ by: '::1', what: 'failed login' })
  t.mock.timers.tick(55_000)
  audit.recordFailure({ by: '::2', what: 'failed login' })
  t.mock.timers.tick(10_000)
  audit.recordFailure({ by: '::2', what: 'failed login' })
  assert.deepEqual(lines().map(({ by, count }) => [by, count]), [['::1', undefined]])
  t.mock.timers.tick(50_000)
  assert.deepEqual(lines().map(({ by, count }) => [by, count]), [['::1', undefined], ['::2', 2]])
})

test('failures in several processes are one record, and other changes keep their process', (t) => {
  const { audit, lines, clock } = openAudit(t)
  for (const number of [1, 2]) {
    const sent: string[] = []
    const target = {
      path: 'a pipe',
      room: Infinity,
      open: () => {},
      reopen: () => {},
      write: (bytes: Uint8Array, offset: number) => sent.push(Buffer.from(bytes.subarray(offset)).toString()) && bytes.length - offset,
      isAtPath: () => true,
      batchWritten: () => {},
      close: () => {},
    }
    const worker = new AuditLog('/nowhere', { report: () => {}, now: clock.now, origin: { process: number }, target })
    worker.recordFailure({ by: '::1', what: 'failed login' })
    worker.recordFailure({ by: '::1', what: 'failed login' })
    worker.record({ by: '::1', user: 'ann', what: `change ${number}` })
    worker.close()
    audit.take(sent.join(''))
  }
  audit.writeFailures()
  const found = lines().map(({ what, count, process }) => [what, count, process])
  assert.deepEqual(found, [['change 1', undefined, 1], ['change 2', undefined, 2], ['failed login', 4, undefined]])
})

test('a line from a process that is no record is dropped and reported', (t) => {
  const reports: string[] = []
  const { audit, lines } = openAudit(t, { report: (level, message) => reports.push(`${level} ${message}`) })
  const good = { time: 'now', by: '::1', what: 'a change' }
  audit.take(`no JSON\n[]\n{"what":5}\n${JSON.stringify(good)}\nnull\n`)
  assert.deepEqual(lines().map(({ what }) => what), ['a change'])
  const dropped = 'warn a process sent a line to the audit log that is no record: dropped'
  assert.deepEqual(reports, [dropped, dropped, dropped, dropped])
})

test('failures of a thousand clients are written before a minute is over', (t) => {
  const { audit, lines } = openAudit(t)
  for (let client = 0; client <= 1000; client += 1) audit.recordFailure({ by: `client ${client}`, what: 'failed login' })
  assert.equal(lines().length, 1000)
})

test('a stop is recorded only after a start', (t) => {
  const folder = temporaryFolder()
  const logs = openLogs(logConfig(), folder, keys)
  t.after(() => logs.close())
  logs.recordServer('stop')
  assert.equal(readFileSync(join(folder, auditFile), 'utf8'), '')
  for (const what of ['start', 'stop', 'stop'] as const) logs.recordServer(what)
  assert.match(readFileSync(join(folder, auditFile), 'utf8'), /^[^\n]*"start"[^\n]*\n[^\n]*"stop"[^\n]*\n$/)
})

test('the last records are read, newest first, from this file and the rotated one', async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'audit.log-20261124-1'), record('one') + record('two'))
  writeFileSync(join(folder, 'audit.log-20261123-1.gz'), record('zero'))
  utimesSync(join(folder, 'audit.log-20261124-1'), 1, 1)
  writeFileSync(join(folder, auditFile), `${record('three')}no JSON\n{"what":"unchained"}\n${record('four')}{"time":"2026-`)
  const read = async (most: number): Promise<string[]> => (await readAudit(folder, most)).map(({ what }) => what)
  assert.deepEqual(await read(10), ['four', 'three', 'two', 'one'])
  assert.deepEqual(await read(3), ['four', 'three', 'two'])
  assert.deepEqual(await read(1), ['four'])
})

test('reading does not block on a pipe, and needs no file', async () => {
  const folder = temporaryFolder()
  assert.deepEqual(await readAudit(folder, 10), [])
  execFileSync('mkfifo', [join(folder, auditFile)])
  assert.deepEqual(await readAudit(folder, 10), [])
})
