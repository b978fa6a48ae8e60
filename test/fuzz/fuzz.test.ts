import { test } from 'node:test'
import { seededFor, shown } from './target.ts'
import { targets } from './targets.ts'

const seed = 20_261

for (const { name, make, check } of targets) {
  test(`hostile inputs to ${name}: nothing is thrown, taken or found but what should be`, () => {
    for (let index = 0; index < 30; index += 1) {
      const input = make(seededFor(seed, index))
      try {
        check(input)
      } catch (cause) {
        throw new Error(`Input ${index} of seed ${seed} fails: ${shown(input)}`, { cause })
      }
    }
  })
}
