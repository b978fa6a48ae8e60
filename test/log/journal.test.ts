// The console of a service whose output goes to the journal of systemd: priorities, and no second time.
import assert from 'node:assert/strict'
import { closeSync, fstatSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { createJournalForm, isJournal } from '../../lib/log/journal.ts'
import { assertJournalLines } from '../support/journal.ts'
import { startApplication } from '../support/application.ts'
import { readPage } from '../support/markdown.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const textOf = (level: string, message = 'm'): string => `[2026-11-20 11:27:00.123] [${level.padEnd(5)}] [app] ${message}\n`
const jsonOf = (level: string): string => `{"time":"2026-11-20T11:27:00.123+01:00","level":"${level}","module":"app","message":"m"}\n`

describe('a line for the journal', () => {
  for (const [level, priority] of [['debug', 7], ['info', 6], ['warn', 4], ['error', 3], ['fatal', 3]] as const) {
    it(`of ${level} has the priority ${priority}, and no time as text`, () => {
      const form = createJournalForm()
      assert.equal(form(textOf(level.toUpperCase())), `<${priority}>[${level.toUpperCase().padEnd(5)}] [app] m\n`)
      assert.equal(form(jsonOf(level)), `<${priority}>${jsonOf(level)}`)
    })
  }

  it('of a stack has the priority of its record, also when it comes alone', () => {
    const form = createJournalForm()
    assert.equal(form(`${textOf('ERROR')}    Error: m\n    at a\n${textOf('INFO')}`), '<3>[ERROR] [app] m\n<3>    Error: m\n<3>    at a\n<6>[INFO ] [app] m\n')
    form(textOf('WARN'))
    assert.equal(form('    at b\n'), '<4>    at b\n')
  })

  it('cannot choose its priority by its message', () => {
    const form = createJournalForm()
    assert.equal(form(textOf('INFO', '<0>[x] [FATAL] y')), '<6>[INFO ] [app] <0>[x] [FATAL] y\n')
    assert.equal(form('<0>strange\n'), '<6><0>strange\n')
  })
})

describe('the journal', () => {
  it('is recognised by device and inode of the stream alone', (t) => {
    const fd = openSync(join(temporaryFolder(), 'stream'), 'w')
    t.after(() => closeSync(fd))
    const { dev, ino } = fstatSync(fd)
    assert.equal(isJournal(fd, { JOURNAL_STREAM: `${dev}:${ino}` }), true)
    for (const stream of [undefined, '', `${dev}:${ino + 1}`, `${dev + 1}:${ino}`, `${ino}`, `${dev}:${ino}:0`]) {
      assert.equal(isJournal(fd, { ...(stream !== undefined && { JOURNAL_STREAM: stream }) }), false, stream)
    }
    assert.equal(isJournal(9999, { JOURNAL_STREAM: '1:1' }), false)
  })

  it('gets the lines of a server with priorities; the file has them with times', (t) => assertJournalLines(t, 1))
})

describe('docs/logging.md, for Fluent Bit', () => {
  it('gives the format of the time in both logs', async (t) => {
    const { lines, url } = await startApplication(t, {}, { 'log.format': 'json', 'access_log.format': 'json' })
    await request(url)
    const format = /Time_Format (\S+)/.exec(readPage('docs/logging.md').blocks.map(({ text }) => text).join(''))?.[1] ?? ''
    const parts: Readonly<Record<string, string>> = { '%Y': '\\d{4}', '%L': '\\d{3}', '%z': '[+-]\\d\\d:\\d\\d' } // Its %z takes a colon.
    const shape = new RegExp(`^${format.replaceAll('.', '\\.').replace(/%./g, (part) => parts[part] ?? '\\d\\d')}$`)
    for (const file of ['svc.log', 'access.log']) {
      const { time } = JSON.parse(lines(file)[0] ?? '') as { time: string }
      assert.match(time, shape, file)
    }
  })
})
