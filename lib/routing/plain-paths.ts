/**
 * The leaves of patterns without parameters, by their whole path: one comparison instead of a walk.
 *
 * There is a tree for each length. Most paths with parameters have a length that no plain path has, so that one load
 * rejects them; and texts of one length need no mark of their end.
 */
import { candidate, treeOf, withMember, withoutMember, type LiteralTree, type Member } from './literal-tree.ts'

/** Longer paths are left to the walk. */
const longest = 255

/** A table from whole paths to members. */
export class PlainPaths<M extends Member> {
  /** The trees and the numbers of their members, by the length of the texts. */
  readonly #trees = new Array<LiteralTree<M> | undefined>(longest + 1).fill(undefined)
  readonly #sizes = new Array<number>(longest + 1).fill(0)

  /** @param members the first ones, no two with the same text */
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

  /** The member whose text is the path; undefined when there is none, or the path is too long for the table. */
  get(path: string): M | undefined {
    if (path.length > longest) return undefined
    const tree = this.#trees[path.length]
    if (tree === undefined) return undefined
    const member = candidate(tree, path, 0)
    return member !== undefined && member.text === path ? member : undefined
  }

  /** Adds a member with a new text, unless it is too long. */
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
