/**
 * A node of the tree of patterns with its children: literals by their text, one parameter, one rest.
 *
 * A literal is compared in place, by its character codes: for texts as short as segments that is faster than
 * `startsWith` or cutting the segment out.
 */
import type { Leaf } from './leaf.ts'
import { candidate, treeOf, withMember, withoutMember, type LiteralTree, type Member } from './literal-tree.ts'
import { canonicalLiteral } from './pattern.ts'

const slashCode = 47

/** A node of the tree. */
export class Node<T> implements Member {
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
  #literalCount = 0
  /** The literal children by their texts, while a tree is filled. */
  #gathered: Map<string, Node<T>> | undefined = undefined

  constructor(text: string, parametersBefore: number) {
    this.text = text
    this.codes = text.split('').map((unit) => unit.charCodeAt(0))
    this.parametersBefore = parametersBefore
  }

  /** True when nothing ends here or further down. */
  get empty(): boolean {
    return !this.literals && !this.parameter && !this.leaf && !this.rest
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

  /** The literal child for a text in canonical form, made if there is none. It is found after `settle`. */
  gather(text: string): Node<T> {
    this.#gathered ??= new Map()
    const known = this.#gathered.get(text)
    if (known !== undefined) return known
    const made = new Node<T>(text, this.parametersBefore)
    this.#gathered.set(text, made)
    return made
  }

  /** Takes the gathered nodes here and below into use as literal children; there must have been none before. */
  settle(): void {
    this.parameter?.settle()
    if (this.#gathered === undefined) return
    const children = [...this.#gathered.values()]
    this.literals = treeOf(children)
    this.#literalCount = children.length
    this.#gathered = undefined
    for (const child of children) child.settle()
  }

  /** Adds a literal child that is not there yet. */
  addLiteral(child: Node<T>): void {
    this.literals = this.literals === undefined ? child : withMember(this.literals, this.#literalCount, child)
    this.#literalCount += 1
  }

  /** Removes a literal child that is there. */
  removeLiteral(child: Node<T>): void {
    this.literals = this.literals === undefined ? undefined : withoutMember(this.literals, child)
    this.#literalCount -= 1
  }
}

/** Whether a path has these codes from `start` to the next slash or its end. */
export function standsAt(codes: readonly number[], path: string, start: number): boolean {
  const end = start + codes.length
  if (end < path.length ? path.charCodeAt(end) !== slashCode : end > path.length) return false
  for (let index = 0; index < codes.length; index += 1) {
    if (path.charCodeAt(start + index) !== codes[index]) return false
  }
  return true
}
