import { test } from 'node:test'
import { checkWrongTokens } from './fuzz-support.ts'

test('checks 10,000 invalid tokens without throwing, and accepts only genuine ones', () => checkWrongTokens(10_000))
