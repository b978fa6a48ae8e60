/**
 * The routes of one server: found by method and path for a request, by name elsewhere. System routes (`svc.*`) are
 * ordinary entries.
 *
 * `replaceApplication` fills another registry and then takes over what it has: a request sees the old table or the new
 * one, and when filling fails the old one stays.
 */
import type { ErrorFormat, Match, Route } from './route.ts'
import type { Pattern } from './pattern.ts'
import { Trie } from './trie.ts'

/** A route cannot be added, since another route has its name. */
export class NameTakenError extends Error {
  override readonly name = 'NameTakenError'

  constructor(routeName: string) {
    super(`Cannot add route "${routeName}": the name is taken: delete that route first or choose another name`)
  }
}

/** The form of errors below a prefix of routes. */
export interface PrefixFormat {
  /** As a pattern without a rest: `/api/:tenant`. */
  readonly prefix: Pattern
  readonly format: ErrorFormat
}

/** The table of routes. `T` is what the server runs for a route. */
export class Registry<T> {
  /** In the order of registration. */
  #byName = new Map<string, Route<T>>()
  #trie = new Trie<T>()
  /** The forms of errors below prefixes. */
  #formats = new Trie<ErrorFormat>()

  /**
   * Finds the route that answers.
   * @param method in upper case, as HTTP sends it; HEAD also finds what takes GET
   * @param path as sent, without query, beginning with `/`
   * @throws HttpError 400 `bad_path_encoding` when the text of a parameter is not percent-encoded UTF-8
   */
  find(method: string, path: string): Match<T> | undefined {
    return this.#trie.find(method, path)
  }

  /**
   * The methods for `Allow` (RFC 9110 section 10.2.1), sorted, with HEAD when there is GET, and with OPTIONS; none when
   * no pattern matches the path. A route for `*` counts as the ordinary methods.
   */
  allowed(path: string): readonly string[] {
    const methods = this.#trie.methodsOf(path)
    return methods.size === 0 ? [] : [...methods.add('OPTIONS')].sort()
  }

  /**
   * Adds a route after the others.
   * @throws NameTakenError when another has its name
   */
  add(route: Route<T>): void {
    const { name } = route.record
    if (this.#byName.has(name)) throw new NameTakenError(name)
    this.#byName.set(name, route)
    this.#trie.add(route)
  }

  /** The route of a name. */
  get(name: string): Route<T> | undefined {
    return this.#byName.get(name)
  }

  /** All routes in the order of registration; after a reload the system routes come first. */
  list(): readonly Route<T>[] {
    return [...this.#byName.values()]
  }

  /**
   * The form of errors of a path that no route answers: that of the prefix that it is below, else `auto`. Of several
   * prefixes the one counts whose routes the path would lead to.
   */
  errorFormatOf(path: string): ErrorFormat {
    return this.#formats.findEncoded('GET', path)?.route.target ?? 'auto'
  }

  /**
   * Replaces all routes except the system's in one step.
   * @param formats of errors below prefixes, those of now unless given; of two for one prefix the first counts
   * @throws NameTakenError when two have one name, or one has that of a system route; TypeError when a system route is
   *   among them. Nothing has changed then.
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
   * A route with the same pattern that answers one of this route's methods instead of it: an earlier one when this
   * route is in the table, else any. Undefined when this route answers, or would answer, all its methods.
   */
  shadowedBy({ record, pattern }: Pick<Route<T>, 'record' | 'pattern'>): Route<T> | undefined {
    const leaf = this.#trie.leafOf(pattern)
    const answering =
      record.method === '*' ? [leaf?.first] : record.method.split(',').map((method) => leaf?.pick(method)?.route)
    return answering.find((route) => route !== undefined && route.record.name !== record.name)
  }
}

/** The form of errors below a prefix, as a route that takes all that is below. */
function belowPrefix({ prefix, format }: PrefixFormat): Route<ErrorFormat> {
  const record = { name: '', url: prefix.text, action: '', method: '*', middleware: '', scope: '' }
  const segments = [...prefix.segments, { kind: 'rest', name: '' } as const]
  return { record, pattern: { ...prefix, segments }, system: false, target: format }
}
