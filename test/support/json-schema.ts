/**
 * The keywords of JSON Schema 2020-12 that fields and the schemas of `docs/` use, so that tests need no validator. A
 * keyword that is unknown here throws. `test/external/json-schema.test.ts` compares it with a validator.
 */

/** A JSON Schema. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** @param schema has the keyword @param root resolves references */
type Rule = (value: unknown, operand: never, schema: JsonSchema, root: JsonSchema) => boolean

const isText = (value: unknown): value is string => typeof value === 'string'
const isNumber = (value: unknown): value is number => typeof value === 'number'
const isMembers = (value: unknown): value is JsonSchema => typeof value === 'object' && value !== null && !Array.isArray(value)
const annotation: Rule = () => true

const types: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: isText,
  number: isNumber,
  integer: Number.isInteger,
  boolean: (value) => typeof value === 'boolean',
  null: (value) => value === null,
  array: Array.isArray,
  object: isMembers,
}

const rules: Readonly<Record<string, Rule>> = {
  $schema: annotation,
  $defs: annotation,
  title: annotation,
  description: annotation,
  default: annotation,
  format: annotation,
  writeOnly: annotation,
  contentMediaType: annotation,
  type: (value, names: string | readonly string[]) => [names].flat().some((name) => types[name]?.(value) === true),
  $ref: (value, reference: string, _schema, root) => accepts(referenced(reference, root), value, root),
  anyOf: (value, choices: readonly JsonSchema[], _schema, root) => choices.some((choice) => accepts(choice, value, root)),
  const: (value, constant: unknown) => value === constant,
  enum: (value, choices: readonly unknown[]) => choices.includes(value),
  minLength: (value, least: number) => !isText(value) || [...value].length >= least,
  maxLength: (value, most: number) => !isText(value) || [...value].length <= most,
  pattern: (value, source: string) => !isText(value) || new RegExp(source, 'u').test(value),
  minimum: (value, least: number) => !isNumber(value) || value >= least,
  maximum: (value, most: number) => !isNumber(value) || value <= most,
  minItems: (value, least: number) => !Array.isArray(value) || value.length >= least,
  maxItems: (value, most: number) => !Array.isArray(value) || value.length <= most,
  items: (value, item: JsonSchema, _schema, root) => !Array.isArray(value) || value.every((entry) => accepts(item, entry, root)),
  required: (value, names: readonly string[]) => !isMembers(value) || names.every((name) => Object.hasOwn(value, name)),
  properties: (value, members: Readonly<Record<string, JsonSchema>>, _schema, root) =>
    !isMembers(value)
    || Object.entries(members).every(([name, member]) => !Object.hasOwn(value, name) || accepts(member, value[name], root)),
  additionalProperties: (value, rest: boolean | JsonSchema, { properties = {} }, root) =>
    !isMembers(value)
    || Object.entries(value)
      .filter(([name]) => !Object.hasOwn(properties as JsonSchema, name))
      .every(([, member]) => (typeof rest === 'boolean' ? rest : accepts(rest, member, root))),
  propertyNames: (value, name: JsonSchema, _schema, root) =>
    !isMembers(value) || Object.keys(value).every((key) => accepts(name, key, root)),
}

/**
 * Returns whether a value is valid by a schema.
 * @param root the whole schema, if `schema` is a part of it
 */
export function accepts(schema: JsonSchema, value: unknown, root = schema): boolean {
  return Object.entries(schema).every(([keyword, operand]) => {
    const rule = rules[keyword]
    if (rule === undefined) throw new Error(`The keyword ${keyword} is unknown: add it to test/support/json-schema.ts`)
    return rule(value, operand as never, schema, root)
  })
}

/** Returns the part of a schema that a reference such as `#/$defs/record` names. */
function referenced(reference: string, root: JsonSchema): JsonSchema {
  return reference.split('/').slice(1).reduce((part, name) => part[name] as JsonSchema, root)
}
