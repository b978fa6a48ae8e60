/**
 * The routes of one server: found by method and path for a request, by name elsewhere. System routes (`svc.*`) are
 * ordinary entries.
 *
 * `replaceApplication` builds a new table and then takes it into use with one assignment: a request sees the old table
 * or the new one, and when building fails the old one stays.
 */
import type { ErrorFormat, Match, Route } from './route.ts'
import { canonicalLiteral, canonicalPath, type Pattern } from './pattern.ts'
import { Trie } from './trie.ts'

export type { Match, Route } from './route.ts'

/** A route cannot be added, since another route has its name. */
export class NameTakenError extends Error {
  override readonly name = 'NameTakenError'
  readonly routeName: string

  constructor(routeName: string) {
    super(`Cannot add route "${routeName}": the name is taken: delete that route first or choose another name`)
    this.routeName = routeName
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
  #table = new Table<T>()
  #formats: readonly PrefixFormat[] = []

  /**
   * Finds the route that answers.
   * @param method in upper case, as HTTP sends it; HEAD also finds what takes GET
   * @param path as sent, without query, beginning with `/`
   * @throws HttpError 400 `bad_path_encoding` when the text of a parameter is not percent-encoded UTF-8
   */
  find(method: string, path: string): Match<T> | undefined {
    return this.#table.trie.find(method, path)
  }

  /**
   * The methods for `Allow` (RFC 9110 section 10.2.1), sorted, with HEAD when there is GET, and with OPTIONS; none when
   * no pattern matches the path. A route for `*` counts as the ordinary methods.
   */
  allowed(path: string): readonly string[] {
    const methods = this.#table.trie.methodsOf(path)
    return methods.size === 0 ? [] : [...methods.add('OPTIONS')].sort()
  }

  /**
   * Adds a route after the others.
   * @throws NameTakenError when another has its name
   */
  add(route: Route<T>): void {
    this.#table.add(route)
  }

  /** The route of a name. */
  get(name: string): Route<T> | undefined {
    return this.#table.byName.get(name)
  }

  /** All routes in the order of registration; after a reload the system routes come first. */
  list(): readonly Route<T>[] {
    return [...this.#table.byName.values()]
  }

  /**
   * The form of errors of a path that no route answers: that of the prefix that it is below, else `auto`. Of several
   * prefixes the one counts whose routes the path would lead to.
   */
  errorFormatOf(path: string): ErrorFormat {
    if (this.#formats.length === 0) return 'auto'
    const segments = canonicalPath(path).split('/').slice(1)
    return this.#formats.find(({ prefix }) => isBelow(segments, prefix))?.format ?? 'auto'
  }

  /**
   * Replaces all routes except the system's in one step.
   * @param formats of errors below prefixes; of two for one prefix the first counts
   * @throws NameTakenError when two have one name, or one has that of a system route; TypeError when a system route is
   *   among them. Nothing has changed then.
   */
  replaceApplication(routes: readonly Route<T>[], formats = this.#formats): void {
    const kept = this.list().filter((route) => route.system)
    const wrong = routes.find((route) => route.system)
    if (wrong !== undefined) throw new TypeError(`Cannot replace routes: "${wrong.record.name}" is a system route`)
    this.#table = new Table([...kept, ...routes])
    this.#formats = formats.toSorted((a, b) => compare(a.prefix, b.prefix))
  }

  /**
   * The first route with the same pattern that answers one of this route's methods instead of it: an earlier one when
   * this route is in the table, else any. Undefined when this route answers, or would answer, all its methods.
   */
  shadowedBy(route: Pick<Route<T>, 'record' | 'pattern'>): Route<T> | undefined {
    const methods = route.record.method.split(',')
    for (const earlier of this.#table.trie.siblings(route.pattern)) {
      if (earlier.record.name === route.record.name) return undefined
      if (methods.some((method) => takes(earlier.record.method, method))) return earlier
    }
    return undefined
  }
}

class Table<T> {
  readonly byName = new Map<string, Route<T>>()
  readonly trie: Trie<T>

  constructor(routes: readonly Route<T>[] = []) {
    for (const route of routes) this.#claimName(route)
    this.trie = new Trie(routes)
  }

  add(route: Route<T>): void {
    this.#claimName(route)
    this.trie.add(route)
  }

  #claimName(route: Route<T>): void {
    const { name } = route.record
    if (this.byName.has(name)) throw new NameTakenError(name)
    this.byName.set(name, route)
  }
}

function isBelow(segments: readonly string[], { segments: wanted }: Pattern): boolean {
  return wanted.every((segment, at) => {
    const given = segments[at]
    if (given === undefined) return false
    return segment.kind === 'literal' ? given === canonicalLiteral(segment.text) : given !== ''
  })
}

/** Puts the prefix first that a path leads to, as in the tree of routes: a literal, then a parameter, then an end. */
function compare({ segments: one }: Pattern, { segments: other }: Pattern): number {
  const rankOf = (segment: Pattern['segments'][number] | undefined): number =>
    segment === undefined ? 2 : segment.kind === 'literal' ? 0 : 1
  for (let at = 0; at < Math.max(one.length, other.length); at += 1) {
    const difference = rankOf(one[at]) - rankOf(other[at])
    if (difference !== 0) return difference
  }
  return 0
}

function takes(methods: string, method: string): boolean {
  if (methods === '*' || method === '*') return true
  const list = methods.split(',')
  return list.includes(method) || (method === 'HEAD' && list.includes('GET'))
}
