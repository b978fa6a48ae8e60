/**
 * A node of the tree, with its ways on: literal children by their text, one parameter, one rest.
 *
 * Surprise: the only literal child of a node is kept apart from a table of several. It is compared where it should
 * stand in the path, with nothing cut out and, when there is no other way on, without looking for the end of the
 * segment.
 */
import type { Leaf } from './leaf.ts'
import { TextTable } from './text-table.ts'

/** A node of the tree. */
export class Node<T> {
  /** The segment that leads here, in canonical form; `''` when that is a parameter, and in the root. */
  readonly text: string
  /** How many parameters lead here: the place of the next one among the values. */
  readonly parametersBefore: number
  /** The routes whose pattern ends here. */
  leaf: Leaf<T> | undefined = undefined
  parameter: Node<T> | undefined = undefined
  /** The routes whose pattern takes the rest from here. */
  rest: Leaf<T> | undefined = undefined
  #only: Node<T> | undefined = undefined
  #several: TextTable<Node<T>> | undefined = undefined

  constructor(text: string, parametersBefore: number) {
    this.text = text
    this.parametersBefore = parametersBefore
  }

  /** True when nothing ends here or further down. */
  get empty(): boolean {
    return !this.#only && !this.#several && !this.parameter && !this.leaf && !this.rest
  }

  /** The literal child when that is the only way on. */
  get onlyWay(): Node<T> | undefined {
    return this.parameter === undefined && this.rest === undefined ? this.#only : undefined
  }

  /** The literal child whose text is the part of a path from `start` to before `end`. */
  literal(path: string, start: number, end: number): Node<T> | undefined {
    const only = this.#only
    if (only === undefined) return this.#several === undefined ? undefined : this.#several.get(path, start, end)
    return only.text.length === end - start && path.startsWith(only.text, start) ? only : undefined
  }

  /** Adds a literal child that is not there yet. */
  addLiteral(child: Node<T>): void {
    if (this.#only === undefined && this.#several === undefined) {
      this.#only = child
      return
    }
    this.#several ??= new TextTable()
    if (this.#only !== undefined) this.#several.add(this.#only.text, this.#only)
    this.#only = undefined
    this.#several.add(child.text, child)
  }

  /** Removes a literal child that is there. */
  removeLiteral(child: Node<T>): void {
    this.#only = undefined
    this.#several?.remove(child.text)
    if (this.#several?.size === 0) this.#several = undefined
  }
}
