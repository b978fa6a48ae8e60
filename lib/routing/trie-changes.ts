/**
 * How routes come into the tree of patterns and go again.
 *
 * Surprise: a tree that is filled is like one whose routes were added one after the other. It is only cheaper: each
 * node learns of its literals when all of them are known.
 */
import { canonicalLiteral, plainPath } from './canonical.ts'
import { Leaf } from './leaf.ts'
import { Node } from './node.ts'
import type { Pattern } from './pattern.ts'
import type { PlainPaths } from './plain-paths.ts'
import type { Route } from './route.ts'

/**
 * Fills a tree that is empty.
 * @param routes in the order of registration
 * @returns the leaves of patterns without parameters
 */
export function fillTree<T>(root: Node<T>, routes: readonly Route<T>[]): Leaf<T>[] {
  const plain: Leaf<T>[] = []
  for (const route of routes) {
    const leaf = leafFor(root, route.pattern, gatherLiteral)
    if (leaf.add(route) === 1 && leaf.text !== '') plain.push(leaf)
  }
  root.settle()
  return plain
}

/** Adds a route below the root, behind those that have its pattern. */
export function addRoute<T>(root: Node<T>, plain: PlainPaths<Leaf<T>>, route: Route<T>): void {
  const leaf = leafFor(root, route.pattern, literalFor)
  if (leaf.add(route) === 1 && leaf.text !== '') plain.add(leaf)
}

/** Removes a route that is below the root. */
export function removeRoute<T>(root: Node<T>, plain: PlainPaths<Leaf<T>>, route: Route<T>): void {
  const lastOne = prune(root, route, 0)
  const leaf = lastOne ? plain.get(plainPath(route.pattern) ?? '') : undefined
  if (leaf !== undefined) plain.remove(leaf)
}

/** The leaf of a pattern, made when it is not there yet. */
function leafFor<T>(root: Node<T>, pattern: Pattern, toLiteral: (node: Node<T>, text: string) => Node<T>): Leaf<T> {
  let node = root
  for (const segment of pattern.segments) {
    if (segment.kind === 'rest') return (node.rest ??= new Leaf(''))
    if (segment.kind === 'literal') node = toLiteral(node, canonicalLiteral(segment.text))
    else node = node.parameter ??= new Node('', node.parametersBefore + 1)
  }
  return (node.leaf ??= new Leaf(plainPath(pattern) ?? ''))
}

function gatherLiteral<T>(node: Node<T>, text: string): Node<T> {
  return node.gather(text)
}

function literalFor<T>(node: Node<T>, text: string): Node<T> {
  const known = node.literal(text, 0)
  if (known !== undefined) return known
  const made = new Node<T>(text, node.parametersBefore)
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
