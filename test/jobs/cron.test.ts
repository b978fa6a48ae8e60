import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseCron } from '../../lib/jobs/cron.ts'
import { Seeded } from '../support/seeded.ts'
import { inZone } from './jobs-support.ts'

const dayMs = 86_400_000

const times: readonly (readonly [text: string, after: string, ...next: readonly string[]])[] = [
  ['* * * * *', '2026-01-01T00:00:00.000Z', '2026-01-01T00:01', '2026-01-01T00:02'],
  ['* * * * *', '2026-01-01T00:00:59.999Z', '2026-01-01T00:01'],
  ['0 3 * * *', '2026-01-01T02:59:59.999Z', '2026-01-01T03:00', '2026-01-02T03:00'],
  ['0 3 * * *', '2026-01-01T03:00:00.000Z', '2026-01-02T03:00'],
  ['59 23 31 12 *', '2026-06-01T00:00:00.000Z', '2026-12-31T23:59', '2027-12-31T23:59'],
  ['*/20 * * * *', '2026-01-01T00:00:00.000Z', '2026-01-01T00:20', '2026-01-01T00:40', '2026-01-01T01:00'],
  ['10-30/10 6 * * *', '2026-01-01T00:00:00.000Z', '2026-01-01T06:10', '2026-01-01T06:20', '2026-01-01T06:30', '2026-01-02T06:10'],
  ['45,5,5,10-11 6 * * *', '2026-01-01T00:00:00.000Z', '2026-01-01T06:05', '2026-01-01T06:10', '2026-01-01T06:11', '2026-01-01T06:45'],
  ['05 06 07 08 *', '2026-01-01T00:00:00.000Z', '2026-08-07T06:05'],
  ['0 0 31 * *', '2026-01-31T00:00:00.000Z', '2026-03-31T00:00', '2026-05-31T00:00'],
  ['0 0 */15 * *', '2026-02-01T00:00:00.000Z', '2026-02-16T00:00', '2026-03-01T00:00', '2026-03-16T00:00', '2026-03-31T00:00'],
  ['0 0 1 Feb-APR,oct *', '2026-03-01T00:00:00.000Z', '2026-04-01T00:00', '2026-10-01T00:00', '2027-02-01T00:00'],
  ['0 0 1 */6 *', '2026-01-01T00:00:00.000Z', '2026-07-01T00:00', '2027-01-01T00:00'],
  ['0 0 * * 0', '2026-01-01T00:00:00.000Z', '2026-01-04T00:00', '2026-01-11T00:00'],
  ['0 0 * * 7', '2026-01-01T00:00:00.000Z', '2026-01-04T00:00', '2026-01-11T00:00'],
  ['0 0 * * SUN', '2026-01-01T00:00:00.000Z', '2026-01-04T00:00', '2026-01-11T00:00'],
  ['0 0 * * 5-7', '2026-01-01T00:00:00.000Z', '2026-01-02T00:00', '2026-01-03T00:00', '2026-01-04T00:00', '2026-01-09T00:00'],
  ['0 0 * * Mon-3', '2026-01-01T00:00:00.000Z', '2026-01-05T00:00', '2026-01-06T00:00', '2026-01-07T00:00', '2026-01-12T00:00'],
  ['0 0 * * */3', '2026-01-01T00:00:00.000Z', '2026-01-03T00:00', '2026-01-04T00:00', '2026-01-07T00:00', '2026-01-10T00:00'],
  ['0 0 13 * fri', '2026-01-01T00:00:00.000Z', '2026-01-02T00:00', '2026-01-09T00:00', '2026-01-13T00:00'],
  ['0 0 1,* * fri', '2026-01-01T00:00:00.000Z', '2026-01-02T00:00', '2026-01-03T00:00'],
  ['0 0 */2 * fri', '2026-01-01T00:00:00.000Z', '2026-01-09T00:00', '2026-01-23T00:00', '2026-02-13T00:00'],
  ['0 0 13 * */5', '2026-01-01T00:00:00.000Z', '2026-02-13T00:00', '2026-03-13T00:00', '2026-09-13T00:00'],
  ['0 0 30 2 mon', '2026-01-01T00:00:00.000Z', '2026-02-02T00:00', '2026-02-09T00:00'],
  ['0 0 29 2 *', '2096-02-29T00:00:00.000Z', '2104-02-29T00:00', '2108-02-29T00:00'],
  ['0 0 29 2 */7', '2060-02-29T00:00:00.000Z', '2088-02-29T00:00', '2128-02-29T00:00'],
  [' 0\t0  1 1\n* ', '2026-01-01T00:00:00.000Z', '2027-01-01T00:00'],
]

