import { test } from 'node:test'
import { checkWrongTokens } from './fuzz-support.ts'

test('reads wrong tokens without a throw, and takes none but those it made', () => checkWrongTokens(10_000))
