import { test } from 'node:test'
import { checkWrongTokens } from './fuzz-support.ts'

test('checks 100,000 invalid tokens without throwing, and accepts only genuine ones', () => checkWrongTokens(100_000))
