/**
 * The tree of patterns: one edge per segment; literals are tried before the parameter, and the parameter before the
 * rest, with backtracking. With `/a/:x/c` and `/:y/b/d`, a lookup of `/a/b/d` descends into `a`, finds no `d`,
 * backtracks and matches the second pattern.
 *
 * A lookup visits a node at most once, since a node's depth is the number of segments before it. For any path, the work
 * is bounded by the number of nodes no deeper than the path, and the recursion by `maxSegments`.
 */
import { HttpError } from '../http/errors.ts'
import { canonicalLiteral, canonicalPath, decodeText, quote, type Pattern } from './pattern.ts'
import type { ErrorFormat, Match, Route } from './route.ts'

/** The methods that `allowed` lists for a route with method `*`. */
export const ordinaryMethods = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT'] as const

const slashCode = 47
/** With more literals of one length than this, a segment is looked up in a map. */
const maxCompared = 8

/**
 * The routes that end at one node of the tree, whatever the names of their parameters. The first route with a method
 * answers it, so routes after a `*` route are unreachable. GET also serves HEAD.
 */
class Leaf<T> {
  /** The match by method; `*` for every other method. Matches of the first route come first. */
  readonly #matches = new Map<string, Match<T>>()

  /** The route that was added first. */
  get first(): Route<T> | undefined {
    const [match] = this.#matches.values()
    return match?.route
  }

  /** Returns the route that answers a method, as a shared match without values. */
  pick(method: string): Match<T> | undefined {
    return this.#matches.get(method) ?? this.#matches.get('*')
  }

