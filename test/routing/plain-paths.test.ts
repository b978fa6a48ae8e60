import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Member } from '../../lib/routing/literal-tree.ts'
import { PlainPaths } from '../../lib/routing/plain-paths.ts'
import { Seeded } from '../support/seeded.ts'

/** Ways to make the path of a number. */
const makers: readonly (readonly [name: string, make: (index: number) => string])[] = [
  ['one end', (index) => `/res${index}/list`],
  ['slashes at different places', (index) => `/${'ab/cd/ef'.slice(index % 4)}/${index}`],
  ['two lengths', (index) => `/a/${String(index).padStart(index % 2 === 0 ? 4 : 6, '0')}`],
  ['more than ASCII', (index) => `/é/${String.fromCodePoint(0x100 + index)}/list`],
]

for (const [name, make] of makers) {
  test(`holds what a Map holds: ${name}`, () => {
    const seeded = new Seeded(9)
    const paths = new PlainPaths<Member>()
    const model = new Map<string, Member>()
    for (let step = 0; step < 5_000; step += 1) {
      const text = make(seeded.integer(600))
      const known = model.get(text)
      if (known === undefined) {
        const member: Member = { isBranch: false, text }
        model.set(text, member)
        paths.add(member)
      } else if (seeded.integer(3) === 0) {
        model.delete(text)
        paths.remove(known)
      }
      const asked = make(seeded.integer(600))
      for (const path of [asked, `${asked}/`, asked.slice(0, -1)]) assert.equal(paths.get(path), model.get(path), path)
    }
    for (const member of model.values()) paths.remove(member)
    for (let index = 0; index < 600; index += 1) assert.equal(paths.get(make(index)), undefined)
  })
}

test('knows paths of up to 255 characters, and leaves longer ones alone', () => {
  const paths = new PlainPaths<Member>()
  const [longest, tooLong] = [254, 255].map((length): Member => ({ isBranch: false, text: `/${'a'.repeat(length)}` }))
  assert.ok(longest && tooLong)
  paths.add(longest)
  paths.add(tooLong)
  assert.deepEqual([paths.get(longest.text), paths.get(tooLong.text), paths.get('')], [longest, undefined, undefined])
  paths.remove(tooLong)
  paths.remove(longest)
  assert.equal(paths.get(longest.text), undefined)
})
