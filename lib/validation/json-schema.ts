/**
 * The JSON Schema of fields (2020-12, https://json-schema.org/draft/2020-12): which JSON `check` accepts.
 *
 * Some rules have no keyword, so a schema may accept what its fields refuse:
 * - the day of a date with its `min` and `max`; the form of an address beyond `format`; whole numbers from 2^53
 * - a pattern with a flag i, m or s
 * - several types of a file; its size is `maxLength`, which OpenAPI 3.1 counts in bytes
 *
 * In one case it is the other way round: lengths and patterns apply to a text without the white space around it, which
 * fields remove first and JSON Schema cannot. It also counts code points, where fields count UTF-16 units, as browsers
 * do, and a line break as one. Validators take a pattern with the flag u, by which `\-` outside brackets is an error.
 */
import type { Field } from './fields-field.ts'

/**
 * Returns the JSON Schema of a field, which shares values with it. A field that is not required also takes `null`, as
 * the same as nothing.
 * @param side `output`: what `check` returns, where a field with a default always has a value
 */
export function jsonSchemaOf(field: Field, side: 'input' | 'output' = 'input'): Record<string, unknown> {
  const { kind, fallback } = field
  const presence = presenceIn(field, side)
  const { keywords, members, item } = kind
  const schema: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(keywords)) {
    if (value !== undefined && value !== Infinity && value !== -Infinity) schema[name] = value
  }
  if (item !== undefined) schema['items'] = jsonSchemaOf(item, side)
  if (members !== undefined) {
    const required = members.filter(([, member]) => presenceIn(member, side) === 'required').map(([name]) => name)
    schema['properties'] = Object.fromEntries(members.map(([name, member]) => [name, jsonSchemaOf(member, side)]))
    if (required.length > 0) schema['required'] = required
    schema['additionalProperties'] = true // They are dropped.
  }
  if (presence === 'required') {
    if ('minLength' in keywords && side === 'input') schema['minLength'] ??= 1
    return schema
  }
  if ('type' in keywords) schema['type'] = [keywords['type'], 'null']
  if (Array.isArray(keywords['enum'])) schema['enum'] = [...keywords['enum'], null]
  if (presence === 'default') schema['default'] = fallback
  return schema
}

function presenceIn({ presence }: Field, side: 'input' | 'output'): Field['presence'] {
  return side === 'output' && presence === 'default' ? 'required' : presence
}
