/** The types of a route and of a match. The router never calls `target`. */
import type { Pattern } from './pattern.ts'

/** A normalized route record: all fields of the specification, and the optional ones. */
export interface RouteRecord {
  readonly name: string
  /** The URL pattern as configured. */
  readonly url: string
  /** The program, relative to `paths.root`, with `@export` at the end for a named export. */
  readonly action: string
  /** `*`, or methods in upper case, joined by commas without spaces: `GET,POST`. */
  readonly method: string
  /** Names joined by commas without spaces, in execution order; `''` for none. */
  readonly middleware: string
  readonly scope: string
  /** The maximum size of a request body in KiB; overrides `server.body_limit_kb`. */
  readonly body_limit_kb?: number
  /** The maximum seconds for a request to arrive; overrides `server.request_timeout_s`. */
  readonly request_timeout_s?: number
  /** The error format; `auto`, the default, decides by the request. */
  readonly error_format?: ErrorFormat
  /** A summary of one line. This field and the next ones are only for descriptions of the application. */
  readonly summary?: string
  readonly description?: string
  readonly deprecated?: boolean
  /** Whether the route is left out of the description. */
  readonly hidden?: boolean
}

/** The format of error responses. */
export type ErrorFormat = 'json' | 'html' | 'auto'

/** A route of the registry. `T` is the type of its handler. */
export interface Route<T> {
  readonly record: RouteRecord
  readonly pattern: Pattern
  /** True for the server's own routes (`svc.*`): a reload keeps them. */
  readonly system: boolean
  /** True if a GET may change something: HEAD requests that would are refused, and `Allow` never lists HEAD. */
  readonly refusesHead?: boolean
  readonly target: T
  /** Returns the function of its action, to describe it; undefined while it is not loaded. */
  readonly action?: () => unknown
}

/** The matched route, and its parameters, percent-decoded, in the order of `route.pattern.names`. */
export interface Match<T> {
  readonly route: Route<T>
  readonly values: readonly string[]
}

/** Returns the path of a named route with its parameters, percent-encoded. */
export type UrlBuilder = (name: string, params?: Readonly<Record<string, string | number>>) => string

/** A named route with its parameters. */
export interface RouteTarget {
  readonly route: string
  readonly params?: Readonly<Record<string, string | number>>
}
