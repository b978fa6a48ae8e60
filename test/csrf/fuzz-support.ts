// Invalid tokens against the token check, for a sample and for many.
import assert from 'node:assert/strict'
import { createCsrfTokens } from '../../lib/csrf/token.ts'
import { mutate } from '../tokens/mutate.ts'
import { Seeded } from '../support/seeded.ts'

/** Asserts for `count` seeded tokens that the check never throws and accepts only genuine ones, in their time. */
export function checkWrongTokens(inputs: number): void {
  const seeded = new Seeded(5)
  let nowMs = 1_700_000_000_000
  const now = (): number => nowMs
  const tokens = createCsrfTokens({ keys: ['a', 'b'], now })
  const old = tokens.make()
  nowMs += 60_000
  const good = Array.from({ length: 8 }, () => tokens.make())
  const foreign = createCsrfTokens({ keys: ['c'], now }).make()
  const counts: Record<string, number> = { ok: 0, malformed: 0, expired: 0, signature: 0 }
  for (let round = 0; round < inputs; round += 1) {
    const token = mutate(seeded, [...good, old, foreign])
    const verdict = tokens.check(token, 59)
    assert.equal(verdict === 'ok', good.includes(token), JSON.stringify(token))
    assert.equal(verdict === 'expired', token === old, JSON.stringify(token))
    counts[verdict] = (counts[verdict] ?? 0) + 1
  }
  for (const [verdict, count] of Object.entries(counts)) assert.ok(count > 0, `no token was ${verdict}`)
}
