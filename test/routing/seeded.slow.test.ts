// The seeded checks of this folder with as many inputs as find what is rare; the fast tests take a sample.
import { test } from 'node:test'
import { checkRenewal } from '../modules/modules-support.ts'
import { checkAnyRecords } from '../application/record-support.ts'
import { checkAgainstReference } from './trie-support.ts'

for (const [alphabet, count] of [['few segments', 400], ['many segments with one beginning', 60]] as const) {
  test(`the router agrees with the reference on ${count} tables and paths of ${alphabet}, while routes come and go`, () => {
    checkAgainstReference(alphabet, count)
  })
}

test('after 60 rounds of changes what is loaded is on disk, and the rest is what it was', () => checkRenewal(60))

test('answers 20,000 JSON values with a record or with problems', () => checkAnyRecords(20_000))
