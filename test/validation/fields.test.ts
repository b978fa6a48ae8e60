// What each kind of field accepts, in a form and in JSON, and the rules for definitions.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Form, type FormFile } from '../../lib/http/form.ts'
import { fileOf } from '../support/form-file.ts'
import { parseUrlencoded } from '../../lib/http/urlencoded.ts'
import { fields, type Schema } from '../../lib/validation/fields.ts'
import type { Field } from '../../lib/validation/fields-field.ts'

/** The value, or the problems as `path message`. */
function outcome(read: ReturnType<Schema['read']>): unknown {
  return 'value' in read ? read.value : read.problems.map(({ path, message }) => `${path} ${message}`)
}

const plain = (value: unknown): unknown => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)))

/** Reads the field `a` of a form. */
function fromForm(field: Field, body: string): unknown {
  const read = outcome(fields({ a: field }).read(undefined, parseUrlencoded(Buffer.from(body))))
  return Array.isArray(read) ? read : plain((read as { a?: unknown }).a)
}

/** Reads the field `a` of a JSON body. */
function fromJson(field: Field, text: string): unknown {
  const read = outcome(fields({ a: field }).read(JSON.parse(text)))
  return Array.isArray(read) ? read : plain((read as { a?: unknown }).a)
}

const { text, integer, number, boolean, date, email, url, choice, list, object, secret } = fields
type Row = readonly [what: string, field: Field, body: string, value: unknown]

