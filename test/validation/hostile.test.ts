// Bodies that no real form sends: either the value matches its definition, or there are problems at its paths.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Form, type FormFile } from '../../lib/http/form.ts'
import { fileOf } from '../support/form-file.ts'
import { fields } from '../../lib/validation/fields.ts'
import type { Field } from '../../lib/validation/fields-field.ts'
import { request } from '../support/request.ts'
import { Seeded } from '../support/seeded.ts'
import { formType, startForms } from './validate-application.ts'

/** A field, and whether a value is valid for it. */
interface Made {
  readonly field: Field
  readonly accepts: (value: unknown) => boolean
}

const names = ['a', 'b', '__proto__', 'constructor', 'toString', 'length', '0', 'a.b', '']
const isText = (value: unknown): value is string => typeof value === 'string'
const leaves: readonly Made[] = [
  { field: fields.text({ max: 5 }), accepts: (value) => isText(value) && value.length > 0 && value.length <= 5 && value === value.trim() },
  { field: fields.text({ trim: false, pattern: /^[a-z ]*$/ }), accepts: (value) => isText(value) && /^[a-z ]+$/.test(value) },
  { field: fields.secret({ min: 2 }), accepts: (value) => isText(value) && value.length >= 2 },
  { field: fields.integer({ min: -5, max: 100 }), accepts: (value) => Number.isSafeInteger(value) && (value as number) >= -5 && (value as number) <= 100 },
  { field: fields.number(), accepts: Number.isFinite },
  { field: fields.boolean(), accepts: (value) => typeof value === 'boolean' },
  { field: fields.date({ min: '2000-01-01' }), accepts: (value) => isText(value) && new Date(`${value}T00:00Z`).toISOString().startsWith(value) && value >= '2000' },
  { field: fields.email(), accepts: (value) => isText(value) && value.includes('@') && !/\s/.test(value) },
  { field: fields.url(), accepts: (value) => isText(value) && /^https?:$/.test(new URL(value).protocol) },
  { field: fields.choice('s', 'm'), accepts: (value) => value === 's' || value === 'm' },
  { field: fields.file({ types: ['image/*'], maxKb: 1 }), accepts: (value) => (value as FormFile).type.startsWith('image/') && (value as FormFile).size <= 1024 },
]

function makeField(seeded: Seeded, depth: number): Made {
  const kind = depth > 0 ? seeded.next() : 0
  const made = kind > 0.85 ? makeObject(seeded, depth - 1) : kind > 0.7 ? makeList(seeded, depth - 1) : seeded.pick(leaves)
  if (seeded.next() > 0.3) return made
  return { field: made.field.optional(), accepts: (value) => value === undefined || made.accepts(value) }
}

function makeList(seeded: Seeded, depth: number): Made {
  const item = makeField(seeded, depth)
  const min = seeded.integer(2)
  const accepts = (value: unknown): boolean => Array.isArray(value) && value.length <= 3 && value.every(item.accepts)
  return { field: fields.list(item.field, { min, max: 3 }), accepts }
}

function makeObject(seeded: Seeded, depth: number): Made {
  const members = new Map(Array.from({ length: 1 + seeded.integer(4) }, () => [seeded.pick(names), makeField(seeded, depth)]))
  const definition = Object.fromEntries([...members].map(([name, { field }]) => [name, field]))
  const accepts = (value: unknown): boolean => {
    const keys = Object.keys(value as object)
    return Object.getPrototypeOf(value) === null && keys.every((key) => members.has(key))
      && [...members].every(([name, member]) => member.accepts((value as Record<string, unknown>)[name]))
  }
  return { field: fields.object(definition), accepts }
}

const texts = [
  '', ' ', 'a', 'ab cd', ' ada ', 'abcdefgh', '5', '-5', '101', '1e3', '0x1', '9007199254740993', '1.5', '.5', '1e999', 'NaN', 'on', 'off', 'maybe', '2024-02-29', '2023-02-29', '1999-12-31',
  'ada@example.org', 'ada@', 'https://a.org/b', 'javascript:alert(1)', 's', 'm', 'null', '__proto__', '[object Object]', '\u0000', '\ud800', 'é'.repeat(300), '\u2028', '${7*7}', '<script>',
]

