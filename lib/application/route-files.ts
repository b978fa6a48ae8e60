/**
 * Reads the route files of a folder: every `*.json` directly in it, in name order. A file is an array of route records,
 * or an object with `routes` and the `defaults` of their fields, and perhaps `$schema`, which is for editors.
 *
 * It throws and registers nothing. Valid records and problems are returned together, since a start skips an invalid
 * record and a reload accepts none. A problem with a file as a whole has `index: null`.
 */
import { isObject } from '../base/object.ts'
import { parsePattern, quote } from '../routing/pattern.ts'
import type { PrefixFormat } from '../routing/registry.ts'
import type { ErrorFormat } from '../routing/route.ts'
import { parseRecord, type GoodRecord, type RecordRules } from './record.ts'
import { RecordFiles, unknownMember } from './record-files.ts'

/** A route file and its valid records, each with its index in the file's array, from 0. */
interface RouteFile {
  /** The file's name, without its folder. */
  readonly file: string
  readonly records: readonly (GoodRecord & { readonly index: number })[]
}

/**
 * The content of a folder of route files. If the folder cannot be read, the problem names it as its file. A missing
 * folder alone is not a problem: there are then no routes.
 */
class RouteFiles extends RecordFiles {
  readonly files: RouteFile[] = []
  /** The error formats for the prefixes of the files. */
  readonly formats: PrefixFormat[] = []

  constructor(folder: string) {
    super(folder, 'routes')
  }
}

/** The defaults for the fields of a file's records. */
interface Defaults {
  readonly prefix: string
  readonly middleware: string
  /** The fields of `replacedFields`, unchanged. */
  readonly fields: Readonly<Record<string, unknown>>
}

const noDefaults: Defaults = { prefix: '', middleware: '', fields: {} }
const replacedFields = ['scope', 'method', 'body_limit_kb', 'request_timeout_s', 'error_format', 'deprecated', 'hidden']
const defaultFields = ['prefix', 'middleware', ...replacedFields]

/**
 * Reads a folder of route files.
 * @param folder `paths.routes`, absolute
 */
export function readRouteFiles(folder: string, rules: RecordRules): RouteFiles {
  const found = new RouteFiles(folder)
  for (const file of found.list()) readRouteFile(file, rules, found)
  return found
}

function readRouteFile(file: string, rules: RecordRules, found: RouteFiles): void {
  const value = found.read(file)
  if (value === undefined) return
  if (Array.isArray(value)) return readRecords(file, value, noDefaults, rules, found)
  if (!isObject(value) || !Array.isArray(value['routes'])) {
    const forms = 'a JSON array of route records, or an object {"defaults": {...}, "routes": [...]}'
    return found.refuseFile(file, `a route file is ${forms}`)
  }
  const { routes, defaults: given = {}, $schema: schema = '', ...others } = value
  const known = ['defaults', 'routes', '$schema']
  const problems = Object.keys(others).map((name) => unknownMember('the file', name, known))
  if (typeof schema !== 'string') problems.push(`$schema must be a string: it is ${quote(schema)}`)
  const defaults = readDefaults(given, rules, problems)
  for (const problem of problems) found.refuseFile(file, problem)
  const format = defaults.fields['error_format'] as ErrorFormat | undefined // checked above
  if (defaults.prefix !== '' && format !== undefined) {
    found.formats.push({ prefix: parsePattern(defaults.prefix), format })
  }
  readRecords(file, routes as readonly unknown[], defaults, rules, found)
  if (problems.length > 0) found.files.pop() // Its records were read only for their problems.
}

