import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkTree, makers, sizes, Texts } from './literal-tree-support.ts'

for (const [name, make] of makers) {
  for (const size of sizes) {
    test(`finds what is in, and nothing else: ${size[0]} ${name}, ${size[1]} at once`, () => checkTree(make, size, 600))
  }
}

test('grows of a set that is made to be deep, and finds in it, in steps that grow with its characters', () => {
  const texts = Array.from({ length: 1_000 }, (_, index) => 'a'.repeat(1_000 - index))
  const characters = texts.join('').length
  let tree = new Texts([])
  const toGrow = charactersRead(() => {
    tree = new Texts(texts)
  })
  assert.ok(toGrow > characters && toGrow < 10 * characters, `${toGrow} for a set of ${characters}`)
  const toFind = charactersRead(() => {
    for (const text of texts) assert.equal(tree.find(text, 0), text)
  })
  assert.ok(toFind <= characters + texts.length, `${toFind} for a set of ${characters}`)
  assert.ok(charactersRead(() => assert.equal(tree.find('a'.repeat(100_000), 0), undefined)) <= 1_001)
})

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
