/**
 * The contract of the server's own middleware. Each group of them has one group of settings in the middleware
 * configuration, which a reload may change.
 *
 * The functions stay the same for the life of the server. A reload changes the settings that they read: `prepare` reads
 * new ones, `commit` takes them into use, `abandon` drops them.
 */
import type { Middleware } from './compose.ts'
import type { SettingsTable } from './settings.ts'

/** Settings that have been read. Either `commit` or `abandon` is called, once. */
export interface PreparedSettings {
  /** Mistakes that do no harm. */
  readonly warnings: readonly string[]
  /** Why the group's middleware cannot work with these settings, such as a missing key; undefined when it can. */
  readonly unready: string | undefined
  commit(): void
  abandon(): void
}

/** A group of the server's own middleware. */
export interface BuiltInGroup {
  /** The name of its settings: `csrf` for `setup.csrf`. */
  readonly name: string
  /** The rows of its settings, for reading and for the documentation. */
  readonly table: SettingsTable
  /** Its middleware by name. */
  readonly middleware: ReadonlyMap<string, Middleware>
  /** By the name of a middleware of this group: the one that must come before it on a route. */
  readonly requires?: ReadonlyMap<string, string>
  /**
   * Reads settings without taking them into use.
   * @param given the group's value in the file; undefined when the file has none
   * @throws SettingsError with every problem
   */
  prepare(given: unknown): PreparedSettings
}
