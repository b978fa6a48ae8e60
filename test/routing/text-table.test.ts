import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TextTable } from '../../lib/routing/text-table.ts'
import { Seeded } from '../support/seeded.ts'

/** Ways to make the text of a number: well spread, all in one slot, and in between. */
const makers: readonly (readonly [name: string, make: (index: number) => string])[] = [
  ['numbers', (index) => String(index)],
  ['paths with one end', (index) => `/${String(index).padStart(6, '0')}/list`],
  ['ends of two kinds', (index) => (index % 2 === 0 ? `/a/${index}` : `/${String(index).padStart(6, '0')}/edit`)],
  ['lengths', (index) => 'x'.repeat(index % 400) + String.fromCodePoint(0x100 + index)],
]

for (const [name, make] of makers) {
  test(`holds what a Map holds: ${name}`, () => {
    const seeded = new Seeded(7)
    const table = new TextTable<number>()
    const model = new Map<string, number>()
    for (let step = 0; step < 6_000; step += 1) {
      const number = seeded.integer(1_500)
      const text = make(number)
      if (!model.has(text)) {
        model.set(text, number)
        table.add(text, number)
      } else if (seeded.integer(3) === 0) {
        model.delete(text)
        table.remove(text)
      }
      assert.equal(table.size, model.size)
      const asked = make(seeded.integer(1_500))
      assert.equal(table.get(asked, 0, asked.length), model.get(asked))
      assert.equal(table.get(`/${asked}/`, 1, 1 + asked.length), model.get(asked))
    }
    for (const text of model.keys()) table.remove(text)
    assert.equal(table.size, 0)
    assert.equal(table.get(make(1), 0, make(1).length), undefined)
  })
}

test('finds texts of one character', () => {
  const table = new TextTable<number>()
  table.add('a', 1)
  assert.deepEqual([table.get('a', 0, 1), table.get('ba', 1, 2)], [1, 1])
  assert.deepEqual([table.get('b', 0, 1), table.get('', 0, 0)], [undefined, undefined])
})