function makeJson(seeded: Seeded, depth: number): unknown {
  const kind = seeded.integer(depth > 0 ? 9 : 6)
  if (kind < 3) return seeded.pick(texts)
  if (kind === 3) return seeded.pick([0, -0, 5, -6, 101, 1.5, 2 ** 53, -1e308, Infinity])
  if (kind === 4) return seeded.pick([true, false, null])
  if (kind === 5) return { name: 'a', filename: 'x.png', type: 'image/png', size: 1, path: '/etc/passwd' }
  if (kind === 6) return Array.from({ length: seeded.integer(5) }, () => makeJson(seeded, depth - 1))
  // As JSON.parse makes it: `__proto__` is an own member.
  const text = Array.from({ length: seeded.integer(6) }, () => `${JSON.stringify(seeded.pick(names))}:${JSON.stringify(makeJson(seeded, depth - 1))}`)
  return JSON.parse(`{${text.join()}}`)
}

function makeForm(seeded: Seeded): Form {
  const name = (): string => Array.from({ length: 1 + seeded.integer(3) }, () => seeded.pick([...names, '0', '1', '01', '999999', '-1'])).join('.')
  const file = (): FormFile => fileOf({ name: name(), filename: 'x.png', type: seeded.pick(['image/png', 'image/svg+xml', 'text/html']), size: seeded.pick([0, 10, 2000]), bytes: Buffer.alloc(0) })
  const values = Array.from({ length: seeded.integer(20) }, () => [name(), Array.from({ length: 1 + seeded.integer(2) }, () => seeded.pick(texts))] as const)
  return new Form(new Map(values), Array.from({ length: seeded.integer(3) }, file))
}

describe('hostile bodies', () => {
  it('are read as defined, or there are problems', () => {
    const seeded = new Seeded(21)
    let taken = 0
    for (let round = 0; round < 6000; round += 1) {
      const made = makeObject(seeded, 3)
      const schema = fields(Object.fromEntries(made.field.kind.members ?? []))
      const form = round % 2 === 0 ? makeForm(seeded) : undefined
      const read = schema.read(form === undefined ? makeJson(seeded, 4) : undefined, form)
      if ('value' in read) {
        taken += 1
        assert.ok(made.accepts(read.value), `round ${round}: ${JSON.stringify(read.value)}`)
      } else {
        for (const { path } of read.problems) assert.equal(typeof path, 'string')
        assert.ok(read.problems.length > 0 && read.problems.length <= 1000)
      }
    }
    assert.ok(taken > 300, `${taken} taken`)
    assert.deepEqual(Object.keys(Object.prototype), [])
  })

  it('get 2xx, 303 or 4xx over HTTP, and do not affect the server', async (t) => {
    const { app, cookie } = await startForms(t)
    const headers = (type: string) => ({ cookie, 'content-type': type, referer: `${app.url}/notes/new` })
    const seeded = new Seeded(22)
    for (let round = 0; round < 100; round += 1) {
      const body = JSON.stringify(makeJson(seeded, 4))
      const answer = await request(`${app.url}/notes`, { body, headers: headers('application/json') })
      assert.ok([200, 422].includes(answer.status), `${answer.status} ${body}`)
      const pairs = Array.from({ length: seeded.integer(30) }, () => {
        return `${encodeURIComponent(seeded.pick([...names, 'title', 'size', 'tags', 'address.city']))}=${encodeURIComponent(seeded.pick(texts.slice(0, -6)))}`
      })
      const form = await request(`${app.url}/notes`, { body: pairs.join('&'), headers: headers(formType) })
      assert.ok([200, 303].includes(form.status), `${form.status} ${pairs.join('&')}`)
      assert.equal((await request(`${app.url}/notes/new`, { headers: { cookie } })).status, 200)
    }
    const many = Array.from({ length: 10_000 }, (_, at) => `f${at}=x`).join('&')
    assert.equal((await request(`${app.url}/notes`, { body: many, headers: headers(formType) })).status, 422)
    for (const deep of ['['.repeat(400_000), '{"title":'.repeat(100_000)]) {
      assert.equal((await request(`${app.url}/notes`, { body: deep, headers: headers('application/json') })).status, 400)
    }
    for (const deep of [`${'['.repeat(400_000)}${']'.repeat(400_000)}`, `${'{"title":'.repeat(90_000)}1${'}'.repeat(90_000)}`]) {
      assert.equal((await request(`${app.url}/notes`, { body: deep, headers: headers('application/json') })).status, 422)
    }
    assert.equal(app.lines().some((line) => line.includes('ERROR')), false)
  })
})
