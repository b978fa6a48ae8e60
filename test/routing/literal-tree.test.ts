import assert from 'node:assert/strict'
import { test } from 'node:test'
import { candidate, treeOf, withMember, withoutMember } from '../../lib/routing/literal-tree.ts'
import type { LiteralTree, Member } from '../../lib/routing/literal-tree.ts'
import { Seeded } from '../support/seeded.ts'

/** A set of texts, by a tree; `find` compares the candidate as the router does. */
class Texts {
  #tree: LiteralTree<Member> | undefined = undefined
  readonly #members = new Map<string, Member>()

  constructor(texts: readonly string[] = []) {
    for (const text of texts) this.#members.set(text, { isBranch: false, text })
    if (texts.length > 0) this.#tree = treeOf([...this.#members.values()])
  }

  get texts(): string[] {
    return [...this.#members.keys()]
  }

  has(text: string): boolean {
    return this.#members.has(text)
  }

  add(text: string): void {
    const member: Member = { isBranch: false, text }
    this.#tree = this.#tree === undefined ? member : withMember(this.#tree, this.#members.size, member)
    this.#members.set(text, member)
  }

  remove(text: string): void {
    const member = this.#members.get(text)
    if (this.#tree === undefined || member === undefined) throw new Error(`${text} is not in`)
    this.#tree = withoutMember(this.#tree, member)
    this.#members.delete(text)
  }

  find(path: string, start: number): string | undefined {
    const text = this.#tree === undefined ? undefined : candidate(this.#tree, path, start)?.text
    const [segment] = path.slice(start).split('/', 1)
    return text === segment ? text : undefined
  }
}

/** Ways to make the text of a number. */
const makers: readonly (readonly [name: string, make: (index: number) => string])[] = [
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

for (const [name, make] of makers) {
  for (const [range, begin] of [[4, 0], [4, 3], [20, 0], [20, 15], [20, 19], [1_500, 0], [1_500, 700]] as const) {
    test(`finds what is in, and nothing else: ${range} ${name}, ${begin} at once`, () => {
      const seeded = new Seeded(7)
      const tree = new Texts([...new Set(Array.from({ length: begin }, (_, index) => make(index)))])
      for (let step = 0; step < 4_000; step += 1) {
        const text = make(seeded.integer(range))
        if (!tree.has(text)) tree.add(text)
        else if (seeded.integer(3) === 0) tree.remove(text)
        const asked = make(seeded.integer(range))
        for (const segment of [asked, asked.slice(0, -1), `${asked}x`, `x${asked}`, asked.slice(1)]) {
          const expected = tree.has(segment) ? segment : undefined
          assert.equal(tree.find(segment, 0), expected, segment)
          assert.equal(tree.find(`/b/${segment}/c/d`, 3), expected, segment)
        }
      }
      for (const text of tree.texts) assert.equal(tree.find(text, 0), text)
      for (const text of tree.texts) tree.remove(text)
      assert.equal(tree.find(make(1), 0), undefined)
    })
  }
}

for (const how of ['one by one', 'at once']) {
  test(`grows ${how} of a set that is made to be deep, and finds in it, in steps that grow with its characters`, () => {
    const texts = Array.from({ length: 1_000 }, (_, index) => 'a'.repeat(1_000 - index))
    const characters = texts.join('').length
    let tree = new Texts([])
    const toGrow = charactersRead(() => {
      tree = new Texts(how === 'at once' ? texts : [])
      for (const text of texts) if (!tree.has(text)) tree.add(text)
    })
    assert.ok(toGrow > characters && toGrow < 10 * characters, `${toGrow} for a set of ${characters}`)
    const toFind = charactersRead(() => {
      for (const text of texts) assert.equal(tree.find(text, 0), text)
    })
    assert.ok(toFind <= characters + texts.length, `${toFind} for a set of ${characters}`)
    assert.ok(charactersRead(() => assert.equal(tree.find('a'.repeat(100_000), 0), undefined)) <= 1_001)
  })
}

/** How many characters of texts some work reads one by one. */
function charactersRead(work: () => void): number {
  const { charCodeAt } = String.prototype
  let count = 0
  String.prototype.charCodeAt = function (this: string, index: number) {
    count += 1
    return charCodeAt.call(this, index)
  }
  try {
    work()
  } finally {
    String.prototype.charCodeAt = charCodeAt
  }
  return count
}

test('there is no tree of nothing', () => {
  assert.throws(() => treeOf([]), RangeError)
})
