import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseRecord } from '../../lib/application/record.ts'
import type { GoodRecord } from '../../lib/application/record.ts'
import { checkAnyRecords, rules } from './record-support.ts'

const least = { name: 'a.list', url: '/a', action: 'a.js' }

test('fills in the omitted fields of a record', () => {
  const { record, pattern, warnings } = good(least)
  assert.deepEqual(record, { name: 'a.list', url: '/a', action: 'a.js', method: '*', middleware: '', scope: '' })
  assert.equal(pattern.text, '/a')
  assert.deepEqual(warnings, [])
})

const normal: readonly (readonly [field: string, value: string, result: string])[] = [
  ['method', 'get', 'GET'],
  ['method', ' get , Post,GET', 'GET,POST'],
  ['method', '*', '*'],
  ['method', 'GET,*', '*'],
  ['method', 'M-SEARCH', 'M-SEARCH'],
  ['middleware', '', ''],
  ['middleware', '  ', ''],
  ['middleware', 'audit', 'audit'],
  ['middleware', ' SVC_MwSession ,SVC_MwCsrf,audit ', 'SVC_MwSession,SVC_MwCsrf,audit'],
  ['scope', 'a:read', 'a:read'],
  ['scope', '', ''],
  ['action', 'sub/../a.js@list', 'sub/../a.js@list'],
  ['action', 'views/a.html', 'views/a.html'],
  ['action', '..a/b.js', '..a/b.js'],
  ['action', 'node_modules/@me/a.js', 'node_modules/@me/a.js'],
  ['name', 'svc', 'svc'],
  ['name', 'svcs.list', 'svcs.list'],
  ['name', 'SVC.list', 'SVC.list'],
  ['url', '/a/:id/', '/a/:id/'],
]

test('normalizes fields', () => {
  for (const [field, value, result] of normal) {
    const { record } = good({ ...least, [field]: value })
    assert.equal(record[field as keyof typeof record], result, `${field} ${value}`)
  }
})

test('keeps the fields that describe a route, and adds none', () => {
  const described: readonly Record<string, unknown>[] = [
    { summary: 's', description: '', deprecated: false, hidden: false },
    { summary: '\u{1f600}'.repeat(200), description: `a\n\tb${'\u{1f600}'.repeat(3_996)}`, deprecated: true, hidden: true },
    { hidden: true },
    {},
  ]
  for (const fields of described) {
    const { record, warnings } = good({ ...least, ...fields })
    assert.deepEqual(record, { ...least, method: '*', middleware: '', scope: '', ...fields })
    assert.deepEqual(warnings, [])
  }
})

test('accepts pattern as an alias of url, but not two different values', () => {
  assert.equal(good({ name: 'a', pattern: '/p', action: 'a.js' }).record.url, '/p')
  assert.equal(good({ ...least, pattern: '/a' }).record.url, '/a')
  const { problems } = bad({ ...least, pattern: '/b' })
  assert.match(problems.join(), /^url and pattern are two names of one field: .* "\/a" and "\/b"$/)
})

const wrong: readonly (readonly [changes: Record<string, unknown>, problem: RegExp])[] = [
  [{ name: undefined }, /^name is missing$/],
  [{ name: '' }, /^name must not be empty$/],
  [{ name: 7 }, /^name must be a string: it is 7$/],
  [{ name: null }, /^name must be a string: it is null$/],
  [{ name: 'a\nb' }, /^name must not hold control characters: it is "a\\nb"$/],
  [{ name: ' svc.x' }, /^name must not begin or end with a space/],
  [{ name: 'svc.x' }, /^name must not begin with "svc\."/],
  [{ name: 'svc.' }, /^name must not begin with "svc\."/],
  [{ url: undefined }, /^url is missing$/],
  [{ url: '' }, /^url must not be empty$/],
  [{ url: ['/a'] }, /^url must be a string: it is an array$/],
  [{ url: 'a' }, /^bad pattern "a" at position 1: a pattern begins with \/$/],
  [{ url: '/a/:' }, /^bad pattern "\/a\/:" at position 4/],
  [{ url: undefined, pattern: {} }, /^pattern must be a string: it is an object$/],
  [{ action: undefined }, /^action is missing$/],
  [{ action: '' }, /^action must not be empty$/],
  [{ action: true }, /^action must be a string: it is true$/],
  [{ action: '../x.js' }, /^action must be a path below \/srv\/app, given relative to it: it is "\.\.\/x\.js"$/],
  [{ action: '..' }, /^action must be a path below/],
  [{ action: 'a/../../x.js@b' }, /^action must be a path below/],
  [{ action: 'a@b/../../../x.js' }, /^action must be a path below/],
  [{ action: '/etc/passwd' }, /^action must be a path below/],
  [{ action: '/srv/app/a.js' }, /^action must be a path below/],
  [{ action: '../app2/a.js' }, /^action must be a path below/],
  [{ action: '.' }, /^action must be a path below/],
  [{ action: '../a.js@list' }, /^action must be a path below/],
  [{ action: 'a.js@b/../../../x.js' }, /^action must be a path below/],
  [{ action: 'a\0.js' }, /^action must not hold control characters/],
  [{ method: '' }, /^method must be \* or names such as GET,POST, or be left out: it is ""$/],
  [{ method: 'GET,' }, /^method must be/],
  [{ method: 'GET POST' }, /^method must be/],
  [{ method: 'GÉT' }, /^method must be/],
  [{ method: ['GET'] }, /^method must be a string: it is an array$/],
  [{ middleware: 'audit,,audit' }, /^middleware must be names with a comma between two/],
  [{ middleware: 'SVC_MwSesion' }, /^middleware "SVC_MwSesion" is not known: did you mean "SVC_MwSession"\?$/],
  [{ middleware: 'other' }, /^middleware "other" is not known$/],
  [{ middleware: ['audit'] }, /^middleware must be a string: it is an array$/],
  [{ scope: 5 }, /^scope must be a string: it is 5$/],
  [{ summary: 5 }, /^summary must be a string: it is 5$/],
  [{ summary: null }, /^summary must be a string: it is null$/],
  [{ summary: '' }, /^summary must be one line of 1 to 200 characters: it is ""$/],
  [{ summary: 'two\nlines' }, /^summary must be one line of 1 to 200 characters: it is "two\\nlines"$/],
  [{ summary: 'two\u2028lines' }, /^summary must be one line/],
  [{ summary: 'a\u0000' }, /^summary must be one line/],
  [{ summary: 'x'.repeat(201) }, /^summary must be one line/],
  [{ description: ['x'] }, /^description must be a string: it is an array$/],
  [{ description: 'x'.repeat(4_001) }, /^description must have at most 4000 characters: it has 4001$/],
  [{ deprecated: 'yes' }, /^deprecated must be true or false: it is "yes"$/],
  [{ deprecated: {} }, /^deprecated must be true or false: it is an object$/],
  [{ hidden: 1 }, /^hidden must be true or false: it is 1$/],
  [{ hidden: null }, /^hidden must be true or false: it is null$/],
]