  /** Adds a route after the others. */
  add(route: Route<T>): void {
    if (this.#matches.has('*')) return
    const match = { route, values: [] }
    for (const method of methodsTaken(route.record.method)) {
      if (!this.#matches.has(method)) this.#matches.set(method, match)
    }
  }

  /** Adds the methods of the routes at this node. */
  addMethodsTo(methods: Set<string>): void {
    for (const [method, { route }] of this.#matches) {
      if (method === '*') for (const ordinary of ordinaryMethods) methods.add(ordinary)
      else if (method !== 'HEAD' || route.refusesHead !== true) methods.add(method)
    }
  }
}

/** A literal child of a node. */
interface Literal<T> {
  /** In canonical form. */
  readonly text: string
  readonly node: Node<T>
}

/**
 * The literal children of a node. A segment is compared with the children of the same length. If there are many, it is
 * looked up in a map instead: hashing a new string takes V8 longer than a few comparisons.
 */
class Literals<T> {
  readonly #byText = new Map<string, Node<T>>()
  readonly #byLength = new Map<number, Literal<T>[]>()

  /** Finds the child for the path segment from `start` to `end`, in canonical form. */
  find(path: string, start: number, end: number): Node<T> | undefined {
    const candidates = this.#byLength.get(end - start)
    if (candidates === undefined) return undefined
    if (candidates.length > maxCompared) return this.#byText.get(path.slice(start, end))
    for (const { text, node } of candidates) if (path.startsWith(text, start)) return node
    return undefined
  }

  /** Returns the child for a text in canonical form; creates it if necessary. */
  childFor(text: string): Node<T> {
    const known = this.#byText.get(text)
    if (known !== undefined) return known
    const node = new Node<T>()
    this.#byText.set(text, node)
    const sameLength = this.#byLength.get(text.length)
    if (sameLength === undefined) this.#byLength.set(text.length, [{ text, node }])
    else sameLength.push({ text, node })
    return node
  }
}

/** A node of the tree with its children: literals, one parameter, one rest. */
class Node<T> {
  literals: Literals<T> | undefined = undefined
  parameter: Node<T> | undefined = undefined
  /** The routes whose pattern takes the rest from here. */
  rest: Leaf<T> | undefined = undefined
  /** The routes whose pattern ends here. */
  leaf: Leaf<T> | undefined = undefined
}

/** A set of routes, searched by method and path. */
export class Trie<T> {
  readonly #root = new Node<T>()

  constructor(routes: readonly Route<T>[] = []) {
    for (const route of routes) this.add(route)
  }

  /**
   * Finds the route of a request.
   * @param path as sent, without query; a path that does not begin with `/`, such as `*`, is not found
   * @throws PathEncodingError if a parameter is not percent-encoded UTF-8
   */
  find(method: string, path: string): Match<T> | undefined {
    if (path.charCodeAt(0) !== slashCode) return undefined
    if (!path.includes('%')) return walk(this.#root, method, path, 1, 0)
    const match = this.findEncoded(method, path)
    if (match === undefined) return undefined
    return { route: match.route, values: match.values.map((value) => decodeValue(value, match.route)) }
  }

  /** Like `find`, with undecoded values. */
  findEncoded(method: string, path: string): Match<T> | undefined {
    return path.charCodeAt(0) === slashCode ? walk(this.#root, method, canonicalPath(path), 1, 0) : undefined
  }

  /** Returns the methods of a path, unordered, with HEAD if GET is allowed. */
  methodsOf(path: string): Set<string> {
    const methods = new Set<string>()
    if (path.charCodeAt(0) === slashCode) collectMethods(this.#root, canonicalPath(path), 1, methods)
    return methods
  }

  /** Returns the leaf of a pattern, whatever the names of its parameters; undefined if there is none. */
  leafOf(pattern: Pattern): Leaf<T> | undefined {
    let node: Node<T> | undefined = this.#root
    for (const segment of pattern.segments) {
      if (segment.kind === 'rest') return node.rest
      node = segment.kind === 'parameter' ? node.parameter : literalOf(node, segment.text)
      if (node === undefined) return undefined
    }
    return node.leaf
  }

  /** Adds a route after those with the same pattern. */
  add(route: Route<T>): void {
    leafFor(this.#root, route.pattern).add(route)
  }
}

/**
 * Walks from a node. The values are filled in on the way back, when the route is known.
 * @param start where the next segment begins; beyond the end of the path if there is none
 * @param count the number of parameters so far
 */
function walk<T>(node: Node<T>, method: string, path: string, start: number, count: number): Match<T> | undefined {
  if (start >= path.length) {
    const match = node.leaf?.pick(method)
    if (match !== undefined) return count === 0 ? match : { route: match.route, values: new Array<string>(count) }
  } else {
    const slash = path.indexOf('/', start)
    const end = slash < 0 ? path.length : slash
    if (end > start) {
      const literal = node.literals?.find(path, start, end)
      if (literal !== undefined) {
        const found = walk(literal, method, path, end + 1, count)
        if (found !== undefined) return found
      }
      if (node.parameter !== undefined) {
        const found = walk(node.parameter, method, path, end + 1, count + 1)
        if (found !== undefined) {
          const values = found.values as string[] // Created below in full length.
          values[count] = path.slice(start, end)
          return found
        }
      }
    }
  }
  const match = node.rest?.pick(method)
  if (match === undefined) return undefined
  const values = new Array<string>(count + 1)
  values[count] = path.slice(start)
  return { route: match.route, values }
}

/** A path parameter has a malformed percent-encoding. */
export class PathEncodingError extends HttpError {
  /** The error format of the route of the path. */
  readonly format: ErrorFormat

  constructor(value: string, { record }: Route<unknown>) {
    super(400, 'bad_path_encoding', `The path has a wrong percent-encoding in ${quote(value)}`)
    this.format = record.error_format ?? 'auto'
  }
}

function decodeValue(value: string, route: Route<unknown>): string {
  const text = decodeText(value)
  if (text === undefined) throw new PathEncodingError(value, route)
  return text
}

function collectMethods<T>(node: Node<T>, path: string, start: number, methods: Set<string>): void {
  node.rest?.addMethodsTo(methods)
  if (start >= path.length) return node.leaf?.addMethodsTo(methods)
  const next = path.indexOf('/', start)
  const end = next < 0 ? path.length : next
  if (end === start) return
  const child = node.literals?.find(path, start, end)
  if (child !== undefined) collectMethods(child, path, end + 1, methods)
  if (node.parameter !== undefined) collectMethods(node.parameter, path, end + 1, methods)
}

/** Returns the leaf of a pattern; creates it if necessary. */
function leafFor<T>(root: Node<T>, pattern: Pattern): Leaf<T> {
  let node = root
  for (const segment of pattern.segments) {
    if (segment.kind === 'rest') return (node.rest ??= new Leaf())
    if (segment.kind === 'literal') node = (node.literals ??= new Literals()).childFor(canonicalLiteral(segment.text))
    else node = node.parameter ??= new Node()
  }
  return (node.leaf ??= new Leaf())
}

function literalOf<T>(node: Node<T>, text: string): Node<T> | undefined {
  const canonical = canonicalLiteral(text)
  return node.literals?.find(canonical, 0, canonical.length)
}

/** Returns the methods of a record, and HEAD if GET is among them. */
function methodsTaken(methods: string): string[] {
  const list = methods.split(',')
  return list.includes('GET') && !list.includes('HEAD') ? [...list, 'HEAD'] : list
}
