import { it } from 'node:test'
import { checkMutatedTokens, checkSignedClaims } from './fuzz-support.ts'

for (const [algorithm, count] of [['HS256', 20_000], ['RS256', 2_000], ['ES256', 2_000], ['EdDSA', 2_000]] as const) {
  it(`${algorithm}: refuses ${count} mutated tokens, and never throws`, () => {
    checkMutatedTokens(algorithm, count)
  })
}

it('accepts only claims of the right shape: 100,000 signed ones', () => checkSignedClaims(100_000))
