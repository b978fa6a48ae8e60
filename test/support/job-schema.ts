/**
 * Renders `docs/schemas/jobs.schema.json`, by which editors complete and check job files. Ranges and defaults come from
 * the table of the reader, the meanings from the table of fields in docs/jobs.md.
 *
 * It accepts every file that the server reads without a warning. Some rules have no keyword, so it also accepts an
 * action that is no module or is outside `paths.root`, an interval above 366 days, values of a cron expression that are
 * out of range, and a name that is used twice.
 */
import type { Row } from '../../lib/base/value.ts'
import { jobTable } from '../../lib/jobs/job-record.ts'
import { codeOf, readPage, tableBelow } from './markdown.ts'
import { dialect } from './schema.ts'

type Schema = Readonly<Record<string, unknown>>

/** The control characters, for a class of a pattern. */
const control = String.raw`\u0000-\u001f\u007f-\u009f\u2028\u2029`
/** An entry of a cron field, and a field, whatever the values. */
const cronEntry = String.raw`(?:\*(?:/[0-9]{1,2})?|\w+(?:-\w+(?:/[0-9]{1,2})?)?)`
const cronField = `${cronEntry}(?:,${cronEntry})*`

/** The keywords of the fields that the reader's table lacks. */
const others = {
  name: { type: 'string', pattern: String.raw`^(?!svc\.|\s)[^${control}]*[^\s${control}]$` },
  action: { type: 'string', pattern: `^[^${control}]+$` },
  every: { type: 'string', pattern: '^0*[1-9][0-9]*[smhd]$' },
  cron: { type: 'string', pattern: String.raw`^\s*${cronField}(?:\s+${cronField}){4}\s*$` },
}

/** The whole file: an array of records, or an object with `jobs`. */
export function renderJobSchema(): string {
  const properties = describedFields()
  const without = (...left: readonly string[]): Schema => {
    return { propertyNames: { enum: Object.keys(properties).filter((name) => !left.includes(name)) } }
  }
  const record = {
    type: 'object',
    required: ['name', 'action'],
    anyOf: [
      without('every', 'cron', 'catch_up'),
      { required: ['every'], ...without('cron') },
      { required: ['cron'], ...without('every') },
    ],
    properties,
    additionalProperties: false,
  }
  const records = { $ref: '#/$defs/record' }
  const root = {
    $schema: dialect,
    title: 'A job file of svc',
    description: 'Made by `npm run docs`. docs/jobs.md has the same in words. Unknown fields of a record are errors here; '
      + 'the server ignores them, with a warning.',
    type: ['array', 'object'],
    items: records,
    required: ['jobs'],
    properties: {
      $schema: { type: 'string' },
      jobs: { type: 'array', items: records, description: 'The records of the jobs.' },
    },
    additionalProperties: false,
    $defs: { record },
  }
  return `${JSON.stringify(root, undefined, 2)}\n`
}

/** The fields with their meanings. The page must list each, with the range and the default of the table. */
function describedFields(): Readonly<Record<string, Schema>> {
  const rows = tableBelow(readPage('docs/jobs.md'), '## Job files')
  const fields: Readonly<Record<string, Schema>> = { ...others, ...tableFields() }
  const described = rows.map(([names = '', meaning = '']): [string, Schema] => {
    const [name = ''] = codeOf(names)
    const schema = fields[name]
    if (schema === undefined) throw new Error(`The table of fields in docs/jobs.md has ${name}, which a record lacks`)
    return [name, { ...schema, description: meaning.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1') }]
  })
  const missing = Object.keys(fields).filter((name) => !described.some(([each]) => each === name))
  if (missing.length > 0) throw new Error(`The table of fields in docs/jobs.md lacks ${missing.join(', ')}`)
  return Object.fromEntries(described)
}

function tableFields(): Readonly<Record<string, Schema>> {
  return Object.fromEntries(Object.entries<Row>(jobTable).map(([name, row]) => [name, keywordsOf(row)]))
}

/** The table has integers and booleans. */
function keywordsOf(row: Row): Schema {
  if (row.kind === 'boolean') return { type: 'boolean', default: row.default }
  if (row.kind !== 'integer') throw new Error(`A row of the kind ${row.kind} has no keywords here: add them`)
  return { type: 'integer', minimum: row.min, maximum: row.max, default: row.default }
}

/** What the page must say about a field of the table: its range, its default, its meaning. */
export function meaningOf(row: Row): string {
  const range = row.kind === 'integer' ? `${row.min} to ${row.max}, default ${row.default}` : `\`true\` or \`false\`, default \`${row.default}\``
  return `${range}. ${row.meaning}`
}
