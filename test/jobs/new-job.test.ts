import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { EnqueueOptions } from 'svc'
import { newJobOf } from '../../lib/jobs/new-job.ts'

const now = Date.parse('2026-11-28T12:00:00Z')
const names = new Set(['mail', 'report', 'a'.repeat(200)])
const make = (data?: unknown, options?: unknown, name: unknown = 'mail') =>
  newJobOf(names, name, data, options as EnqueueOptions | undefined, now) // Users of JavaScript may pass anything.

/** JSON of exactly so many bytes. */
const textOfBytes = (bytes: number): string => 'x'.repeat(bytes - 2)

describe('the job of an enqueue', () => {
  it('has no data, no key and no time by default', () => {
    assert.deepEqual(make(), { name: 'mail', data: null, key: null, at: null })
    assert.deepEqual(make(undefined, {}), make())
    assert.deepEqual(make(undefined, { delay_s: undefined, at: undefined, key: undefined }), make())
  })

  const kept: readonly (readonly [what: string, data: unknown, text: string])[] = [
    ['null', null, 'null'],
    ['false', false, 'false'],
    ['zero', 0, '0'],
    ['an empty text', '', '""'],
    ['a list', [1, 'é', null], '[1,"é",null]'],
    ['an object, without its undefined members', { to: 'a', not: undefined }, '{"to":"a"}'],
    ['a Date as text', { at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    ['half a surrogate pair', '\ud800', '"\\ud800"'],
    ['256 KiB', textOfBytes(262_144), JSON.stringify(textOfBytes(262_144))],
  ]
  for (const [what, data, text] of kept) {
    it(`keeps ${what}`, () => {
      assert.equal(make(data).data, text)
    })
  }

  const circular: Record<string, unknown> = {}
  circular['self'] = circular
  const refused: readonly (readonly [what: string, data: unknown, message: string | RegExp])[] = [
    ['a function', () => {}, 'it is of type function'],
    ['a symbol', Symbol('s'), 'it is of type symbol'],
    ['a bigint', { of: 1n }, /^.*: Do not know how to serialize a BigInt$/],
    ['NaN', { lines: [1, NaN] }, 'lines.1 is NaN'],
    ['infinity', -Infinity, 'it is -Infinity'],
    ['undefined in a list', [undefined], '0 is of type undefined'],
    ['an invalid Date', { at: new Date(NaN) }, 'at is an invalid Date'],
    ['a promise', { to: Promise.resolve() }, 'to is a promise: await it'],
    ['a Map', new Map(), 'it is of class Map, whose content JSON cannot hold: use an object, a list or a string'],
    ['an Error', { of: new Error('x') }, /: of is of class Error, whose content/],
    ['a RegExp', /x/, /: it is of class RegExp, whose content/],
    ['a circular structure', circular, /: Converting circular structure to JSON/],
  ]
  for (const [what, data, message] of refused) {
    it(`refuses ${what} as data`, () => {
      const full = typeof message === 'string' ? `Cannot enqueue "mail": JSON cannot hold its data: ${message}` : message
      assert.throws(() => make(data), { name: 'TypeError', message: full })
    })
  }

  const tooLong: readonly (readonly [what: string, data: string, bytes: number])[] = [
    ['a byte over 256 KiB', textOfBytes(262_145), 262_145],
    ['few characters of many bytes', '€'.repeat(87_381), 262_145],
    ['characters that JSON escapes', '"'.repeat(140_000), 280_002],
  ]
  for (const [what, data, bytes] of tooLong) {
    it(`refuses ${what}`, () => {
      const message = 'Cannot enqueue "mail": its data must be at most 262144 bytes of JSON: '
        + `it is ${bytes}: store it elsewhere and pass its name`
      assert.throws(() => make(data), { name: 'RangeError', message })
    })
  }

  const unknownNames: readonly (readonly [name: unknown, message: string])[] = [
    ['mial', 'Cannot enqueue "mial": no job file has a job of this name: did you mean "mail"?'],
    ['something else', 'Cannot enqueue "something else": no job file has a job of this name'],
    ['', 'Cannot enqueue "": no job file has a job of this name'],
    ['__proto__', 'Cannot enqueue "__proto__": no job file has a job of this name'],
    [undefined, 'Cannot enqueue undefined: no job file has a job of this name'],
    [7, 'Cannot enqueue 7: no job file has a job of this name'],
    [['mail'], 'Cannot enqueue ["mail"]: no job file has a job of this name'],
  ]
  for (const [name, message] of unknownNames) {
    it(`refuses the name ${JSON.stringify(name)}`, () => {
      assert.throws(() => newJobOf(names, name, null, undefined, now), { name: 'Error', message })
    })
  }
})

describe('the options of an enqueue', () => {
  const times: readonly (readonly [what: string, options: object, at: number])[] = [
    ['a delay of 0', { delay_s: 0 }, now],
    ['a delay', { delay_s: 90 }, now + 90_000],
    ['a delay of a part of a second, to the millisecond', { delay_s: 0.0016 }, now + 2],
    ['a delay of ten years', { delay_s: 315_360_000 }, now + 315_360_000_000],
    ['a Date', { at: new Date(now + 5) }, now + 5],
    ['a Date that is past', { at: new Date(0) }, 0],
    ['a text in UTC', { at: '2026-12-24T18:00:00Z' }, Date.UTC(2026, 11, 24, 18)],
    ['a text without seconds', { at: '2026-12-24T18:00Z' }, Date.UTC(2026, 11, 24, 18)],
    ['a leap day', { at: '2028-02-29T18:00Z' }, Date.UTC(2028, 1, 29, 18)],
    ['a text with an offset', { at: '2026-12-24T18:00:00+01:00' }, Date.UTC(2026, 11, 24, 17)],
    ['a text with a negative offset', { at: '2026-12-24T18:00-03:30' }, Date.UTC(2026, 11, 24, 21, 30)],
    ['a text with nanoseconds, to the millisecond', { at: '2026-12-24T18:00:00.123456789Z' }, Date.UTC(2026, 11, 24, 18, 0, 0, 123)],
  ]
  for (const [what, options, at] of times) {
    it(`take ${what}`, () => {
      assert.equal(make(null, options).at, at)
    })
  }

  const keys = ['k', 'x'.repeat(200), '__proto__', 'a\u0000b', '€ 1']
  for (const key of keys) {
    it(`take the key ${JSON.stringify(key).slice(0, 20)}`, () => {
      assert.equal(make(null, { key }).key, key)
    })
  }

  const delays = [-1, -0.001, 315_360_000.001, Infinity, NaN, '5', null, true, {}]
  const wrongTimes: readonly (readonly [at: unknown, shown: string])[] = [
    ['2026-12-24T18:00:00', '"2026-12-24T18:00:00"'],
    ['2026-12-24', '"2026-12-24"'],
    ['2026-12-24 18:00Z', '"2026-12-24 18:00Z"'],
    ['2026-12-24T18:00:00+0100', '"2026-12-24T18:00:00+0100"'],
    ['2026-12-24T18:00:00z', '"2026-12-24T18:00:00z"'],
    ['2026-02-29T18:00Z', '"2026-02-29T18:00Z"'],
    ['2026-04-31T18:00:00+01:00', '"2026-04-31T18:00:00+01:00"'],
    ['2026-00-10T18:00Z', '"2026-00-10T18:00Z"'],
    ['2026-13-24T18:00Z', '"2026-13-24T18:00Z"'],
    ['2026-12-24T25:00Z', '"2026-12-24T25:00Z"'],
    ['2026-12-24T18:00+99:00', '"2026-12-24T18:00+99:00"'],
    ['2026-12-24T18:00Z\n', '"2026-12-24T18:00Z\\n"'],
    ['tomorrow', '"tomorrow"'],
    ['', '""'],
    [now, `${now}`],
    [null, 'null'],
    [{}, '{}'],
    [new Date(NaN), 'an invalid Date'],
  ]
  const wrongKeys = ['', 'x'.repeat(201), '\ud800', 5, true, {}, ['k']]
  const shownKey = (key: unknown): string => (key === 'x'.repeat(201) ? `"${'x'.repeat(120)}..."` : JSON.stringify(key))
  const forms = 'at must be a valid Date, or ISO 8601 text with a zone, such as 2026-12-24T18:00:00+01:00: it is '
  const rows: readonly (readonly [options: unknown, error: string, message: string])[] = [
    ...delays.map((delay) => [{ delay_s: delay }, 'RangeError', `delay_s must be 0 to 315360000: it is ${JSON.stringify(delay)}`] as const),
    ...wrongTimes.map(([at, shown]) => [{ at }, 'TypeError', forms + shown] as const),
    ...wrongKeys.map((key) => [{ key }, 'TypeError', `key must be well-formed text of 1 to 200 characters: it is ${shownKey(key)}`] as const),
    [{ delay_s: 1, at: new Date(now) }, 'TypeError', 'delay_s and at exclude each other'],
    [{ delays: 5 }, 'TypeError', 'it has no option "delays": did you mean "delay_s"?'],
    [{ priority: 5 }, 'TypeError', 'it has no option "priority"'],
    ['5', 'TypeError', 'its options must be an object'],
  ]
  for (const [index, [options, name, message]] of rows.entries()) {
    it(`are refused: row ${index}, ${message.slice(0, 70)}`, () => {
      assert.throws(() => make(null, options), { name, message: `Cannot enqueue "mail": ${message}` })
    })
  }
})
