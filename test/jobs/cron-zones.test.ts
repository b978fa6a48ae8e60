/** Cron expressions where the clock jumps. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseCron } from '../../lib/jobs/cron.ts'
import { Seeded } from '../support/seeded.ts'
import { inZone } from './jobs-support.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs

const rows: readonly (readonly [zone: string, text: string, after: string, ...next: readonly string[]])[] = [
  // 02:00 becomes 03:00 at 01:00 UTC.
  ['Europe/Berlin', '30 2 * * *', '2026-03-28T12:00', '2026-03-29T01:00', '2026-03-30T00:30'],
  ['Europe/Berlin', '0 2 * * *', '2026-03-28T12:00', '2026-03-29T01:00', '2026-03-30T00:00'],
  ['Europe/Berlin', '*/5 2 * * *', '2026-03-28T12:00', '2026-03-29T01:00', '2026-03-30T00:00', '2026-03-30T00:05'],
  ['Europe/Berlin', '30 2,3 * * *', '2026-03-28T12:00', '2026-03-29T01:00', '2026-03-29T01:30'],
  ['Europe/Berlin', '0 2,3 * * *', '2026-03-28T12:00', '2026-03-29T01:00', '2026-03-30T00:00'],
  ['Europe/Berlin', '*/20 * * * *', '2026-03-29T00:39', '2026-03-29T00:40', '2026-03-29T01:00', '2026-03-29T01:20'],
  // 03:00 becomes 02:00 at 01:00 UTC.
  ['Europe/Berlin', '30 2 * * *', '2026-10-24T12:00', '2026-10-25T00:30', '2026-10-26T01:30'],
  ['Europe/Berlin', '30 2 * * *', '2026-10-25T01:10', '2026-10-26T01:30'],
  ['Europe/Berlin', '0 2 * * *', '2026-10-24T12:00', '2026-10-25T00:00', '2026-10-26T01:00'],
  ['Europe/Berlin', '0 3 * * *', '2026-10-24T12:00', '2026-10-25T02:00', '2026-10-26T02:00'],
  ['Europe/Berlin', '*/30 * * * *', '2026-10-25T00:00', '2026-10-25T00:30', '2026-10-25T02:00'],
  // West of Greenwich: 02:00 becomes 03:00 at 07:00 UTC, and 02:00 becomes 01:00 at 06:00 UTC.
  ['America/New_York', '30 2 * * *', '2026-03-07T12:00', '2026-03-08T07:00', '2026-03-09T06:30'],
  ['America/New_York', '30 1 * * *', '2026-10-31T12:00', '2026-11-01T05:30', '2026-11-02T06:30'],
  // Half an hour: 02:00 becomes 02:30 at 15:30 UTC, and 02:00 becomes 01:30 at 15:00 UTC.
  ['Australia/Lord_Howe', '15 2 * * *', '2026-10-03T00:00', '2026-10-03T15:30', '2026-10-04T15:15'],
  ['Australia/Lord_Howe', '30 2 * * *', '2026-10-03T00:00', '2026-10-03T15:30', '2026-10-04T15:30'],
  ['Australia/Lord_Howe', '45 1 * * *', '2026-04-04T00:00', '2026-04-04T14:45', '2026-04-05T15:15'],
  // At midnight: 00:00 becomes 01:00 at 03:00 UTC, and 00:00 becomes 23:00 of the day before at 02:00 UTC.
  ['America/Sao_Paulo', '0 0 * * *', '2018-11-03T12:00', '2018-11-04T03:00', '2018-11-05T02:00'],
  ['America/Sao_Paulo', '30 0 4 11 *', '2018-11-03T12:00', '2018-11-04T03:00', '2019-11-04T03:30'],
  ['America/Sao_Paulo', '30 23 * * *', '2018-02-17T12:00', '2018-02-18T01:30', '2018-02-19T02:30'],
  ['America/Sao_Paulo', '0 0 * * sun', '2018-02-17T12:00', '2018-02-18T03:00', '2018-02-25T03:00'],
  ['Africa/Cairo', '0 0 * * *', '2024-04-25T12:00', '2024-04-25T22:00', '2024-04-26T21:00'],
  ['Africa/Cairo', '15 23 31 10 *', '2024-10-31T12:00', '2024-10-31T20:15', '2025-10-31T21:15'],
  // The whole of 30 December is skipped at 10:00 UTC.
  ['Pacific/Apia', '0 3 * * *', '2011-12-29T00:00', '2011-12-29T13:00', '2011-12-30T10:00', '2011-12-30T13:00'],
]

