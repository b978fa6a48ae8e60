// The seeded check of invalid tokens, for any number of them.
import assert from 'node:assert/strict'
import { createResourceTokens } from '../../lib/tokens/resource-id.ts'
import { Seeded } from '../support/seeded.ts'
import { mutate } from './mutate.ts'

/** Reads invalid tokens: none throws, and only genuine ones are accepted. */
export function checkWrongTokens(inputs: number): void {
  const seeded = new Seeded(4)
  let nowMs = 1_700_000_000_000
  const tokens = createResourceTokens({ keys: ['a', 'b'], now: () => nowMs })
  const idOf = new Map<string, string>()
  for (const id of ['1', '2', '12', 'a|b', 'é', '~~~', '1|1700000000', 'x'.repeat(30)]) {
    idOf.set(tokens.make(id), id)
    nowMs += 1000
  }
  const good = [...idOf.keys()]
  const foreign = createResourceTokens({ keys: ['c'], now: () => nowMs })
  let accepted = 0
  for (let round = 0; round < inputs; round += 1) {
    const token = mutate(seeded, [...good, foreign.make('1')])
    const id = tokens.read(token)
    assert.equal(id, idOf.get(token) ?? '', JSON.stringify(token))
    if (id !== '') accepted += 1
  }
  assert.ok(accepted > 0 && accepted < inputs / 10, `${accepted} were left as they were`)
}
