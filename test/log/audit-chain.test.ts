// The chain of the audit log, read by the command `svc audit` as an auditor would.
import assert from 'node:assert/strict'
import { appendFileSync, copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, truncateSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { audit } from '../../lib/commands/audit.ts'
import { parseConfig } from '../../lib/config/load.ts'
import { AuditLog, type AuditLogParts } from '../../lib/log/audit-log.ts'
import { Seeded } from '../support/seeded.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { createFaultyDisk } from './faulty-disk.ts'
import { KeptConsole } from './fixture.ts'

const key = 'a key of at least thirty-two characters'
const keys = { keys: [key], isLasting: true }

/** An audit log in a folder, with what it has reported. */
function openAudit(t: TestContext, folder: string, parts: Partial<AuditLogParts> = {}) {
  const reports: string[] = []
  const report = (_: unknown, message: string): void => void reports.push(message)
  const log = new AuditLog(folder, { report, consolePort: new KeptConsole(), keys, ...parts })
  t.after(() => log.close())
  const record = (...names: readonly string[]): void => {
    for (const what of names) log.record({ by: '::1', what })
    log.flush()
  }
  return { log, record, reports }
}

/** A folder with an audit log of these records, which is closed. */
function written(t: TestContext, names: readonly string[]): { folder: string; file: string } {
  const folder = temporaryFolder()
  const { log, record } = openAudit(t, folder)
  record(...names)
  log.close()
  return { folder, file: join(folder, 'audit.log') }
}

interface Checked {
  readonly status: number
  readonly out: string
  readonly problem: string
}

async function check(folder: string, options: { files?: readonly string[]; head?: string; config?: object } = {}): Promise<Checked> {
  const seen = { out: '', problem: '' }
  const loaded = parseConfig({ app_key: key, 'paths.log': folder, ...options.config }, folder)
  const status = await audit(async () => loaded, { files: options.files ?? [], head: options.head }, {
    out: (text) => void (seen.out += text),
    problem: (text) => void (seen.problem += text.replaceAll(folder, 'LOGS')),
  })
  return { status, ...seen }
}

const linesOf = (file: string): string[] => readFileSync(file, 'utf8').split('\n').slice(0, -1)
const recordsOf = (file: string) => linesOf(file).map((line) => JSON.parse(line) as { seq: number; what: string; mac: string })
const headOf = (file: string): string => recordsOf(file).at(-1)?.mac ?? ''
const good = (count: number, head: string, from = 1): Checked =>
  ({ status: 0, out: `${count} records follow each other, from ${from} to ${from + count - 1}\nhead ${head}\n`, problem: '' })

describe('the audit log', () => {
  it('goes on over restarts, files moved with or without a signal, and compressed ones', async (t) => {
    const folder = temporaryFolder()
    const file = join(folder, 'audit.log')
    const first = openAudit(t, folder)
    first.record('a', 'b')
    renameSync(file, `${file}-20261101-1`)
    first.log.reopen()
    first.record('c')
    first.log.close()
    const second = openAudit(t, folder)
    second.record('d')
    second.log.close()
    writeFileSync(`${file}-20261102-1.gz`, gzipSync(readFileSync(file)))
    unlinkSync(file)
    const third = openAudit(t, folder)
    third.record('e')
    assert.deepEqual(await check(folder), good(5, headOf(file)))
    const files = [file, `${file}-20261101-1`, `${file}-20261102-1.gz`]
    assert.deepEqual(await check('/nowhere', { files }), good(5, headOf(file)))
    assert.deepEqual(await check(folder, { head: String(recordsOf(`${file}-20261101-1`)[1]?.mac) }), good(5, headOf(file)))
  })

  it('goes on after records that another program with the key has appended', async (t) => {
    const { folder, file } = written(t, ['a'])
    const server = openAudit(t, folder)
    server.record('b')
    const passwd = openAudit(t, folder)
    passwd.record('c', 'd')
    passwd.log.close()
    server.record('e')
    assert.deepEqual(recordsOf(file).map(({ what }) => what), ['a', 'b', 'c', 'd', 'e'])
    assert.deepEqual([await check(folder), server.reports], [good(5, headOf(file)), []])
  })

  it('goes on after them when it is opened again, in the same file or in a new one', async (t) => {
    for (const moves of [false, true]) {
      const { folder, file } = written(t, ['a'])
      const server = openAudit(t, folder)
      server.record('b')
      if (moves) renameSync(file, `${file}.1`)
      const passwd = openAudit(t, folder)
      passwd.record('c', 'd')
      passwd.log.close()
      server.log.reopen()
      server.record('e')
      server.log.close()
      assert.deepEqual([await check(folder), server.reports], [good(5, headOf(file)), [`Reopened ${file}`]])
    }
  })

  it('goes on from the highest record, whatever copies of older files there are', async (t) => {
    const { folder, file } = written(t, ['a', 'b', 'c'])
    renameSync(file, `${file}.1`)
    writeFileSync(`${file}.check`, readFileSync(`${file}.1`, 'utf8').split('\n').slice(0, 2).join('\n'))
    const { log, record } = openAudit(t, folder)
    record('d')
    log.close()
    utimesSync(`${file}.1`, new Date(), new Date(Date.now() + 1e6))
    const next = openAudit(t, folder)
    next.record('e')
    rmSync(`${file}.check`)
    assert.deepEqual(await check(folder), good(5, headOf(file)))
  })

  it('reports what was appended without the key, and does not follow it', async (t) => {
    const { folder, file } = written(t, ['a'])
    const { record, reports } = openAudit(t, folder)
    record('b')
    appendFileSync(file, `${linesOf(file)[1]?.replace('"seq":2', '"seq":3')}\n`)
    record('c')
    assert.deepEqual(reports, [`${file}: another program has appended a line that does not follow record 2. Check it: svc audit`])
    const { status, problem } = await check(folder)
    assert.equal(status, 1)
    assert.match(problem, /^LOGS\/audit\.log:3: record 3 does not follow record 2\. A record was changed/)
  })

  it('leaves half a line of a crash, reports it once, and goes on from the record before it', async (t) => {
    const { folder, file } = written(t, ['a', 'b'])
    const half = linesOf(file)[1] ?? ''
    truncateSync(file, readFileSync(file).length - 20)
    const { record, reports, log } = openAudit(t, folder)
    record('c')
    log.close()
    assert.deepEqual(reports, [`${file} has half a record: the server or the machine crashed while it was written`])
    assert.equal(linesOf(file)[1], half.slice(0, -19))
    const head = lastOf(file)
    const expected = { status: 0, out: `2 records follow each other, from 1 to 2\nhead ${head}\n`, problem: 'LOGS/audit.log:2: half a record, as a crash leaves it\n' }
    assert.deepEqual(await check(folder), expected)
    const next = openAudit(t, folder)
    next.record('d')
    assert.deepEqual(next.reports, [])
  })

  it('keeps its chain over a full disk, and numbers show how many records were lost', async (t) => {
    const folder = temporaryFolder()
    const fileSystem = createFaultyDisk()
    const { log, record } = openAudit(t, folder, { fileSystem })
    record('before')
    fileSystem.room = 100
    for (let count = 0; count < 3000; count += 1) log.record({ by: '::1', what: `held or lost ${count}` })
    log.flush()
    assert.ok(log.lost > 0)
    fileSystem.room = 1e9
    record('after')
    log.close()
    const { status, out, problem } = await check(folder)
    assert.deepEqual([status, problem], [0, `Records that were never written, as on a full disk: ${log.lost}\n`])
    assert.match(out, new RegExp(`^${3002 - log.lost} records follow each other, from 1 to 3002\n`))
  })

  it('begins anew at each start when its key does not last, and verifies with the keys before it', async (t) => {
    const folder = temporaryFolder()
    for (const isLasting of [true, false]) {
      const { log, record } = openAudit(t, folder, { keys: { keys: [key], isLasting } })
      record('a')
      log.close()
    }
    const { status, problem } = await check(folder)
    assert.deepEqual([status, problem], [1, 'LOGS/audit.log:2: record 1 does not follow record 1. The log began anew there: its files were removed, or there was no lasting app_key\n'])
    rmSync(join(folder, 'audit.log'))
    for (const one of ['old', 'new']) {
      const { log, record } = openAudit(t, folder, { keys: { keys: [one], isLasting: true } })
      record('a')
      log.close()
    }
    const config = { app_key: 'new', app_key_previous: ['old'] }
    assert.equal((await check(folder, { config })).status, 0)
    assert.match((await check(folder, { config: { app_key: 'new' } })).problem, /^LOGS\/audit\.log:1: record 1 is not genuine\. A record was .* not in app_key or app_key_previous\n$/)
  })
})

describe('the command audit', () => {
  const names = ['a', 'b', 'c', 'd', 'e']
  const rows: readonly [string, (lines: string[]) => string[], RegExp | number][] = [
    ['an edited record', (lines) => lines.with(2, lines[2]?.replace('"what":"c"', '"what":"x"') ?? ''), /:3: record 3 does not follow record 2\. A record was changed/],
    ['an edited mac', (lines) => lines.with(2, lines[2]?.replace(/..."\}$/, '000"}') ?? ''), /:3: record 3 does not follow record 2/],
    ['a removed record', (lines) => lines.toSpliced(2, 1), /:3: record 4 does not follow record 2/],
    ['swapped records', (lines) => lines.with(1, lines[2] ?? '').with(2, lines[1] ?? ''), /:2: record 3 does not follow record 1/],
    ['a repeated record', (lines) => lines.toSpliced(2, 0, lines[1] ?? ''), /:3: record 2 does not follow record 2/],
    ['an inserted line', (lines) => lines.toSpliced(2, 0, '{"what":"forged"}'), /:3 is not a record/],
    ['a text', (lines) => lines.toSpliced(2, 0, 'forged'), /:3 is not a record/],
    ['half a record inside', (lines) => lines.with(2, lines[2]?.slice(0, 50) ?? ''), /:4: record 4 does not follow record 2/],
    ['a first record of another', (lines) => lines.with(0, lines[0]?.replace('"what":"a"', '"what":"x"') ?? ''), /:1: record 1 is not genuine/],
    ['nothing', () => [], /^There is no record in LOGS/],
    ['removed first records', (lines) => lines.slice(2), 3],
    ['a removed end', (lines) => lines.slice(0, 3), 3],
  ]
  for (const [name, change, expected] of rows) {
    it(typeof expected === 'number' ? `accepts ${name}` : `refuses ${name}`, async (t) => {
      const { folder, file } = written(t, names)
      const head = headOf(file)
      writeFileSync(file, change(linesOf(file)).map((line) => `${line}\n`).join(''))
      const { status, out, problem } = await check(folder)
      assert.equal(status, typeof expected === 'number' ? 0 : 1)
      if (typeof expected !== 'number') return assert.match(problem, expected)
      assert.match(out, /^3 records follow each other/)
      if (name === 'a removed end') {
        const cut = await check(folder, { head })
        assert.deepEqual(cut, { status: 1, out: '', problem: `No record has the mac ${head}: the last records, or files, are missing\n` })
      } else assert.equal(problem, 'LOGS/audit.log:1: record 3 is the first: nothing proves it, nor those before it\n')
    })
  }

  it('does not accept a head that nothing proves', async (t) => {
    const { folder, file } = written(t, names)
    const [head, forged] = [headOf(file), linesOf(file)[4]?.replace('"what":"e"', '"what":"forged"')]
    writeFileSync(file, `${forged}\n`)
    const { status, problem } = await check(folder, { head })
    assert.deepEqual([status, /Record 5 has this mac, but nothing proves it: there is no other record\n$/.test(problem)], [1, true])
  })

  it('finds each changed bit before the last record', async (t) => {
    const { folder, file } = written(t, names)
    const bytes = readFileSync(file)
    const lastLine = linesOf(file)[4] ?? ''
    const seeded = new Seeded(42)
    for (let round = 0; round < 300; round += 1) {
      const damaged = Buffer.from(bytes)
      const at = seeded.integer(bytes.length - lastLine.length - 1)
      damaged[at] = (damaged[at] as number) ^ (1 << seeded.integer(8))
      writeFileSync(file, damaged)
      const { status } = await check(folder)
      assert.equal(status, 1, `byte ${at} of ${JSON.stringify(damaged.toString())}`)
    }
  })

  it('exits with 78 without a key, and with 1 for a file that is not there or not compressed', async (t) => {
    const { folder } = written(t, names)
    const noKey = await check(folder, { config: { app_key: '' } })
    assert.equal(noKey.status, 78)
    assert.match(noKey.problem, /^Cannot check the audit log: there is no app_key/)
    const missing = await check(folder, { files: [join(folder, 'none')] })
    assert.deepEqual([missing.status, /^Cannot read LOGS\/none: ENOENT/.test(missing.problem)], [1, true])
    copyFileSync(join(folder, 'audit.log'), join(folder, 'audit.log.gz'))
    const wrong = await check(folder, { files: [join(folder, 'audit.log.gz')] })
    assert.deepEqual([wrong.status, /^Cannot read LOGS\/audit\.log\.gz: incorrect header check/.test(wrong.problem)], [1, true])
    mkdirSync(join(folder, 'empty'))
    assert.equal((await check(join(folder, 'empty'))).status, 1)
    assert.equal((await check(join(folder, 'none'))).problem, 'There is no record in LOGS\n')
    writeFileSync(join(folder, 'other'), '{\n}\n')
    assert.equal((await check(folder, { files: [join(folder, 'other')] })).problem, 'LOGS/other:1 is not a record\n')
    await turn()
  })
})

/** The head of a file with half a record. */
function lastOf(file: string): string {
  return (JSON.parse(linesOf(file).at(-1) ?? '') as { mac: string }).mac
}
