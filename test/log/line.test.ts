import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import {
  compactTime,
  createAccessClock,
  createJsonClock,
  createTextClock,
  escapeControls,
  jsonString,
} from '../../lib/log/line.ts'
import { Seeded } from '../support/seeded.ts'

const zoneOfTheMachine = process.env.TZ

beforeEach(() => {
  process.env.TZ = 'Europe/Berlin'
})

afterEach(() => {
  if (zoneOfTheMachine === undefined) delete process.env.TZ
  else process.env.TZ = zoneOfTheMachine
})

const escapes: readonly (readonly [given: string, text: string, json: string])[] = [
  ['', '', '""'],
  ['plain', 'plain', '"plain"'],
  ['a\nb', 'a\\x0ab', '"a\\nb"'],
  ['\r\t\0\x1b[31m', '\\x0d\\x09\\x00\\x1b[31m', '"\\r\\t\\u0000\\u001b[31m"'],
  ['\x7f\x80\x9f', '\\x7f\\x80\\x9f', '"\\u007f\\u0080\\u009f"'],
  ['\u2028\u2029', '\\u2028\\u2029', '"\\u2028\\u2029"'],
  ['\xa0é漢😀', '\xa0é漢😀', '"\xa0é漢😀"'],
  ['"quoted" \\ back', '"quoted" \\ back', '"\\"quoted\\" \\\\ back"'],
]

for (const [given, text, json] of escapes) {
  test(`writes ${JSON.stringify(given)} without control characters`, () => {
    assert.equal(escapeControls(given), text)
    assert.equal(jsonString(given), json)
  })
}

test('no text produces a control character, and JSON round-trips', () => {
  const seeded = new Seeded(11)
  for (let round = 0; round < 5000; round += 1) {
    const codes = Array.from({ length: seeded.integer(20) }, () => seeded.integer(seeded.pick([0x100, 0x2100, 0xd800])))
    const text = String.fromCharCode(...codes)
    assert.doesNotMatch(escapeControls(text), /[\x00-\x1f\x7f-\x9f\u2028\u2029]/)
    assert.doesNotMatch(jsonString(text), /[\x00-\x1f\x7f-\x9f\u2028\u2029]/)
    assert.equal(JSON.parse(jsonString(text)), text)
  }
})

const moments: readonly (readonly [utc: string, text: string, offset: string, access: string])[] = [
  ['2026-11-20T10:27:00.007Z', '2026-11-20 11:27:00.007', '+01:00', '20/Nov/2026:11:27:00 +0100'],
  ['2026-01-01T22:59:59.999Z', '2026-01-01 23:59:59.999', '+01:00', '01/Jan/2026:23:59:59 +0100'],
  ['2026-03-29T00:59:59.999Z', '2026-03-29 01:59:59.999', '+01:00', '29/Mar/2026:01:59:59 +0100'],
  ['2026-03-29T01:00:00.000Z', '2026-03-29 03:00:00.000', '+02:00', '29/Mar/2026:03:00:00 +0200'],
  ['2026-10-25T00:59:59.000Z', '2026-10-25 02:59:59.000', '+02:00', '25/Oct/2026:02:59:59 +0200'],
  ['2026-10-25T01:00:00.000Z', '2026-10-25 02:00:00.000', '+01:00', '25/Oct/2026:02:00:00 +0100'],
]

test('formats local time, across daylight saving changes and when the clock is set back', () => {
  const clocks = [createTextClock(), createJsonClock(), createAccessClock()] as const
  for (const [utc, text, offset, access] of [...moments, ...moments.toReversed()]) {
    const expected = [text, text.replace(' ', 'T') + offset, access]
    assert.deepEqual(clocks.map((clock) => clock(Date.parse(utc))), expected)
    assert.deepEqual(clocks.map((clock) => clock(Date.parse(utc))), expected)
  }
})

test('formats offsets west of Greenwich and of half an hour', () => {
  const moment = Date.parse('2026-07-01T12:00:00Z')
  process.env.TZ = 'America/St_Johns'
  assert.equal(createAccessClock()(moment), '01/Jul/2026:09:30:00 -0230')
  process.env.TZ = 'Asia/Kolkata'
  assert.equal(createJsonClock()(moment), '2026-07-01T17:30:00.000+05:30')
})

test('formats the time of a rotated file as 14 digits', () => {
  assert.equal(compactTime(Date.parse('2026-01-02T03:04:05.678Z')), '20260102040405')
})
