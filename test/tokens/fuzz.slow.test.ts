import { test } from 'node:test'
import { checkWrongTokens } from './fuzz-support.ts'

test('reads 100,000 wrong tokens without a throw, and takes none but those it made', () => checkWrongTokens(100_000))
