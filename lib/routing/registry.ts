/**
 * The routes of one server, by method and path for requests, by name elsewhere. System routes (`svc.*`) are ordinary
 * entries.
 *
 * `replaceApplication` fills a second registry and then takes over its tables: a request sees either the old table or
 * the new table, and if filling fails, the old one stays.
 */
import type { ErrorFormat, Match, Route } from './route.ts'
import type { Pattern } from './pattern.ts'
import { Trie } from './trie.ts'

/** A route cannot be added because its name is taken. */
export class NameTakenError extends Error {
  override readonly name = 'NameTakenError'

  constructor(routeName: string) {
    super(`Cannot add route "${routeName}": the name is taken: delete that route first or choose another name`)
  }
}

/** The error format below a prefix of routes. */
export interface PrefixFormat {
  /** A pattern without a rest: `/api/:tenant`. */
  readonly prefix: Pattern
  readonly format: ErrorFormat
}

/** The table of routes. `T` is what the server runs for a route. */
export class Registry<T> {
  /** In order of registration. */
  #byName = new Map<string, Route<T>>()
  #trie = new Trie<T>()
  /** The error formats below prefixes. */
  #formats = new Trie<ErrorFormat>()

  /**
   * Finds the route of a request.
   * @param method in upper case, as in HTTP; HEAD also matches GET routes
   * @param path as sent, without query, beginning with `/`
   * @throws HttpError 400 `bad_path_encoding` if a parameter is not percent-encoded UTF-8
   */
  find(method: string, path: string): Match<T> | undefined {
    return this.#trie.find(method, path)
  }

  /**
   * Returns the methods for `Allow` (RFC 9110 section 10.2.1), sorted, with HEAD if GET is allowed, and with OPTIONS;
   * empty if no pattern matches the path. A route for `*` counts as the ordinary methods.
   */
  allowed(path: string): readonly string[] {
    const methods = this.#trie.methodsOf(path)
    return methods.size === 0 ? [] : [...methods.add('OPTIONS')].sort()
  }

  /**
   * Adds a route after the others.
   * @throws NameTakenError if another route has its name
   */
  add(route: Route<T>): void {
    const { name } = route.record
    if (this.#byName.has(name)) throw new NameTakenError(name)
    this.#byName.set(name, route)
    this.#trie.add(route)
  }

  /** Returns the route with a name. */
  get(name: string): Route<T> | undefined {
    return this.#byName.get(name)
  }

  /** Returns all routes in order of registration; after a reload, system routes come first. */
  list(): readonly Route<T>[] {
    return [...this.#byName.values()]
  }

  /**
   * Returns the error format of an unmatched path: the format of the prefix above it, else `auto`. If several prefixes
   * match, the usual order of routes decides.
   */
  errorFormatOf(path: string): ErrorFormat {
    return this.#formats.findEncoded('GET', path)?.route.target ?? 'auto'
  }

  /**
   * Replaces all routes except system routes in one step. If it throws, nothing has changed.
   * @param formats of errors below prefixes; default: unchanged. Of two for one prefix the first counts
   * @throws NameTakenError for a duplicate name, also with a system route; TypeError if a system route is among them
   */
  replaceApplication(routes: readonly Route<T>[], formats?: readonly PrefixFormat[]): void {
    const kept = this.list().filter((route) => route.system)
    const wrong = routes.find((route) => route.system)
    if (wrong !== undefined) throw new TypeError(`Cannot replace routes: "${wrong.record.name}" is a system route`)
    const made = new Registry<T>()
    for (const route of [...kept, ...routes]) made.add(route)
    this.#byName = made.#byName
    this.#trie = made.#trie
    if (formats !== undefined) this.#formats = new Trie(formats.map(belowPrefix))
  }

  /**
   * Returns a route with the same pattern that answers one of this route's methods instead: an earlier route if this
   * one is in the table, else any. Undefined if this route answers, or would answer, all its methods.
   */
  shadowedBy({ record, pattern }: Pick<Route<T>, 'record' | 'pattern'>): Route<T> | undefined {
    const leaf = this.#trie.leafOf(pattern)
    const answering =
      record.method === '*' ? [leaf?.first] : record.method.split(',').map((method) => leaf?.pick(method)?.route)
    return answering.find((route) => route !== undefined && route.record.name !== record.name)
  }
}

/** Represents an error format as a route that matches everything below its prefix. */
function belowPrefix({ prefix, format }: PrefixFormat): Route<ErrorFormat> {
  const record = { name: '', url: prefix.text, action: '', method: '*', middleware: '', scope: '' }
  const segments = [...prefix.segments, { kind: 'rest', name: '' } as const]
  return { record, pattern: { ...prefix, segments }, system: false, target: format }
}
