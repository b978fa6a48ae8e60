import { test } from 'node:test'
import { checkAnyText, checkWholeTemplates } from './fuzz-support.ts'

test('each of 6,000 texts compiles or is a ViewError within its lines', () => checkAnyText(6_000))

test('1,000 whole templates compile, and render or name a line', () => checkWholeTemplates(1_000))