const fiveFields = 'must have five fields (minute, hour, day of month, month, day of week)'
const wrong: readonly (readonly [text: string, message: string])[] = [
  ['', `${fiveFields}: it has 0: ""`],
  ['0 3 * *', `${fiveFields}: it has 4: "0 3 * *"`],
  ['0 0 3 * * *', `${fiveFields}: it has 6: "0 0 3 * * *"`],
  ['@daily', `${fiveFields}: it has 1: "@daily"`],
  [
    '60 * * * *',
    'has a wrong minute: "60": it must be 0 to 59, * for all, a range from low to high, a step such as */2 (1 to 59) or a'
      + ' list with commas',
  ],
  ['0,15,60 * * * *', 'has a wrong minute: "0,15,60": it must be 0 to 59, '],
  ['-1 * * * *', 'has a wrong minute: "-1": '],
  ['1.5 * * * *', 'has a wrong minute: "1.5": '],
  ['001 * * * *', 'has a wrong minute: "001": '],
  ['0x1 * * * *', 'has a wrong minute: "0x1": '],
  ['1e1 * * * *', 'has a wrong minute: "1e1": '],
  ['५ * * * *', 'has a wrong minute: "५": '],
  ['jan * * * *', 'has a wrong minute: "jan": '],
  ['5/10 * * * *', 'has a wrong minute: "5/10": '],
  ['*/0 * * * *', 'has a wrong minute: "*/0": '],
  ['*/60 * * * *', 'has a wrong minute: "*/60": '],
  ['*/ * * * *', 'has a wrong minute: "*/": '],
  ['*/5/5 * * * *', 'has a wrong minute: "*/5/5": '],
  ['*-5 * * * *', 'has a wrong minute: "*-5": '],
  ['1-2-3 * * * *', 'has a wrong minute: "1-2-3": '],
  ['1- * * * *', 'has a wrong minute: "1-": '],
  ['30-10 * * * *', 'has a wrong minute: "30-10": '],
  ['1,,2 * * * *', 'has a wrong minute: "1,,2": '],
  ['1, * * * *', 'has a wrong minute: "1,": '],
  ['? * * * *', 'has a wrong minute: "?": '],
  ['0 24 * * *', 'has a wrong hour: "24": it must be 0 to 23, '],
  ['0 22-2 * * *', 'has a wrong hour: "22-2": '],
  ['0 0 0 * *', 'has a wrong day of month: "0": it must be 1 to 31, '],
  ['0 0 32 * *', 'has a wrong day of month: "32": '],
  ['0 0 L * *', 'has a wrong day of month: "L": '],
  ['0 0 15W * *', 'has a wrong day of month: "15W": '],
  ['0 0 ? * *', 'has a wrong day of month: "?": '],
  ['0 0 * 0 *', 'has a wrong month: "0": it must be 1 to 12 or jan to dec, '],
  ['0 0 * 13 *', 'has a wrong month: "13": '],
  ['0 0 * january *', 'has a wrong month: "january": '],
  ['0 0 * mon *', 'has a wrong month: "mon": '],
  ['0 0 * * 8', 'has a wrong day of week: "8": it must be 0 to 7 (0 and 7 are Sunday) or sun to sat, '],
  ['0 0 * * fri-sun', 'has a wrong day of week: "fri-sun": '],
  ['0 0 * * 5L', 'has a wrong day of week: "5L": '],
  ['0 0 * * mon#1', 'has a wrong day of week: "mon#1": '],
  ['0 0 30 2 *', 'has a day that never comes: "0 0 30 2 *": name a day that its months have'],
  ['0 0 31 feb,apr,jun,sep,nov */2', 'has a day that never comes: "0 0 31 feb,apr,jun,sep,nov */2": '],
]