describe('a cron expression', () => {
  for (const [zone, text, after, ...expected] of rows) {
    it(`in ${zone}: ${text} after ${after} UTC is due at ${expected.join(', ')}`, () => {
      inZone(zone, () => {
        const cron = parseCron(text)
        let time = Date.parse(`${after}Z`)
        for (const next of expected) {
          time = cron.next(time)
          assert.equal(new Date(time).toISOString(), `${next}:00.000Z`)
        }
      })
    })
  }

  it('is due at the very second when a jump is not on a minute', () => {
    // Liberia put its clock from 00:00 to 00:44:30, that of UTC.
    inZone('Africa/Monrovia', () => {
      const after = Date.parse('1972-01-06T12:00Z')
      for (const text of ['0 0 * * *', '15 0 * * *', '44 0 * * *']) {
        assert.equal(new Date(parseCron(text).next(after)).toISOString(), '1972-01-07T00:44:30.000Z')
      }
    })
  })

  it('follows the zone of the process when it changes', () => {
    const cron = parseCron('0 3 * * *')
    const times = ['UTC', 'Asia/Kolkata', 'America/St_Johns'].map((zone) => {
      let time = 0
      inZone(zone, () => {
        time = cron.next(Date.parse('2026-01-01T00:00Z'))
      })
      return new Date(time).toISOString().slice(0, 16)
    })
    assert.deepEqual(times, ['2026-01-01T03:00', '2026-01-01T21:30', '2026-01-01T06:30'])
  })
})

/** Moments in UTC around which the clock of a zone jumps. */
const jumps: readonly (readonly [zone: string, near: string])[] = [
  ['UTC', '2026-02-28T23:00'],
  ['Europe/Berlin', '2026-03-29T01:00'],
  ['Europe/Berlin', '2026-10-25T01:00'],
  ['Europe/Dublin', '2026-10-25T01:00'],
  ['America/New_York', '2026-03-08T07:00'],
  ['America/New_York', '2026-11-01T06:00'],
  ['America/St_Johns', '2006-04-02T03:31'],
  ['America/St_Johns', '2006-10-29T02:31'],
  ['Australia/Lord_Howe', '2026-10-03T15:30'],
  ['Australia/Lord_Howe', '2026-04-04T15:00'],
  ['America/Sao_Paulo', '2018-11-04T03:00'],
  ['America/Sao_Paulo', '2018-02-18T02:00'],
  ['Africa/Cairo', '2024-04-25T22:00'],
  ['Africa/Cairo', '2024-10-31T21:00'],
  ['Africa/Casablanca', '2025-02-23T02:00'],
  ['Antarctica/Troll', '2026-03-29T01:00'],
  ['Asia/Kathmandu', '1985-12-31T18:30'],
  ['Asia/Pyongyang', '2018-05-04T15:00'],
  ['Pacific/Apia', '2011-12-30T10:00'],
  ['Pacific/Kwajalein', '1993-08-21T12:00'],
]

describe('a walk from minute to minute finds the same times', () => {
  for (const [zone, near] of jumps) {
    it(`in ${zone} around ${near} UTC`, () => {
      inZone(zone, () => {
        const seeded = new Seeded(Date.parse(near) / minuteMs)
        const start = Date.parse(`${near}Z`) - 36 * hourMs
        const shown = walk(start, 120 * 60)
        for (let round = 0; round < 60; round += 1) {
          const { text, isSelected } = randomCron(seeded)
          const after = start + (26 * 60 + seeded.integer(14 * 60)) * minuteMs + seeded.pick([0, 0, 1, 59_999])
          const found = shown.find(({ time, walls }) => time > after && walls.some((wall) => isSelected(new Date(wall))))
          const next = parseCron(text).next(after)
          const message = `${text} after ${new Date(after).toISOString()}`
          if (found === undefined) assert.ok(next > start + 119 * hourMs, message)
          else assert.equal(new Date(next).toISOString(), new Date(found.time).toISOString(), message)
        }
      })
    })
  }
})

/** The minutes from `start` on, each with the local times that the clock reaches or skips at it for the first time. */
function walk(start: number, minutes: number): { time: number; walls: number[] }[] {
  let latest = wallOf(start)
  return Array.from({ length: minutes }, (_, index) => {
    const time = start + index * minuteMs
    const walls: number[] = []
    for (; latest < wallOf(time); latest += minuteMs) walls.push(latest + minuteMs)
    return { time, walls }
  })
}

/** The local time as that of UTC. */
function wallOf(time: number): number {
  const date = new Date(time)
  return Date.UTC(date.getFullYear(), date.getMonth(), date.getDate(), date.getHours(), date.getMinutes())
}

function randomCron(seeded: Seeded): { text: string; isSelected: (wall: Date) => boolean } {
  const minute = randomField(seeded, 0, 59)
  const hour = randomField(seeded, 0, seeded.pick([3, 23]))
  const weekday = seeded.integer(3) === 0 ? randomField(seeded, 0, 6) : { text: '*', has: () => true }
  return {
    text: `${minute.text} ${hour.text} * * ${weekday.text}`,
    isSelected: (wall) =>
      minute.has(wall.getUTCMinutes()) && hour.has(wall.getUTCHours()) && weekday.has(wall.getUTCDay()),
  }
}

/** A field, and whether a value is in it. */
interface Field {
  readonly text: string
  has(value: number): boolean
}

function randomField(seeded: Seeded, min: number, max: number): Field {
  const low = min + seeded.integer(max - min + 1)
  const high = low + seeded.integer(max - low + 1)
  const step = 1 + seeded.integer(max)
  return seeded.pick<Field>([
    { text: '*', has: () => true },
    { text: `${low}`, has: (value) => value === low },
    { text: `${low}-${high}`, has: (value) => value >= low && value <= high },
    { text: `${low}-${high}/${step}`, has: (value) => value >= low && value <= high && (value - low) % step === 0 },
    { text: `${high},${low}`, has: (value) => value === low || value === high },
  ])
}
