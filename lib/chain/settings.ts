/**
 * The contract of the built-in middleware and its settings: each group of middleware has a group of settings in the
 * middleware configuration (`setup`), read by a table with one row per key, like `svc.json`.
 *
 * The functions stay the same for the life of the server. A reload changes the settings that they read: `prepare` reads
 * new settings, `commit` applies them, `abandon` drops them.
 */
import { isObject } from '../base/object.ts'
import { didYouMean } from '../base/nearest.ts'
import type { Row, ValueOf } from '../base/value.ts'
import { readValue } from '../base/value.ts'
import type { Middleware } from './compose.ts'

const pathShape = /^\/(?![/\\])[^\u0000-\u0020\u007f]*$/
const urlShape = /^https?:\/\/[^\u0000-\u0020\u007f]+$/i

/** The keys of a group. */
type SettingsTable = Readonly<Record<string, Row>>

/** The values of a group; every key has one. */
export type SettingsOf<Table extends SettingsTable> = { readonly [Key in keyof Table]: ValueOf<Table[Key]> }

/** The settings are invalid. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError'
  /** Each problem with its key and value. */
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('; '))
    this.problems = problems
  }
}

/** Settings that have been read. Either `commit` or `abandon` is called, once. */
export interface PreparedSettings {
  /** Harmless mistakes. */
  readonly warnings: readonly string[]
  /** Why the group's middleware cannot work with these settings, such as a missing key; undefined if it can. */
  readonly unready?: string | undefined
  /** Middleware that these settings define, by name. */
  readonly middleware?: ReadonlyMap<string, Middleware>
  commit(): void
  /** Drops the settings; absent if there is nothing to drop. */
  abandon?(): void
}

/** A group of built-in middleware. */
export interface BuiltInGroup {
  /** The name of its settings: `csrf` for `setup.csrf`. */
  readonly name: string
  /** The rows of its settings, for the documentation; absent where they are in a room that is loaded later. */
  readonly table?: SettingsTable
  /** Its middleware by name. */
  readonly middleware: ReadonlyMap<string, Middleware>
  /** By the name of a middleware of this group: the middleware that must come before it on a route. */
  readonly requires?: ReadonlyMap<string, string>
  /**
   * Loads code that only a group with settings needs; called before a `prepare` that is given some.
   * @throws SettingsError when this installation does not have it
   */
  load?(): Promise<void>
  /**
   * Reads settings without applying them.
   * @param given the group's value in the file; undefined if absent
   * @throws SettingsError with every problem
   */
  prepare(given: unknown): PreparedSettings
}

/**
 * Reads a group whose settings can always be applied.
 * @param use applies the settings
 * @throws SettingsError as `readSettings` does
 */
export function prepareSettings<Table extends SettingsTable>(
  group: string,
  table: Table,
  given: unknown,
  use: (settings: SettingsOf<Table>) => void,
): PreparedSettings {
  const { settings, warnings } = readSettings(group, table, given)
  return { warnings, commit: () => use(settings) }
}

/** Returns the table with literal types. */
export function settingsTable<const Table extends SettingsTable>(table: Table): Table {
  return table
}

/** Returns the value of `next` for a path as sent, also with its query: percent-encoded except `/`. */
export function nextOf(path: string): string {
  return encodeURIComponent(path).replaceAll('%2F', '/')
}

/**
 * Checks the target of a redirect setting: a path on this host, or an http or https URL.
 * @returns what it must be, to follow the setting's name in a message; undefined if it is valid
 */
export function checkRedirect(text: string): string | undefined {
  if (pathShape.test(text) || (urlShape.test(text) && URL.canParse(text))) return undefined
  return 'must be a path that begins with one slash, such as /login, or an http or https URL'
}

/**
 * Reads a group.
 * @param given its value in the file; undefined if absent
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
  const warnings = unknown.map((key) => `unknown key setup.${group}.${key}${didYouMean(key, Object.keys(table))}`)
  // Every key has a value that its row allows.
  return { settings: Object.fromEntries(values) as SettingsOf<Table>, warnings }
}
