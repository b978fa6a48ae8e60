/**
 * A node of the tree of patterns, with its ways on: literal children by their text, one parameter, one rest.
 *
 * Surprise: a literal is compared where it should stand in the path, with character codes that lie ready. For texts as
 * short as segments are, that is faster than `startsWith` or cutting the segment out.
 */
import { canonicalLiteral } from './canonical.ts'
import type { Leaf } from './leaf.ts'
import { candidate, treeOf, withMember, withoutMember } from './literal-tree.ts'
import type { LiteralTree, Member } from './literal-tree.ts'

const slashCode = 47

/** A node of the tree. */
export class Node<T> implements Member {
  readonly isBranch = false
  /** The segment that leads here, in canonical form; `''` when that is a parameter, and in the root. */
  readonly text: string
  /** The character codes of the text. */
  readonly codes: readonly number[]
  /** How many parameters lead here: the place of the next one among the values. */
  readonly parametersBefore: number
  /** The literal children. A candidate out of it is one only when it also `standsAt` its place. */
  literals: LiteralTree<Node<T>> | undefined = undefined
  parameter: Node<T> | undefined = undefined
  /** The routes whose pattern takes the rest from here. */
  rest: Leaf<T> | undefined = undefined
  /** The routes whose pattern ends here. */
  leaf: Leaf<T> | undefined = undefined
  #literalCount = 0
  /** Literal children by their texts, while a tree is filled. */
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

  /** The literal child that is the segment of a path from `start` on. */
  literal(path: string, start: number): Node<T> | undefined {
    const child = this.literals === undefined ? undefined : candidate(this.literals, path, start)
    return child !== undefined && standsAt(child.codes, path, start) ? child : undefined
  }

  /** The literal child of a text, which is as a pattern has it: decoded. */
  literalOf(text: string): Node<T> | undefined {
    return this.literal(canonicalLiteral(text), 0)
  }

  /** The literal child of a text in canonical form, made when it was not gathered yet. It is found from `settle` on. */
  gather(text: string): Node<T> {
    this.#gathered ??= new Map()
    const known = this.#gathered.get(text)
    if (known !== undefined) return known
    const made = new Node<T>(text, this.parametersBefore)
    this.#gathered.set(text, made)
    return made
  }

  /** Makes what was gathered here and further down the literal children; there must have been none. */
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

/** Whether these codes are those of a path from `start` to the next slash or the end. */
export function standsAt(codes: readonly number[], path: string, start: number): boolean {
  const end = start + codes.length
  if (end < path.length ? path.charCodeAt(end) !== slashCode : end > path.length) return false
  for (let index = 0; index < codes.length; index += 1) {
    if (path.charCodeAt(start + index) !== codes[index]) return false
  }
  return true
}
