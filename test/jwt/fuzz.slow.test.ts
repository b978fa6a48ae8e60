import { it } from 'node:test'
import { checkMutatedTokens, checkRandomSecrets } from './fuzz-support.ts'

it('HS256: refuses 100,000 mutated tokens, and never throws', () => checkMutatedTokens('HS256', 100_000))

it('accepts 1,000 secrets of random bytes, as base64, base64url and hex', () => checkRandomSecrets(1_000))