/** Checks the defaults of a file by the rules of a record. */
function readDefaults(given: unknown, rules: RecordRules, problems: string[]): Defaults {
  if (!isObject(given)) {
    problems.push('defaults must be an object')
    return noDefaults
  }
  for (const name of Object.keys(given)) {
    if (!defaultFields.includes(name)) problems.push(unknownMember('defaults', name, defaultFields))
  }
  const { prefix = '', middleware = '', ...fields } = given
  const isPrefix = given['prefix'] === undefined || (typeof prefix === 'string' && /^\/.*[^/]$/s.test(prefix))
  if (!isPrefix) problems.push(`defaults: prefix must begin with / and not end with one: it is ${quote(prefix)}`)
  // A minimal record with these fields reveals the problems with them.
  const url = isPrefix ? joined(prefix as string, '/') : '/'
  const probe = { name: 'n', url, action: 'a.js', middleware, ...fields }
  const parsed = parseRecord(probe, rules)
  if (!('record' in parsed)) problems.push(...parsed.problems.map((problem) => `defaults: ${problem}`))
  else if (parsed.pattern.segments.some(({ kind }) => kind === 'rest')) {
    problems.push(`defaults: prefix must have no rest: it is ${quote(prefix)}`)
  }
  return problems.length > 0 ? noDefaults : { prefix: prefix as string, middleware: middleware as string, fields }
}

function joined(prefix: string, url: string): string {
  if (prefix === '') return url
  return url === '/' ? prefix : prefix + url
}

function readRecords(
  file: string,
  values: readonly unknown[],
  defaults: Defaults,
  rules: RecordRules,
  found: RouteFiles,
): void {
  const records: RouteFile['records'][number][] = []
  for (const [index, value] of values.entries()) {
    const problem = problemOfChoice(value)
    if (problem !== undefined) {
      const name = isObject(value) && typeof value['name'] === 'string' ? value['name'] : ''
      found.note(found.problems, { file, index, name, error: problem })
      continue
    }
    const parsed = parseRecord(withDefaults(value, defaults), rules)
    if (!('record' in parsed)) {
      for (const error of parsed.problems) found.note(found.problems, { file, index, name: parsed.name, error })
      continue
    }
    const { name } = parsed.record
    if (!found.takeName(file, index, name)) continue
    const { record, pattern, warnings } = parsed
    records.push({ index, record, pattern, warnings })
    for (const error of warnings) found.note(found.warnings, { file, index, name, error })
  }
  found.files.push({ file, records })
}

/** Checks the member `defaults` of a record, which chooses among those of its file. */
function problemOfChoice(value: unknown): string | undefined {
  const chosen = isObject(value) ? value['defaults'] : undefined
  if (chosen === undefined || chosen === false) return undefined
  const unknown = Array.isArray(chosen) ? chosen.find((name) => !defaultFields.includes(name as string)) : undefined
  if (unknown !== undefined) return unknownMember('defaults', String(unknown), defaultFields)
  return Array.isArray(chosen) ? undefined : 'defaults must be false or a list of their names, or be left out'
}

/** Adds the defaults of the file to a record. Invalid fields stay unchanged, for the messages about them. */
function withDefaults(value: unknown, all: Defaults): unknown {
  if (!isObject(value)) return value
  const { defaults: chosen, ...record } = value
  if (chosen === false) return record
  const { prefix, middleware, fields } = Array.isArray(chosen) ? chosenFrom(all, chosen) : all
  const result: Record<string, unknown> = { ...fields, ...record }
  for (const name of ['url', 'pattern']) {
    const url = record[name]
    if (typeof url === 'string' && url.startsWith('/')) result[name] = joined(prefix, url)
  }
  const { middleware: added = '' } = record
  if (middleware !== '' && typeof added === 'string') {
    const names = `${middleware},${added}`.split(',').map((name) => name.trim())
    result['middleware'] = [...new Set(names.filter((name) => name !== ''))].join(',')
  }
  return result
}

function chosenFrom({ prefix, middleware, fields }: Defaults, names: readonly unknown[]): Defaults {
  return {
    prefix: names.includes('prefix') ? prefix : '',
    middleware: names.includes('middleware') ? middleware : '',
    fields: Object.fromEntries(Object.entries(fields).filter(([name]) => names.includes(name))),
  }
}
