/**
 * Renders `docs/schemas/routes.schema.json`, by which editors complete and check route files. The limits come from the
 * configuration table, the meanings from the table of fields in docs/routes-and-actions.md.
 *
 * It accepts every file that the server reads without a warning. Some rules have no keyword, so it also accepts a url
 * that is no pattern, unknown middleware, an action outside `paths.root`, and a name that is used twice.
 */
import { configTable } from '../../lib/config/table.ts'
import type { RouteRecord } from '../../lib/routing/route.ts'
import { codeOf, readPage, tableBelow } from './markdown.ts'
import { dialect } from './schema.ts'

type Schema = Readonly<Record<string, unknown>>

/** The control characters, for a class of a pattern. */
const control = String.raw`\u0000-\u001f\u007f-\u009f\u2028\u2029`
/** A method, with white space around it. */
const method = "\\s*[!#$%&'*+.^_`|~0-9A-Za-z-]+\\s*"
const boolean = { type: 'boolean' }

/** The keywords of the fields of a record; the type requires every field. */
const fields: Readonly<Record<keyof RouteRecord | 'pattern', Schema>> = {
  name: { type: 'string', pattern: String.raw`^(?!svc\.|\s)[^${control}]*[^\s${control}]$` },
  url: { type: 'string', pattern: '^/' },
  pattern: { type: 'string', pattern: '^/' },
  action: { type: 'string', pattern: `^[^${control}]+$` },
  method: { type: 'string', pattern: `^${method}(?:,${method})*$` },
  middleware: { type: 'string' },
  scope: { type: 'string' },
  body_limit_kb: limitOf('server.body_limit_kb'),
  request_timeout_s: limitOf('server.request_timeout_s'),
  error_format: { enum: ['json', 'html', 'auto'] },
  summary: { type: 'string', minLength: 1, maxLength: 200, pattern: `^[^${control}]*$` },
  description: { type: 'string', maxLength: 4000 },
  deprecated: boolean,
  hidden: boolean,
}

const prefix = {
  type: 'string',
  pattern: String.raw`^/[\s\S]*[^/]$`,
  description: 'Put before each url. The url `/` then means the prefix itself.',
}

/** The whole file: an array of records, or an object with `routes`. */
export function renderRouteSchema(): string {
  const described = describedFields()
  const { name, url, pattern, action, summary, description, ...replaced } = described
  const defaults = { prefix, ...replaced }
  const record = {
    type: 'object',
    required: ['name', 'action'],
    anyOf: [{ required: ['url'] }, { required: ['pattern'] }],
    properties: {
      ...described,
      defaults: {
        anyOf: [{ const: false }, { type: 'array', items: { enum: Object.keys(defaults) } }],
        description: 'The defaults of the file that apply: `false` for none, or a list of their names. Without it all apply.',
      },
    },
    additionalProperties: false,
  }
  const records = { $ref: '#/$defs/record' }
  const root = {
    $schema: dialect,
    title: 'A route file of svc',
    description: 'Made by `npm run docs`. docs/routes-and-actions.md has the same in words. Unknown fields of a record are '
      + 'errors here; the server ignores them, with a warning.',
    type: ['array', 'object'],
    items: records,
    required: ['routes'],
    properties: {
      $schema: { type: 'string' },
      defaults: {
        type: 'object',
        properties: defaults,
        additionalProperties: false,
        description: 'Defaults for the fields of all records of the file.',
      },
      routes: { type: 'array', items: records, description: 'The records of the routes.' },
    },
    additionalProperties: false,
    $defs: { record },
  }
  return `${JSON.stringify(root, undefined, 2)}\n`
}

function limitOf(key: 'server.body_limit_kb' | 'server.request_timeout_s'): Schema {
  const { min, max } = configTable[key]
  return { type: 'integer', minimum: min, maximum: max }
}

/** The fields with their meanings. */
function describedFields(): Record<keyof typeof fields, Schema> {
  const rows = tableBelow(readPage('docs/routes-and-actions.md'), '## Route files')
  const described = Object.entries(fields).map(([name, schema]): [string, Schema] => {
    const [, meaning] = rows.find(([names = '']) => codeOf(names).includes(name)) ?? []
    if (meaning === undefined) throw new Error(`The table of fields in docs/routes-and-actions.md lacks ${name}`)
    return [name, { ...schema, description: meaning.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1') }]
  })
  return Object.fromEntries(described) as Record<keyof typeof fields, Schema> // The same names.
}
