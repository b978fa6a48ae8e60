/**
 * What the router knows of a route, and what it answers: types alone.
 *
 * Surprise: `target`, the thing that runs, is opaque here. The router never calls it.
 */
import type { Pattern } from './pattern.ts'

/** A route record in its one normal form: the spec's fields, none missing, none unknown. */
export interface RouteRecord {
  readonly name: string
  /** The URL pattern as the user wrote it. */
  readonly url: string
  /** The program, relative to `paths.root`, maybe with `@export` behind it. */
  readonly action: string
  /** `*`, or methods in upper case, joined by commas without spaces: `GET,POST`. */
  readonly method: string
  /** Names joined by commas without spaces, in the order they run; `''` for none. */
  readonly middleware: string
  readonly scope: string
}

/** A route as it stands in the registry. `T` is what the server runs for it. */
export interface Route<T> {
  readonly record: RouteRecord
  readonly pattern: Pattern
  /** True for the server's own routes (`svc.*`): a reload keeps them. */
  readonly system: boolean
  /** True where what takes GET refuses HEAD, since a request changes something: `Allow` does not name it then. */
  readonly refusesHead?: boolean
  readonly target: T
}

/** A route found, and its parameters percent-decoded, in the order of `route.pattern.names`. */
export interface Match<T> {
  readonly route: Route<T>
  readonly values: readonly string[]
}
