/**
 * The tree of patterns: one edge a segment; literals are tried before the parameter, and that before the rest, with
 * backtracking. With `/a/:x/c` and `/:y/b/d` the path `/a/b/d` goes down `a`, finds no `d` there, comes back and ends
 * at the second pattern.
 *
 * A find visits a node at most once, since a node's depth is the number of segments before it. Whatever the path is,
 * the work is bounded by the number of nodes no deeper than the path, and the recursion by `maxSegments`.
 */
import { HttpError } from '../http/errors.ts'
import { Leaf } from './leaf.ts'
import { candidate, withMember, type LiteralTree, type Member } from './literal-tree.ts'
import { canonicalLiteral, canonicalPath, decodeText, maxSegments, quote, type Pattern } from './pattern.ts'
import type { ErrorFormat, Match, Route } from './route.ts'

const slashCode = 47

/**
 * A node of the tree with its children: literals by their text, one parameter, one rest. A literal is compared in
 * place, by its character codes: for texts as short as segments that is faster than `startsWith` or cutting the segment
 * out.
 */
class Node<T> implements Member {
  readonly isBranch = false
  /** The segment that leads here, in canonical form; `''` for a parameter and in the root. */
  readonly text: string
  /** The character codes of the text. */
  readonly codes: readonly number[]
  /** The number of parameters that lead here: the index of the next one among the values. */
  readonly parametersBefore: number
  /** The literal children. A candidate of the tree must also be at its place in the path: `standsAt`. */
  literals: LiteralTree<Node<T>> | undefined = undefined
  parameter: Node<T> | undefined = undefined
  /** The routes whose pattern takes the rest from here. */
  rest: Leaf<T> | undefined = undefined
  /** The routes whose pattern ends here. */
  leaf: Leaf<T> | undefined = undefined

  constructor(text: string, parametersBefore: number) {
    this.text = text
    this.codes = text.split('').map((unit) => unit.charCodeAt(0))
    this.parametersBefore = parametersBefore
  }

  /** The literal child for the segment that begins at `start` in a path. */
  literal(path: string, start: number): Node<T> | undefined {
    const child = this.literals === undefined ? undefined : candidate(this.literals, path, start)
    return child !== undefined && standsAt(child.codes, path, start) ? child : undefined
  }

  /** The literal child for the text of a pattern, which is decoded. */
  literalOf(text: string): Node<T> | undefined {
    return this.literal(canonicalLiteral(text), 0)
  }
}

/** A set of routes that is searched by method and path. */
export class Trie<T> {
  readonly #root = new Node<T>('', 0)
  /** The beginnings and ends of the parameters, in turn. One find uses it at a time. */
  readonly #bounds = new Int32Array(2 * maxSegments)

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
    if (path.indexOf('%') < 0) return walk(this.#bounds, this.#root, method, path, 1)
    const match = walk(this.#bounds, this.#root, method, canonicalPath(path), 1)
    return match && { route: match.route, values: match.values.map((value) => decodeValue(value, match.route)) }
  }

  /** The methods that a path takes, with HEAD where GET is, in no order. */
  methodsOf(path: string): Set<string> {
    const methods = new Set<string>()
    if (path.charCodeAt(0) === slashCode) collectMethods(this.#root, canonicalPath(path), 1, methods)
    return methods
  }

  /** The routes with the same pattern, whatever the names of its parameters, in the order of registration. */
  siblings(pattern: Pattern): readonly Route<T>[] {
    let node: Node<T> | undefined = this.#root
    for (const segment of pattern.segments) {
      if (segment.kind === 'rest') return node.rest?.routes ?? []
      node = segment.kind === 'parameter' ? node.parameter : node.literalOf(segment.text)
      if (node === undefined) return []
    }
    return node.leaf?.routes ?? []
  }

  /** Adds a route after those with the same pattern. */
  add(route: Route<T>): void {
    leafFor(this.#root, route.pattern).add(route)
  }
}

/** Walks from a node; the next segment begins at `begin`, which is beyond the end of the path when there is none. */
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
  // A list literal is allocated at its final size.
  if (count === 1) return [path.slice(bounds[0], bounds[1])]
  if (count === 2) return [path.slice(bounds[0], bounds[1]), path.slice(bounds[2], bounds[3])]
  if (count === 3) {
    return [path.slice(bounds[0], bounds[1]), path.slice(bounds[2], bounds[3]), path.slice(bounds[4], bounds[5])]
  }
  const values: string[] = []
  for (let index = 0; index < count; index += 1) values.push(path.slice(bounds[2 * index], bounds[2 * index + 1]))
  return values
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

/** The leaf of a pattern; made when there is none. */
function leafFor<T>(root: Node<T>, pattern: Pattern): Leaf<T> {
  let node = root
  for (const segment of pattern.segments) {
    if (segment.kind === 'rest') return (node.rest ??= new Leaf())
    if (segment.kind === 'literal') node = literalFor(node, canonicalLiteral(segment.text))
    else node = node.parameter ??= new Node('', node.parametersBefore + 1)
  }
  return (node.leaf ??= new Leaf())
}

function literalFor<T>(node: Node<T>, text: string): Node<T> {
  const known = node.literal(text, 0)
  if (known !== undefined) return known
  const made = new Node<T>(text, node.parametersBefore)
  node.literals = withMember(node.literals, made)
  return made
}

/** Whether a path has these codes from `start` to the next slash or its end. */
function standsAt(codes: readonly number[], path: string, start: number): boolean {
  const end = start + codes.length
  if (end < path.length ? path.charCodeAt(end) !== slashCode : end > path.length) return false
  for (let index = 0; index < codes.length; index += 1) {
    if (path.charCodeAt(start + index) !== codes[index]) return false
  }
  return true
}
