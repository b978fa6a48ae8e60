/**
 * How routes come into the tree of patterns and go again.
 *
 * Surprise: a tree that is grown of all its routes at once is like one that got them one after the other. It is only
 * cheaper: each node learns of its literals when all of them are known.
 */
import { canonicalLiteral, plainPath } from './canonical.ts'
import { Leaf } from './leaf.ts'
import { Node } from './node.ts'
import type { Segment } from './pattern.ts'
import type { PlainPaths } from './plain-paths.ts'
import type { Route } from './route.ts'

/**
 * Grows what is below a new node.
 * @param routes those that lead to the node with their first `depth` segments, in the order of registration
 * @param plain gets the leaves of patterns without parameters
 */
export function growNode<T>(node: Node<T>, routes: readonly Route<T>[], depth: number, plain: Leaf<T>[]): void {
  const behindLiterals = new Map<string, Route<T>[]>()
  const behindParameter: Route<T>[] = []
  for (const route of routes) {
    const segment = route.pattern.segments[depth]
    if (segment === undefined) {
      if (node.leaf === undefined) {
        node.leaf = new Leaf(plainPath(route.pattern) ?? '')
        if (node.leaf.text !== '') plain.push(node.leaf)
      }
      node.leaf.add(route)
    } else if (segment.kind === 'rest') {
      node.rest ??= new Leaf('')
      node.rest.add(route)
    } else if (segment.kind === 'parameter') {
      behindParameter.push(route)
    } else {
      const text = canonicalLiteral(segment.text)
      const group = behindLiterals.get(text)
      if (group === undefined) behindLiterals.set(text, [route])
      else group.push(route)
    }
  }
  const literals = Array.from(behindLiterals.keys(), (text) => new Node<T>(text, node.parametersBefore))
  for (const literal of literals) growNode(literal, behindLiterals.get(literal.text) ?? [], depth + 1, plain)
  node.setLiterals(literals)
  if (behindParameter.length === 0) return
  node.parameter = new Node('', node.parametersBefore + 1)
  growNode(node.parameter, behindParameter, depth + 1, plain)
}

/** Adds a route below the root, behind those that have its pattern. */
export function addRoute<T>(root: Node<T>, plain: PlainPaths<Leaf<T>>, route: Route<T>): void {
  let node = root
  for (const segment of route.pattern.segments) {
    if (segment.kind === 'rest') {
      node.rest ??= new Leaf('')
      node.rest.add(route)
      return
    }
    node = childFor(node, segment)
  }
  if (node.leaf === undefined) {
    node.leaf = new Leaf(plainPath(route.pattern) ?? '')
    if (node.leaf.text !== '') plain.add(node.leaf)
  }
  node.leaf.add(route)
}

/** Removes a route that is below the root. */
export function removeRoute<T>(root: Node<T>, plain: PlainPaths<Leaf<T>>, route: Route<T>): void {
  const lastOne = prune(root, route, 0)
  const leaf = lastOne ? plain.get(plainPath(route.pattern) ?? '') : undefined
  if (leaf !== undefined) plain.remove(leaf)
}

function childFor<T>(node: Node<T>, segment: Exclude<Segment, { kind: 'rest' }>): Node<T> {
  if (segment.kind === 'parameter') return (node.parameter ??= new Node('', node.parametersBefore + 1))
  const known = node.literalOf(segment.text)
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
  const child = segment.kind === 'parameter' ? node.parameter : node.literalOf(segment.text)
  if (child === undefined || !prune(child, route, depth + 1)) return false
  if (child.empty) {
    if (segment.kind === 'parameter') node.parameter = undefined
    else node.removeLiteral(child)
  }
  return true
}
