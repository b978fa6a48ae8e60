// What the tests of the tree of literals share: a set by a tree, texts for it, and the seeded check of what it finds.
import assert from 'node:assert/strict'
import { candidate, withMember } from '../../lib/routing/literal-tree.ts'
import type { LiteralTree, Member } from '../../lib/routing/literal-tree.ts'
import { Seeded } from '../support/seeded.ts'

/** A set of texts, by a tree; `find` compares the candidate as the router does. */
export class Texts {
  #tree: LiteralTree<Member> | undefined = undefined
  readonly #members = new Map<string, Member>()

  constructor(texts: readonly string[] = []) {
    for (const text of texts) this.add(text)
  }

  get texts(): string[] {
    return [...this.#members.keys()]
  }

  has(text: string): boolean {
    return this.#members.has(text)
  }

  add(text: string): void {
    const member: Member = { isBranch: false, text }
    this.#tree = withMember(this.#tree, member)
    this.#members.set(text, member)
  }

  find(path: string, start: number): string | undefined {
    const text = this.#tree === undefined ? undefined : candidate(this.#tree, path, start)?.text
    const [segment] = path.slice(start).split('/', 1)
    return text === segment ? text : undefined
  }
}

/** Ways to make the text of a number. */
export const makers: readonly (readonly [name: string, make: (index: number) => string])[] = [
  ['numbers', (index) => String(index)],
  ['one beginning and one end', (index) => `customer-${index}-profile`],
  ['one length', (index) => String(index).padStart(6, '0')],
  ['each the beginning of the next', (index) => 'a'.repeat(1 + index % 600)],
  ['each the end of the next', (index) => `${'a'.repeat(index % 600)}b`],
  ['two letters', (index) => index.toString(2).replaceAll('0', 'a').replaceAll('1', 'b')],
  ['late differences', (index) => `${'x'.repeat(40)}${index % 30}${'y'.repeat(30)}${index}`],
  ['escapes', (index) => `a%2F${index % 7}%25${index}`],
  ['more than ASCII', (index) => `é${String.fromCodePoint(0x80 + index)}${index % 3 === 0 ? 'z' : ''}`],
  ['beyond the basic plane', (index) => String.fromCodePoint(0x1f300 + index % 50, 0x4e00 + index)],
]

/** Of how many texts there may be, and how many of them are in from the beginning. */
export const sizes = [[4, 0], [4, 3], [20, 0], [20, 15], [20, 19], [1_500, 0], [1_500, 700]] as const

/** Adds texts: what is in is found, and nothing else. */
export function checkTree(make: (index: number) => string, size: (typeof sizes)[number], steps: number): void {
  const [range, begin] = size
  const seeded = new Seeded(7)
  const tree = new Texts([...new Set(Array.from({ length: begin }, (_, index) => make(index)))])
  for (let step = 0; step < steps; step += 1) {
    const text = make(seeded.integer(range))
    if (!tree.has(text)) tree.add(text)
    const asked = make(seeded.integer(range))
    for (const segment of [asked, asked.slice(0, -1), `${asked}x`, `x${asked}`, asked.slice(1)]) {
      const expected = tree.has(segment) ? segment : undefined
      assert.equal(tree.find(segment, 0), expected, segment)
      assert.equal(tree.find(`/b/${segment}/c/d`, 3), expected, segment)
    }
  }
  for (const text of tree.texts) assert.equal(tree.find(text, 0), text)
}
