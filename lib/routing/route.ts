/** The types of a route and of a match. The router never calls `target`. */
import type { Pattern } from './pattern.ts'

/** A route record in its normal form: the specification's fields, none missing, and those that may be missing. */
export interface RouteRecord {
  readonly name: string
  /** The URL pattern as the user wrote it. */
  readonly url: string
  /** The program, relative to `paths.root`, with `@export` at its end for a named export. */
  readonly action: string
  /** `*`, or methods in upper case, joined by commas without spaces: `GET,POST`. */
  readonly method: string
  /** Names joined by commas without spaces, in the order they run; `''` for none. */
  readonly middleware: string
  readonly scope: string
  /** The most KiB of a request's body, in place of `server.body_limit_kb`. */
  readonly body_limit_kb?: number
  /** The form of its errors, in place of the rule by the request: `auto` is that rule. */
  readonly error_format?: ErrorFormat
}

/** The form of errors. */
export type ErrorFormat = 'json' | 'html' | 'auto'

/** A route of the registry. `T` is what the server runs for it. */
export interface Route<T> {
  readonly record: RouteRecord
  readonly pattern: Pattern
  /** True for the server's own routes (`svc.*`): a reload keeps them. */
  readonly system: boolean
  /** True when a GET may change something, so that a HEAD which would is refused; `Allow` never names HEAD then. */
  readonly refusesHead?: boolean
  readonly target: T
}

/** The route that was found, and its parameters, percent-decoded, in the order of `route.pattern.names`. */
export interface Match<T> {
  readonly route: Route<T>
  readonly values: readonly string[]
}
