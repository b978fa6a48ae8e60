/**
 * The tree of patterns: one edge a segment; literals are tried before the parameter, and that before the rest, with
 * backtracking. With `/a/:x/c` and `/:y/b/d` the path `/a/b/d` goes down `a`, finds no `d` there, comes back and ends
 * at the second pattern.
 *
 * A find visits a node at most once, since a node's depth is the number of segments before it. Whatever the path is,
 * the work is bounded by the number of nodes no deeper than the path, and the recursion by `maxSegments`.
 */
import { HttpError } from '../http/errors.ts'
import { canonicalLiteral, canonicalPath, decodeText, quote, type Pattern } from './pattern.ts'
import type { ErrorFormat, Match, Route } from './route.ts'

/** The methods that `allowed` names for a route that takes every method. */
export const ordinaryMethods = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT'] as const

const slashCode = 47
/** With more literals of one length than this, a segment is looked up in a map. */
const mostCompared = 8

/**
 * The routes that end at one node of the tree, whatever the names of their parameters. The first that takes a method
 * answers it, so those after a `*` route are not reached. GET also serves HEAD.
 */
class Leaf<T> {
  /** By method, the match of the route that answers it; `*` for every other method. The first route's come first. */
  readonly #matches = new Map<string, Match<T>>()

  /** The route that was added first. */
  get first(): Route<T> | undefined {
    const [match] = this.#matches.values()
    return match?.route
  }

  /** The route that answers a method, as a match without values, which is made once a route. */
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

  /** Adds the methods that a route here takes. */
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
 * The literal children of a node. A segment is compared with those of the same length. When there are many of these, it
 * is looked up in a map instead: hashing a new text takes V8 longer than comparing a few.
 */
class Literals<T> {
  readonly #byText = new Map<string, Node<T>>()
  readonly #byLength = new Map<number, Literal<T>[]>()

  /** The child for the segment of a path from `start` to `end`, in canonical form. */
  find(path: string, start: number, end: number): Node<T> | undefined {
    const candidates = this.#byLength.get(end - start)
    if (candidates === undefined) return undefined
    if (candidates.length > mostCompared) return this.#byText.get(path.slice(start, end))
    for (const { text, node } of candidates) if (path.startsWith(text, start)) return node
    return undefined
  }

  /** The child for a text in canonical form; made when there is none. */
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

/** A set of routes that is searched by method and path. */
export class Trie<T> {
  readonly #root = new Node<T>()

  constructor(routes: readonly Route<T>[] = []) {
    for (const route of routes) this.add(route)
  }

  /**
   * Finds the route that answers.
   * @param path as sent, without query; one that does not begin with `/`, such as `*`, is not found
   * @throws PathEncodingError when the text of a parameter is not percent-encoded UTF-8
   */
  find(method: string, path: string): Match<T> | undefined {
    if (path.charCodeAt(0) !== slashCode) return undefined
    if (!path.includes('%')) return walk(this.#root, method, path, 1, 0)
    const match = this.findEncoded(method, path)
    if (match === undefined) return undefined
    return { route: match.route, values: match.values.map((value) => decodeValue(value, match.route)) }
  }

  /** Like `find`, with the values as they were sent. */
  findEncoded(method: string, path: string): Match<T> | undefined {
    return path.charCodeAt(0) === slashCode ? walk(this.#root, method, canonicalPath(path), 1, 0) : undefined
  }

  /** The methods that a path takes, with HEAD where GET is, in no order. */
  methodsOf(path: string): Set<string> {
    const methods = new Set<string>()
    if (path.charCodeAt(0) === slashCode) collectMethods(this.#root, canonicalPath(path), 1, methods)
    return methods
  }

  /** The leaf of a pattern, whatever the names of its parameters; undefined when there is none. */
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
 * @param start where the next segment begins, beyond the end of the path when there is none
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
          const values = found.values as string[] // Made below, for as many as there are.
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

/** A parameter of the path has a wrong percent-encoding. */
export class PathEncodingError extends HttpError {
  /** The form of errors of the route that the path leads to. */
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

/** The leaf of a pattern; made when there is none. */
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

/** The methods of a record, and HEAD when GET is among them. */
function methodsTaken(methods: string): string[] {
  const list = methods.split(',')
  return list.includes('GET') && !list.includes('HEAD') ? [...list, 'HEAD'] : list
}