describe('a field of a form', () => {
  const rows: readonly Row[] = [
    ['text', text(), 'a=Ada', 'Ada'],
    ['text is trimmed', text(), 'a=++Ada%0A', 'Ada'],
    ['text is not trimmed', text({ trim: false }), 'a=+Ada+', ' Ada '],
    ['text of white space alone is none', text(), 'a=+++', ['a required']],
    ['white space that counts', text({ trim: false }), 'a=+++', '   '],
    ['missing', text(), 'b=1', ['a required']],
    ['empty', text(), 'a=', ['a required']],
    ['optional and missing', text().optional(), '', undefined],
    ['optional and empty', text().optional(), 'a=', undefined],
    ['optional and white space', text().optional(), 'a=+', undefined],
    ['default for missing', text().default('x'), '', 'x'],
    ['default for empty', text().default('x'), 'a=', 'x'],
    ['default beside a value', text().default('x'), 'a=y', 'y'],
    ['an empty default', text().default(''), 'a=', ''],
    ['twice', text(), 'a=1&a=2', ['a single']],
    ['at the least length', text({ min: 3 }), 'a=abc', 'abc'],
    ['too short', text({ min: 3 }), 'a=ab', ['a too_short']],
    ['too short without its space', text({ min: 3 }), 'a=+ab+', ['a too_short']],
    ['at the most length', text({ max: 3 }), 'a=abc', 'abc'],
    ['too long', text({ max: 3 }), 'a=abcd', ['a too_long']],
    ['line breaks count one, as in a browser', text({ max: 5 }), 'a=1%0D%0A2%0D%0A3', '1\r\n2\r\n3'],
    ['line breaks count one, and it is too short', text({ min: 4 }), 'a=1%0D%0A2', ['a too_short']],
    ['line breaks count one, and it is too long', text({ max: 4 }), 'a=1%0D%0A2%0D%0A3', ['a too_long']],
    ['a pattern', text({ pattern: /^[a-z]+$/ }), 'a=abc', 'abc'],
    ['not by its pattern', text({ pattern: /^[a-z]+$/ }), 'a=abC', ['a pattern']],
    ['too long for a pattern', text({ pattern: /^[a-z]+$/ }), `a=${'x'.repeat(256)}`, ['a too_long']],
    ['long enough by its own max', text({ pattern: /^[a-z]+$/, max: 300 }), `a=${'x'.repeat(256)}`, 'x'.repeat(256)],

    ['secret is not trimmed', secret(), 'a=+p+', ' p '],
    ['secret', secret({ min: 3 }), 'a=ab', ['a too_short']],
    ['secret, empty', secret(), 'a=', ['a required']],

    ['integer', integer(), 'a=42', 42],
    ['integer, negative', integer(), 'a=-42', -42],
    ['integer with zeros', integer(), 'a=007', 7],
    ['integer with space', integer(), 'a=+42+', 42],
    ['integer with a plus', integer(), 'a=%2B42', ['a integer']],
    ['integer, a fraction', integer(), 'a=4.0', ['a integer']],
    ['integer, an exponent', integer(), 'a=1e3', ['a integer']],
    ['integer, hexadecimal', integer(), 'a=0x10', ['a integer']],
    ['integer, other digits', integer(), 'a=%D9%A3', ['a integer']],
    ['integer, a text', integer(), 'a=four', ['a integer']],
    ['integer, the largest', integer(), 'a=9007199254740991', 9007199254740991],
    ['integer that would be rounded', integer(), 'a=9007199254740993', ['a integer']],
    ['integer of 1000 digits', integer(), `a=${'9'.repeat(1000)}`, ['a integer']],
    ['integer, empty', integer(), 'a=', ['a required']],
    ['integer, empty and optional', integer().optional(), 'a=', undefined],
    ['integer, empty with a default', integer().default(7), 'a=', 7],
    ['integer at its least', integer({ min: 1, max: 5 }), 'a=1', 1],
    ['integer at its most', integer({ min: 1, max: 5 }), 'a=5', 5],
    ['integer, too small', integer({ min: 1, max: 5 }), 'a=0', ['a too_small']],
    ['integer, too large', integer({ min: 1, max: 5 }), 'a=6', ['a too_large']],
    ['integer, twice', integer(), 'a=1&a=2', ['a single']],

    ['number', number(), 'a=1.5', 1.5],
    ['number, whole', number(), 'a=-3', -3],
    ['number without a zero', number(), 'a=.5', 0.5],
    ['number with an exponent', number(), 'a=1.5E-3', 0.0015],
    ['number with a comma', number(), 'a=1%2C5', ['a number']],
    ['number, Infinity', number(), 'a=Infinity', ['a number']],
    ['number, NaN', number(), 'a=NaN', ['a number']],
    ['number past the largest', number(), 'a=1e999', ['a number']],
    ['number, too small', number({ min: 0.5 }), 'a=.4', ['a too_small']],
    ['number, too large', number({ max: 0.5 }), 'a=.6', ['a too_large']],

    ['boolean, ticked', boolean(), 'a=on', true],
    ['boolean, not ticked', boolean(), '', false],
    ['boolean, empty', boolean(), 'a=', false],
    ...['on', 'true', '1', 'yes'].map((value): Row => [`boolean ${value}`, boolean(), `a=${value}`, true]),
    ...['off', 'false', '0', 'no'].map((value): Row => [`boolean ${value}`, boolean(), `a=${value}`, false]),
    ['boolean, another text', boolean(), 'a=maybe', ['a boolean']],
    ['boolean of a hidden input and a checkbox', boolean(), 'a=0&a=1', true],
    ['boolean of a hidden input alone', boolean(), 'a=0', false],
    ['boolean, optional', boolean().optional(), '', undefined],
    ['boolean with a default', boolean().default(true), '', true],

    ['date', date(), 'a=2024-02-29', '2024-02-29'],
    ['date in no leap year', date(), 'a=2023-02-29', ['a date']],
    ['date in a century', date(), 'a=1900-02-29', ['a date']],
    ['date in a leap century', date(), 'a=2000-02-29', '2000-02-29'],
    ['date, 31 April', date(), 'a=2024-04-31', ['a date']],
    ['date, day 0', date(), 'a=2024-01-00', ['a date']],
    ['date, month 13', date(), 'a=2024-13-01', ['a date']],
    ['date, month 0', date(), 'a=2024-00-01', ['a date']],
    ['date, year 0', date(), 'a=0000-01-01', ['a date']],
    ['date, last of a year', date(), 'a=2024-12-31', '2024-12-31'],
    ['date with a time', date(), 'a=2024-01-01T00:00', ['a date']],
    ['date in another order', date(), 'a=01-02-2024', ['a date']],
    ['date of one digit', date(), 'a=2024-1-1', ['a date']],
    ['date with a line after it', date({}), 'a=2024-01-01%0Ax', ['a date']],
    ['date at its bounds', date({ min: '2024-01-01', max: '2024-01-01' }), 'a=2024-01-01', '2024-01-01'],
    ['date, too early', date({ min: '2024-01-02' }), 'a=2024-01-01', ['a too_early']],
    ['date, too late', date({ max: '2024-01-01' }), 'a=2024-01-02', ['a too_late']],

    ['email', email(), 'a=+ada%40example.org+', 'ada@example.org'],
    ['email of a local host', email(), 'a=ada%40localhost', 'ada@localhost'],
    ['email with a plus', email(), 'a=ada%2Bnews%40example.org', 'ada+news@example.org'],
    ...['ada', '@example.org', 'ada@', 'a b@example.org', 'ada@-a.org', 'ada@a..org', 'ada@a.org,b@b.org', 'ada@a\nb.org', 'Ada <a@b.org>'].map(
      (value): Row => [`email ${value}`, email(), `a=${encodeURIComponent(value)}`, ['a email']],
    ),
    ['email, too long', email(), `a=${'x'.repeat(250)}%40a.org`, ['a too_long']],

    ['url', url(), 'a=https%3A%2F%2Fexample.org%2Fa%3Fb%3Dc%23d', 'https://example.org/a?b=c#d'],
    ['url in capitals', url(), 'a=HTTP%3A%2F%2FEXAMPLE.ORG', 'HTTP://EXAMPLE.ORG'],
    ...['javascript:alert(1)', 'java\nscript:alert(1)', 'ftp://a.org', '//a.org', 'a.org', 'http:a.org', 'http:///a.org', 'http:\\\\a.org', 'https://', 'https://a b.org', 'https://a.org/\u0000', 'https://[::1', 'data:text/html,x', 'http://a.org:99999'].map(
      (value): Row => [`url ${JSON.stringify(value)}`, url(), `a=${encodeURIComponent(value)}`, ['a url']],
    ),

    ['choice', choice('s', 'm'), 'a=m', 'm'],
    ['choice of a list', choice(['s', 'm']), 'a=s', 's'],
    ['choice, none of them', choice('s', 'm'), 'a=l', ['a choice']],
    ['choice with space', choice('s', 'm'), 'a=+s', ['a choice']],
    ['choice, a name of every object', choice('s', 'm'), 'a=constructor', ['a choice']],
    ['choice, empty', choice('s', 'm'), 'a=', ['a required']],
    ['choice, optional', choice('s', 'm').optional(), 'a=', undefined],
    ['choice, twice', choice('s', 'm'), 'a=s&a=m', ['a single']],

    ['list of one', list(text()), 'a=x', ['x']],
    ['list of none', list(text()), '', []],
    ['list without its empty inputs', list(text()), 'a=x&a=&a=y', ['x', 'y']],
    ['list that trims', list(text()), 'a=+x&a=y+', ['x', 'y']],
    ['list of white space', list(text()), 'a=x&a=++', ['a.1 required']],
    ['list of numbers', list(integer()), 'a=1&a=2', [1, 2]],
    ['list with a wrong entry', list(integer()), 'a=1&a=&a=x', ['a.2 integer']],
    ['list that must not be empty', list(text(), { min: 1 }), 'a=', ['a required']],
    ['list, too few', list(text(), { min: 2 }), 'a=x', ['a too_few']],
    ['list, too many', list(text(), { max: 1 }), 'a=x&a=y', ['a too_many']],
    ['list of more than 1000', list(text()), 'a=x&'.repeat(1001), ['a too_many']],
    ['list, optional and empty', list(text()).optional(), 'a=', undefined],
    ['list with a default', list(text()).default(['x']), '', ['x']],
    ['list of choices', list(choice('s', 'm')), 'a=s&a=l', ['a.1 choice']],

    ['object', object({ b: text(), c: integer() }), 'a.b=x&a.c=1', { b: 'x', c: 1 }],
    ['object with a wrong member', object({ b: text(), c: integer() }), 'a.b=&a.c=x', ['a.b required', 'a.c integer']],
    ['object, missing', object({ b: text() }), '', ['a.b required']],
    ['object, optional and missing', object({ b: text() }).optional(), 'a.b=', undefined],
    ['object, optional and begun', object({ b: text(), c: text() }).optional(), 'a.b=x', ['a.c required']],
    ['object of optional members', object({ b: text().optional() }), '', {}],
    ['object in an object', object({ b: object({ c: text() }) }), 'a.b.c=x', { b: { c: 'x' } }],
    ['list in an object', object({ b: list(text()) }), 'a.b=x&a.b=y', { b: ['x', 'y'] }],
    ['list of objects', list(object({ b: text(), c: integer() })), 'a.0.b=x&a.0.c=1&a.1.b=y&a.1.c=2', [{ b: 'x', c: 1 }, { b: 'y', c: 2 }]],
    ['list of objects with a gap and out of order', list(object({ b: text() })), 'a.10.b=z&a.2.b=y', [{ b: 'y' }, { b: 'z' }]],
    ['list of objects, a wrong row', list(object({ b: text(), c: integer() })), 'a.3.b=x&a.3.c=y', ['a.3.c integer']],
    ['list of objects, an empty row', list(object({ b: text() })), 'a.0.b=&a.1.b=x', [{ b: 'x' }]],
    ['list of objects, numbers that are none', list(object({ b: text() })), 'a.01.b=x&a.-1.b=x&a.1e3.b=x&a.9999999.b=x&a.b=x&a.__proto__.b=x', []],
    ['list of lists', list(list(integer())), 'a.0=1&a.0=2&a.1=3', [[1, 2], [3]]],
  ]
  for (const [what, field, body, value] of rows) {
    it(what, () => assert.deepEqual(fromForm(field, body), value))
  }
})

