import { test } from 'node:test'
import { checkJson } from './json-map-support.ts'

test('takes and refuses what JSON.parse takes and refuses, but for doubled names, of 60,000 texts', () => {
  checkJson(60_000)
})
