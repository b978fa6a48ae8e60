import { test } from 'node:test'
import { checkWrongTokens } from './fuzz-support.ts'

test('reads invalid tokens without throwing, and accepts only genuine ones', () => checkWrongTokens(10_000))
