/**
 * Reads the route files of a folder: every `*.json` directly in it, in name order. A file is an array of route records,
 * or an object with `routes` and the `defaults` of their fields, and perhaps `$schema`, which is for editors.
 *
 * It throws and registers nothing. Valid records and problems are returned together, since a start skips an invalid
 * record and a reload accepts none. A problem with a file as a whole has `index: null`. Names are sorted by UTF-16 code
 * units, so that the order is the same on every machine: `10.json` comes before `2.json`.
 */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { didYouMean } from '../base/nearest.ts'
import { isObject } from '../base/object.ts'
import { reasonOf } from '../base/reason.ts'
import type { ReloadProblem } from '../control/commands.ts'
import type { JsonNode } from '../json/json-map.ts'
import { readJsonFile, type JsonFile } from '../json/read-json.ts'
import { parsePattern, quote } from '../routing/pattern.ts'
import type { PrefixFormat } from '../routing/registry.ts'
import type { ErrorFormat } from '../routing/route.ts'
import { parseRecord, type GoodRecord, type RecordRules } from './record.ts'

/** A route file and its valid records, each with its index in the file's array, from 0. */
interface RouteFile {
  /** The file's name, without its folder. */
  readonly file: string
  readonly records: readonly (GoodRecord & { readonly index: number })[]
}

/** A line and a column, both from 1; empty if unknown. */
type FilePlace = Pick<ReloadProblem, 'line' | 'column'>

/** The content of a folder of route files. If the folder cannot be read, the problem names it as its file. */
interface RouteFiles {
  readonly files: readonly RouteFile[]
  /** The error formats for the prefixes of the files. */
  readonly formats: readonly PrefixFormat[]
  readonly problems: readonly ReloadProblem[]
  readonly warnings: readonly ReloadProblem[]
  /** Whether the folder is missing, which alone is not a problem: there are then no routes. */
  readonly missing: boolean
  /** Returns the position of a field of a record, or of the record if it lacks the field. */
  placeOf(file: string, index: number, field: string): FilePlace
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
 * Reads a folder of route files. Folders and files whose name begins with a dot are skipped; a link is followed.
 * @param folder `paths.routes`, absolute
 */
export function readRouteFiles(folder: string, rules: RecordRules): RouteFiles {
  const found = new Findings()
  const missing = !existsSync(folder)
  for (const file of missing ? [] : listFiles(folder, found)) readRouteFile(folder, file, rules, found)
  const { files, formats, problems, warnings } = found
  return { missing, files, formats, problems, warnings, placeOf: (...place) => found.placeOf(...place) }
}

class Findings {
  readonly files: RouteFile[] = []
  readonly formats: PrefixFormat[] = []
  readonly problems: ReloadProblem[] = []
  readonly warnings: ReloadProblem[] = []
  /** Where each name was first given. */
  readonly places = new Map<string, { readonly file: string; readonly index: number }>()
  /** The places in the files. */
  readonly texts = new Map<string, Pick<JsonFile, 'root' | 'placeOf'>>()

  refuseFile(file: string, error: string): void {
    this.problems.push({ file, index: null, name: '', error })
  }

  placeOf(file: string, index: number, field: string): FilePlace {
    const found = this.texts.get(file)
    if (found === undefined) return {}
    const { root, placeOf } = found
    const member = (node: JsonNode | undefined, name: string) => node?.members?.find((one) => one.name === name)
    const record = (root.items ?? member(root, 'routes')?.value.items)?.[index]
    const alias = field === 'url' ? 'pattern' : field
    const given = member(record, field) ?? member(record, alias) ?? member(member(root, 'defaults')?.value, field)
    const start = given?.start ?? record?.start
    return start === undefined ? {} : placeOf(start)
  }

  /** @param error begins with the name of the field that it is about */
  note(list: ReloadProblem[], problem: Omit<ReloadProblem, 'line' | 'column'> & { readonly index: number }): void {
    const { file, index, error } = problem
    const field = error.startsWith('bad pattern') ? 'url' : (/^(?:field )?"?(\w+)/.exec(error)?.[1] ?? '')
    list.push({ ...problem, ...this.placeOf(file, index, field) })
  }
}

function listFiles(folder: string, found: Findings): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.name.endsWith('.json') && !entry.name.startsWith('.') && !entry.isDirectory())
      .map((entry) => entry.name)
      .sort()
  } catch (error) {
    found.refuseFile(folder, `the folder of route files cannot be read: ${reasonOf(error)}: check paths.routes`)
    return []
  }
}

function readRouteFile(folder: string, file: string, rules: RecordRules, found: Findings): void {
  const value = readJson(folder, file, found)
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

function readJson(folder: string, file: string, found: Findings): unknown {
  try {
    const read = readJsonFile(join(folder, file), '[] for no routes')
    if (read === undefined) throw new Error('there is no such file')
    found.texts.set(file, read)
    return read.value
  } catch (error) {
    found.refuseFile(file, reasonOf(error))
    return undefined
  }
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

function unknownMember(where: string, name: string, known: readonly string[]): string {
  return `${where} has an unknown member ${quote(name)}${didYouMean(name, known, quote)}`
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
  found: Findings,
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
    const place = found.places.get(name)
    if (place !== undefined) {
      const taken = `name ${quote(name)} is taken by ${place.file}, index ${place.index}: names are unique`
      found.note(found.problems, { file, index, name, error: taken })
      continue
    }
    found.places.set(name, { file, index })
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
