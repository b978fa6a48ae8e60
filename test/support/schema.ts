/**
 * Renders the schemas by which editors complete and check `svc.json` and the middleware configuration, from the tables
 * of the configuration and of the built-in middleware.
 */
import type { Row } from '../../lib/base/value.ts'
import { configTable, type KeyRow } from '../../lib/config/table.ts'
import { messageTable } from '../../lib/validation/messages.ts'
import { builtInGroups } from './documentation.ts'

type Schema = Record<string, unknown>

/** The dialect of all schemas. */
export const dialect = 'https://json-schema.org/draft/2020-12/schema'

/** `docs/svc.schema.json`: nested groups, and every key dotted at the root as well. */
export function renderSchema(): string {
  const root: Schema = {
    $schema: dialect,
    title: 'The configuration of svc',
    description: 'Made by `npm run docs` from lib/config/table.ts. docs/configuration.md has the same in words.',
    type: 'object',
    properties: { $schema: { type: 'string' } },
  }
  for (const [key, row] of Object.entries(configTable) as [string, KeyRow][]) {
    const names = key.split('.')
    const last = names.pop() as string // A split text has at least one part.
    let group = root
    for (const name of names) {
      const properties = group['properties'] as Record<string, Schema>
      group = properties[name] ??= { type: 'object', properties: {}, additionalProperties: true }
    }
    const properties = group['properties'] as Record<string, Schema>
    properties[last] = schemaOf(row)
    if (names.length > 0) (root['properties'] as Record<string, Schema>)[key] = schemaOf(row)
  }
  const { setup } = root['properties'] as Record<string, Schema>
  Object.assign(setup as Schema, { properties: groupsOfSetup({}) })
  return `${JSON.stringify(root, undefined, 2)}\n`
}

/** `docs/schemas/middleware.schema.json`. */
export function renderMiddlewareSchema(): string {
  const closed = { additionalProperties: false }
  const root: Schema = {
    $schema: dialect,
    title: 'The middleware configuration of svc: config.json of paths.middleware',
    description: 'Made by `npm run docs` from the tables of the built-in middleware. docs/configuration.md has the same in '
      + 'words. Unknown keys are errors here; the server ignores them, with a warning.',
    type: 'object',
    properties: {
      $schema: { type: 'string' },
      load: {
        type: 'array',
        items: { type: 'string' },
        description: 'The middleware modules to load, in this order: files relative to this folder.',
        default: [],
      },
      setup: {
        type: 'object',
        properties: groupsOfSetup(closed),
        ...closed,
        description: 'The settings of the built-in middleware.',
        default: {},
      },
    },
    ...closed,
  }
  return `${JSON.stringify(root, undefined, 2)}\n`
}

/**
 * The settings of the built-in middleware by group.
 * @param rest the keyword for other members, if any
 */
function groupsOfSetup(rest: Schema): Record<string, Schema> {
  const groups = builtInGroups().map(({ name, table = {} }) => {
    const rows = objectOf(table, rest)
    const names = { pattern: '^[A-Za-z0-9_.-]{1,64}$' }
    return [name, name === 'limit' ? { type: 'object', propertyNames: names, additionalProperties: rows } : rows] as const
  })
  const messages = { ...objectOf(messageTable, rest), description: 'The messages of validation.' }
  return { ...Object.fromEntries(groups), validate: { type: 'object', properties: { messages }, ...rest } }
}

function objectOf(table: Readonly<Record<string, Row>>, rest: Schema): Schema {
  const properties = Object.fromEntries(Object.entries(table).map(([key, row]) => [key, schemaOf(row)]))
  return { type: 'object', properties, ...rest }
}

function schemaOf(row: KeyRow): Schema {
  const common = { description: row.meaning.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1'), ...('secret' in row ? {} : { default: row.default }) }
  switch (row.kind) {
    case 'boolean':
      return { type: 'boolean', ...common }
    case 'integer':
      return { type: 'integer', minimum: row.min, maximum: row.max, ...common }
    case 'integer or auto':
      return { anyOf: [{ type: 'integer', minimum: row.min, maximum: row.max }, { const: 'auto' }], ...common }
    case 'choice':
      return { enum: row.choices, ...common }
    case 'list':
      if (row.commas) return { type: ['array', 'string'], items: { type: 'string' }, ...common }
      return { type: 'array', items: { type: 'string' }, ...common }
    case 'string':
      return { type: 'string', ...common }
    case 'object':
      return { type: 'object', additionalProperties: true, ...common }
  }
}
