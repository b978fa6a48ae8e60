/**
 * The JSON Schema (2020-12) of what actions declare: fields of this server, and schemas of libraries that implement
 * Standard JSON Schema (https://standardschema.dev/json-schema).
 */
import { isObject } from '../base/object.ts'
import { Field } from '../validation/fields-field.ts'
import { Schema } from '../validation/fields.ts'
import { jsonSchemaOf } from '../validation/json-schema.ts'

/** A JSON Schema, or a part of one. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** The used part of a converter. */
type Converter = Readonly<Record<'input' | 'output', (options: { readonly target: string }) => unknown>>

/**
 * Returns the JSON Schema of a schema or field, without `$schema`.
 * @param side whether it describes what is sent to an action, or its reply
 * @throws Error if its library has no converter, or the schema has something that JSON Schema cannot express, such as
 *   a function
 */
export function jsonSchemaFrom(schema: unknown, side: 'input' | 'output'): JsonSchema {
  const converted = schema instanceof Field ? jsonSchemaOf(schema, side) : convert(schema, side)
  if (!isObject(converted)) throw new Error('its library returned no JSON Schema')
  const { $schema, ...rest } = JSON.parse(JSON.stringify(converted, written)) as JsonSchema
  return rest
}

function convert(schema: unknown, side: 'input' | 'output'): unknown {
  if (schema instanceof Schema) return schema.toJsonSchema(side)
  const { jsonSchema } = (schema as { readonly '~standard': { readonly jsonSchema?: Converter } })['~standard']
  if (typeof jsonSchema?.[side] !== 'function') throw new Error('its library does not implement Standard JSON Schema')
  return jsonSchema[side]({ target: 'draft-2020-12' })
}

/**
 * `JSON.stringify` would leave out functions and symbols without a word. To allow other members is the default, and
 * where it is written generators add an index signature, with which a misspelt member compiles.
 */
function written(key: string, value: unknown): unknown {
  if (key === 'additionalProperties' && value === true) return undefined
  if (typeof value !== 'function' && typeof value !== 'symbol') return value
  throw new Error(`its JSON Schema has a ${typeof value} as ${JSON.stringify(key)}`)
}

/** Returns a schema with its references to itself, `#...`, pointing to the place where it is put. */
export function movedTo(place: string, schema: JsonSchema): JsonSchema {
  const moved = JSON.stringify(schema, (key, value: unknown) =>
    key === '$ref' && typeof value === 'string' && value.startsWith('#') ? `#${place}${value.slice(1)}` : value)
  return JSON.parse(moved) as JsonSchema
}

/** Whether a schema refers to itself or its parts. */
export function hasReferences(schema: JsonSchema): boolean {
  return JSON.stringify(schema).includes('"$ref":"#')
}

/** Returns the schema of a value that cannot be null: in a form or a query, what is left out is missing. */
export function withoutNull(schema: JsonSchema): JsonSchema {
  const { type, enum: choices } = schema
  const types = Array.isArray(type) ? type.filter((one) => one !== 'null') : type
  return {
    ...schema,
    ...(types !== undefined && { type: Array.isArray(types) && types.length === 1 ? types[0] : types }),
    ...(Array.isArray(choices) && { enum: choices.filter((choice) => choice !== null) }),
  }
}

/** Returns the members of the schema of an object. */
export function propertiesOf(schema: JsonSchema): readonly (readonly [name: string, schema: JsonSchema])[] {
  const { properties } = schema
  const entries = isObject(properties) ? Object.entries(properties) : []
  return entries.filter((entry): entry is [string, JsonSchema] => isObject(entry[1]))
}

/** Returns the names of the members that must be sent. */
export function requiredOf(schema: JsonSchema): readonly unknown[] {
  return Array.isArray(schema['required']) ? schema['required'] : []
}