describe('parseCron', () => {
  for (const [text, after, ...expected] of times) {
    it(`runs ${JSON.stringify(text)} after ${after} at ${expected[0]}`, () => {
      inZone('UTC', () => {
        const cron = parseCron(text)
        let time = Date.parse(after)
        for (const next of expected) {
          time = cron.next(time)
          assert.equal(new Date(time).toISOString(), `${next}:00.000Z`)
        }
      })
    })
  }

  for (const [text, message] of wrong) {
    it(`refuses ${JSON.stringify(text)}`, () => {
      assert.throws(() => parseCron(text), (error) => {
        assert.ok(error instanceof RangeError)
        assert.equal(error.message.slice(0, message.length), message)
        return true
      })
    })
  }

  it('throws for a time without a date instead of searching forever', () => {
    const cron = parseCron('* * * * *')
    for (const time of [NaN, Infinity, -Infinity, 8.64e15, 9e15]) {
      assert.throws(() => cron.next(time), { name: 'RangeError', message: /^no date for a time after / })
    }
  })

  it('finds the days that a walk from day to day finds, and refuses those that it does not find', () => {
    const seeded = new Seeded(31)
    let refused = 0
    inZone('UTC', () => {
      for (let round = 0; round < 600; round += 1) {
        const days = randomField(seeded, 1, 31, 31)
        const months = randomField(seeded, 1, 12, 12)
        const weekdays = randomField(seeded, 0, 6, 7)
        const text = `0 0 ${days.text} ${months.text} ${weekdays.text}`
        const after = Date.UTC(1970 + seeded.integer(150), seeded.integer(12), 1 + seeded.integer(31))
        const expected = walkDays(after, (date) => {
          const [day, weekday] = [days.values.has(date.getUTCDate()), weekdays.values.has(date.getUTCDay())]
          const isDay = days.isStar || weekdays.isStar ? day && weekday : day || weekday
          return isDay && months.values.has(date.getUTCMonth() + 1)
        })
        if (expected === undefined) {
          refused += 1
          assert.throws(() => parseCron(text), /never comes/, text)
        } else {
          assert.equal(parseCron(text).next(after), expected, `${text} after ${after}`)
        }
      }
    })
    assert.ok(refused > 0 && refused < 100)
  })
})

/** A field with its values: `*` with or without a step, or a list of values. */
function randomField(seeded: Seeded, min: number, max: number, maxStep: number) {
  const all = Array.from({ length: max - min + 1 }, (_, index) => min + index)
  if (seeded.integer(2) === 0) {
    const step = seeded.integer(2) === 0 ? 1 : 1 + seeded.integer(maxStep)
    const values = new Set(all.filter((value) => (value - min) % step === 0))
    return { text: step === 1 ? '*' : `*/${step}`, values, isStar: true }
  }
  const values = Array.from({ length: 1 + seeded.integer(2) }, () => (seeded.integer(4) === 0 ? max : seeded.pick(all)))
  return { text: values.join(','), values: new Set(values), isStar: false }
}

/** The first midnight in UTC after a time whose day is selected; undefined if none of the next 41 years is. */
function walkDays(after: number, isSelected: (date: Date) => boolean): number | undefined {
  for (let time = after + dayMs; time < after + 41 * 366 * dayMs; time += dayMs) {
    if (isSelected(new Date(time))) return time
  }
  return undefined
}