describe('a member of JSON', () => {
  const wrong = (field: Field, message: string, ...values: readonly string[]): Row[] =>
    values.map((value) => [`${message} ${value}`, field, `{"a":${value}}`, [`a ${message}`]])
  const rows: readonly Row[] = [
    ['text', text(), '{"a":"x"}', 'x'],
    ['text is trimmed', text(), '{"a":" x "}', 'x'],
    ['missing', text(), '{}', ['a required']],
    ['null', text(), '{"a":null}', ['a required']],
    ['empty', text(), '{"a":""}', ['a required']],
    ['white space', text(), '{"a":"  "}', ['a required']],
    ['empty and optional is a text', text().optional(), '{"a":""}', ''],
    ['null and optional', text().optional(), '{"a":null}', undefined],
    ['null with a default', text().default('x'), '{"a":null}', 'x'],
    ...wrong(text(), 'text', '1', 'true', '{}', '{"toString":"x"}'),
    ...wrong(text(), 'single', '[]', '["x"]'),
    ...wrong(integer(), 'integer', '"1"', '1.5', '9007199254740993', '1e400', 'true', '{}'),
    ['an integer with a point', integer(), '{"a":2.0}', 2],
    ...wrong(integer({ min: 1 }), 'too_small', '0', '-9007199254740991'),
    ...wrong(number(), 'number', '"1"', '1e400', '{}'),
    ['a number', number(), '{"a":-1.5e3}', -1500],
    ...wrong(boolean(), 'boolean', '"on"', '1', '0', '"true"'),
    ['true', boolean(), '{"a":true}', true],
    ['false', boolean(), '{"a":false}', false],
    ['a boolean that is missing', boolean(), '{}', ['a required']],
    ['a boolean with a default', boolean().default(true), '{}', true],
    ...wrong(date(), 'date', '"2023-02-30"', '0', '20240101', '{}'),
    ...wrong(email(), 'email', '"x"', '1'),
    ...wrong(url(), 'url', '"x"', '1'),
    ...wrong(choice('s', 'm'), 'choice', '"l"', '1', 'true', '{}'),
    ['a list', list(integer()), '{"a":[1,2]}', [1, 2]],
    ['a list that is missing', list(integer()), '{}', ['a required']],
    ['an empty list', list(integer()), '{"a":[]}', []],
    ...wrong(list(text()), 'list', '"x"', '{}', '{"length":1,"0":"x"}', '1'),
    ['a list of wrong entries', list(integer()), '{"a":[1,"2",null]}', ['a.1 integer', 'a.2 required']],
    ['a list of optional entries', list(integer().optional()), '{"a":[1,null,2]}', [1, 2]],
    ['an object', object({ b: text() }), '{"a":{"b":"x","c":1}}', { b: 'x' }],
    ...wrong(object({ b: text() }), 'object', '"x"', '1', 'true'),
    ...wrong(object({ b: text() }), 'object', '[]'),
    ['an object that is missing', object({ b: text() }), '{}', ['a required']],
    ['an object with a default', object({ b: text() }).default({ b: 'x' }), '{}', { b: 'x' }],
    ['a list of objects', list(object({ b: text() })), '{"a":[{"b":"x"},{}]}', ['a.1.b required']],
    ...wrong(fields.file(), 'file', '"x"', '{"name":"a","filename":"x","type":"image/png","size":1,"path":"/etc/passwd"}'),
  ]
  for (const [what, field, body, value] of rows) it(what, () => assert.deepEqual(fromJson(field, body), value))
})

