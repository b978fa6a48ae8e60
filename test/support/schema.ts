/** Renders `docs/svc.schema.json`, by which editors complete and check `svc.json`, from the configuration table. */
import type { Row } from '../../lib/base/value.ts'
import { configTable } from '../../lib/config/table.ts'

type Schema = Record<string, unknown>

/** The whole file: nested groups, and every key dotted at the root as well. */
export function renderSchema(): string {
  const root: Schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'The configuration of svc',
    description: 'Made by `npm run docs` from lib/config/table.ts. docs/configuration.md has the same in words.',
    type: 'object',
    properties: { $schema: { type: 'string' } },
  }
  for (const [key, row] of Object.entries(configTable) as [string, Row][]) {
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
  return `${JSON.stringify(root, undefined, 2)}\n`
}

function schemaOf(row: Row): Schema {
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
      return { type: 'array', items: { type: 'string' }, ...common }
    case 'string':
      return { type: 'string', ...common }
  }
}
