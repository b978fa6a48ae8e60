/**
 * The tree of patterns: one edge a segment, literals before the parameter before the rest, with backtracking.
 * With `/a/:x/c` and `/:y/b/d` the path `/a/b/d` goes down `a`, finds no `d` there, comes back and ends at the second.
 *
 * Surprise: a find visits a node at most once, since a node's depth is the number of segments before it. However a
 * path is made, the work is bounded by the nodes of the table no deeper than the path, and the recursion by
 * `maxSegments`.
 */
import { HttpError } from '../http/errors.ts'
import { canonicalPath } from './canonical.ts'
import type { Leaf } from './leaf.ts'
import { candidate } from './literal-tree.ts'
import { Node, standsAt } from './node.ts'
import { decodeText, maxSegments } from './pattern.ts'
import type { Pattern } from './pattern.ts'
import { PlainPaths } from './plain-paths.ts'
import { quote } from './quote.ts'
import type { Match, Route } from './route.ts'
import { addRoute, fillTree, removeRoute } from './trie-changes.ts'

const slashCode = 47

/** A set of routes that is searched by method and path. */
export class Trie<T> {
  readonly #root = new Node<T>('', 0)
  /** The leaves of patterns without parameters. */
  readonly #plain: PlainPaths<Leaf<T>>
  /** Where the parameters of the present find begin and end, two places each. It belongs to one find at a time. */
  readonly #bounds = new Int32Array(2 * maxSegments)

  /** @param routes those that are in from the beginning; that is cheaper than adding them */
  constructor(routes: readonly Route<T>[] = []) {
    this.#plain = new PlainPaths(fillTree(this.#root, routes))
  }

  /**
   * Finds the route that answers.
   * @param path as sent, without query; one that does not begin with `/` (`*`, say) is not found
   * @throws HttpError 400 `bad_path_encoding` when the text of a parameter is not percent-encoded UTF-8
   */
  find(method: string, path: string): Match<T> | undefined {
    const ready = this.#plain.get(path)?.pick(method)
    if (ready !== undefined) return ready
    if (path.charCodeAt(0) !== slashCode) return undefined
    if (path.indexOf('%') < 0) return walk(this.#bounds, this.#root, method, path, 1)
    const match = walk(this.#bounds, this.#root, method, canonicalPath(path), 1)
    return match === undefined ? undefined : { route: match.route, values: match.values.map(decodeValue) }
  }

  /** The methods that find an answer on a path, with HEAD where GET is, in no order. */
  methodsOf(path: string): Set<string> {
    const methods = new Set<string>()
    if (path.charCodeAt(0) === slashCode) collectMethods(this.#root, canonicalPath(path), 1, methods)
    return methods
  }

  /** The routes with the pattern of this one, parameter names aside, in the order of registration. */
  siblings(pattern: Pattern): readonly Route<T>[] {
    let node: Node<T> | undefined = this.#root
    for (const segment of pattern.segments) {
      if (segment.kind === 'rest') return node.rest?.routes ?? []
      node = segment.kind === 'parameter' ? node.parameter : node.literalOf(segment.text)
      if (node === undefined) return []
    }
    return node.leaf?.routes ?? []
  }

  /** Adds a route behind those that have its pattern. */
  add(route: Route<T>): void {
    addRoute(this.#root, this.#plain, route)
  }

  /** Takes a route out that is in. Nodes that lead nowhere then go too. */
  remove(route: Route<T>): void {
    removeRoute(this.#root, this.#plain, route)
  }
}

/** Walks on from a node; the next segment begins at `begin`, and past the end of the path there is none. */
function walk<T>(bounds: Int32Array, from: Node<T>, method: string, path: string, begin: number): Match<T> | undefined {
  let node = from
  let start = begin
  while (start < path.length) {
    const { literals, parameter } = node
    const literal = literals === undefined ? undefined : candidate(literals, path, start)
    if (literal !== undefined && standsAt(literal.codes, path, start)) {
      const next = start + literal.codes.length + 1
      if (parameter === undefined && node.rest === undefined) {
        node = literal
        start = next
        continue
      }
      const match = walk(bounds, literal, method, path, next)
      if (match !== undefined) return match
    }
    if (parameter === undefined) return takeRest(bounds, node, method, path, start)
    const slash = path.indexOf('/', start)
    const end = slash < 0 ? path.length : slash
    if (end === start) return takeRest(bounds, node, method, path, start)
    bounds[2 * node.parametersBefore] = start
    bounds[2 * node.parametersBefore + 1] = end
    if (node.rest !== undefined) {
      return walk(bounds, parameter, method, path, end + 1) ?? takeRest(bounds, node, method, path, start)
    }
    node = parameter
    start = end + 1
  }
  const match = node.leaf?.pick(method)
  if (match === undefined) return takeRest(bounds, node, method, path, path.length)
  return node.parametersBefore === 0 ? match : { route: match.route, values: cut(path, bounds, node.parametersBefore) }
}

function takeRest<T>(
  bounds: Int32Array,
  node: Node<T>,
  method: string,
  path: string,
  start: number,
): Match<T> | undefined {
  const match = node.rest?.pick(method)
  if (match === undefined) return undefined
  const values = cut(path, bounds, node.parametersBefore)
  values.push(path.slice(start))
  return { route: match.route, values }
}

function cut(path: string, bounds: Int32Array, count: number): string[] {
  // Lists written out are made in one piece.
  if (count === 1) return [path.slice(bounds[0], bounds[1])]
  if (count === 2) return [path.slice(bounds[0], bounds[1]), path.slice(bounds[2], bounds[3])]
  if (count === 3) {
    return [path.slice(bounds[0], bounds[1]), path.slice(bounds[2], bounds[3]), path.slice(bounds[4], bounds[5])]
  }
  const values: string[] = []
  for (let index = 0; index < count; index += 1) values.push(path.slice(bounds[2 * index], bounds[2 * index + 1]))
  return values
}

function decodeValue(value: string): string {
  const text = decodeText(value)
  if (text !== undefined) return text
  throw new HttpError(400, 'bad_path_encoding', `The path has a wrong percent-encoding in ${quote(value)}`)
}

function collectMethods<T>(node: Node<T>, path: string, start: number, methods: Set<string>): void {
  node.rest?.addMethodsTo(methods)
  if (start >= path.length) {
    node.leaf?.addMethodsTo(methods)
    return
  }
  const next = path.indexOf('/', start)
  const end = next < 0 ? path.length : next
  if (end === start) return
  const child = node.literal(path, start)
  if (child !== undefined) collectMethods(child, path, end + 1, methods)
  if (node.parameter !== undefined) collectMethods(node.parameter, path, end + 1, methods)
}