describe('a file', () => {
  const file = (type: string, size = 10, name = 'a'): FormFile => fileOf({ name, filename: 'photo.png', type, size, bytes: Buffer.alloc(0) })
  const read = (field: Field, files: readonly FormFile[], values: readonly string[] = []): unknown =>
    outcome(fields({ a: field }).read(undefined, new Form(new Map(values.length > 0 ? [['a', values]] : []), files)))
  const images = fields.file({ types: ['image/*'] })
  const rows: readonly (readonly [field: Field, files: readonly FormFile[], problems: readonly string[] | undefined])[] = [
    [fields.file(), [file('text/html')], undefined],
    [fields.file(), [], ['a required']],
    [fields.file(), [file('text/plain', 1, 'b')], ['a required']],
    [fields.file(), [file('image/png'), file('image/png')], ['a single']],
    [images, [file('image/png')], undefined],
    [images, [file('image/svg+xml')], ['a file_type']],
    [images, [file('text/html')], ['a file_type']],
    [images, [file('imagex/png')], ['a file_type']],
    [fields.file({ types: ['image/svg+xml'] }), [file('image/svg+xml')], undefined],
    [fields.file({ types: ['image/*', 'image/svg+xml'] }), [file('image/svg+xml')], undefined],
    [fields.file({ types: ['image/png'] }), [file('image/jpeg')], ['a file_type']],
    [fields.file({ types: ['image/png', 'application/pdf'] }), [file('application/pdf')], undefined],
    [fields.file({ maxKb: 1 }), [file('a/b', 1024)], undefined],
    [fields.file({ maxKb: 1 }), [file('a/b', 1025)], ['a file_size']],
    [list(images), [file('image/png'), file('text/html')], ['a.1 file_type']],
    [list(images), [], undefined],
    [list(images, { min: 1 }), [], ['a required']],
  ]
  for (const [at, [field, files, problems]] of rows.entries()) {
    it(`row ${at}: ${problems?.join() ?? 'passes'}`, () => {
      const found = read(field, files)
      if (problems !== undefined) assert.deepEqual(found, problems)
      else assert.equal(Array.isArray(found), false)
    })
  }

  it('is the file of the form', () => {
    const sent = file('image/png')
    assert.equal((read(images, [sent]) as { a: FormFile }).a, sent)
    assert.deepEqual((read(list(images), [sent]) as { a: FormFile[] }).a, [sent])
  })

  it('is missing if only its name was sent, or the name is empty', () => {
    assert.deepEqual(read(images, [], ['photo.png']), ['a file'])
    assert.deepEqual(read(images, [], ['']), ['a required'])
    assert.deepEqual({ ...(read(images.optional(), [], ['']) as object) }, { a: undefined })
  })
})

