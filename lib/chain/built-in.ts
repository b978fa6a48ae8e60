/**
 * The contract of the server's own middleware. Each group of them has one group of settings in the middleware
 * configuration, which a reload may change.
 *
 * Surprise: the functions stay the same for the life of the server. What a reload changes is the settings that they
 * look at: `prepare` reads them aside, `commit` takes them into use, `abandon` drops them.
 */
import type { Middleware } from './compose.ts'
import type { SettingsTable } from './settings.ts'

/** Settings that were read and may be used. Either `commit` or `abandon` is called, once. */
export interface PreparedSettings {
  /** What is odd but does no harm. */
  readonly warnings: readonly string[]
  /** Why the group's middleware cannot work with these settings: a key that is missing, say. Undefined when it can. */
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
  /** By the name of a middleware of this group: the one that must stand before it on a route. */
  readonly requires?: ReadonlyMap<string, string>
  /**
   * Reads settings aside.
   * @param given the group's value in the file; undefined when it is not there
   * @throws SettingsError with every problem
   */
  prepare(given: unknown): PreparedSettings
}
