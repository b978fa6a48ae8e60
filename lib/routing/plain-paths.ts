/**
 * The leaves of patterns without parameters, by their whole path: one comparison instead of a walk.
 *
 * Surprise: there is a tree for each length. Most paths with parameters have a length that no plain path has, and are
 * done after one load; and texts of one length need nothing that marks their end.
 */
import { candidate, treeOf, withMember, withoutMember } from './literal-tree.ts'
import type { LiteralTree, Member } from './literal-tree.ts'

/** Longer ones are left to the walk. */
const longest = 255

/** A table from whole paths to members. */
export class PlainPaths<M extends Member> {
  /** The trees and the number of their members, by the length of the texts. */
  readonly #trees = new Array<LiteralTree<M> | undefined>(longest + 1).fill(undefined)
  readonly #sizes = new Array<number>(longest + 1).fill(0)

  /** @param members those that are in from the beginning, no two with one text */
  constructor(members: readonly M[] = []) {
    const lengths = new Map<number, M[]>()
    for (const member of members) {
      const { length } = member.text
      const group = lengths.get(length)
      if (group !== undefined) group.push(member)
      else if (length <= longest) lengths.set(length, [member])
    }
    for (const [length, group] of lengths) {
      this.#trees[length] = treeOf(group)
      this.#sizes[length] = group.length
    }
  }

  /** The member whose text is the path; undefined when there is none, and for one that is too long for the table. */
  get(path: string): M | undefined {
    if (path.length > longest) return undefined
    const tree = this.#trees[path.length]
    if (tree === undefined) return undefined
    const member = candidate(tree, path, 0)
    return member !== undefined && member.text === path ? member : undefined
  }

  /** Adds a member whose text is not there yet, unless it is too long. */
  add(member: M): void {
    const { length } = member.text
    if (length > longest) return
    const tree = this.#trees[length]
    const size = this.#sizes[length] ?? 0
    this.#trees[length] = tree === undefined ? member : withMember(tree, size, member)
    this.#sizes[length] = size + 1
  }

  /** Removes a member that was added. */
  remove(member: M): void {
    const { length } = member.text
    const tree = this.#trees[length]
    if (tree === undefined) return
    this.#trees[length] = withoutMember(tree, member)
    this.#sizes[length] = (this.#sizes[length] ?? 0) - 1
  }
}
