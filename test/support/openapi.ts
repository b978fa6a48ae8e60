/**
 * Checks `docs/openapi.json` and what it describes with `@hyperjump/json-schema`, which brings the schemas that the
 * OpenAPI Initiative publishes for OpenAPI 3.1 and its dialect of JSON Schema. The package lives in `test/openapi`,
 * with a lock file of its own, so that `npm ci` of the server installs nothing for it.
 */
import { existsSync } from 'node:fs'

/** The result of a validation. */
interface Output {
  readonly valid: boolean
  readonly errors?: readonly { readonly instanceLocation: string; readonly absoluteKeywordLocation: string }[]
}

/** The used part of the package, whose types are not available. */
interface JsonSchema {
  registerSchema(schema: unknown, uri: string, dialect: string): void
  validate(uri: string): Promise<(value: unknown, format: 'BASIC') => Output>
}

/** Returns the problems of a value, one line for each location; empty if it is valid. */
export type Check = (value: unknown) => readonly string[]

const file = new URL('../openapi/node_modules/@hyperjump/json-schema/openapi-3-1/index.js', import.meta.url)
const missing = 'Cannot check docs/openapi.json: its validator is not installed: run `npm ci --prefix test/openapi`'
const documentSchema = 'https://spec.openapis.org/oas/3.1/schema-base'
/** A validator takes each address once. */
let registered = 0
const dialect = 'https://spec.openapis.org/oas/3.1/dialect/base'

/** The check of OpenAPI 3.1 documents. */
export async function createDocumentCheck(): Promise<Check> {
  return checkBy(await load(), documentSchema)
}

/**
 * The checks of the schemas of a document, by name. Where an object's members are listed there may be no other ones:
 * what the server answers is to be documented.
 * @param schemas `components.schemas`
 */
export async function createSchemaChecks(
  schemas: Readonly<Record<string, unknown>>,
): Promise<ReadonlyMap<string, Check>> {
  const jsonSchema = await load()
  const text = JSON.stringify({ $defs: schemas }).replaceAll('"#/components/schemas/', '"#/$defs/')
  const closed: unknown = JSON.parse(text, (_key, value: unknown) => {
    const isObjectSchema = typeof value === 'object' && value !== null && 'properties' in value && 'required' in value
    return isObjectSchema ? { additionalProperties: false, ...value } : value
  })
  const uri = 'https://example.org/schemas'
  jsonSchema.registerSchema(closed, uri, dialect)
  const checks = new Map<string, Check>()
  for (const name of Object.keys(schemas)) checks.set(name, await checkBy(jsonSchema, `${uri}#/$defs/${name}`))
  return checks
}

/** The check of values by one JSON Schema with a `$schema` of its own; rejects when it is invalid. */
export async function createJsonSchemaCheck(schema: Readonly<Record<string, unknown>>): Promise<Check> {
  const jsonSchema = await load()
  const uri = `https://example.org/schemas/${(registered += 1)}`
  jsonSchema.registerSchema(schema, uri, String(schema['$schema']))
  return checkBy(jsonSchema, uri)
}

async function checkBy(jsonSchema: JsonSchema, uri: string): Promise<Check> {
  const validate = await jsonSchema.validate(uri)
  return (value) => {
    const { valid, errors = [] } = validate(value, 'BASIC')
    if (valid) return []
    const places = errors.map((error) => `${error.instanceLocation} by ${error.absoluteKeywordLocation}`)
    return places.length > 0 ? places : ['it does not fit its schema']
  }
}

async function load(): Promise<JsonSchema> {
  if (!existsSync(file)) throw new Error(missing)
  return (await import(file.href)) as JsonSchema // see JsonSchema
}