test('refuses invalid values, with the field, the value and the allowed ones', () => {
  for (const [changes, problem] of wrong) {
    const { problems } = bad({ ...least, ...changes })
    assert.equal(problems.length, 1, JSON.stringify([changes, problems]))
    assert.match(problems[0] ?? '', problem)
  }
})

test('reports all problems at once, with the name of the record', () => {
  const wrongAllOver = { name: 'x', url: 'a', action: '/b', method: '?', middleware: 'y', scope: 1 }
  const { name, reserved, problems } = bad(wrongAllOver)
  assert.equal(name, 'x')
  assert.equal(reserved, false)
  assert.equal(problems.length, 5)
})

test('distinguishes a reserved name from other problems, even together with them', () => {
  assert.equal(bad({ ...least, name: 'svc.x' }).reserved, true)
  assert.equal(bad({ name: 'svc.x' }).reserved, true)
  assert.equal(bad({ name: 'x' }).reserved, false)
})

test('refuses a value that is not an object', () => {
  const kinds = [[null, 'null'], [[], 'an array'], ['a', '"a"'], [1, '1'], [undefined, 'undefined']] as const
  for (const [value, kind] of kinds) {
    const problems = [`a route record is a JSON object: it is ${kind}`]
    assert.deepEqual(bad(value), { name: '', reserved: false, problems })
  }
})

test('warns of fields and methods without effect', () => {
  assert.deepEqual(good({ ...least, methods: 'GET', '//': 'a note' }).warnings, [
    'field "methods" is not known and is ignored: did you mean "method"?',
    'field "//" is not known and is ignored',
  ])
  assert.deepEqual(good({ ...least, hiden: true }).warnings, ['field "hiden" is not known and is ignored: did you mean "hidden"?'])
  assert.deepEqual(good({ ...least, method: 'GTE' }).warnings, ['method "GTE" is not one that this server can receive'])
})

test('truncates a long value', () => {
  const [url, method, action] = ['x'.repeat(100_000), '?,'.repeat(100_000), `/${'y'.repeat(100_000)}`]
  const { problems } = bad({ ...least, url, method, action })
  assert.equal(problems.length, 3)
  for (const problem of problems) assert.ok(problem.length < 500, problem.slice(0, 600))
  const twoValues = bad({ ...least, pattern: Array.from({ length: 1_000 }, () => '/b') })
  assert.ok(twoValues.problems.join().length < 500)
})

test('needs no list of middleware', () => {
  const parsed = parseRecord({ ...least, middleware: 'audi' }, { root: '/srv/app', middlewareKnown: () => false })
  assert.ok(!('record' in parsed))
  assert.deepEqual(parsed.problems, ['middleware "audi" is not known'])
})

test('returns a record or problems for any JSON value', () => checkAnyRecords(5_000))

function good(value: unknown): GoodRecord {
  const parsed = parseRecord(value, rules)
  assert.ok('record' in parsed, JSON.stringify(parsed))
  return parsed
}

function bad(value: unknown): Exclude<ReturnType<typeof parseRecord>, GoodRecord> {
  const parsed = parseRecord(value, rules)
  assert.ok(!('record' in parsed), JSON.stringify(parsed))
  return parsed
}