describe('a value', () => {
  const schema = fields({ title: text(), note: text().optional(), size: integer().default(1) })

  it('is an object without prototype and without undefined fields', () => {
    const value = outcome(schema.read(JSON.parse('{"title":"x","admin":true,"__proto__":{"admin":true},"constructor":1}')))
    assert.equal(Object.getPrototypeOf(value), null)
    assert.deepEqual(Object.entries(value as object), [['title', 'x'], ['size', 1]])
    const nested = outcome(fields({ a: object({ b: text() }) }).read({ a: { b: 'x' } })) as { a: object }
    assert.equal(Object.getPrototypeOf(nested.a), null)
  })

  it('has an optional field that was sent empty, but not one that was not sent', () => {
    const keys = (body: string): string[] => Object.keys(outcome(schema.read(undefined, parseUrlencoded(Buffer.from(body)))) as object)
    assert.deepEqual(keys('title=x&note='), ['title', 'note', 'size'])
    assert.deepEqual(keys('title=x'), ['title', 'size'])
  })

  it('treats names of Object.prototype like any other', () => {
    const odd = fields({ ['__proto__']: text(), constructor: text().optional(), toString: text() })
    assert.deepEqual(outcome(odd.read({})), ['__proto__ required', 'toString required'])
    const value = outcome(odd.read(JSON.parse('{"__proto__":"x","toString":"y"}'))) as object
    assert.deepEqual(Object.entries(value), [['__proto__', 'x'], ['toString', 'y']])
    const form = outcome(odd.read(undefined, parseUrlencoded(Buffer.from('__proto__=x&toString=y')))) as object
    assert.deepEqual(Object.entries(form), [['__proto__', 'x'], ['toString', 'y']])
    assert.equal(({} as { x?: unknown }).x, undefined)
  })

  it('must be an object', () => {
    for (const body of [null, undefined, 1, 'x', true]) assert.deepEqual(outcome(schema.read(body)), [body == null ? ' required' : ' object'])
    assert.deepEqual(outcome(schema.read([])), [' object'])
  })

  it('gets a new copy of a default each time', () => {
    const tags = fields({ tags: list(text()).default(['a']) })
    const first = outcome(tags.read({})) as { tags: string[] }
    first.tags.push('b')
    assert.deepEqual((outcome(tags.read({})) as { tags: string[] }).tags, ['a'])
  })

  it('has a problem for each of 1000 fields', () => {
    const names = Array.from({ length: 1000 }, (_, at) => `f${at}`)
    const many = fields(Object.fromEntries(names.map((name) => [name, text()])))
    assert.deepEqual(outcome(many.read({})), names.map((name) => `${name} required`))
    const body = names.map((name) => `${name}=x`).join('&')
    assert.equal(Object.keys(outcome(many.read(undefined, parseUrlencoded(Buffer.from(body)))) as object).length, 1000)
  })

  it('has at most 1000 problems', () => {
    const rows = fields({ a: list(list(integer())) })
    const body = { a: Array.from({ length: 100 }, () => Array.from({ length: 100 }, () => 'x')) }
    assert.equal((outcome(rows.read(body)) as unknown[]).length, 1000)
  })

  it('may be nested as deeply as JSON', () => {
    const deep = JSON.parse(`${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`) as unknown
    assert.deepEqual(outcome(fields({ a: text() }).read(deep)), ['a text'])
    assert.deepEqual(outcome(fields({ a: object({ a: integer() }) }).read(deep)), ['a.a integer'])
  })
})

