/** Schemas of every kind of field at any depth, and JSON that is often valid for them. */
import type { Seeded } from '../support/seeded.ts'
import { fields, type Schema } from '../../lib/validation/fields.ts'
import type { Field } from '../../lib/validation/fields-field.ts'

interface Made {
  readonly field: Field
  /** A value that may be valid. */
  readonly value: () => unknown
}

const names = ['a', 'b', '__proto__', 'constructor', 'length', '0', 'a.b', '']
/** Without white space at the ends, CRLF and characters of two UTF-16 units, which JSON Schema sees differently. */
const texts = [
  '', 'a', 'ab cd', 'abcdefgh', 'ABC', 'a-b', '5', '-5', 'on', '2024-02-29', '2023-02-29', '1999-12-31', 'null', '\u0000',
  'ada@example.org', 'ada@', 'https://a.org/b', 'javascript:alert(1)', 's', 'm', '__proto__', 'é'.repeat(300),
]
const numbers = [0, -0, 1, 5, -6, 100, 101, 1.5, -1.5, 2 ** 53, 1e308, -1e308]
const others = [null, true, false, [], {}, [null], { a: 1 }]

const leaves: readonly (readonly [field: Field, values: readonly unknown[]])[] = [
  [fields.text(), texts], [fields.text({ max: 5 }), texts], [fields.text({ min: 2, trim: false }), texts],
  [fields.text({ pattern: /^[a-z]+$/ }), texts], [fields.text({ pattern: /^[a-z]+$/i }), texts], [fields.text({ pattern: /a-b/ }), texts],
  [fields.secret({ min: 2 }), texts], [fields.email(), texts], [fields.url({ max: 20 }), texts], [fields.date({ min: '2000-01-01' }), texts],
  [fields.choice('s', 'm', '5'), texts], [fields.boolean(), others],
  [fields.integer(), numbers], [fields.integer({ min: 0, max: 100 }), numbers],
  [fields.number(), numbers], [fields.number({ min: -1.5 }), numbers], [fields.file({ types: ['image/png'], maxKb: 1 }), [...texts, ...others]],
]

/** Makes a schema. `value` then returns JSON for it. */
export function makeSchema(seeded: Seeded): { readonly schema: Schema; readonly value: () => unknown } {
  const { field, value } = makeObject(seeded, 3)
  return { schema: fields(Object.fromEntries(field.kind.members ?? [])), value: () => JSON.parse(JSON.stringify(value())) as unknown }
}

function makeField(seeded: Seeded, depth: number): Made {
  const kind = depth > 0 ? seeded.next() : 0
  const made = kind > 0.8 ? makeObject(seeded, depth - 1) : kind > 0.6 ? makeList(seeded, depth - 1) : makeLeaf(seeded)
  const value = (): unknown => (seeded.next() > 0.03 ? made.value() : seeded.pick([...texts, ...numbers, ...others]))
  const presence = seeded.next()
  return { field: presence > 0.7 ? made.field.optional() : presence > 0.5 ? withDefault(made) : made.field, value }
}

function makeLeaf(seeded: Seeded): Made {
  const [field, values] = seeded.pick(leaves)
  const valid = values.filter((value) => value !== '' && fields({ a: field }).check({ a: value }).ok)
  return { field, value: () => seeded.pick(valid.length > 0 && seeded.next() > 0.1 ? valid : values) }
}

/** The field with one of its valid values as the default; optional if none was found. */
function withDefault({ field, value }: Made): Field {
  for (let tries = 0; tries < 5; tries += 1) {
    const sent = value()
    if (fields({ a: field }).check({ a: sent }).ok) return field.default(sent)
  }
  return field.optional()
}

function makeList(seeded: Seeded, depth: number): Made {
  const { field, value } = makeField(seeded, depth)
  const options = seeded.pick([{}, { min: 1 }, { min: 1, max: 3 }, { max: 2 }])
  return { field: fields.list(field, options), value: () => Array.from({ length: seeded.integer(4) }, value) }
}

function makeObject(seeded: Seeded, depth: number): Made {
  const members = new Map(Array.from({ length: 1 + seeded.integer(3) }, () => [seeded.pick(names), makeField(seeded, depth)]))
  const value = (): unknown => {
    const sent = [...members].filter(([, { field }]) => field.presence === 'required' || seeded.next() > 0.3)
    const more = seeded.next() > 0.7 ? [['unknown', seeded.pick(others)] as const] : []
    return Object.fromEntries([...sent.map(([name, member]) => [name, member.value()] as const), ...more])
  }
  return { field: fields.object(Object.fromEntries([...members].map(([name, { field }]) => [name, field]))), value }
}
