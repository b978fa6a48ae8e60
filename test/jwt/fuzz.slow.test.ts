import { it } from 'node:test'
import { checkMutatedTokens, checkRandomSecrets } from './fuzz-support.ts'

it('HS256: of 100,000 mutated tokens takes none, and throws for none', () => checkMutatedTokens('HS256', 100_000))

it('takes 1,000 secrets of random bytes, as base64, base64url and hex', () => checkRandomSecrets(1_000))
