/**
 * The tree of patterns: one edge a segment, literals before the parameter before the rest, with backtracking.
 * With `/a/:x/c` and `/:y/b/d` the path `/a/b/d` goes down `a`, finds no `d` there, comes back and ends at the second.
 *
 * Surprise: a find visits a node at most once, since a node's depth is the number of segments before it. However a
 * path is made, the work is bounded by the nodes of the table no deeper than the path, and the recursion by
 * `maxSegments`.
 */
import { HttpError } from '../http/errors.ts'
import { Leaf } from './leaf.ts'
import { candidate } from './literal-tree.ts'
import { Node, standsAt } from './node.ts'
import { decodeText, maxSegments } from './pattern.ts'
import type { Pattern, Segment } from './pattern.ts'
import { PlainPaths } from './plain-paths.ts'
import { quote } from './quote.ts'
import type { Match, Route } from './route.ts'

const slashCode = 47

/** A set of routes that is searched by method and path. */
export class Trie<T> {
  readonly #root = new Node<T>('', 0)
  /** The leaves of patterns without parameters. */
  readonly #plain = new PlainPaths<Leaf<T>>()
  /** Where the parameters of the present find begin and end, two places each. It belongs to one find at a time. */
  readonly #bounds = new Int32Array(2 * maxSegments)

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
    const match = walk(this.#bounds, this.#root, method, canonical(path), 1)
    return match === undefined ? undefined : { route: match.route, values: match.values.map(decodeValue) }
  }

  /** The methods that find an answer on a path, with HEAD where GET is, in no order. */
  methodsOf(path: string): Set<string> {
    const methods = new Set<string>()
    if (path.charCodeAt(0) === slashCode) collectMethods(this.#root, canonical(path), 1, methods)
    return methods
  }

  /** The routes with the pattern of this one, parameter names aside, in the order of registration. */
  siblings(pattern: Pattern): readonly Route<T>[] {
    let node: Node<T> | undefined = this.#root
    for (const segment of pattern.segments) {
      if (segment.kind === 'rest') return node.rest?.routes ?? []
      node = segment.kind === 'parameter' ? node.parameter : literalOf(node, segment.text)
      if (node === undefined) return []
    }
    return node.leaf?.routes ?? []
  }

  /** Adds a route behind those that have its pattern. */
  add(route: Route<T>): void {
    let node = this.#root
    for (const segment of route.pattern.segments) {
      if (segment.kind === 'rest') {
        node.rest ??= new Leaf('')
        node.rest.add(route)
        return
      }
      node = childFor(node, segment)
    }
    if (node.leaf === undefined) {
      const path = plainPath(route.pattern)
      node.leaf = new Leaf(path ?? '')
      if (path !== undefined) this.#plain.add(node.leaf)
    }
    node.leaf.add(route)
  }

  /** Takes a route out that is in. Nodes that lead nowhere then go too. */
  remove(route: Route<T>): void {
    const lastOne = prune(this.#root, route, 0)
    const leaf = lastOne ? this.#plain.get(plainPath(route.pattern) ?? '') : undefined
    if (leaf !== undefined) this.#plain.remove(leaf)
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

function childFor<T>(node: Node<T>, segment: Segment): Node<T> {
  if (segment.kind !== 'literal') return (node.parameter ??= new Node('', node.parametersBefore + 1))
  const known = literalOf(node, segment.text)
  if (known !== undefined) return known
  const made = new Node<T>(canonicalLiteral(segment.text), node.parametersBefore)
  node.addLiteral(made)
  return made
}

/** Removes below a node. Returns true when the last route of the pattern is gone. */
function prune<T>(node: Node<T>, route: Route<T>, depth: number): boolean {
  const segment = route.pattern.segments[depth]
  if (segment === undefined) {
    if (!node.leaf?.remove(route)) return false
    node.leaf = undefined
    return true
  }
  if (segment.kind === 'rest') {
    if (!node.rest?.remove(route)) return false
    node.rest = undefined
    return true
  }
  const child = segment.kind === 'parameter' ? node.parameter : literalOf(node, segment.text)
  if (child === undefined || !prune(child, route, depth + 1)) return false
  if (child.empty) {
    if (segment.kind === 'parameter') node.parameter = undefined
    else node.removeLiteral(child)
  }
  return true
}

/** The path of a pattern that has literals only. */
function plainPath(pattern: Pattern): string | undefined {
  let path = ''
  for (const segment of pattern.segments) {
    if (segment.kind !== 'literal') return undefined
    path += `/${canonicalLiteral(segment.text)}`
  }
  return path === '' ? '/' : path
}

/**
 * A path with its escapes undone, but for those of `/` and `%`: in this form a path and a literal are the same text
 * when they mean the same. A segment that is wrongly encoded stays as it is, and is then like no literal.
 */
function canonical(path: string): string {
  if (!path.includes('%')) return path
  return path.split('/').map(canonicalSegment).join('/')
}

function canonicalSegment(segment: string): string {
  const text = decodeText(segment)
  return text === undefined ? segment : canonicalLiteral(text)
}

function canonicalLiteral(text: string): string {
  if (!text.includes('%') && !text.includes('/')) return text
  return text.replaceAll('%', '%25').replaceAll('/', '%2F')
}

function literalOf<T>(node: Node<T>, text: string): Node<T> | undefined {
  const literal = canonicalLiteral(text)
  return node.literal(literal, 0)
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
