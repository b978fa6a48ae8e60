import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { cronSchedule, everySchedule } from '../../lib/jobs/schedule.ts'
import { inZone } from './jobs-support.ts'

describe('everySchedule', () => {
  const specs: readonly (readonly [text: string, spec: string])[] = [
    ['1s', 'every 1000'],
    ['15m', 'every 900000'],
    ['900s', 'every 900000'],
    ['007h', 'every 25200000'],
    ['366d', 'every 31622400000'],
  ]
  for (const [text, spec] of specs) {
    it(`recognizes ${text} as ${spec}`, () => {
      assert.equal(everySchedule(text).spec, spec)
    })
  }

  const wrong = ['', '15', 'm', '0s', '0d', '367d', '31622401s', '1w', '1ms', '1M', '-1s', '+1s', '1.5h', '1e3s', ' 1s', '1 s', '1s ', '1s\n', '1h30m', '٣s', '9'.repeat(400) + 's']
  for (const text of wrong) {
    it(`refuses ${JSON.stringify(text.slice(0, 20))}`, () => {
      const must = 'must be a whole number and a unit (s, m, h or d), from 1s to 366d, such as 15m'
      assert.throws(() => everySchedule(text), { name: 'RangeError', message: `${must}: it is ${JSON.stringify(text)}` })
    })
  }

  const rows: readonly (readonly [what: string, now: number, previous: number | undefined, next: number])[] = [
    ['an interval from now without a previous time', 5000, undefined, 15_000],
    ['an interval after the previous time', 5000, 1000, 11_000],
    ['later than now, when now is the next time', 11_000, 1000, 21_000],
    ['at once when the next time is about to come', 10_999, 1000, 11_000],
    ['without the times that were missed', 57_000, 1000, 61_000],
    ['an interval after a previous time that is now', 5000, 5000, 15_000],
    ['an interval after a previous time just ahead', 5000, 6000, 16_000],
    ['an interval after a previous time one interval ahead', 5000, 15_000, 25_000],
    ['an interval from now when the clock was set back', 5000, 15_001, 15_000],
  ]
  for (const [what, now, previous, next] of rows) {
    it(`is due ${what}`, () => {
      assert.equal(everySchedule('10s').next(now, previous), next)
    })
  }
})

describe('cronSchedule', () => {
  it('recognizes an expression whatever its white space', () => {
    assert.equal(cronSchedule('0 3 * * *').spec, 'cron 0 3 * * *')
    assert.equal(cronSchedule('\t0  3 *\n* * ').spec, 'cron 0 3 * * *')
  })

  it('is due at the next local time, whatever the previous time', () => {
    inZone('Europe/Berlin', () => {
      const now = Date.parse('2026-03-28T12:00Z')
      for (const previous of [undefined, 0, now, now + 1e12]) {
        assert.equal(cronSchedule('30 2 * * *').next(now, previous), Date.parse('2026-03-29T01:00Z'))
      }
    })
  })

  it('refuses a wrong expression as parseCron does', () => {
    assert.throws(() => cronSchedule('60 * * * *'), { name: 'RangeError', message: /^has a wrong minute: "60": / })
    assert.throws(() => cronSchedule('0 0 30 2 *'), { name: 'RangeError', message: /^has a day that never comes: / })
  })
})
