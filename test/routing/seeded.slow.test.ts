// The seeded checks of this folder with enough inputs to find rare cases; the fast tests take a sample.
import { test } from 'node:test'
import { checkRenewal } from '../modules/modules-support.ts'
import { checkAnyRecords } from '../application/record-support.ts'
import { checkAgainstReference } from './trie-support.ts'

for (const [alphabet, count] of [['few segments', 400], ['many segments with the same prefix', 60]] as const) {
  test(`the router agrees with the reference on ${count} tables and paths of ${alphabet}, while routes change`, () => {
    checkAgainstReference(alphabet, count)
  })
}

test('after 60 rounds of changes the loaded routes are on disk, and the rest is unchanged', () => checkRenewal(60))

test('turns 20,000 JSON values into a record or problems', () => checkAnyRecords(20_000))