describe('an invalid definition', () => {
  const wrong = (make: () => unknown, message: RegExp): void => assert.throws(make, (error: unknown) => {
    assert.ok(error instanceof TypeError)
    assert.match(error.message, message)
    return true
  })
  const anything = (value: unknown): never => value as never // JavaScript callers can pass anything.
  const rows: readonly (readonly [make: () => unknown, message: RegExp])[] = [
    [() => text({ min: 3, max: 2 }), /^Cannot define fields\.text: min must not be above max: min is 3, max is 2$/],
    [() => integer({ min: 3, max: 2 }), /^Cannot define fields\.integer: min must not be above max/],
    [() => date({ min: '2024-02-01', max: '2024-01-01' }), /min is '2024-02-01', max is '2024-01-01'$/],
    [() => list(text(), { min: 2, max: 1 }), /^Cannot define fields\.list: min must not/],
    [() => email({ min: 300 }), /min must not be above max: min is 300, max is 254$/],
    [() => text(anything({ maxLength: 2 })), /^Cannot define fields\.text: it has no option maxLength: it has min, max, pattern, trim$/],
    [() => text(anything({ mx: 2 })), /it has no option mx: did you mean max\?$/],
    [() => text(anything({ constructor: 2 })), /it has no option constructor/],
    [() => secret(anything({ trim: true })), /^Cannot define fields\.secret: it has no option trim/],
    [() => text(anything({ max: '80' })), /max must be a whole number from 0: it is '80'$/],
    [() => text({ min: -1 }), /min must be a whole number from 0: it is -1$/],
    [() => text({ max: 1.5 }), /max must be a whole number/],
    [() => text({ max: NaN }), /max must be a whole number/],
    [() => text(anything({ trim: 1 })), /trim must be true or false: it is 1$/],
    [() => (boolean as (options: object) => unknown)({ default: true }), /^Cannot define fields\.boolean: it takes no options: it has default$/],
    [() => text(anything(5)), /its options must be an object: it is 5$/],
    [() => text(anything(null)), /its options must be an object: it is null$/],
    [() => integer(anything({ min: '1' })), /min must be a number: it is '1'$/],
    [() => number({ max: Infinity }), /max must be a number: it is Infinity$/],
    [() => date({ min: '2023-02-29' }), /min must be a day that exists, as YYYY-MM-DD: it is '2023-02-29'$/],
    [() => date(anything({ min: 5 })), /min must be a day that exists/],
    [() => text(anything({ pattern: '^a$' })), /pattern must be a regular expression, such as/],
    [() => text({ pattern: /a/g }), /pattern must have none of the flags g, y and v: it is \/a\/g$/],
    [() => choice(), /^Cannot define fields\.choice: give texts that are not empty, as in fields\.choice\('a', 'b'\): it has \[\]$/],
    [() => choice('a', ''), /give texts that are not empty/],
    [() => choice(1), /give texts/],
    [() => list(anything('text')), /^Cannot define fields\.list: give it the field of its entries: it is 'text'$/],
    [() => list(anything(text)), /give it the field of its entries/],
    [() => fields.file({ types: [] }), /^Cannot define fields\.file: types must be a list of media types/],
    [() => fields.file({ types: ['png'] }), /types must be a list of media types/],
    [() => fields.file({ types: ['Image/png'] }), /types must be/],
    [() => fields.file({ types: ['*/*'] }), /types must be/],
    [() => fields.file({ types: ['image/png; q=1'] }), /types must be/],
    [() => fields.file({ maxKb: -1 }), /maxKb must be a whole number from 0: it is -1$/],
    [() => fields.file(anything({ maxKB: 1 })), /it has no option maxKB: did you mean maxKb\?$/],
    [() => fields(anything(undefined)), /^Cannot define fields\(\{\.\.\.\}\): give it an object of fields: it is undefined$/],
    [() => fields(anything([])), /give it an object of fields/],
    [() => fields({ a: anything('text') }), /^Cannot define fields\(\{\.\.\.\}\): "a" must be a field, such as fields\.text\(\): it is 'text'$/],
    [() => fields({ a: anything(text) }), /"a" must be a field/],
    [() => object({ a: anything({}) }), /^Cannot define fields\.object: "a" must be a field/],
    [() => text({ max: 2 }).default('abc'), /^Cannot define a default: 'abc' breaks a rule of its field: too_long$/],
    [() => integer().default(anything('5')), /^Cannot define a default: '5' breaks a rule of its field: integer$/],
    [() => text().default(anything(undefined)), /^Cannot define a default/],
    [() => choice('a').default('b'), /^Cannot define a default/],
    [() => fields.file().default(anything({})), /^Cannot define a default/],
    [() => list(text()).default(['']), /^Cannot define a default/],
  ]
  for (const [make, message] of rows) it(String(make), () => wrong(make, message))
})
