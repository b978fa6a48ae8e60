import assert from 'node:assert/strict'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { readJobRecord } from '../../lib/jobs/job-record.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const root = '/srv/app'
const least = { name: 'mail', action: 'jobs/mail.js' }

describe('a job record', () => {
  it('has defaults', () => {
    assert.deepEqual(readJobRecord(least, root), {
      record: { ...least, retries: 5, backoff_s: 10, timeout_s: 60, catch_up: true, optional: false, schedule: undefined },
      warnings: [],
    })
  })

  const limits: readonly (readonly [fields: Readonly<Record<string, unknown>>])[] = [
    [{ retries: 0 }],
    [{ retries: 100 }],
    [{ backoff_s: 0 }],
    [{ backoff_s: 3600 }],
    [{ timeout_s: 1 }],
    [{ timeout_s: 86_400 }],
    [{ name: '日報 ✉' }],
    [{ action: 'a.mjs' }],
    [{ action: 'jobs/mail.js@send' }],
    [{ action: './jobs/../mail.cjs@$send_1' }],
  ]
  for (const [fields] of limits) {
    it(`may have ${JSON.stringify(fields)}`, () => {
      const read = readJobRecord({ ...least, ...fields }, root)
      assert.ok('record' in read, JSON.stringify(read))
      assert.deepEqual({ ...read.record, ...fields }, read.record)
      assert.deepEqual(read.warnings, [])
    })
  }

  const schedules: readonly (readonly [fields: Readonly<Record<string, unknown>>, spec: string, catchUp: boolean])[] = [
    [{ every: '15m' }, 'every 900000', true],
    [{ every: '1s', catch_up: false }, 'every 1000', false],
    [{ cron: ' 0 3 * * mon-fri ', catch_up: true }, 'cron 0 3 * * mon-fri', true],
  ]
  for (const [fields, spec, catchUp] of schedules) {
    it(`may have the schedule ${JSON.stringify(fields)}`, () => {
      const read = readJobRecord({ ...least, ...fields }, root)
      assert.ok('record' in read, JSON.stringify(read))
      assert.deepEqual([read.record.schedule?.spec, read.record.catch_up, read.warnings], [spec, catchUp, []])
    })
  }

  const warned: readonly (readonly [fields: object, warnings: readonly string[]])[] = [
    [{ retrys: 3 }, ['field "retrys" is not known and is ignored: did you mean "retries"?']],
    [{ note: 'x', 'x-y': 1 }, ['field "note" is not known and is ignored', 'field "x-y" is not known and is ignored']],
    [{ catch_up: false }, ['catch_up has no effect without every or cron']],
  ]
  for (const [fields, warnings] of warned) {
    it(`is valid, with a warning, with ${JSON.stringify(fields)}`, () => {
      const read = readJobRecord({ ...least, ...fields }, root)
      assert.ok('record' in read, JSON.stringify(read))
      assert.deepEqual(read.warnings, warnings)
    })
  }

  for (const value of [null, 5, 'mail', true, [], [least]]) {
    it(`is not ${JSON.stringify(value)}`, () => {
      assert.deepEqual(readJobRecord(value, root), { name: '', problems: ['a job is a JSON object'] })
    })
  }

  const isModule = 'action must be a module such as jobs/mail.js@send: it is '
  const isBelow = 'action must be a path below /srv/app, given relative to it: it is '
  const every = 'every must be a whole number and a unit (s, m, h or d), from 1s to 366d, such as 15m: it is '
  const wrong: readonly (readonly [fields: object, ...problems: string[]])[] = [
    [{ name: undefined }, 'name is missing'],
    [{ name: '' }, 'name must not be empty'],
    [{ name: 7 }, 'name must be a string: it is 7'],
    [{ name: ' a' }, 'name must not begin or end with a space: it is " a"'],
    [{ name: 'a\nb' }, 'name must not hold control characters: it is "a\\nb"'],
    [{ name: 'svc.mail' }, 'name must not begin with "svc.", which is for system routes: it is "svc.mail"'],
    [{ action: undefined }, 'action is missing'],
    [{ action: '' }, 'action must not be empty'],
    [{ action: ['a.js'] }, 'action must be a string: it is an array'],
    [{ action: '../a.js' }, `${isBelow}"../a.js"`],
    [{ action: '/srv/app/a.js' }, `${isBelow}"/srv/app/a.js"`],
    [{ action: 'a.html' }, `${isModule}"a.html"`],
    [{ action: 'svc:openapi' }, `${isModule}"svc:openapi"`],
    [{ action: 'a.txt' }, `${isModule}"a.txt"`],
    [{ action: 'a.js@' }, `${isModule}"a.js@"`],
    [{ name: ' a', action: 'a.html' }, 'name must not begin or end with a space: it is " a"', `${isModule}"a.html"`],
    [{ retries: -1 }, 'retries must be 0 to 100: it is -1'],
    [{ retries: 101 }, 'retries must be 0 to 100: it is 101'],
    [{ retries: 1.5 }, 'retries must be a whole number, 0 to 100: it is 1.5'],
    [{ retries: '5' }, 'retries must be 0 to 100: it is "5"'],
    [{ retries: null }, 'retries must be 0 to 100: it is null'],
    [{ backoff_s: -1 }, 'backoff_s must be 0 to 3600: it is -1'],
    [{ backoff_s: 3601 }, 'backoff_s must be 0 to 3600: it is 3601'],
    [{ backoff_s: 0.5 }, 'backoff_s must be a whole number, 0 to 3600: it is 0.5'],
    [{ backoff_s: [] }, 'backoff_s must be 0 to 3600: it is a list'],
    [{ timeout_s: 0 }, 'timeout_s must be 1 to 86400: it is 0'],
    [{ timeout_s: 86_401 }, 'timeout_s must be 1 to 86400: it is 86401'],
    [{ timeout_s: {} }, 'timeout_s must be 1 to 86400: it is an object'],
    [{ every: '1m', catch_up: 'yes' }, 'catch_up must be true or false: it is "yes"'],
    [{ every: '1m', catch_up: null }, 'catch_up must be true or false: it is null'],
    [{ every: '1w' }, `${every}"1w"`],
    [{ every: 15 }, 'every must be a string: it is 15'],
    [{ every: null }, 'every must be a string: it is null'],
    [{ cron: {} }, 'cron must be a string: it is {}'],
    [{ cron: '0 3 * *' }, 'cron must have five fields (minute, hour, day of month, month, day of week): it has 4: "0 3 * *"'],
    [{ cron: '0 3 30 2 *' }, 'cron has a day that never comes: "0 3 30 2 *": name a day that its months have'],
    [{ cron: '0 3 * * *', every: '1m' }, 'every and cron exclude each other: leave one of them out'],
    [{ cron: 5, every: 5 }, 'every and cron exclude each other: leave one of them out'],
    [
      { name: 'svc.x', action: '../a.js', retries: -1, backoff_s: -1, timeout_s: -1, catch_up: 1, every: '' },
      'name must not begin with "svc.", which is for system routes: it is "svc.x"',
      `${isBelow}"../a.js"`,
      'retries must be 0 to 100: it is -1',
      'backoff_s must be 0 to 3600: it is -1',
      'timeout_s must be 1 to 86400: it is -1',
      'catch_up must be true or false: it is 1',
      `${every}""`,
    ],
  ]
  for (const [fields, ...problems] of wrong) {
    it(`is refused with ${JSON.stringify(fields)}`, () => {
      const given: Readonly<Record<string, unknown>> = { ...least, ...fields }
      const name = typeof given['name'] === 'string' ? given['name'] : ''
      assert.deepEqual(readJobRecord(given, root), { name, problems })
    })
  }

  it('is refused when its action is a link that leads out of the root', () => {
    const folder = temporaryFolder()
    symlinkSync(temporaryFolder(), join(folder, 'out'))
    assert.deepEqual(readJobRecord({ name: 'a', action: 'out/a.js' }, folder), {
      name: 'a',
      problems: [`action must not be a link that leads out of ${folder}: it is "out/a.js"`],
    })
  })
})
