/**
 * The settings of built-in middleware: a group of `setup` in the middleware configuration, read by a table with one row
 * a key, as `svc.json` is.
 */
import { isObject } from '../base/object.ts'
import { nearest } from '../base/nearest.ts'
import type { Row, ValueOf } from '../base/row.ts'
import { readValue } from '../base/value.ts'

const pathShape = /^\/(?![/\\])[^\u0000-\u0020\u007f]*$/
const urlShape = /^https?:\/\/[^\u0000-\u0020\u007f]+$/i

/** The keys of a group. */
export type SettingsTable = Readonly<Record<string, Row>>

/** The values of a group; every key has one. */
export type SettingsOf<Table extends SettingsTable> = { readonly [Key in keyof Table]: ValueOf<Table[Key]> }

/** The settings cannot be used. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError'
  /** What is wrong, each with its key and value. */
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('; '))
    this.problems = problems
  }
}

/** Returns the table, with its values inferred as constants. */
export function settingsTable<const Table extends SettingsTable>(table: Table): Table {
  return table
}

/**
 * Checks the value of a setting that redirects a client: a path on this host, or an http or https URL.
 * @returns what it must be, to follow the setting's name in a message; undefined when it is right
 */
export function checkRedirect(text: string): string | undefined {
  if (pathShape.test(text) || (urlShape.test(text) && URL.canParse(text))) return undefined
  return 'must be a path that begins with one slash, such as /login, or an http or https URL'
}

/**
 * Reads a group.
 * @param given its value in the file; undefined when the file has none
 * @returns every key's value or default, and a warning for each unknown key
 * @throws SettingsError with every problem
 */
export function readSettings<Table extends SettingsTable>(
  group: string,
  table: Table,
  given: unknown,
): { readonly settings: SettingsOf<Table>; readonly warnings: readonly string[] } {
  if (given !== undefined && !isObject(given)) {
    throw new SettingsError([`setup.${group} must be an object with ${Object.keys(table).join(', ')}`])
  }
  const members = new Map(Object.entries(given ?? {}))
  const problems: string[] = []
  const values = Object.entries(table).map(([key, row]): [string, unknown] => {
    const value: unknown = members.get(key)
    if (value === undefined) return [key, row.default]
    const reading = readValue(row, value)
    if ('value' in reading) return [key, reading.value]
    problems.push(`setup.${group}.${key} ${reading.problem}`)
    return [key, undefined]
  })
  if (problems.length > 0) throw new SettingsError(problems)
  const unknown = [...members.keys()].filter((key) => !Object.hasOwn(table, key))
  const warnings = unknown.map((key) => {
    const meant = nearest(key, Object.keys(table))
    return `unknown key setup.${group}.${key}${meant === undefined ? '' : `: did you mean ${meant}?`}`
  })
  // Every key has a value that its row allows.
  return { settings: Object.fromEntries(values) as SettingsOf<Table>, warnings }
}
