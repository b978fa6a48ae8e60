import { it } from 'node:test'
import { checkMutatedTokens, checkSignedClaims } from './fuzz-support.ts'

for (const [algorithm, count] of [['HS256', 20_000], ['RS256', 2_000], ['ES256', 2_000], ['EdDSA', 2_000]] as const) {
  it(`${algorithm}: of ${count} mutated tokens takes none, and throws for none`, () => {
    checkMutatedTokens(algorithm, count)
  })
}

it('takes claims of no other shape: 100,000 that are signed', () => checkSignedClaims(100_000))
